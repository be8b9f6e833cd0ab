package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// Every call that may change something has a record before it and one after it. Without the first, there is no call.
func TestNoCallWithoutARecord(t *testing.T) {
	gone := cty.NullVal(thing(null, null).Type())
	apply := func(prior, planned cty.Value) func(*testing.T, RecordFunc) (int, error) {
		return func(t *testing.T, record RecordFunc) (int, error) {
			s := &scripted{t: t}
			ty := newType(t, s)
			ty.Audit = record
			o := ty.Apply(t.Context(), State{Value: prior}, &Planned{Value: planned}, planned)
			return len(s.applies), o.Err
		}
	}
	for operation, call := range map[audit.Operation]func(*testing.T, RecordFunc) (int, error){
		audit.Create: apply(gone, thing(str("1"), str("a"))),
		audit.Update: apply(thing(str("1"), str("a")), thing(str("1"), str("b"))),
		audit.Delete: apply(thing(str("1"), str("a")), gone),
		audit.Import: func(t *testing.T, record RecordFunc) (calls int, err error) {
			s := &scripted{t: t, imports: func(*tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
				calls++
				return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: "test_thing", State: wire(t, thing(str("1"), str("a")))}}}
			}}
			ty := newType(t, s)
			ty.Audit = record
			_, _, err = ty.Import(t.Context(), ImportBy{ID: "1"})
			return calls, err
		},
		audit.Open: func(t *testing.T, record RecordFunc) (int, error) {
			m := &modal{open: &tfprotov6.OpenEphemeralResourceResponse{Result: wire(t, thing(str("1"), str("a")))}}
			e := &Ephemeral{Name: "test_thing", Schema: &schema.Schema{Block: testBlock}, Provider: m, Audit: record}
			o, _, err := e.Open(t.Context(), thing(null, str("a")))
			if err == nil {
				err = o.Close(t.Context())
			}
			return count(m, "open"), err
		},
		audit.Invoke: func(t *testing.T, record RecordFunc) (int, error) {
			m := &modal{events: []tfprotov6.InvokeActionEvent{{Type: tfprotov6.CompletedInvokeActionEventType{}}}}
			a := &Action{Name: "test_poke", Schema: &schema.Schema{Block: testBlock}, Provider: m, Audit: record}
			_, err := a.Invoke(t.Context(), thing(null, str("a")), nil)
			return count(m, "invoke"), err
		},
	} {
		t.Run(string(operation), func(t *testing.T) {
			var records []string
			calls, err := call(t, func(o audit.Operation) (func(error), error) {
				records = append(records, string(o))
				return func(err error) { records = append(records, fmt.Sprint(err)) }, nil
			})
			if diff := cmp.Diff([]string{string(operation), "<nil>"}, records); diff != "" || calls != 1 || err != nil {
				t.Errorf("%d calls, %v, records (-want +got):\n%s", calls, err, diff)
			}
			full := errors.New("the disk is full")
			calls, err = call(t, func(audit.Operation) (func(error), error) { return nil, full })
			if calls != 0 || err == nil {
				t.Errorf("without a record: %d calls, %v", calls, err)
			}
		})
	}
}

// silent is a provider whose process ends during the call.
type silent struct{ tfprotov6.ProviderServer }

func (silent) ImportResourceState(context.Context, *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return nil, io.ErrUnexpectedEOF
}

func (silent) OpenEphemeralResource(context.Context, *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return nil, io.ErrUnexpectedEOF
}

// The record of a call without an answer says that its outcome is unknown, even if the caller may repeat the call.
func TestRecordOfACallWithoutAnAnswer(t *testing.T) {
	ty := newType(t, &scripted{t: t})
	ty.Provider = silent{ty.Provider}
	e := &Ephemeral{Name: "test_thing", Schema: &schema.Schema{Block: testBlock}, Provider: silent{&modal{}}}
	for operation, call := range map[audit.Operation]func(RecordFunc) error{
		audit.Import: func(record RecordFunc) error {
			ty.Audit = record
			_, _, err := ty.Import(t.Context(), ImportBy{ID: "1"})
			return err
		},
		audit.Open: func(record RecordFunc) error {
			e.Audit = record
			_, _, err := e.Open(t.Context(), thing(null, str("a")))
			return err
		},
	} {
		var recorded error
		err := call(func(audit.Operation) (func(error), error) { return func(err error) { recorded = err }, nil })
		if !diag.IsFailure(recorded, diag.Lost) || diag.IsFailure(err, diag.Lost) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: recorded %v, returned %v", operation, recorded, err)
		}
	}
}

func count(m *modal, call string) (n int) {
	for _, did := range m.calls {
		if did == call {
			n++
		}
	}
	return n
}
