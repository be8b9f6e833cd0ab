package activities

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"
)

// onePlan is a store of one Plan object.
type onePlan struct {
	mu   sync.Mutex
	plan v1alpha1.Plan
	got  int
}

func (p *onePlan) Get(context.Context, string, string, types.UID) (*v1alpha1.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got++
	return p.plan.DeepCopy(), nil
}

func (p *onePlan) UpdateStatus(_ context.Context, _, _ string, _ types.UID, change func(*v1alpha1.PlanStatus)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.plan.Status)
	return nil
}

func (p *onePlan) Approve(context.Context, string, string, types.UID, v1alpha1.PlanApproval) error {
	return errors.New("nobody approves here")
}

func (p *onePlan) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.Status.Cancel = &v1alpha1.PlanCancel{}
}

func (p *onePlan) says() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.plan.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// process is a lease of a provider's process; shared is true while somebody else needs it.
type process struct {
	tfprotov6.ProviderServer
	mu             sync.Mutex
	wanted, shared bool
}

func (p *process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
}

func (p *process) Stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted && !p.shared
}

func TestCancelledPlanIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plans := &onePlan{}
		plans.plan.UID, plans.plan.Generation = "u", 1
		s := newCancelWatcher(plans, slog.New(slog.DiscardHandler))
		po := plans.plan.DeepCopy()
		step := func(addr string) *ledger.Change {
			return &ledger.Change{PlanChange: v1alpha1.PlanChange{Address: addr}}
		}
		u, left := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.a"))
		before, done := u.withCancel(t.Context())
		defer done()
		alone, shared := &process{}, &process{shared: true}
		back := s.trackLease(po, alone)
		s.trackLease(nil, shared)() // of a plan that is only being made

		time.Sleep(3 * cancelPollInterval)
		synctest.Wait()
		if u.isCancelled() || plans.says() != "" || alone.wanted {
			t.Fatal("nobody cancelled the plan yet")
		}
		plans.cancel()
		time.Sleep(cancelPollInterval)
		synctest.Wait()
		if !u.isCancelled() || !errors.Is(context.Cause(before), errCancelled) || alone.wanted {
			t.Errorf("cancelled %t, %v, asked to stop %t", u.isCancelled(), context.Cause(before), alone.wanted)
		}
		if got := plans.says(); !strings.HasPrefix(got, "Cancelling: Cancelling: waiting for 1 call under way: test_thing.a (since ") || !strings.Contains(got, "is asked to stop.") {
			t.Error(got)
		}
		time.Sleep(stopGracePeriod + cancelPollInterval)
		synctest.Wait()
		if got := plans.says(); !alone.wanted || !strings.Contains(got, "The provider was asked to stop") {
			t.Error(got)
		}

		// What comes late is asked at once, and what works for others, too, is told of.
		_, leftToo := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.b"))
		backToo := s.trackLease(po, shared)
		time.Sleep(cancelPollInterval)
		synctest.Wait()
		if got := plans.says(); !shared.wanted || !strings.Contains(got, "2 calls under way: test_thing.a (since ") || !strings.Contains(got, "works for another plan, too") {
			t.Error(got)
		}
		back()
		left()
		backToo()
		leftToo()
		synctest.Wait()

		// Nobody looks any more.
		got := plans.got
		time.Sleep(10 * cancelPollInterval)
		synctest.Wait()
		if plans.got != got || len(s.active) != 0 {
			t.Errorf("looked %d times after the end", plans.got-got)
		}
	})
}

// TestCancelledWhileItWaits cancels a plan whose step waits for its turn, or for the provider's plan: nothing is asked of the provider, and
// the change is one that was not tried.
func TestCancelledWhileItWaits(t *testing.T) {
	for name, lane := range map[string]bool{"steps": false, "lane": true} {
		t.Run(name, func(t *testing.T) {
			tn := newCrashScenario(t)
			tn.lane = lane
			tn.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, nil)
			run := tn.newRun()
			po := tn.until(run, stepping)
			plans := &onePlan{plan: *po.DeepCopy()}
			tn.cancels = newCancelWatcher(plans, tn.Logger)
			tn.cancels.interval = time.Millisecond
			release, err := tn.limits.acquire(t.Context(), "team/test/", &v1alpha1.Limits{Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			tn.limits.buckets["team/test/"].spec = v1alpha1.Limits{} // as the step asks for it
			defer release()
			time.AfterFunc(20*time.Millisecond, plans.cancel)
			tn.until(run, finishing)
			po.Status.Cancel = &v1alpha1.PlanCancel{}
			tn.resume(run)
			if len(tn.cloud.made) != 0 {
				t.Errorf("made %v", tn.cloud.made)
			}
			c, err := tn.Ledger.Change(t.Context(), po.UID, 0)
			if err != nil || c.State != v1alpha1.ChangeSkipped || !strings.Contains(c.Message, "cancelled before it was tried") || c.StartedAt != nil {
				t.Errorf("%v: %s %q, begun %v", err, c.State, c.Message, c.StartedAt)
			}
		})
	}
}
