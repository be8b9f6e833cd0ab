package operation_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// If another command overtook a plan before its approval, the command makes a new plan. It does not overwrite a change
// that a user made by hand.
func TestApplyPlansAnew(t *testing.T) {
	const rival, later, edited = "rival", "later plan", "edited"
	for _, tc := range []struct {
		reason  string
		answers string
		args    []string
		cause   string
		// other is true if the new plan has other changes.
		other bool
		code  int
		want  string
		asked int
	}{
		{"without a person", "", []string{"--auto-approve"}, rival, true, exit.Done, `plan "theirs" was changing resources at the same time. Planning again.`, 0},
		{"without a person, and superseded", "", []string{"--auto-approve"}, later, false, exit.Done, "a later plan of the same resources superseded it. Planning again.", 0},
		{"without a person, and edited", "", []string{"--auto-approve"}, edited, false, exit.Stale, "is stale", 0},
		{"without time to wait", "", []string{"--auto-approve", "--wait-timeout", "0"}, rival, false, exit.Failed, "was not applied, because plan", 0},
		{"the same as confirmed", "yes\n", nil, rival, false, exit.Done, "Planning again.", 1},
		{"other than confirmed, and yes", "yes\nyes\n", nil, rival, true, exit.Done, "Planning again.", 2},
		{"other than confirmed, and no", "yes\nno\n", nil, rival, true, exit.Failed, "Discarded. This command changed no infrastructure", 2},
		{"edited while a person looked", "yes\n", nil, edited, false, exit.Stale, "is stale", 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			made := 0
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				made++
				p.Spec.Targets = []string{"sim_network.main"}
				if tc.other && made > 1 {
					p.Spec.Targets = []string{"sim_network.other"}
				}
				return clitest.Creates(p)
			}
			refused := false
			f.Refuse = func(r *http.Request) *metav1.Status {
				if refused || !strings.HasSuffix(r.URL.Path, "/approval") {
					return nil
				}
				refused = true
				st := clitest.Status(409, metav1.StatusReasonConflict, "1 of its changes is stale")
				st.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CauseStale, Field: "sim_network.main"}}}
				f.Mu.Lock()
				defer f.Mu.Unlock()
				switch tc.cause {
				case rival:
					f.Plans["default/theirs"] = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "default", UID: "uid-theirs"},
						Status: v1alpha1.PlanStatus{FinishedAt: new(metav1.NewTime(time.Now().Add(time.Second))), Approval: &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}}}
				case later:
					st.Details = nil
					for _, p := range f.Plans {
						f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan theirs, a later plan of the same resources.")
					}
				}
				return st
			}
			out, errOut, code := f.RunIn(clitest.OnTerminal, tc.answers, append([]string{"apply", "--all"}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) || (code == exit.Done) != strings.Contains(out, "Apply complete!") {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			if n := strings.Count(errOut, "Do you want to perform these actions?"); n != tc.asked {
				t.Errorf("asked %d times:\n%s", n, errOut)
			}
		})
	}
}
