package conform6

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// keeping holds the fields of a plan call by which a client says that it keeps the private data of plans.
// terraform-plugin-go's messages lack these fields, so keeping reads them from the unknown fields.
type keeping struct {
	// announced is client_capabilities.store_planned_private; blocks is computed_blocks_allowed.
	announced, blocks bool
	// private is planned_private.
	private []byte
}

type keepingKey struct{}

// withKeeping stores the fields in the context of their call.
func withKeeping(ctx context.Context, req proto.Message) context.Context {
	m := req.ProtoReflect()
	caps := m.Descriptor().Fields().ByName("client_capabilities")
	if m.Descriptor().FullName() != "tfplugin6.PlanResourceChange.Request" || caps == nil {
		return ctx
	}
	var k keeping
	unread(m.GetUnknown(), func(field protowire.Number, value []byte, _ uint64) {
		if field == 9 {
			k.private = value
		}
	})
	unread(m.Get(caps).Message().GetUnknown(), func(field protowire.Number, _ []byte, n uint64) {
		switch field {
		case 3:
			k.announced = n != 0
		case 4:
			k.blocks = n != 0
		}
	})
	return context.WithValue(ctx, keepingKey{}, k)
}

// unread visits the unknown fields of a message: bytes and numbers.
func unread(raw []byte, see func(field protowire.Number, value []byte, n uint64)) {
	for len(raw) > 0 {
		field, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(raw)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(raw)
		default:
			n = protowire.ConsumeFieldValue(field, kind, raw)
		}
		if n < 0 {
			return
		}
		see(field, value, number)
		raw = raw[n:]
	}
}

var madeUp atomic.Int64

// planKept plans a serial with a random value. The provider may return it in the plan only if the client keeps the
// plan's private data, from which the next plan of the same change reads it.
func (s *server) planKept(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest, resp *tfprotov6.PlanResourceChangeResponse, name string) error {
	k, _ := ctx.Value(keepingKey{}).(keeping)
	s.log(cloud.Call{RPC: "PlanKept", Type: req.TypeName, Name: name, Private: k.private, Detail: fmt.Sprintf("announced %t, computed blocks %t", k.announced, k.blocks)})
	if !k.announced {
		return nil
	}
	serial := fmt.Sprintf("made-up-%d-%d", time.Now().UnixNano(), madeUp.Add(1))
	if rest, ok := strings.CutPrefix(string(k.private), marker); ok {
		var back map[string]string
		if err := json.Unmarshal([]byte(rest), &back); err != nil {
			return fmt.Errorf("decode planned private data: %w", err)
		}
		value, err := base64.StdEncoding.DecodeString(back["serial"])
		if err != nil {
			return fmt.Errorf("decode planned private data: %w", err)
		}
		serial = strings.Trim(string(value), `"`)
	}
	resp.PlannedState = s.edit(req.TypeName, resp.PlannedState, func(m map[string]tftypes.Value) { m["serial"] = text(serial) })
	resp.PlannedPrivate = fmt.Appendf(nil, `%s{"serial":%q}`, marker, base64.StdEncoding.EncodeToString([]byte(`"`+serial+`"`)))
	return nil
}
