package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestChangesThatEndAtOnceAreInOrder ends all changes of a destroy between two reads of the plan.
func TestChangesThatEndAtOnceAreInOrder(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		cs := creates(p)
		for i := range cs {
			cs[i].Action = v1alpha1.ActionDelete
		}
		return cs
	}
	f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
		f.mu.Lock()
		defer f.mu.Unlock()
		changes := f.changes[p.Namespace+"/"+p.Name]
		for i := range changes {
			now := metav1.Now()
			changes[i].State, changes[i].StartedAt, changes[i].FinishedAt = v1alpha1.ChangeDone, &now, &now
			changes[i].Sequence = int64(100 - i) // dependents are destroyed first
		}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: int32(len(changes)), Done: int32(len(changes))}
		f.set(p, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, "")
		p.Status.FinishedAt = new(metav1.Now())
		f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
	}
	out, errOut, code := f.run("destroy", "sim_network.main", "sim_subnet.a", "sim_subnet.b", "--auto-approve")
	at := []int{strings.Index(out, "sim_subnet.b: Destruction"), strings.Index(out, "sim_subnet.a: Destruction"), strings.Index(out, "sim_network.main: Destruction")}
	if code != 0 || at[0] < 0 || at[0] > at[1] || at[1] > at[2] {
		t.Errorf("code %d, at %v in:\n%s%s", code, at, out, errOut)
	}
}
