package operation_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/tests/clitest"
)

// A question about a plan ends when another person decided about the plan, or another plan took its place.
func TestQuestionEndsWithThePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*clitest.Server, *v1alpha1.Plan)
		code    int
		want    string
	}{
		"superseded": {func(f *clitest.Server, p *v1alpha1.Plan) {
			f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan theirs, a later plan of the same resources.")
		}, exit.Stale, `plan "plan-x7k2d" no longer waits for an answer: Superseded by plan theirs, a later plan of the same resources.`},
		"discarded": {func(f *clitest.Server, p *v1alpha1.Plan) {
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, By: &v1alpha1.Identity{Username: "bob"}}
			f.Touch(p)
		}, exit.Failed, `no longer waits for an answer: it was discarded by user "bob"`},
		"approved": {func(f *clitest.Server, p *v1alpha1.Plan) {
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: "bob"}}
			f.Touch(p)
		}, exit.Failed, `it was approved by user "bob". Watch it: kubectl hykube status`},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Spec.Targets = []string{"sim_network.main"}
				return clitest.Creates(p)
			}
			in := &clitest.Meanwhile{End: t.Context().Done(), Do: func() {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				for _, p := range f.Plans {
					tc.happens(f, p)
				}
			}}
			_, errOut, code := f.RunIn(func(s *session.Session) { s.Ask, s.Input = true, bufio.NewReader(in) }, "", "apply", "--all")
			if code != tc.code || !strings.Contains(errOut, strings.Replace(tc.want, "plan-x7k2d", planName(f), 1)) {
				t.Errorf("code %d: %s", code, errOut)
			}
		})
	}
}

// A pipe answers the question as a terminal does. At the end of input, the command explains how to answer. With a null device,
// it ends before it plans.
func TestPipedAnswer(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	for reason, tc := range map[string]struct {
		change func(*session.Session)
		input  string
		code   int
		want   string
		called bool
	}{
		"yes":     {nil, "yes\n", exit.Done, "Only 'yes' will be accepted", true},
		"no":      {nil, "no\n", exit.Failed, "Only 'yes' will be accepted", true},
		"nothing": {nil, "", exit.Failed, "Standard input ended without an answer", true},
		"no input at all": {func(s *session.Session) {
			s.Terminal = terminal.New(genericiooptions.IOStreams{In: null, Out: s.Out, ErrOut: s.ErrOut})
		}, "", exit.Failed, "standard input is empty: add --auto-approve", false},
		"closed by Ctrl-D": {clitest.OnTerminal, "", exit.Failed, "Only 'yes' will be accepted", true},
	} {
		t.Run(reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Spec.Targets = []string{"sim_network.main"}
				return clitest.Creates(p)
			}
			out, errOut, code := f.RunIn(tc.change, tc.input, "apply", "--all")
			if code != tc.code || !strings.Contains(errOut, tc.want) || (len(f.Calls) > 0) != tc.called || strings.Contains(out, "Apply complete!") != (tc.code == exit.Done) {
				t.Errorf("code %d, %d calls:\n%s\n%s", code, len(f.Calls), out, errOut)
			}
			if reason == "closed by Ctrl-D" && strings.Contains(errOut, "ended without an answer") {
				t.Errorf("a person pressed the key: %s", errOut)
			}
		})
	}
}

func planName(f *clitest.Server) string {
	for _, p := range f.Plans {
		return p.Name
	}
	return ""
}
