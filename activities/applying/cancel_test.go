package applying

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

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
		plans := &activitiestest.OnePlan{}
		plans.Plan.UID, plans.Plan.Generation = "u", 1
		s := newCancelWatcher(changes.CancelReader{Plans: plans, Logger: slog.New(slog.DiscardHandler)})
		po := plans.Plan.DeepCopy()
		step := func(addr string) *ledger.Change {
			return &ledger.Change{PlanChange: v1alpha1.PlanChange{Address: addr}}
		}
		u, left := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.a"))
		before, done := u.withCancel(t.Context())
		defer done()
		alone, shared := &process{}, &process{shared: true}
		back := s.trackLease(po, alone)
		s.trackLease(nil, shared)() // of a plan that is only being made

		time.Sleep(3 * changes.CancelPollInterval)
		synctest.Wait()
		if u.isCancelled() || plans.Says() != "" || alone.wanted {
			t.Fatal("nobody cancelled the plan yet")
		}
		plans.Cancel()
		time.Sleep(changes.CancelPollInterval)
		synctest.Wait()
		if !u.isCancelled() || !errors.Is(context.Cause(before), changes.ErrCancelled) || alone.wanted {
			t.Errorf("cancelled %t, %v, asked to stop %t", u.isCancelled(), context.Cause(before), alone.wanted)
		}
		if got := plans.Says(); !strings.HasPrefix(got, "Cancelling: Cancelling: waiting for 1 running call: test_thing.a (since ") || !strings.Contains(got, "the server asks their providers to stop.") {
			t.Error(got)
		}
		time.Sleep(stopGracePeriod + changes.CancelPollInterval)
		synctest.Wait()
		if got := plans.Says(); !alone.wanted || !strings.Contains(got, "The server asked the provider to stop") {
			t.Error(got)
		}

		// What comes late is asked at once, and what works for others, too, is told of.
		_, leftToo := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.b"))
		backToo := s.trackLease(po, shared)
		time.Sleep(changes.CancelPollInterval)
		synctest.Wait()
		if got := plans.Says(); !shared.wanted || !strings.Contains(got, "2 running calls: test_thing.a (since ") || !strings.Contains(got, "Another plan uses the provider's process") {
			t.Error(got)
		}
		back()
		left()
		backToo()
		leftToo()
		synctest.Wait()

		// Nobody looks any more.
		got := plans.Got
		time.Sleep(10 * changes.CancelPollInterval)
		synctest.Wait()
		if plans.Got != got || len(s.active) != 0 {
			t.Errorf("looked %d times after the end", plans.Got-got)
		}
	})
}
