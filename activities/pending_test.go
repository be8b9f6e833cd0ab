package activities

import (
	"fmt"
	"testing"

	"github.com/hykube/hykube/activities/planning"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The objects of a plan that waits name it, up to a number of changes: a large plan is not made slower by a write for each.
func TestObjectsOfALargePlanAreNotWritten(t *testing.T) {
	for _, objects := range []int{planning.MaxReported, planning.MaxReported + 1} {
		t.Run(fmt.Sprint(objects), func(t *testing.T) {
			tn := newCrashScenario(t)
			for i := range objects {
				tn.put(fmt.Sprintf("test-thing/t%d", i), map[string]any{"name": "x"}, nil)
			}
			if po := tn.until(tn.newRun(), approving); po.Status.Summary == nil || int(po.Status.Summary.Create) != objects {
				t.Fatalf("the plan has the summary %+v", po.Status.Summary)
			}
			waiting := 0
			for _, obj := range tn.Stored {
				if name, _, _ := unstructured.NestedString(obj.Object, "status", "pendingPlan"); name != "" {
					waiting++
				}
			}
			if want := map[bool]int{true: objects}[objects <= planning.MaxReported]; waiting != want {
				t.Errorf("%d objects say that a plan waits, want %d", waiting, want)
			}
		})
	}
}
