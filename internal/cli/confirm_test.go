package cli

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
)

// meanwhile is an input that calls a function when the command asks. It never answers.
type meanwhile struct {
	once sync.Once
	do   func()
	end  <-chan struct{}
}

func (m *meanwhile) Read([]byte) (int, error) {
	m.once.Do(m.do)
	<-m.end
	return 0, nil
}

// A question about a plan ends when another person decided about the plan, or another plan took its place.
func TestQuestionEndsWithThePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*fakeServer, *v1alpha1.Plan)
		code    int
		want    string
	}{
		"superseded": {func(f *fakeServer, p *v1alpha1.Plan) {
			f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan theirs, a later plan of the same resources.")
		}, ExitStale, `plan "plan-x7k2d" no longer waits for an answer: Superseded by plan theirs, a later plan of the same resources.`},
		"discarded": {func(f *fakeServer, p *v1alpha1.Plan) {
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, By: &v1alpha1.Identity{Username: "bob"}}
			f.touch(p)
		}, ExitError, `no longer waits for an answer: it was discarded by user "bob"`},
		"approved": {func(f *fakeServer, p *v1alpha1.Plan) {
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: "bob"}}
			f.touch(p)
		}, ExitError, `it was approved by user "bob". Watch it: kubectl hykube status`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Spec.Targets = []string{"sim_network.main"}
				return creates(p)
			}
			in := &meanwhile{end: t.Context().Done(), do: func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, p := range f.plans {
					tc.happens(f, p)
				}
			}}
			_, errOut, code := f.runIn(func(s *session) { s.ask, s.in = true, bufio.NewReader(in) }, "", "apply", "--all")
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
		change func(*session)
		input  string
		code   int
		want   string
		called bool
	}{
		"yes":     {nil, "yes\n", ExitDone, "Only 'yes' will be accepted", true},
		"no":      {nil, "no\n", ExitError, "Only 'yes' will be accepted", true},
		"nothing": {nil, "", ExitError, "Standard input ended without an answer", true},
		"no input at all": {func(s *session) {
			s.terminal = newTerminal(genericiooptions.IOStreams{In: null, Out: s.Out, ErrOut: s.ErrOut})
		}, "", ExitError, "standard input is empty: add --auto-approve", false},
		"closed by Ctrl-D": {asking, "", ExitError, "Only 'yes' will be accepted", true},
	} {
		t.Run(reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Spec.Targets = []string{"sim_network.main"}
				return creates(p)
			}
			out, errOut, code := f.runIn(tc.change, tc.input, "apply", "--all")
			if code != tc.code || !strings.Contains(errOut, tc.want) || (len(f.calls) > 0) != tc.called || strings.Contains(out, "Apply complete!") != (tc.code == ExitDone) {
				t.Errorf("code %d, %d calls:\n%s\n%s", code, len(f.calls), out, errOut)
			}
			if reason == "closed by Ctrl-D" && strings.Contains(errOut, "ended without an answer") {
				t.Errorf("a person pressed the key: %s", errOut)
			}
		})
	}
}

func planName(f *fakeServer) string {
	for _, p := range f.plans {
		return p.Name
	}
	return ""
}
