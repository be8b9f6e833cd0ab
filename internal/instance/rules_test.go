package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
)

// writeOnlyType has a write-only attribute beside the others.
func writeOnlyType(t *testing.T, s *scripted) *Type {
	ty := newType(t, s)
	ty.Schema = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String, Computed: true},
		{Name: "password", Type: cty.String, Optional: true, WriteOnly: true},
	}}}
	return ty
}

func account(id, password cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"id": id, "password": password})
}

func encoded(t *testing.T, ty *Type, v cty.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := ty.encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReadKeepsWhatItCannotReplace(t *testing.T) {
	old := thing(str("1"), str("old"))
	for name, tc := range map[string]struct {
		reason string
		reply  tfprotov6.ReadResourceResponse
		want   cty.Value
		err    string
	}{
		"drift":         {"what is there now is no error", tfprotov6.ReadResourceResponse{NewState: wire(t, thing(str("1"), str("new")))}, thing(str("1"), str("new")), ""},
		"gone":          {"null means that it is gone", tfprotov6.ReadResourceResponse{NewState: wire(t, cty.NullVal(testBlock.ImpliedType()))}, cty.NullVal(testBlock.ImpliedType()), ""},
		"no state":      {"so does none", tfprotov6.ReadResourceResponse{}, cty.NullVal(testBlock.ImpliedType()), ""},
		"an error":      {"with an error the state is not to be relied on", tfprotov6.ReadResourceResponse{Diagnostics: failure("down")}, old, "down"},
		"half read":     {"with an error the state is not to be relied on", tfprotov6.ReadResourceResponse{NewState: wire(t, thing(str("1"), null)), Diagnostics: failure("down")}, old, "down"},
		"unknown":       {"a state is wholly known", tfprotov6.ReadResourceResponse{NewState: wire(t, thing(cty.UnknownVal(cty.String), str("x")))}, old, "unknown values"},
		"garbage":       {"it must conform", tfprotov6.ReadResourceResponse{NewState: &tfprotov6.DynamicValue{MsgPack: []byte{0x93}}}, old, "does not fit"},
		"put off":       {"we did not say that it may", tfprotov6.ReadResourceResponse{NewState: wire(t, old), Deferred: &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}}, old, "bug of the provider"},
		"JSON is taken": {"both forms are allowed on the wire", tfprotov6.ReadResourceResponse{NewState: &tfprotov6.DynamicValue{JSON: []byte(`{"id":"1","name":"js","secret":null}`)}}, thing(str("1"), str("js")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{read: func(*tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse { return &tc.reply }}
			got, _, err := newType(t, s).Read(t.Context(), State{Value: old, Private: []byte("p")})
			wantError(t, tc.reason, err, tc.err)
			if !got.Value.RawEquals(tc.want) {
				t.Errorf("%s: got %#v, want %#v", tc.reason, got.Value, tc.want)
			}
			if tc.err != "" && string(got.Private) != "p" {
				t.Errorf("%s: private data %q", tc.reason, got.Private)
			}
		})
	}
}

func TestDeferral(t *testing.T) {
	put := &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonResourceConfigUnknown}
	s := &scripted{}
	s.read = func(*tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
		return &tfprotov6.ReadResourceResponse{Deferred: put}
	}
	s.plan = func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
		// The planned value breaks the rules, which do not apply to a deferred answer.
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: wire(t, thing(str("1"), str("other"))), Deferred: put}
	}
	s.imports = func(*tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
		return &tfprotov6.ImportResourceStateResponse{Deferred: put}
	}
	ty := newType(t, s)
	for _, allowed := range []bool{false, true} {
		ty.Deferral, ty.PlanDestroy = allowed, true
		old := State{Value: thing(str("1"), str("a"))}
		_, _, readErr := ty.Read(t.Context(), old)
		_, _, planErr := ty.Plan(t.Context(), ty.Null(), config(thing(null, str("a"))), false)
		_, _, deleteErr := ty.PlanDelete(t.Context(), old, nil)
		_, _, importErr := ty.Import(t.Context(), ImportBy{ID: "1"})
		for call, err := range map[string]error{"read": readErr, "plan": planErr, "plan destroy": deleteErr, "import": importErr} {
			d, ok := errors.AsType[*DeferredError](err)
			switch {
			case ok != allowed:
				t.Errorf("%s, allowed %t: %v", call, allowed, err)
			case ok && d.Reason != "resource_config_unknown":
				t.Errorf("%s: reason %q", call, d.Reason)
			case !ok && !strings.Contains(err.Error(), "bug of the provider"):
				t.Errorf("%s: %v", call, err)
			}
		}
		if got := s.plans[len(s.plans)-1].ClientCapabilities.DeferralAllowed; got != allowed {
			t.Errorf("the provider got %t", got)
		}
	}
}

func TestProviderMetaIsSent(t *testing.T) {
	meta := &schema.Block{Attributes: []*schema.Attribute{{Name: "module", Type: cty.String, Optional: true}}}
	for name, tc := range map[string]struct {
		block *schema.Block
		meta  cty.Value
		want  cty.Value
	}{
		"none":           {nil, cty.NilVal, cty.NilVal},
		"not configured": {meta, cty.NilVal, cty.NullVal(meta.ImpliedType())},
		"null":           {meta, cty.NullVal(meta.ImpliedType()), cty.NullVal(meta.ImpliedType())},
		"configured":     {meta, cty.ObjectVal(map[string]cty.Value{"module": str("net").Mark(lang.Sensitive)}), cty.ObjectVal(map[string]cty.Value{"module": str("net")})},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			ty := newType(t, s)
			ty.Meta, ty.MetaBlock, ty.PlanDestroy = tc.meta, tc.block, true
			old := State{Value: thing(str("1"), str("a"))}
			_, _, err1 := ty.Read(t.Context(), old)
			p, _, err2 := ty.Plan(t.Context(), old, config(thing(null, str("b"))), false)
			_, _, err3 := ty.PlanDelete(t.Context(), old, nil)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			if o := ty.Apply(t.Context(), old, p, thing(null, str("b"))); o.Err != nil {
				t.Fatal(o.Err)
			}
			for call, d := range map[string]*tfprotov6.DynamicValue{
				"read": s.reads[0].ProviderMeta, "plan": s.plans[0].ProviderMeta, "plan destroy": s.plans[1].ProviderMeta, "apply": s.applies[0].ProviderMeta,
			} {
				if tc.want == cty.NilVal {
					if d != nil {
						t.Errorf("%s: sent %v", call, d)
					}
					continue
				}
				if d == nil {
					t.Errorf("%s: sent nothing", call)
					continue
				}
				if got, err := schema.Decode(d, meta.ImpliedType()); err != nil || !got.RawEquals(tc.want) {
					t.Errorf("%s: sent %#v, %v", call, got, err)
				}
			}
		})
	}
}

// TestLegacyPlansIgnoreOnceMore uses a provider on the legacy SDK that plans a hash of the configured value. Its plan
// would reintroduce an ignored change.
func TestLegacyPlansIgnoreOnceMore(t *testing.T) {
	prior := thing(str("1"), str("hash of old"))
	written := thing(null, str("new"))
	for name, tc := range map[string]struct {
		reason  string
		ignored []string
		legacy  bool
		prior   cty.Value
		action  v1alpha1.Action
		err     string
	}{
		"ignored":     {"the change is taken back", []string{"name"}, true, prior, v1alpha1.ActionNoOp, ""},
		"all ignored": {"computed attributes do not change either", []string{"all"}, true, prior, v1alpha1.ActionNoOp, ""},
		"not ignored": {"the provider may plan what it wants", nil, true, prior, v1alpha1.ActionReplace, ""},
		"a create":    {"there is nothing to go back to", []string{"name"}, true, cty.NullVal(testBlock.ImpliedType()), v1alpha1.ActionCreate, ""},
		"modern":      {"a modern provider may not", []string{"name"}, false, prior, "", "configuration does not allow"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{plan: func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
				return &tfprotov6.PlanResourceChangeResponse{
					PlannedState: wire(t, thing(str("2"), str("hash of something"))), UnsafeToUseLegacyTypeSystem: tc.legacy,
					RequiresReplace: []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")},
				}
			}}
			ty := newType(t, s)
			effective := written
			if tc.ignored != nil {
				var err error
				if effective, err = plan.IgnoreChanges(testBlock, written, tc.prior, tc.ignored); err != nil {
					t.Fatal(err)
				}
			}
			p, _, err := ty.Plan(t.Context(), State{Value: tc.prior}, Config{Written: written, Effective: effective, Ignored: tc.ignored}, false)
			wantError(t, tc.reason, err, tc.err)
			// "id" is computed and changes with anything but "all", so the ignored name alone leaves an update.
			if name == "ignored" && err == nil {
				if got := p.Value.GetAttr("name"); !got.RawEquals(str("hash of old")) || len(p.Replace) > 0 {
					t.Errorf("%s: planned %#v, replace %v", tc.reason, got, p.Replace)
				}
				return
			}
			if err == nil && p.Action != tc.action {
				t.Errorf("%s: got %s", tc.reason, p.Action)
			}
		})
	}
}

func TestValidationSeesWhatIsWritten(t *testing.T) {
	s := &scripted{}
	ty := newType(t, s)
	c := Config{Written: thing(null, str("new")), Effective: thing(null, str("old")), Ignored: []string{"name"}}
	for _, tainted := range []bool{false, true} {
		if _, _, err := ty.Plan(t.Context(), State{Value: thing(str("1"), str("old")), Tainted: tainted}, c, false); err != nil {
			t.Fatal(err)
		}
		validated, err := schema.Decode(s.validated[len(s.validated)-1], testBlock.ImpliedType())
		if err != nil || !validated.RawEquals(c.Written) {
			t.Errorf("validated %#v", validated)
		}
		want := c.Effective
		if tainted {
			want = c.Written // of a tainted instance nothing is kept
		}
		planned, err := schema.Decode(s.plans[len(s.plans)-1].Config, testBlock.ImpliedType())
		if err != nil || !planned.RawEquals(want) {
			t.Errorf("tainted %t: planned with %#v, want %#v", tainted, planned, want)
		}
	}
}

func TestOnlyWhatIsSecretChanges(t *testing.T) {
	s := &scripted{}
	ty := newType(t, s)
	prior := State{Value: thing(str("1"), str("a")), Private: []byte("stored"), Identity: cty.NilVal}
	secret := thing(null, str("a").Mark(lang.Sensitive))
	p, _, err := ty.Plan(t.Context(), prior, config(secret), false)
	if err != nil || p.Action != v1alpha1.ActionUpdate {
		t.Fatalf("got %+v, %v; want an update", p, err)
	}
	o := ty.Apply(t.Context(), prior, p, secret)
	if o.Err != nil || len(s.applies) > 0 || !o.State.Value.RawEquals(thing(str("1"), str("a").Mark(lang.Sensitive))) || string(o.State.Private) != "stored" {
		t.Errorf("got %+v, %d calls to the provider", o, len(s.applies))
	}
	p, _, err = ty.Plan(t.Context(), o.State, config(secret), false)
	if err != nil || p.Action != v1alpha1.ActionNoOp {
		t.Errorf("planned again: %+v, %v; want nothing to do", p, err)
	}
}

// An argument that the schema calls secret is no more of a secret when it is one by a reference, too: after an import,
// which knows no references, there is nothing to do.
func TestASecretArgumentStaysOne(t *testing.T) {
	of := func(secret cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": str("1"), "name": str("a"), "secret": secret})
	}
	ty := newType(t, &scripted{})
	for reason, tc := range map[string]struct{ prior, config cty.Value }{
		"it became one by a reference": {str("s"), str("s").Mark(lang.Sensitive)},
		"it no longer is one by that":  {str("s").Mark(lang.Sensitive), str("s")},
	} {
		c := cty.ObjectVal(map[string]cty.Value{"id": null, "name": str("a"), "secret": tc.config})
		p, _, err := ty.Plan(t.Context(), State{Value: of(tc.prior)}, config(c), false)
		if err != nil || p.Action != v1alpha1.ActionNoOp {
			t.Errorf("%s: got %+v, %v; want nothing to do", reason, p, err)
		}
	}
}

func TestReplaceOfAPathThatIsNowhere(t *testing.T) {
	s := &scripted{plan: func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
		return &tfprotov6.PlanResourceChangeResponse{
			PlannedState: r.ProposedNewState, RequiresReplace: []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("nowhere")},
		}
	}}
	ty := newType(t, s)
	if _, _, err := ty.Plan(t.Context(), State{Value: thing(str("1"), str("old"))}, config(thing(null, str("new"))), false); err == nil {
		t.Error("a path that neither value has was taken")
	}
	if p, _, err := ty.Plan(t.Context(), ty.Null(), config(thing(null, str("new"))), false); err != nil || p.Action != v1alpha1.ActionCreate {
		t.Errorf("a create: %+v, %v; nothing is replaced that does not exist", p, err)
	}
}

func TestApplyQuarantinesWhatItCannotTake(t *testing.T) {
	s := &scripted{}
	ty := writeOnlyType(t, s)
	nothing := ty.Null().Value
	old, planned := account(str("1"), null), account(cty.UnknownVal(cty.String), null)
	open := encoded(t, ty, cty.UnknownVal(nothing.Type()))
	for name, tc := range map[string]struct {
		reason         string
		prior, planned cty.Value
		reply          *tfprotov6.DynamicValue
		failed         []*tfprotov6.Diagnostic
		want           cty.Value
		quarantine     string
		err            string
	}{
		"garbage after a create":      {"it is all that is known of what was made", nothing, planned, &tfprotov6.DynamicValue{MsgPack: []byte("\x93abc")}, nil, nothing, "\x93abc", "does not fit"},
		"garbage as JSON":             {"both forms are kept", old, account(str("2"), null), &tfprotov6.DynamicValue{JSON: []byte(`{"x":1}`)}, nil, old, `{"x":1}`, "does not fit"},
		"garbage with an error":       {"the error has both", old, account(str("2"), null), &tfprotov6.DynamicValue{MsgPack: []byte("\x93abc")}, failure("quota"), old, "\x93abc", "quota"},
		"a write-only value":          {"the secret itself is never stored", old, account(str("2"), null), encoded(t, ty, account(str("2"), str("hunter2"))), nil, old, string(encoded(t, ty, account(str("2"), null)).MsgPack), "write-only"},
		"all unknown after a create":  {"there is something, and nothing is known of it", nothing, planned, open, nil, nothing, string(open.MsgPack), "unknown"},
		"no state of an update":       {"what was there still is", old, account(str("2"), null), nil, nil, old, "", "returns no state"},
		"no state of a delete":        {"it is gone", old, nothing, nil, nil, nothing, "", ""},
		"no state of a failed delete": {"it is still there", old, nothing, nil, failure("busy"), old, "", "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			s.apply = func(*tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
				return &tfprotov6.ApplyResourceChangeResponse{NewState: tc.reply, Diagnostics: tc.failed}, nil
			}
			o := ty.Apply(t.Context(), State{Value: tc.prior}, &Planned{Value: tc.planned}, account(null, str("hunter2")))
			wantError(t, tc.reason, o.Err, tc.err)
			if !o.State.Value.RawEquals(tc.want) || string(o.Quarantine) != tc.quarantine {
				t.Errorf("%s: got %#v, quarantine %q", tc.reason, o.State.Value, o.Quarantine)
			}
			if strings.Contains(string(o.Quarantine), "hunter2") {
				t.Errorf("%s: a write-only value was kept", tc.reason)
			}
		})
	}
}

func TestApplyWantsAKnownConfiguration(t *testing.T) {
	s := &scripted{}
	ty := newType(t, s)
	o := ty.Apply(t.Context(), ty.Null(), &Planned{Value: thing(cty.UnknownVal(cty.String), str("a"))}, thing(null, cty.UnknownVal(cty.String)))
	if o.Err == nil || diag.IsFailure(o.Err, diag.Lost) || len(s.applies) > 0 {
		t.Errorf("got %+v, %d calls", o, len(s.applies))
	}
}

func TestOtherMarksAreNotRecorded(t *testing.T) {
	s := &scripted{}
	ty := writeOnlyType(t, s)
	config := account(null, str("hunter2").Mark(lang.Ephemeral))
	s.plan = func(*tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: encoded(t, ty, account(cty.UnknownVal(cty.String), null))}
	}
	p, _, err := ty.Plan(t.Context(), ty.Null(), Config{Written: config, Effective: config}, false)
	if err != nil {
		t.Fatal(err)
	}
	if marks := marksOf(p.Value); len(marks) > 0 {
		t.Errorf("the plan bears %v", marks)
	}
	s.apply = func(r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
		if got, err := ty.decode(r.Config); err != nil || !got.RawEquals(account(null, str("hunter2"))) {
			t.Errorf("the provider got %#v, %v", got, err)
		}
		return &tfprotov6.ApplyResourceChangeResponse{NewState: encoded(t, ty, account(str("1"), null))}, nil
	}
	o := ty.Apply(t.Context(), ty.Null(), p, config)
	var rec ledger.State
	if err := ty.Record(&rec, o.State); err != nil || o.Err != nil || rec.Sensitive != nil || strings.Contains(string(rec.Attributes), "hunter2") {
		t.Errorf("recorded %s, sensitive %s, %v, %v", rec.Attributes, rec.Sensitive, err, o.Err)
	}
}

func TestLoadStripsWhatTheSchemaLost(t *testing.T) {
	inner := &schema.Block{Attributes: []*schema.Attribute{{Name: "n", Type: cty.Number, Optional: true}}}
	s := &scripted{}
	ty := newType(t, s)
	ty.Schema = &schema.Schema{Version: 1, Block: &schema.Block{
		Attributes: []*schema.Attribute{{Name: "any", Type: cty.DynamicPseudoType, Optional: true}},
		Blocks:     []*schema.NestedBlock{{TypeName: "rule", Nesting: schema.NestingList, Block: inner}},
	}}
	raw := `{"any":{"value":{"kept":1},"type":["object",{"kept":"number"}]},"gone":{"a":1},"rule":[{"n":1152921504606846977,"gone":true}]}`
	state, err := ty.Load(t.Context(), &ledger.State{SchemaVersion: 1, Attributes: []byte(raw)})
	if err != nil {
		t.Fatal(err)
	}
	if n := state.Value.GetAttr("rule").Index(cty.Zero).GetAttr("n"); !n.RawEquals(cty.MustParseNumberVal("1152921504606846977")) {
		t.Errorf("a large number lost digits: %#v", n)
	}
	if !state.Value.GetAttr("any").GetAttr("kept").RawEquals(cty.NumberIntVal(1)) {
		t.Errorf("a dynamic value was cut: %#v", state.Value.GetAttr("any"))
	}
	if _, err := ty.Load(t.Context(), &ledger.State{SchemaVersion: 0, Attributes: []byte(raw)}); err == nil || string(s.upgraded[1].JSON) != raw {
		t.Errorf("an older state goes to the provider as it is: %s, %v", s.upgraded[1].JSON, err)
	}
}

// upgrader answers every upgrade alike.
type upgrader struct {
	tfprotov6.ProviderServer
	answer *tfprotov6.DynamicValue
}

func (u upgrader) UpgradeResourceState(context.Context, *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: u.answer}, nil
}

func TestInvalidUpgradedStateIsRefused(t *testing.T) {
	for name, answer := range map[string]*tfprotov6.DynamicValue{
		"nothing": nil, "unknown": wire(t, thing(cty.UnknownVal(cty.String), str("a"))), "garbage": {MsgPack: []byte{0x93}},
	} {
		ty := newType(t, &scripted{})
		ty.Provider = upgrader{answer: answer}
		if _, err := ty.Load(t.Context(), &ledger.State{SchemaVersion: 1, Attributes: []byte(`{}`)}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestAConfigurationIsValidatedOnce plans a change again, as its apply does. The provider validates the configuration
// again only if the first plan did not know all of it, or if it has changed.
func TestAConfigurationIsValidatedOnce(t *testing.T) {
	unknown := cty.UnknownVal(cty.String)
	for name, tc := range map[string]struct {
		planned, applied cty.Value
		validated        int
	}{
		"the same":         {str("a"), str("a"), 0},
		"another":          {str("a"), str("b"), 1},
		"unknown before":   {unknown, str("a"), 1},
		"unknown in both":  {unknown, unknown, 1},
		"secret meanwhile": {str("a"), str("a").Mark(lang.Sensitive), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			ty := newType(t, s)
			configured := func(name cty.Value, validated string) Config {
				v := thing(null, name)
				return Config{Written: v, Effective: v, Validated: validated}
			}
			p, _, err := ty.Plan(t.Context(), ty.Null(), configured(tc.planned, ""), false)
			if err != nil || len(s.validated) != 1 {
				t.Fatalf("the first plan validated %d times (%v)", len(s.validated), err)
			}
			if _, _, err := ty.Plan(t.Context(), ty.Null(), configured(tc.applied, p.Validated), false); err != nil {
				t.Fatal(err)
			}
			if again := len(s.validated) - 1; again != tc.validated {
				t.Errorf("the second plan validated %d times, want %d", again, tc.validated)
			}
		})
	}
}
