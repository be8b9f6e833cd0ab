package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
)

var testIdentity = &schema.Identity{Version: 2, Attributes: []*schema.IdentityAttribute{
	{Name: "account", Type: cty.String, OptionalForImport: true},
	{Name: "name", Type: cty.String, RequiredForImport: true},
}}

func withIdentity(t *testing.T, s *scripted) *Type {
	ty := newType(t, s)
	ty.Identity = testIdentity
	return ty
}

func identity(name cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"account": cty.NullVal(cty.String), "name": name})
}

func wireIdentity(t *testing.T, v cty.Value) *tfprotov6.ResourceIdentityData {
	t.Helper()
	d, err := schema.Encode(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: d}
}

// same reports whether two values are equal, or both absent.
func same(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == cty.NilVal && b == cty.NilVal
	}
	return a.RawEquals(b)
}

// wantError compares an error with a part of its text; empty means none.
func wantError(t *testing.T, reason string, err error, part string) {
	t.Helper()
	if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
		t.Errorf("%s: error %v, want %q", reason, err, part)
	}
}

func TestIdentityIsLoaded(t *testing.T) {
	stored := `{"id":"1","name":"a","secret":null}`
	for name, tc := range map[string]struct {
		reason   string
		raw      string
		version  int64
		answer   cty.Value
		problems []*tfprotov6.Diagnostic
		want     cty.Value
		err      string
	}{
		"none":            {"a record may be older than identities", "", 0, cty.NilVal, nil, cty.NilVal, ""},
		"same version":    {"the provider is not asked", `{"name":"a","account":null}`, 2, cty.NilVal, nil, identity(str("a")), ""},
		"left out":        {"what is not there is null", `{"name":"a"}`, 2, cty.NilVal, nil, identity(str("a")), ""},
		"another shape":   {"it must conform", `{"arn":"a"}`, 2, cty.NilVal, nil, cty.NilVal, "without changing the schema's version"},
		"older":           {"the provider upgrades it", `{"arn":"a"}`, 1, identity(str("a")), nil, identity(str("a")), ""},
		"newer":           {"it cannot be understood", `{"name":"a"}`, 3, cty.NilVal, nil, cty.NilVal, "newer provider"},
		"upgrade refused": {"the provider says why", `{"arn":"a"}`, 1, cty.NilVal, failure("no such arn"), cty.NilVal, "no such arn"},
		"upgrade unknown": {"nothing is left open", `{"arn":"a"}`, 1, identity(cty.UnknownVal(cty.String)), nil, cty.NilVal, "unknown values"},
		"upgrade misfits": {"it must conform", `{"arn":"a"}`, 1, cty.ObjectVal(map[string]cty.Value{"arn": str("a")}), nil, cty.NilVal, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			ty := withIdentity(t, &scripted{upgradeIdentity: func(r *tfprotov6.UpgradeResourceIdentityRequest) *tfprotov6.UpgradeResourceIdentityResponse {
				asked = true
				if string(r.RawIdentity.JSON) != tc.raw || r.Version != tc.version {
					t.Errorf("asked with %s, version %d", r.RawIdentity.JSON, r.Version)
				}
				resp := &tfprotov6.UpgradeResourceIdentityResponse{Diagnostics: tc.problems}
				if tc.answer != cty.NilVal {
					resp.UpgradedIdentity = wireIdentity(t, tc.answer)
				}
				return resp
			}})
			s, err := ty.Load(t.Context(), &ledger.State{SchemaVersion: 2, Attributes: []byte(stored), Identity: []byte(tc.raw), IdentityVersion: tc.version})
			wantError(t, tc.reason, err, tc.err)
			if err == nil && !same(s.Identity, tc.want) {
				t.Errorf("%s: got %#v, want %#v", tc.reason, s.Identity, tc.want)
			}
			if older := tc.version == 1; asked != older {
				t.Errorf("%s: the provider was asked: %t", tc.reason, asked)
			}
		})
	}
}

func TestIdentityIsRecorded(t *testing.T) {
	ty := withIdentity(t, &scripted{})
	rec := ledger.State{Quarantine: []byte("kept")}
	if err := ty.Record(&rec, State{Value: thing(str("1"), str("a")), Identity: identity(str("a"))}); err != nil {
		t.Fatal(err)
	}
	if string(rec.Identity) != `{"account":null,"name":"a"}` || rec.IdentityVersion != 2 || string(rec.Quarantine) != "kept" {
		t.Errorf("got %+v", rec)
	}
	if err := ty.Record(&rec, ty.Null()); err != nil || rec.Identity != nil || rec.IdentityVersion != 0 || rec.Exists() {
		t.Errorf("nothing exists: %+v, %v", rec, err)
	}
	if err := ty.Record(&rec, State{Value: thing(str("1"), str("a"))}); err != nil || rec.Identity != nil {
		t.Errorf("no identity: %+v, %v", rec, err)
	}
}

func TestIdentityOfARead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		prior, reply cty.Value
		want         cty.Value
		err          string
	}{
		"first":    {"older states have none", cty.NilVal, identity(str("a")), identity(str("a")), ""},
		"changed":  {"some types have identities that change", identity(str("a")), identity(str("b")), identity(str("b")), ""},
		"left out": {"it is what it was", identity(str("a")), cty.NilVal, identity(str("a")), ""},
		"unknown":  {"it exists, so it is known", identity(str("a")), identity(cty.UnknownVal(cty.String)), identity(str("a")), "unknown values"},
		"misfit":   {"it must conform", identity(str("a")), cty.ObjectVal(map[string]cty.Value{"arn": str("x")}), identity(str("a")), "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			s.read = func(r *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
				resp := &tfprotov6.ReadResourceResponse{NewState: r.CurrentState}
				if tc.reply != cty.NilVal {
					resp.NewIdentity = wireIdentity(t, tc.reply)
				}
				return resp
			}
			got, _, err := withIdentity(t, s).Read(t.Context(), State{Value: thing(str("1"), str("a")), Identity: tc.prior})
			wantError(t, tc.reason, err, tc.err)
			if !got.Identity.RawEquals(tc.want) {
				t.Errorf("%s: got %#v, want %#v", tc.reason, got.Identity, tc.want)
			}
			if sent := s.reads[0].CurrentIdentity; (sent == nil) != (tc.prior == cty.NilVal) {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

func TestIdentityOfAPlan(t *testing.T) {
	open := identity(cty.UnknownVal(cty.String))
	nothing := cty.NullVal(testBlock.ImpliedType())
	for name, tc := range map[string]struct {
		reason  string
		prior   cty.Value
		tainted bool
		replace bool
		planned cty.Value
		action  v1alpha1.Action
		err     string
	}{
		"create":                    {"it may turn out later", nothing, false, false, open, v1alpha1.ActionCreate, ""},
		"replace":                   {"it may turn out later", thing(str("1"), str("old")), false, true, open, v1alpha1.ActionReplace, ""},
		"tainted":                   {"that is a replace", thing(str("1"), str("new")), true, false, open, v1alpha1.ActionReplace, ""},
		"update":                    {"it exists, so it is known", thing(str("1"), str("old")), false, false, open, "", "unknown values"},
		"no change":                 {"it exists, so it is known", thing(str("1"), str("new")), false, false, open, "", "unknown values"},
		"update of what it is":      {"some types have identities that change", thing(str("1"), str("old")), false, false, identity(str("new")), v1alpha1.ActionUpdate, ""},
		"create with another shape": {"it must conform", nothing, false, false, cty.ObjectVal(map[string]cty.Value{"arn": str("x")}), "", "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			s.plan = func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
				resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState, PlannedIdentity: wireIdentity(t, tc.planned)}
				if tc.replace {
					resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
				}
				return resp
			}
			prior := State{Value: tc.prior, Tainted: tc.tainted, Identity: identity(str("old"))}
			if !prior.Exists() {
				prior.Identity = cty.NilVal
			}
			p, _, err := withIdentity(t, s).Plan(t.Context(), prior, config(thing(null, str("new"))), false)
			wantError(t, tc.reason, err, tc.err)
			if err == nil && (p.Action != tc.action || !p.Identity.RawEquals(tc.planned)) {
				t.Errorf("%s: got %s, identity %#v", tc.reason, p.Action, p.Identity)
			}
			if last := s.plans[len(s.plans)-1]; (last.PriorIdentity == nil) != (!prior.Exists() || tc.replace || tc.tainted) {
				t.Errorf("the last plan got the identity %v", last.PriorIdentity)
			}
		})
	}
}

func TestIdentityOfAnApply(t *testing.T) {
	nothing := cty.NullVal(testBlock.ImpliedType())
	made := thing(str("1"), str("new"))
	for name, tc := range map[string]struct {
		reason         string
		prior, planned cty.Value
		reply          cty.Value
		failed         []*tfprotov6.Diagnostic
		sent           string
		want           cty.Value
		tainted        bool
		err            string
	}{
		"create":              {"the answer is it", nothing, made, identity(str("new")), nil, "planned", identity(str("new")), false, ""},
		"create, none":        {"there is none then", nothing, made, cty.NilVal, nil, "planned", cty.NilVal, false, ""},
		"create, left open":   {"an error, as any after a create", nothing, made, identity(cty.UnknownVal(cty.String)), nil, "planned", cty.NilVal, true, "unknown values"},
		"update":              {"the answer is it", thing(str("1"), str("old")), made, identity(str("new")), nil, "planned", identity(str("new")), false, ""},
		"update, none":        {"it stays what it was", thing(str("1"), str("old")), made, cty.NilVal, nil, "planned", identity(str("old")), false, ""},
		"update, misfit":      {"it stays what it was", thing(str("1"), str("old")), made, cty.ObjectVal(map[string]cty.Value{"arn": str("x")}), nil, "planned", identity(str("old")), false, "does not fit"},
		"delete":              {"the provider must know what to destroy", thing(str("1"), str("old")), nothing, cty.NilVal, nil, "old", cty.NilVal, false, ""},
		"delete that failed":  {"it still exists", thing(str("1"), str("old")), nothing, cty.NilVal, failure("busy"), "old", identity(str("old")), false, "busy"},
		"a half create's own": {"what is left needs it to be destroyed", nothing, made, identity(str("new")), failure("quota"), "planned", identity(str("new")), true, "quota"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{apply: func(r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
				resp := &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState, Diagnostics: tc.failed}
				if tc.reply != cty.NilVal {
					resp.NewIdentity = wireIdentity(t, tc.reply)
				}
				return resp, nil
			}}
			prior := State{Value: tc.prior, Identity: identity(str("old"))}
			if !prior.Exists() {
				prior.Identity = cty.NilVal
			}
			ty := withIdentity(t, s)
			o := ty.Apply(t.Context(), prior, &Planned{Value: tc.planned, Identity: identity(str("planned"))}, thing(null, str("new")))
			wantError(t, tc.reason, o.Err, tc.err)
			if !same(o.State.Identity, tc.want) {
				t.Errorf("%s: got %#v, want %#v", tc.reason, o.State.Identity, tc.want)
			}
			if o.State.Tainted != tc.tainted {
				t.Errorf("%s: tainted %t", tc.reason, o.State.Tainted)
			}
			sent, err := ty.decodeIdentity("test", s.applies[0].PlannedIdentity)
			if err != nil || !sent.RawEquals(identity(str(tc.sent))) {
				t.Errorf("%s: sent %#v, %v", tc.reason, sent, err)
			}
		})
	}
}

func TestTypesWithoutIdentities(t *testing.T) {
	s := &scripted{}
	ty := newType(t, s)
	if _, _, err := ty.Read(t.Context(), State{Value: thing(str("1"), str("a")), Identity: identity(str("a"))}); err != nil || s.reads[0].CurrentIdentity != nil {
		t.Errorf("sent %v, %v", s.reads[0].CurrentIdentity, err)
	}
	if v, err := ty.decodeIdentity("test", &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: []byte{0xc0}}}); err != nil || v != cty.NilVal {
		t.Errorf("a null identity: %#v, %v", v, err)
	}
	if _, err := ty.decodeIdentity("test", wireIdentity(t, identity(str("a")))); err == nil {
		t.Error("an identity without a schema was taken")
	}
	if _, err := ty.DecodeIdentity([]byte(`{"name":"a"}`)); err == nil || !strings.Contains(err.Error(), "has no identity for") {
		t.Errorf("decode: %v", err)
	}
}
