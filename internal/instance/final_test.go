package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// TestAFinalPlan plans a create, and then plans it again as its apply does. The provider gets the second plan only if its answer could
// differ from the first.
func TestAFinalPlan(t *testing.T) {
	identities := &schema.Identity{Attributes: []*schema.IdentityAttribute{{Name: "id", Type: cty.String, RequiredForImport: true}}}
	identity := cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)})
	meta := &schema.Block{Attributes: []*schema.Attribute{{Name: "module", Type: cty.String, Optional: true}}}
	module := cty.ObjectVal(map[string]cty.Value{"module": str("m")})
	exists := State{Value: thing(str("1"), str("a"))}
	for name, tc := range map[string]struct {
		first, then func(*Type)
		prior, now  State
		configured  [2]cty.Value // the name in the first plan and in the second
		legacy      bool
		final       bool
		plans       int
	}{
		"the same":               {final: true, plans: 1},
		"secret meanwhile":       {configured: [2]cty.Value{str("a"), str("a").Mark(lang.Sensitive)}, final: true, plans: 1},
		"another configuration":  {configured: [2]cty.Value{str("a"), str("b")}, final: true, plans: 2},
		"not known before":       {configured: [2]cty.Value{cty.UnknownVal(cty.String), str("a")}, plans: 2},
		"not known in both":      {configured: [2]cty.Value{cty.UnknownVal(cty.String), cty.UnknownVal(cty.String)}, plans: 2},
		"exists meanwhile":       {now: exists, final: true, plans: 2},
		"an update":              {prior: exists, now: exists, configured: [2]cty.Value{str("b"), str("b")}, plans: 2},
		"plans that may differ":  {first: func(ty *Type) { ty.Deterministic = false }, plans: 2},
		"the legacy SDK":         {legacy: true, plans: 2},
		"metadata of the first":  {first: func(ty *Type) { ty.Meta = module }, plans: 2},
		"the promise is gone":    {then: func(ty *Type) { ty.Deterministic = false }, final: true, plans: 2},
		"metadata of the second": {then: func(ty *Type) { ty.Meta = module }, final: true, plans: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			ty := newType(t, s)
			ty.Deterministic, ty.Identity, ty.MetaBlock = true, identities, meta
			s.plan = func(r *tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
				proposed, err := ty.decode(r.ProposedNewState)
				if err != nil {
					t.Fatal(err)
				}
				resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState, PlannedPrivate: []byte("private"), UnsafeToUseLegacyTypeSystem: tc.legacy}
				if proposed.GetAttr("id").IsNull() {
					resp.PlannedState = wire(t, thing(cty.UnknownVal(cty.String), proposed.GetAttr("name")))
					resp.PlannedIdentity, err = ty.encodeIdentity(identity)
				}
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			plan := func(prior State, configured cty.Value, final *Planned, validated string) *Planned {
				if prior.Value == cty.NilVal {
					prior = ty.Null()
				}
				if configured == cty.NilVal {
					configured = str("a")
				}
				c := config(thing(null, configured))
				c.Final, c.Validated = final, validated
				p, _, err := ty.Plan(t.Context(), prior, c, false)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			if tc.first != nil {
				tc.first(ty)
			}
			first := plan(tc.prior, tc.configured[0], nil, "")
			if first.Final != tc.final {
				t.Fatalf("the first plan is final: %t, want %t", first.Final, tc.final)
			}
			if tc.then != nil {
				tc.then(ty)
			}
			var approved *Planned
			if first.Final {
				approved = stored(t, ty, first)
			}
			then := plan(tc.now, tc.configured[1], approved, first.Validated)
			if len(s.plans) != tc.plans {
				t.Errorf("%d plans, want %d", len(s.plans), tc.plans)
			}
			if tc.plans > 1 {
				return
			}
			want := first.Value
			if tc.configured[1] != cty.NilVal {
				want = thing(cty.UnknownVal(cty.String), tc.configured[1])
			}
			if then.Action != first.Action || !then.Value.RawEquals(want) || string(then.Private) != "private" || !then.Identity.RawEquals(identity) {
				t.Errorf("the second plan is %+v, want %+v with the value %#v", then, first, want)
			}
		})
	}
}

// stored returns a plan as a change stores it: without marks, and with an encoded identity.
func stored(t *testing.T, ty *Type, p *Planned) *Planned {
	t.Helper()
	raw, err := ty.MarshalPlannedIdentity(p.Identity)
	if err != nil {
		t.Fatal(err)
	}
	out := *p
	out.Value, _ = p.Value.UnmarkDeep()
	if out.Identity, err = ty.UnmarshalPlannedIdentity(raw); err != nil {
		t.Fatal(err)
	}
	return &out
}
