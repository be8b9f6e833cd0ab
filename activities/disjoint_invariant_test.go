package activities

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"
)

// TestDisjointPlansLeaveEachOtherAlone makes plans that change different resources of one namespace, with a provider
// that returns other values than the recorded ones, and applies them in any order. None may make another stale. For
// more of them: go test ./activities -run TestDisjointPlans -rapid.checks 20000
func TestDisjointPlansLeaveEachOtherAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newScenario(t)
		pick := func(what string, below int) int { return rapid.IntRange(0, below-1).Draw(rt, what) }
		// The shared servers depend on nothing; each of the others depends on some of them, and uses the values of
		// none.
		shared, own := 1+pick("shared", 3), 2+pick("own", 4)
		write := func(name, size string, dependsOn []any) {
			lifecycle := m{}
			if len(dependsOn) > 0 {
				lifecycle["dependsOn"] = dependsOn
			}
			g.put("test-server/"+name, m{"name": name, "size": size}, lifecycle)
		}
		for i := range shared {
			write(fmt.Sprintf("s%d", i), "1", nil)
		}
		deps := make([][]any, own)
		for i := range own {
			for k := range shared {
				if pick("depends", 2) == 1 {
					deps[i] = append(deps[i], fmt.Sprintf("test_server.s%d", k))
				}
			}
			write(fmt.Sprintf("o%d", i), "1", deps[i])
		}
		if po := g.apply(); !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApplied) {
			rt.Fatalf("the estate was not made: %v", po.Status.Conditions)
		}
		for _, id := range slices.Sorted(maps.Keys(g.backend.things)) {
			if pick("drifts "+id, 2) == 1 {
				g.backend.things[id]["etag"] = "another" // which no spec asks for
			}
		}

		// One plan updates or replaces some servers of its own; a plan of a shared one may replace it.
		var specs []v1alpha1.PlanSpec
		for i := range own {
			address := fmt.Sprintf("test_server.o%d", i)
			spec := v1alpha1.PlanSpec{Targets: []string{address}, Refresh: v1alpha1.RefreshAll}
			if pick("replaces", 3) == 2 {
				spec.Replace = spec.Targets
			} else {
				write(fmt.Sprintf("o%d", i), "2", deps[i])
			}
			specs = append(specs, spec)
		}
		edited := pick("edited", shared+1)
		runs := make([]*planRun, 0, own+1)
		begin := func(spec v1alpha1.PlanSpec) {
			g.spec = spec
			run := g.newRun()
			g.until(run, approving)
			runs = append(runs, run)
		}
		for _, spec := range specs {
			begin(spec)
		}
		if edited < shared {
			name := fmt.Sprintf("s%d", edited)
			write(name, "2", nil)
			begin(v1alpha1.PlanSpec{Targets: []string{"test_server." + name}, Refresh: v1alpha1.RefreshAll})
		}
		for _, run := range rapid.Permutation(runs).Draw(rt, "order") {
			po := g.resume(run)
			if c := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionStale); c != nil {
				rt.Fatalf("plan %s of %v is stale: %s", run.Name, po.Spec.Targets, c.Message)
			}
			if !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApplied) {
				rt.Fatalf("plan %s of %v: %v", run.Name, po.Spec.Targets, po.Status.Conditions)
			}
		}
	})
}
