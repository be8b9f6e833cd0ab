package activities

import (
	"context"
	"fmt"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestAFinalPlanIsNotRepeated counts the plans of a create until it is applied. A provider with deterministic plans plans it
// once. It plans it again if a value became known, or if the provider's arguments changed.
func TestAFinalPlanIsNotRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		repeatable bool // the provider does not announce deterministic plans
		uses       string
		meanwhile  func(*crashScenario)
		plans      int
	}{
		"all is known":             {plans: 1},
		"not announced":            {repeatable: true, plans: 2},
		"a value is not known yet": {uses: "${test_thing.other.id}", plans: 2},
		"other arguments of the provider": {
			meanwhile: func(sc *crashScenario) { sc.zoneOfSecret("another") }, plans: 2,
		},
		"after a restart": {meanwhile: (*crashScenario).restart, plans: 1},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			s := *cloudSchema()
			s.DeterministicPlans = map[string]bool{"test_thing": !tc.repeatable}
			sc.Catalog.Put(catalog.Entry{Name: "test", Schema: &s, Package: provider.Package{Version: "1.0.0"}})
			sc.zoneOfSecret("one")
			plans := 0
			sc.says(func(resp *tfprotov6.PlanResourceChangeResponse) {
				plans++
				resp.PlannedPrivate = []byte("of the plan")
			}, nil)
			spec := m{"name": "a"}
			if tc.uses != "" {
				things("other")(sc)
				spec["uses"] = tc.uses
			}
			sc.put("test-thing/a", spec, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			if tc.meanwhile != nil {
				tc.meanwhile(sc)
			}
			sc.resume(run)
			if c := sc.changeOf(run, 0); c.State != v1alpha1.ChangeDone {
				t.Errorf("%s is %s: %v", c.Address, c.State, c.Diagnostics)
			}
			if tc.uses != "" {
				plans-- // the other thing is planned once
			}
			if plans != tc.plans || sc.cloud.made["a"] != 1 {
				t.Errorf("%d plans and %d creates, want %d and 1", plans, sc.cloud.made["a"], tc.plans)
			}
		})
	}
}

// numbered is a provider whose plans have a number in their private data.
type numbered struct {
	*cloud
	// plans is the number of the last plan of the thing "a"; the first `defers` of them are deferred.
	plans, defers *int
	applied       *[]string
}

func (n numbered) PlanResourceChange(ctx context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := n.cloud.PlanResourceChange(ctx, r)
	if v := n.value(r.ProposedNewState); err != nil || v.GetAttr("name").AsString() != "a" {
		return resp, err
	}
	*n.plans++
	resp.PlannedPrivate = fmt.Appendf(nil, "plan %d", *n.plans)
	if *n.plans <= *n.defers {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonResourceConfigUnknown}
	}
	return resp, nil
}

func (n numbered) ApplyResourceChange(ctx context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if v := n.value(r.PlannedState); v.GetAttr("name").AsString() == "a" {
		*n.applied = append(*n.applied, string(r.PlannedPrivate))
	}
	return n.cloud.ApplyResourceChange(ctx, r)
}

// TestAnApplyHasThePrivateDataOfItsPlan expects the private data of the last plan of a change at its apply, also if that was not
// the first one.
func TestAnApplyHasThePrivateDataOfItsPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		final  bool // the provider announces deterministic plans
		uses   string
		defers int
		last   int
	}{
		"planned once":                {final: true, last: 1},
		"planned again by the apply":  {last: 2},
		"a value is not known yet":    {final: true, uses: "${test_thing.other.id}", last: 2},
		"deferred at first":           {final: true, defers: 1, last: 2},
		"deferred, and planned again": {defers: 1, last: 3},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			s := *cloudSchema()
			s.DeterministicPlans = map[string]bool{"test_thing": tc.final}
			sc.Catalog.Put(catalog.Entry{Name: "test", Schema: &s, Package: provider.Package{Version: "1.0.0"}})
			var plans int
			var applied []string
			sc.provides = func(provider.Configuration) tfprotov6.ProviderServer {
				return numbered{sc.cloud, &plans, &tc.defers, &applied}
			}
			spec := m{"name": "a"}
			if tc.uses != "" {
				things("other")(sc)
				spec["uses"] = tc.uses
			}
			sc.put("test-thing/a", spec, nil)
			for range tc.defers {
				sc.resume(sc.newRun())
				if len(applied) > 0 {
					t.Fatalf("a deferred change was applied with %q", applied)
				}
			}
			sc.resume(sc.newRun())
			if want := fmt.Sprintf("plan %d", tc.last); plans != tc.last || len(applied) != 1 || applied[0] != want {
				t.Errorf("%d plans, applied with %q, want %q", plans, applied, want)
			}
		})
	}
}
