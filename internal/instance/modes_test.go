package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// modal is a provider of everything but managed resources.
type modal struct {
	tfprotov6.ProviderServer
	read   *tfprotov6.ReadDataSourceResponse
	open   *tfprotov6.OpenEphemeralResourceResponse
	renew  func() *tfprotov6.RenewEphemeralResourceResponse
	events []tfprotov6.InvokeActionEvent
	found  []tfprotov6.ListResourceResult
	call   func(*tfprotov6.CallFunctionRequest) *tfprotov6.CallFunctionResponse

	refusal  []*tfprotov6.Diagnostic
	deferred *tfprotov6.Deferred
	calls    []string
	meta     *tfprotov6.DynamicValue
}

func (m *modal) did(format string, args ...any) {
	m.calls = append(m.calls, fmt.Sprintf(format, args...))
}

func (m *modal) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	m.did("validate")
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: m.refusal}, nil
}

func (m *modal) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	m.did("read")
	m.meta = r.ProviderMeta
	return m.read, nil
}

func (m *modal) ValidateEphemeralResourceConfig(context.Context, *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	m.did("validate")
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{Diagnostics: m.refusal}, nil
}

func (m *modal) OpenEphemeralResource(context.Context, *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	m.did("open")
	return m.open, nil
}

func (m *modal) RenewEphemeralResource(_ context.Context, r *tfprotov6.RenewEphemeralResourceRequest) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	m.did("renew %s", r.Private)
	return m.renew(), nil
}

func (m *modal) CloseEphemeralResource(ctx context.Context, r *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	m.did("close %s", r.Private)
	return &tfprotov6.CloseEphemeralResourceResponse{}, ctx.Err()
}

func (m *modal) ValidateActionConfig(context.Context, *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	m.did("validate")
	return &tfprotov6.ValidateActionConfigResponse{Diagnostics: m.refusal}, nil
}

func (m *modal) PlanAction(context.Context, *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	m.did("plan")
	return &tfprotov6.PlanActionResponse{Deferred: m.deferred}, nil
}

func (m *modal) InvokeAction(context.Context, *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	m.did("invoke")
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for _, e := range m.events {
			if !yield(e) {
				return
			}
		}
	}}, nil
}

func (m *modal) ValidateListResourceConfig(_ context.Context, r *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	limit, err := schema.Decode(r.Limit, cty.Number)
	if err != nil {
		return nil, err
	}
	m.did("validate limit %s", limit.AsBigFloat().Text('f', 0))
	return &tfprotov6.ValidateListResourceConfigResponse{Diagnostics: m.refusal}, nil
}

func (m *modal) ListResource(_ context.Context, r *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	m.did("list")
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for _, f := range m.found {
			if !yield(f) {
				return
			}
		}
	}}, nil
}

func (m *modal) CallFunction(_ context.Context, r *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	m.did("call %s", r.Name)
	return m.call(r), nil
}

func (m *modal) sequence(want ...string) string { return cmp.Diff(want, m.calls) }

func TestDataSourceRead(t *testing.T) {
	unknown := thing(cty.UnknownVal(cty.String), str("a"))
	for name, tc := range map[string]struct {
		reason  string
		config  cty.Value
		refusal []*tfprotov6.Diagnostic
		reply   *tfprotov6.ReadDataSourceResponse
		allowed bool
		want    cty.Value
		err     string
	}{
		"read":         {"marks of the configuration stay", thing(null, str("a").Mark(lang.Sensitive)), nil, &tfprotov6.ReadDataSourceResponse{State: wire(t, thing(str("1"), str("a")))}, false, thing(str("1"), str("a").Mark(lang.Sensitive)), ""},
		"not yet":      {"it is read with a known configuration alone", unknown, nil, nil, false, cty.NilVal, "not known yet"},
		"invalid":      {"it is not read then", thing(null, str("a")), failure("no such name"), nil, false, cty.NilVal, "no such name"},
		"refused":      {"the provider says why", thing(null, str("a")), nil, &tfprotov6.ReadDataSourceResponse{Diagnostics: failure("not found")}, false, cty.NilVal, "not found"},
		"nothing":      {"a data source is something", thing(null, str("a")), nil, &tfprotov6.ReadDataSourceResponse{}, false, cty.NilVal, "with nothing"},
		"open":         {"a data source is wholly known", thing(null, str("a")), nil, &tfprotov6.ReadDataSourceResponse{State: wire(t, unknown)}, false, cty.NilVal, "unknown values"},
		"put off":      {"we did not say that it may", thing(null, str("a")), nil, &tfprotov6.ReadDataSourceResponse{Deferred: &tfprotov6.Deferred{}}, false, cty.NilVal, "bug of the provider"},
		"put off, may": {"the caller can handle it", thing(null, str("a")), nil, &tfprotov6.ReadDataSourceResponse{Deferred: &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonProviderConfigUnknown}}, true, cty.NilVal, "its own configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &modal{read: tc.reply, refusal: tc.refusal}
			d := DataSource{Name: "test_thing", Schema: &schema.Schema{Block: testBlock}, Provider: m, Deferral: tc.allowed, MetaBlock: testBlock}
			got, _, err := d.Read(t.Context(), tc.config)
			wantError(t, tc.reason, err, tc.err)
			if !same(got, tc.want) {
				t.Errorf("%s: got %#v", tc.reason, got)
			}
			if tc.reply != nil && m.meta == nil {
				t.Error("the provider's metadata did not go along")
			}
			if _, ok := errors.AsType[*DeferredError](err); ok != tc.allowed {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	d := DataSource{Schema: &schema.Schema{Block: testBlock}}
	if got, want := d.Unread(thing(null, str("a").Mark(lang.Sensitive))), thing(cty.UnknownVal(cty.String), str("a").Mark(lang.Sensitive)); !got.RawEquals(want) {
		t.Errorf("unread: got %#v, want %#v", got, want)
	}
}

func TestEphemeralIsRenewedAndClosed(t *testing.T) {
	ephemeral := func(m *modal) *Ephemeral {
		return &Ephemeral{Name: "test_token", Schema: &schema.Schema{Block: testBlock}, Provider: m}
	}
	result := wire(t, thing(str("1"), str("a")))
	t.Run("in the background", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &modal{open: &tfprotov6.OpenEphemeralResourceResponse{Result: result, Private: []byte("p0"), RenewAt: time.Now().Add(10 * time.Minute)}}
			var renewals atomic.Int64
			m.renew = func() *tfprotov6.RenewEphemeralResourceResponse {
				return &tfprotov6.RenewEphemeralResourceResponse{Private: fmt.Appendf(nil, "p%d", renewals.Add(1)), RenewAt: time.Now().Add(20 * time.Second)}
			}
			o, _, err := ephemeral(m).Open(t.Context(), thing(null, str("a").Mark(lang.Sensitive)))
			if err != nil || !o.Value.RawEquals(thing(str("1"), str("a").Mark(lang.Sensitive))) {
				t.Fatalf("got %+v, %v", o, err)
			}
			time.Sleep(9*time.Minute - time.Second)
			synctest.Wait()
			if renewals.Load() != 0 {
				t.Error("renewed long before the time")
			}
			time.Sleep(15 * time.Second) // one minute early, and then half of the remaining time
			synctest.Wait()
			if n := renewals.Load(); n != 2 {
				t.Errorf("renewed %d times, want 2", n)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := errors.Join(o.Close(ctx), o.Close(ctx)); err != nil {
				t.Errorf("close under a cancelled context, twice: %v", err)
			}
			if diff := m.sequence("validate", "open", "renew p0", "renew p1", "close p2"); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("a renewal fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &modal{open: &tfprotov6.OpenEphemeralResourceResponse{Result: result, Private: []byte("p"), RenewAt: time.Now().Add(time.Minute)}}
			m.renew = func() *tfprotov6.RenewEphemeralResourceResponse {
				return &tfprotov6.RenewEphemeralResourceResponse{Diagnostics: failure("expired")}
			}
			o, _, err := ephemeral(m).Open(t.Context(), thing(null, str("a")))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			wantError(t, "Close returns the error", o.Close(t.Context()), "expired")
			if diff := m.sequence("validate", "open", "renew p", "close p"); diff != "" {
				t.Errorf("it is closed nevertheless (-want +got):\n%s", diff)
			}
		})
	})
	for name, tc := range map[string]struct {
		reason  string
		config  cty.Value
		refusal []*tfprotov6.Diagnostic
		reply   *tfprotov6.OpenEphemeralResourceResponse
		calls   []string
		err     string
	}{
		"not yet":     {"it needs a known configuration", thing(null, cty.UnknownVal(cty.String)), nil, nil, nil, "not known yet"},
		"invalid":     {"it is not opened then", thing(null, str("a")), failure("no"), nil, []string{"validate"}, "no"},
		"refused":     {"nothing is open", thing(null, str("a")), nil, &tfprotov6.OpenEphemeralResourceResponse{Diagnostics: failure("no")}, []string{"validate", "open"}, "no"},
		"put off":     {"nothing is open", thing(null, str("a")), nil, &tfprotov6.OpenEphemeralResourceResponse{Deferred: &tfprotov6.Deferred{}}, []string{"validate", "open"}, "bug of the provider"},
		"nothing":     {"it is open all the same", thing(null, str("a")), nil, &tfprotov6.OpenEphemeralResourceResponse{Private: []byte("p")}, []string{"validate", "open", "close p"}, "with nothing"},
		"other value": {"it is open all the same", thing(null, str("a")), nil, &tfprotov6.OpenEphemeralResourceResponse{Result: wire(t, thing(str("1"), str("b")))}, []string{"validate", "open", "close "}, "inconsistent"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &modal{refusal: tc.refusal, open: tc.reply}
			o, _, err := ephemeral(m).Open(t.Context(), tc.config)
			wantError(t, tc.reason, err, tc.err)
			if diff := cmp.Diff(tc.calls, m.calls); o != nil || diff != "" {
				t.Errorf("%s: got %v, calls (-want +got):\n%s", tc.reason, o, diff)
			}
		})
	}
}

func TestActionInvoke(t *testing.T) {
	progress := func(s string) tfprotov6.InvokeActionEvent {
		return tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{Message: s}}
	}
	done := func(ds ...*tfprotov6.Diagnostic) tfprotov6.InvokeActionEvent {
		return tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: ds}}
	}
	for name, tc := range map[string]struct {
		reason string
		config cty.Value
		events []tfprotov6.InvokeActionEvent
		heard  string
		err    string
	}{
		"done":      {"progress is heard", thing(null, str("a")), []tfprotov6.InvokeActionEvent{progress("1"), progress("2"), done()}, "1 2", ""},
		"failed":    {"the provider says why", thing(null, str("a")), []tfprotov6.InvokeActionEvent{done(failure("no power")...)}, "", "no power"},
		"no end":    {"the effect is unknown", thing(null, str("a")), []tfprotov6.InvokeActionEvent{progress("1")}, "1", "0 times"},
		"two ends":  {"exactly one", thing(null, str("a")), []tfprotov6.InvokeActionEvent{done(), done()}, "", "2 times"},
		"not known": {"it needs a known configuration", thing(null, cty.UnknownVal(cty.String)), nil, "", "not known yet"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Action{Name: "test_poke", Schema: &schema.Schema{Block: testBlock}, Provider: &modal{events: tc.events}}
			var heard []string
			_, err := a.Invoke(t.Context(), tc.config, func(s string) { heard = append(heard, s) })
			wantError(t, tc.reason, err, tc.err)
			if got := strings.Join(heard, " "); got != tc.heard {
				t.Errorf("%s: heard %q", tc.reason, got)
			}
		})
	}
}

func TestActionPlan(t *testing.T) {
	open := thing(null, cty.UnknownVal(cty.String))
	m := &modal{}
	a := Action{Name: "test_poke", Schema: &schema.Schema{Block: testBlock}, Provider: m}
	if _, err := a.Plan(t.Context(), open); err != nil || m.sequence("validate", "plan") != "" {
		t.Errorf("unknown values are allowed: %v, %v", m.calls, err)
	}
	m.deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	if _, err := a.Plan(t.Context(), open); err == nil || !strings.Contains(err.Error(), "bug of the provider") {
		t.Errorf("put off: %v", err)
	}
	a.Deferral = true
	_, err := a.Plan(t.Context(), open)
	if d, ok := errors.AsType[*DeferredError](err); !ok || d.Reason != "absent_prereq" {
		t.Errorf("put off, and allowed: %v", err)
	}
	m.refusal, m.calls = failure("no"), nil
	if _, err := a.Plan(t.Context(), open); err == nil || m.sequence("validate") != "" {
		t.Errorf("invalid: %v, %v", m.calls, err)
	}
	a.Provider = &scripted{}
	if _, err := a.Plan(t.Context(), open); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a provider without actions: %v", err)
	}
}

func TestListQuery(t *testing.T) {
	found := func(name string) tfprotov6.ListResourceResult {
		return tfprotov6.ListResourceResult{DisplayName: name, Identity: wireIdentity(t, identity(str(name))), Resource: wire(t, thing(str("1"), str(name)))}
	}
	warning := tfprotov6.ListResourceResult{Diagnostics: []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "slow"}}}
	for name, tc := range map[string]struct {
		reason  string
		found   []tfprotov6.ListResourceResult
		limit   int64
		include bool
		want    string
		err     string
	}{
		"all":               {"no limit", []tfprotov6.ListResourceResult{found("a"), found("b")}, 0, false, "a, b", ""},
		"with objects":      {"they were asked for", []tfprotov6.ListResourceResult{found("a")}, 0, true, "a=a", ""},
		"limit":             {"providers in the same process need not know it either", []tfprotov6.ListResourceResult{found("a"), found("b"), found("c")}, 2, false, "a, b", ""},
		"warnings":          {"may come without identity, and do not count", []tfprotov6.ListResourceResult{warning, found("a"), found("b")}, 1, false, "slow, a", ""},
		"no identity":       {"nothing could be done with it", []tfprotov6.ListResourceResult{found("a"), {DisplayName: "b"}}, 0, false, "a", "without an identity"},
		"an error":          {"it is the last", []tfprotov6.ListResourceResult{found("a"), {Diagnostics: failure("down")}, found("b")}, 0, false, "a", "down"},
		"an open identity":  {"what exists is known", []tfprotov6.ListResourceResult{{Identity: wireIdentity(t, identity(cty.UnknownVal(cty.String)))}}, 0, false, "", "unknown values"},
		"a misfit resource": {"it must conform", []tfprotov6.ListResourceResult{{Identity: wireIdentity(t, identity(str("a"))), Resource: &tfprotov6.DynamicValue{MsgPack: []byte{0x93}}}}, 0, true, "", "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &modal{found: tc.found}
			l := List{Name: "test_thing", Type: withIdentity(t, &scripted{}), Schema: &schema.Schema{Block: testBlock}, Provider: m}
			var got []string
			var failed error
			for f, err := range l.Query(t.Context(), thing(null, str("x")), tc.limit, tc.include) {
				if failed = err; err != nil {
					continue
				}
				text := f.DisplayName
				for _, d := range f.Diagnostics {
					text += d.Summary
				}
				if f.Resource != cty.NilVal {
					text += "=" + f.Resource.GetAttr("name").AsString()
				}
				got = append(got, text)
			}
			wantError(t, tc.reason, failed, tc.err)
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, text, tc.want)
			}
			if diff := m.sequence(fmt.Sprintf("validate limit %d", tc.limit), "list"); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
	for name, l := range map[string]List{
		"no identity schema": {Name: "test_thing", Type: newType(t, &scripted{}), Schema: &schema.Schema{Block: testBlock}, Provider: &modal{}},
		"no lists":           {Name: "test_thing", Type: withIdentity(t, &scripted{}), Schema: &schema.Schema{Block: testBlock}, Provider: &scripted{}},
		"invalid":            {Name: "test_thing", Type: withIdentity(t, &scripted{}), Schema: &schema.Schema{Block: testBlock}, Provider: &modal{refusal: failure("no")}},
	} {
		n := 0
		for _, err := range l.Query(t.Context(), thing(null, str("x")), 0, false) {
			if n++; err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results", name, n)
		}
	}
}

func TestFunctions(t *testing.T) {
	s := &schema.Provider{Functions: map[string]*schema.Function{
		"join": {
			Parameters: []*schema.Parameter{{Name: "words", Type: cty.List(cty.String)}},
			Variadic:   &schema.Parameter{Name: "any", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true},
			Return:     cty.String,
		},
	}}
	words := cty.ListVal([]cty.Value{str("a"), str("b")})
	argument := int64(1)
	for name, tc := range map[string]struct {
		reason string
		args   []cty.Value
		reply  *tfprotov6.CallFunctionResponse
		want   cty.Value
		called bool
		err    string
	}{
		"called":           {"as it is", []cty.Value{words, cty.NullVal(cty.Number), cty.True}, &tfprotov6.CallFunctionResponse{Result: &tfprotov6.DynamicValue{JSON: []byte(`"ab"`)}}, str("ab"), true, ""},
		"secret":           {"the result of a secret is one", []cty.Value{words.Mark(lang.Sensitive)}, &tfprotov6.CallFunctionResponse{Result: &tfprotov6.DynamicValue{JSON: []byte(`"ab"`)}}, str("ab").Mark(lang.Sensitive), true, ""},
		"unknown":          {"the provider is not asked", []cty.Value{cty.UnknownVal(cty.List(cty.String))}, nil, cty.UnknownVal(cty.String), false, ""},
		"unknown within":   {"nor with unknown parts", []cty.Value{cty.ListVal([]cty.Value{cty.UnknownVal(cty.String)})}, nil, cty.UnknownVal(cty.String), false, ""},
		"unknown, allowed": {"this one takes it", []cty.Value{words, cty.UnknownVal(cty.String)}, &tfprotov6.CallFunctionResponse{Result: &tfprotov6.DynamicValue{JSON: []byte(`"ab"`)}}, str("ab"), true, ""},
		"null":             {"the provider does not want it", []cty.Value{cty.NullVal(cty.List(cty.String))}, nil, cty.NilVal, false, "must not be null"},
		"an error":         {"it names the argument", []cty.Value{words, cty.True}, &tfprotov6.CallFunctionResponse{Error: &tfprotov6.FunctionError{Text: "too true", FunctionArgument: &argument}}, cty.NilVal, true, "too true"},
		"an error of all":  {"it may name none", []cty.Value{words}, &tfprotov6.CallFunctionResponse{Error: &tfprotov6.FunctionError{Text: "tired", FunctionArgument: &argument}}, cty.NilVal, true, "tired"},
		"no result":        {"that is a bug", []cty.Value{words}, &tfprotov6.CallFunctionResponse{}, cty.NilVal, true, "no result"},
		"a misfit":         {"that is a bug", []cty.Value{words}, &tfprotov6.CallFunctionResponse{Result: &tfprotov6.DynamicValue{JSON: []byte(`[]`)}}, cty.NilVal, true, "not of the function's type"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &modal{call: func(r *tfprotov6.CallFunctionRequest) *tfprotov6.CallFunctionResponse {
				if len(r.Arguments) != len(tc.args) {
					t.Errorf("%d arguments", len(r.Arguments))
				}
				return tc.reply
			}}
			lent := 0
			fns := Functions("sim", s, func(context.Context) (tfprotov6.ProviderServer, func(), error) {
				lent++
				return m, func() { lent-- }, nil
			})
			got, err := fns["provider::sim::join"].Call(tc.args)
			wantError(t, tc.reason, err, tc.err)
			if err == nil && !same(got, tc.want) {
				t.Errorf("%s: got %#v", tc.reason, got)
			}
			if called := len(m.calls) > 0; called != tc.called || lent != 0 {
				t.Errorf("%s: called %t, %d not given back", tc.reason, called, lent)
			}
		})
	}
	signature := Functions("sim", s, nil)["provider::sim::join"]
	if got, err := signature.Call([]cty.Value{words}); err != nil || got.IsKnown() || got.Type() != cty.String {
		t.Errorf("a signature: %#v, %v", got, err)
	}
	if _, err := signature.Call([]cty.Value{cty.EmptyObjectVal}); err == nil {
		t.Error("a signature takes an argument of a wrong type")
	}
}
