package operation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/tests/clitest"
)

// TestChangesThatEndAtOnceAreInOrder ends all changes of a destroy between two reads of the plan.
func TestChangesThatEndAtOnceAreInOrder(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		cs := clitest.Creates(p)
		for i := range cs {
			cs[i].Action = v1alpha1.ActionDelete
		}
		return cs
	}
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		changes := f.Changes[p.Namespace+"/"+p.Name]
		for i := range changes {
			now := metav1.Now()
			changes[i].State, changes[i].StartedAt, changes[i].FinishedAt = v1alpha1.ChangeDone, &now, &now
			changes[i].Sequence = int64(100 - i) // dependents are destroyed first
		}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: int32(len(changes)), Done: int32(len(changes))}
		f.Set(p, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, "")
		p.Status.FinishedAt = new(metav1.Now())
		f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
	}
	out, errOut, code := f.Run("destroy", "sim_network.main", "sim_subnet.a", "sim_subnet.b", "--auto-approve")
	at := []int{strings.Index(out, "sim_subnet.b: Destruction"), strings.Index(out, "sim_subnet.a: Destruction"), strings.Index(out, "sim_network.main: Destruction")}
	if code != 0 || at[0] < 0 || at[0] > at[1] || at[1] > at[2] {
		t.Errorf("code %d, at %v in:\n%s%s", code, at, out, errOut)
	}
}
