package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server" // registers the original messages
	_ "github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb5 "github.com/hykube/hykube/internal/provider/tfplugin5"
	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// layout describes the wire format of a message: the numbers, kinds and names of its fields, and the same of the
// messages in them.
func layout(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) []string {
	if seen[m.FullName()] {
		return nil
	}
	seen[m.FullName()] = true
	var out []string
	fields := m.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		line := fmt.Sprintf("%s.%s = %d %s %s", relative(m), f.Name(), f.Number(), f.Cardinality(), f.Kind())
		if f.Message() != nil {
			line += " " + relative(f.Message())
			out = append(out, layout(f.Message(), seen)...)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// relative is a message's name without its package, in the words of protocol 6.
func relative(m protoreflect.MessageDescriptor) string {
	name := strings.TrimPrefix(string(m.FullName()), string(m.ParentFile().Package())+".")
	for five, six := range map[string]string{
		"PrepareProviderConfig.": "ValidateProviderConfig.", "ValidateResourceTypeConfig.": "ValidateResourceConfig.",
		"ValidateDataSourceConfig.": "ValidateDataResourceConfig.", "Configure.": "ConfigureProvider.", "Stop.": "StopProvider.",
	} {
		if rest, ok := strings.CutPrefix(name, five); ok {
			return six + rest
		}
	}
	return name
}

func original(t *testing.T, service string) protoreflect.ServiceDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.ServiceDescriptor)
}

func ours(t *testing.T, name string) protoreflect.MessageDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MessageDescriptor)
}

// TestProtocol6Layout compares our messages with the originals, call by call.
func TestProtocol6Layout(t *testing.T) {
	methods := original(t, "tfplugin6.Provider").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		for _, d := range []protoreflect.MessageDescriptor{m.Input(), m.Output()} {
			want := layout(d, map[protoreflect.FullName]bool{})
			got := slices.DeleteFunc(layout(ours(t, "hykube."+string(d.FullName())), map[protoreflect.FullName]bool{}), ahead)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s differs (-original +ours):\n%s", m.Name(), d.FullName(), diff)
			}
		}
	}
}

// TestProtocol5Layout checks an assumption of version5: the messages of protocol 5 are those of protocol 6, by number
// and kind, except for the schema, which has its own messages.
func TestProtocol5Layout(t *testing.T) {
	schema := string((&pb.GetProviderSchema_Response{}).ProtoReflect().Descriptor().FullName())
	methods := original(t, "tfplugin5.Provider").Methods()
	names := map[string]string{}
	for six := range original(t, "tfplugin6.Provider").Methods().Len() {
		name := string(original(t, "tfplugin6.Provider").Methods().Get(six).Name())
		names[method5(service+name)] = name
	}
	for i := range methods.Len() {
		m := methods.Get(i)
		six, ok := names[service5+string(m.Name())]
		if !ok {
			t.Errorf("nothing of protocol 6 becomes %s", m.Name())
			continue
		}
		for _, side := range []struct {
			five protoreflect.MessageDescriptor
			six  string
		}{{m.Input(), "Request"}, {m.Output(), string(m.Output().Name())}} {
			if side.five.Name() != protoreflect.Name(side.six) {
				continue // another message, such as an empty one
			}
			name := "hykube.tfplugin6." + six + "." + side.six
			if name == schema {
				name = string((&pb5.GetProviderSchema_Response{}).ProtoReflect().Descriptor().FullName())
			}
			want := layout(side.five, map[protoreflect.FullName]bool{})
			got := layout(ours(t, name), map[protoreflect.FullName]bool{})
			// Protocol 6 may have more fields, but no other and no fewer. A plugin of protocol 5 never sends the
			// additional ones.
			missing := slices.DeleteFunc(want, func(line string) bool {
				return slices.Contains(got, line) || unread(side.five, line)
			})
			for _, line := range missing {
				t.Errorf("%s: ours has no %s", side.five.FullName(), line)
			}
			for _, line := range got {
				if !slices.Contains(layout(side.five, map[protoreflect.FullName]bool{}), line) && !only6(line) && !ahead(line) {
					t.Errorf("%s: protocol 5 has no %s", side.five.FullName(), line)
				}
			}
		}
	}
}

// unread is the prepared configuration, which Terraform doesn't read either; ours skips it as an unknown field.
func unread(m protoreflect.MessageDescriptor, line string) bool {
	return m.FullName() == "tfplugin5.PrepareProviderConfig.Response" &&
		(strings.HasPrefix(line, "ValidateProviderConfig.Response.prepared_config = 1 ") || strings.HasPrefix(line, "DynamicValue."))
}

// ahead are the fields that Terraform has and terraform-plugin-go has not. A plugin that doesn't know them skips them.
func ahead(line string) bool {
	return line == "ClientCapabilities.store_planned_private = 3 optional bool" || line == "PlanResourceChange.Request.planned_private = 9 optional bytes"
}

// only6 are the fields that protocol 5 reserves.
func only6(line string) bool {
	return strings.HasPrefix(line, "GetMetadata.Response.state_stores = 8") || strings.HasPrefix(line, "GetMetadata.StateStoreMetadata.")
}
