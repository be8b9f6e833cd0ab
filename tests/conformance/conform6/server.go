package conform6

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// framework is the interface of the framework's server.
type framework interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

// server returns the framework's answers, except where a behaviour changes them.
type server struct {
	framework
	options    cloud.Options
	types      map[string]tftypes.Type // of resources, data sources, ephemeral resources and actions
	identities map[string]tftypes.Type
	meta       tftypes.Type
	stop       func() // closed by a stop
	stopped    context.Context

	mu    sync.Mutex
	cloud *cloud.Cloud // nil until the provider is configured, unless the environment names it
}

func New(options cloud.Options) (tfprotov6.ProviderServer, error) {
	inner, ok := providerserver.NewProtocol6(&honest{options})().(framework)
	if !ok {
		return nil, fmt.Errorf("the framework's server lists no resources, or knows no actions")
	}
	s := &server{framework: inner, options: options, types: map[string]tftypes.Type{}, identities: map[string]tftypes.Type{}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	if dir := os.Getenv(cloud.DirectoryEnv); dir != "" {
		var err error
		if s.cloud, err = cloud.Open(dir); err != nil {
			return nil, err
		}
	}
	all, err := inner.GetProviderSchema(s.stopped, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	ids, err := inner.GetResourceIdentitySchemas(s.stopped, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return nil, err
	}
	for _, schemas := range []map[string]*tfprotov6.Schema{all.ResourceSchemas, all.DataSourceSchemas, all.EphemeralResourceSchemas} {
		for name, sch := range schemas {
			s.types[name] = sch.ValueType()
		}
	}
	for name, a := range all.ActionSchemas {
		s.types[name] = a.Schema.ValueType()
	}
	for name, id := range ids.IdentitySchemas {
		s.identities[name] = id.ValueType()
	}
	s.types[rawName] = rawSchema().ValueType()
	s.meta = all.ProviderMeta.ValueType()
	return s, nil
}

func (s *server) GetProviderSchema(ctx context.Context, req *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	resp, err := s.framework.GetProviderSchema(ctx, req)
	if err != nil {
		return nil, err
	}
	// The framework reuses its maps.
	resp.ResourceSchemas = maps.Clone(resp.ResourceSchemas)
	resp.ResourceSchemas[rawName] = rawSchema()
	caps := *resp.ServerCapabilities
	caps.PlanDestroy = !s.options.NoPlanDestroy
	caps.MoveResourceState = !s.options.NoMove
	resp.ServerCapabilities = &caps
	s.pad(resp.ResourceSchemas)
	return resp, nil
}

// pad enlarges the schema to the size in the options, with types that have long descriptions, as large providers do.
func (s *server) pad(schemas map[string]*tfprotov6.Schema) {
	const perType = 256
	for i := range s.options.PaddingMB * (1 << 20) / (perType << 10) {
		b := &tfprotov6.SchemaBlock{}
		for k := range perType {
			b.Attributes = append(b.Attributes, &tfprotov6.SchemaAttribute{
				Name: fmt.Sprintf("attribute_%d", k), Type: tftypes.String, Optional: true, Description: strings.Repeat("What it is for. ", 64),
			})
		}
		schemas[fmt.Sprintf("conform6_padding_%d", i)] = &tfprotov6.Schema{Block: b}
	}
}

func (s *server) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	v, err := req.Config.Unmarshal(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"directory": tftypes.String}})
	if err != nil {
		return nil, err
	}
	c, err := cloud.Open(cmp.Or(textOf(v, "directory"), os.Getenv(cloud.DirectoryEnv)))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.cloud = c
	s.mu.Unlock()
	s.log(cloud.Call{RPC: "ConfigureProvider", Detail: req.TerraformVersion})
	return s.framework.ConfigureProvider(ctx, req)
}

func (s *server) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.log(cloud.Call{RPC: "StopProvider"})
	s.stop()
	return s.framework.StopProvider(ctx, req)
}

func (s *server) where() *cloud.Cloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cloud
}

func (s *server) log(call cloud.Call) {
	if c := s.where(); c != nil {
		if err := c.Log(call); err != nil {
			fmt.Fprintln(os.Stderr, "log call:", err)
		}
	}
}

// behaviours returns a resource's name and its behaviours, from the first value that has them.
func (s *server) behaviours(typeName string, values ...*tfprotov6.DynamicValue) (name string, b cloud.Behaviours) {
	ty := s.types[typeName]
	behaviour := ""
	for _, dv := range values {
		if dv == nil || ty == nil {
			continue
		}
		v, err := dv.Unmarshal(ty)
		if err != nil || v.IsNull() {
			continue
		}
		name, behaviour = cmp.Or(name, textOf(v, "name")), cmp.Or(behaviour, textOf(v, "behaviour"))
		break
	}
	c := s.where()
	if c == nil {
		return name, strings.Split(behaviour, ",")
	}
	return name, c.Behaviours(name, behaviour)
}

// isNull reports whether an encoded value is null.
func isNull(dv *tfprotov6.DynamicValue) bool {
	if dv == nil {
		return true
	}
	null, err := dv.IsNull()
	return err == nil && null
}

// edit changes the attributes of an encoded object.
func (s *server) edit(typeName string, dv *tfprotov6.DynamicValue, f func(map[string]tftypes.Value)) *tfprotov6.DynamicValue {
	ty := s.types[typeName]
	v, err := dv.Unmarshal(ty)
	if err != nil {
		panic(fmt.Sprintf("decode %s: %v", typeName, err)) // a bug of the suite
	}
	m := fields(v)
	if m == nil {
		return dv
	}
	f(m)
	return encode(ty, m)
}

func encode(ty tftypes.Type, v any) *tfprotov6.DynamicValue {
	dv, err := tfprotov6.NewDynamicValue(ty, tftypes.NewValue(ty, v))
	if err != nil {
		panic(fmt.Sprintf("encode: %v", err)) // a bug of the suite
	}
	return &dv
}

// misfit is a value that fits no type of the provider.
func misfit() *tfprotov6.DynamicValue {
	ty := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"surprise": tftypes.String}}
	return encode(ty, map[string]tftypes.Value{"surprise": text("boo")})
}

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func unknown(ty tftypes.Type) tftypes.Value { return tftypes.NewValue(ty, tftypes.UnknownValue) }

func problem(severity tfprotov6.DiagnosticSeverity, summary string) *tfprotov6.Diagnostic {
	return &tfprotov6.Diagnostic{
		Severity: severity, Summary: summary, Detail: "As commanded.", Attribute: tftypes.NewAttributePath().WithAttributeName("name"),
	}
}

// failed returns the error of a provider that fails on command.
func failed() []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{problem(tfprotov6.DiagnosticSeverityError, "Failed on command")}
}

// marker is a prefix of private bytes that are not valid text.
const marker = "\x00\xff\xfe\x80private\n"

// sealed encodes private bytes for the client so that a client that handles them as text breaks them.
func sealed(b cloud.Behaviours, private []byte) []byte {
	if !b.Has("binary-private") {
		return private
	}
	return slices.Concat([]byte(marker), private)
}

// opened decodes private bytes for the framework.
func opened(private []byte) []byte {
	if rest, ok := strings.CutPrefix(string(private), marker); ok {
		private = []byte(rest)
	}
	if len(private) == 0 {
		return nil
	}
	return private
}

// module returns the module in a call's provider_meta.
func (s *server) module(meta *tfprotov6.DynamicValue) string {
	if meta == nil {
		return "module: none"
	}
	v, err := meta.Unmarshal(s.meta)
	if err != nil {
		return "module: " + err.Error()
	}
	return "module: " + textOf(v, "module")
}
