package activities

import (
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
