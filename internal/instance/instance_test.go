package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
)

// scripted is a provider that does what a test says; what a test does not script is as an honest provider would have
// it.
type scripted struct {
	tfprotov6.ProviderServer
	t     *testing.T
	read  func(*tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse
	plan  func(*tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse
	apply func(*tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error)

	upgradeIdentity func(*tfprotov6.UpgradeResourceIdentityRequest) *tfprotov6.UpgradeResourceIdentityResponse
	imports         func(*tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse
	move            func(*tfprotov6.MoveResourceStateRequest) *tfprotov6.MoveResourceStateResponse
	generate        func(*tfprotov6.GenerateResourceConfigRequest) *tfprotov6.GenerateResourceConfigResponse

	validated []*tfprotov6.DynamicValue
	reads     []*tfprotov6.ReadResourceRequest
	plans     []*tfprotov6.PlanResourceChangeRequest
	applies   []*tfprotov6.ApplyResourceChangeRequest
	upgraded  []*tfprotov6.RawState
}

func (s *scripted) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	s.reads = append(s.reads, r)
	if s.read != nil {
		return s.read(r), nil
	}
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, Private: r.Private, NewIdentity: r.CurrentIdentity}, nil
}

func (s *scripted) UpgradeResourceIdentity(_ context.Context, r *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return s.upgradeIdentity(r), nil
}

func (s *scripted) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return s.imports(r), nil
}

func (s *scripted) MoveResourceState(_ context.Context, r *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	return s.move(r), nil
}

func (s *scripted) GenerateResourceConfig(_ context.Context, r *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	return s.generate(r), nil
}

func (s *scripted) ValidateResourceConfig(_ context.Context, r *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	s.validated = append(s.validated, r.Config)
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (s *scripted) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	s.upgraded = append(s.upgraded, r.RawState)
	if flat := r.RawState.Flatmap; flat != nil {
		return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: wire(s.t, thing(str(flat["id"]), str(flat["name"])))}, nil
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &tfprotov6.DynamicValue{JSON: r.RawState.JSON}}, nil
}

func (s *scripted) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	s.plans = append(s.plans, r)
	if s.plan != nil {
		return s.plan(r), nil
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState, PlannedPrivate: r.PriorPrivate, PlannedIdentity: r.PriorIdentity}, nil
}

func (s *scripted) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	s.applies = append(s.applies, r)
	if s.apply != nil {
		return s.apply(r)
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState, Private: r.PlannedPrivate, NewIdentity: r.PlannedIdentity}, nil
}

var testBlock = &schema.Block{Attributes: []*schema.Attribute{
	{Name: "id", Type: cty.String, Computed: true},
	{Name: "name", Type: cty.String, Required: true},
	{Name: "secret", Type: cty.String, Optional: true, Sensitive: true},
}}

func newType(t *testing.T, s *scripted) *Type {
	s.t = t
	return &Type{Name: "test_thing", Schema: &schema.Schema{Version: 2, Block: testBlock}, Provider: s}
}

func thing(id, name cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"id": id, "name": name, "secret": cty.NullVal(cty.String)})
}

func str(s string) cty.Value { return cty.StringVal(s) }

func wire(t *testing.T, v cty.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := schema.Encode(v, testBlock.ImpliedType())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func failure(summary string) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: summary, Detail: "in full"}}
}

func config(v cty.Value) Config { return Config{Written: v, Effective: v} }

var null = cty.NullVal(cty.String)

func TestApplyKeepsWhatTheProviderAnswers(t *testing.T) {
	nothing := cty.NullVal(testBlock.ImpliedType())
	old, planned, made := thing(str("1"), str("old")), thing(cty.UnknownVal(cty.String), str("new")), thing(str("1"), str("new"))
	for name, tc := range map[string]struct {
		reason         string
		prior, planned cty.Value
		answer         cty.Value
		diagnostics    []*tfprotov6.Diagnostic
		legacy         bool

		want    cty.Value
		tainted bool
		failed  string
	}{
		"create":                     {"the whole answer is the state", nothing, planned, made, nil, false, made, false, ""},
		"create, failed half way":    {"what is there is kept, and replaced next time", nothing, planned, made, failure("no quota"), false, made, true, "no quota"},
		"create, nothing made":       {"an error and no object: nothing is there", nothing, planned, nothing, failure("no quota"), false, nothing, false, "no quota"},
		"create, nothing, no error":  {"that is a lie", nothing, planned, nothing, nil, false, nothing, false, "returns no state"},
		"create, values left open":   {"unknown values become null, and it is an error", nothing, planned, planned, nil, false, thing(null, str("new")), true, "unknown"},
		"create, other than planned": {"the state is kept, it is an error, and an error taints", nothing, planned, thing(str("1"), str("other")), nil, false, thing(str("1"), str("other")), true, "inconsistent"},
		"legacy, other than planned": {"the old SDK may", nothing, planned, thing(str("1"), str("other")), nil, true, thing(str("1"), str("other")), false, ""},
		"update, failed half way":    {"an update does not taint", old, made, thing(str("1"), str("half")), failure("busy"), false, thing(str("1"), str("half")), false, "busy"},
		"update, nothing returned":   {"an error and no object: what was there still is", old, made, nothing, failure("busy"), false, old, false, "busy"},
		"delete":                     {"nothing is left", old, nothing, nothing, nil, false, nothing, false, ""},
		"delete, something returned": {"that is a lie", old, nothing, old, nil, false, old, false, "still returns the instance"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{apply: func(*tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
				return &tfprotov6.ApplyResourceChangeResponse{NewState: wire(t, tc.answer), Diagnostics: tc.diagnostics, UnsafeToUseLegacyTypeSystem: tc.legacy}, nil
			}}
			o := newType(t, s).Apply(t.Context(), State{Value: tc.prior}, &Planned{Value: tc.planned}, thing(null, str("new")))
			if !o.State.Value.RawEquals(tc.want) || o.State.Tainted != tc.tainted {
				t.Errorf("%s:\n got %#v tainted %t\nwant %#v tainted %t", tc.reason, o.State.Value, o.State.Tainted, tc.want, tc.tainted)
			}
			if tc.failed == "" && o.Err != nil || tc.failed != "" && (o.Err == nil || !strings.Contains(o.Err.Error(), tc.failed)) {
				t.Errorf("%s: error %v, want one with %q", tc.reason, o.Err, tc.failed)
			}
		})
	}
}

func TestApplyWithoutAnAnswerIsLost(t *testing.T) {
	s := &scripted{apply: func(*tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
		return nil, context.DeadlineExceeded
	}}
	ty := newType(t, s)
	o := ty.Apply(t.Context(), ty.Null(), &Planned{Value: thing(cty.UnknownVal(cty.String), str("a"))}, thing(null, str("a")))
	if !diag.IsFailure(o.Err, diag.Lost) {
		t.Errorf("got %+v, want lost", o)
	}
}

func TestReplaceIsPlannedTwice(t *testing.T) {
	s := &scripted{}
	s.plan = func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
		prior, err := schema.Decode(r.PriorState, testBlock.ImpliedType())
		if err != nil {
			t.Fatal(err)
		}
		resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState, PlannedPrivate: []byte("from the first")}
		if prior.IsNull() {
			resp.PlannedState = wire(t, thing(cty.UnknownVal(cty.String), str("new")))
			resp.PlannedPrivate = []byte("from the second")
			return resp
		}
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
		return resp
	}
	ty := newType(t, s)
	p, _, err := ty.Plan(t.Context(), State{Value: thing(str("1"), str("old")), Private: []byte("stored")}, config(thing(null, str("new"))), false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Action != v1alpha1.ActionReplace || p.Reason != "replace_because_cannot_update" {
		t.Errorf("got %s (%s)", p.Action, p.Reason)
	}
	if len(s.plans) != 2 || string(s.plans[0].PriorPrivate) != "stored" || string(s.plans[1].PriorPrivate) != "from the first" || string(p.Private) != "from the second" {
		t.Errorf("private data took another way: %d plans, result %q", len(s.plans), p.Private)
	}
	if p.Value.GetAttr("id").IsKnown() {
		t.Error("the new instance is planned with the old one's id")
	}
}

func TestTaintedIsReplaced(t *testing.T) {
	s := &scripted{}
	ty := newType(t, s)
	p, _, err := ty.Plan(t.Context(), State{Value: thing(str("1"), str("a")), Tainted: true}, config(thing(null, str("a"))), false)
	if err != nil || p.Action != v1alpha1.ActionReplace || p.Reason != "replace_because_tainted" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestPlanThatBreaksTheConfigurationIsRefused(t *testing.T) {
	for name, legacy := range map[string]bool{"modern": false, "legacy": true} {
		s := &scripted{plan: func(*tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
			return &tfprotov6.PlanResourceChangeResponse{PlannedState: wire(t, thing(str("1"), str("something else"))), UnsafeToUseLegacyTypeSystem: legacy}
		}}
		ty := newType(t, s)
		_, _, err := ty.Plan(t.Context(), ty.Null(), config(thing(null, str("as written"))), false)
		if refused := err != nil; refused == legacy {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLedgerRecordOfADestroyedInstanceIsEmpty checks the record of a destroyed instance. Otherwise the provider would
// get its values with the next instance, and secrets would outlive the resource.
func TestLedgerRecordOfADestroyedInstanceIsEmpty(t *testing.T) {
	ty := newType(t, &scripted{})
	rec := &ledger.State{}
	secretName := thing(str("1"), str("from a password").Mark(lang.Sensitive))
	if err := ty.Record(rec, State{Value: secretName, Private: []byte("private"), Tainted: true}); err != nil {
		t.Fatal(err)
	}
	rec.Identity, rec.IdentityVersion = []byte(`{"id":"1"}`), 1
	if err := ty.Record(rec, ty.Null()); err != nil {
		t.Fatal(err)
	}
	want := ledger.State{Type: rec.Type, SchemaVersion: rec.SchemaVersion}
	if diff := cmp.Diff(want, *rec); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

func TestLedgerRecordKeepsTheState(t *testing.T) {
	ty := newType(t, &scripted{})
	secretName := thing(str("1"), str("from a password").Mark(lang.Sensitive))
	rec := &ledger.State{}
	if err := ty.Record(rec, State{Value: secretName, Private: []byte{0, 0xff}, Tainted: true}); err != nil {
		t.Fatal(err)
	}
	got, err := ty.Load(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Value.RawEquals(secretName) || string(got.Private) != "\x00\xff" || !got.Tainted {
		t.Errorf("got %#v, want %#v with its mark", got, secretName)
	}
	rec.Attributes = []byte(`{"id":"1","name":"a","secret":null,"dropped_by_the_provider":true}`)
	if _, err := ty.Load(t.Context(), rec); err != nil {
		t.Errorf("an attribute that the schema lost: %v", err)
	}
	rec.SchemaVersion = 3
	if _, err := ty.Load(t.Context(), rec); err == nil || !strings.Contains(err.Error(), "newer provider") {
		t.Errorf("a state of a newer schema: got %v", err)
	}
}
