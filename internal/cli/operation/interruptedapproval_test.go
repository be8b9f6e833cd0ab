package operation_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
)

// A Ctrl-C during the approval is a Ctrl-C of the apply that the approval starts.
func TestInterruptedWhileApproving(t *testing.T) {
	for _, verb := range [][]string{{"approve", "plan-x7k2d", "--digest", "sha256:abc"}, {"apply", "--all", "--auto-approve"}} {
		f := clitest.New(t, cli.Command)
		f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
			return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
		}
		if _, errOut, code := f.Run("plan"); code != exit.Done {
			t.Fatal(errOut)
		}
		keys := &clitest.Keyboard{}
		f.Applying = func(*clitest.Server, *v1alpha1.Plan) {} // it does not end
		f.Refuse = func(r *http.Request) *metav1.Status {
			if strings.HasSuffix(r.URL.Path, "/approval") && !keys.Press() {
				t.Errorf("%s: nothing handles a Ctrl-C during the approval", verb)
			}
			return nil
		}
		_, errOut, code := f.RunIn(func(s *session.Session) { s.Ask, s.Interrupts = true, keys.Interrupts }, "d\n", verb...)
		if code != exit.Failed || strings.Count(errOut, "Cancel the plan (c)") != 1 || !strings.Contains(errOut, "Detached. The server continues the plan.") {
			t.Errorf("%s: code %d: %s", verb, code, errOut)
		}
		if keys.Press() {
			t.Errorf("%s: a handler is left", verb)
		}
	}
}
