package cli

import (
	"bufio"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// meanwhile is an input at which something else happens when a person is asked. Nobody ever answers.
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
			f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan theirs; approve that one.")
		}, ExitStale, `plan "plan-x7k2d" no longer waits for an answer: Superseded by plan theirs; approve that one.`},
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

func planName(f *fakeServer) string {
	for _, p := range f.plans {
		return p.Name
	}
	return ""
}
