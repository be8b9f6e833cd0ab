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
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// process is a lease of a provider's process; shared is true while another plan uses the process.
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
		sessions := session.NewPool(nil, ledger.Alone(), slog.New(slog.DiscardHandler))
		start := func(p *process, plan *v1alpha1.Plan) (release func()) {
			sessions.Source = func(context.Context, catalog.Entry, provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
				return p, func() {}, nil
			}
			_, release, err := sessions.Start(t.Context(), catalog.Entry{}, provider.Configuration{}, plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		s := newCancelWatcher(changes.CancelReader{Plans: plans, Logger: slog.New(slog.DiscardHandler)}, sessions)
		po := plans.Plan.DeepCopy()
		step := func(addr string) *ledger.Change {
			return &ledger.Change{PlanChange: v1alpha1.PlanChange{Address: addr}}
		}
		u, left := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.a"))
		before, done := u.withCancel(t.Context())
		defer done()
		own, shared := &process{}, &process{shared: true}
		release := start(own, po)
		start(shared, nil)() // a query needs it

		time.Sleep(3 * changes.CancelPollInterval)
		synctest.Wait()
		if u.isCancelled() || plans.Says() != "" || own.wanted {
			t.Fatal("the plan counts as cancelled before the cancel")
		}
		plans.Cancel()
		time.Sleep(changes.CancelPollInterval)
		synctest.Wait()
		if !u.isCancelled() || !errors.Is(context.Cause(before), changes.ErrCancelled) || own.wanted {
			t.Errorf("cancelled %t, %v, asked to stop %t", u.isCancelled(), context.Cause(before), own.wanted)
		}
		if got := plans.Says(); !strings.HasPrefix(got, "Cancelling: Cancelling: waiting for 1 running call: test_thing.a (since ") || !strings.Contains(got, "the server asks their providers to stop.") {
			t.Error(got)
		}
		time.Sleep(stopGracePeriod + changes.CancelPollInterval)
		synctest.Wait()
		if got := plans.Says(); !own.wanted || !strings.Contains(got, "The server asked the provider to stop") {
			t.Error(got)
		}

		// The watcher also stops a process that the plan acquires later, and reports a process that another plan uses.
		_, leftToo := s.beginStep(po, workflows.Plan{UID: "u"}, step("test_thing.b"))
		releaseToo := start(shared, po)
		time.Sleep(changes.CancelPollInterval)
		synctest.Wait()
		if got := plans.Says(); !shared.wanted || !strings.Contains(got, "2 running calls: test_thing.a (since ") || !strings.Contains(got, "Another plan uses the provider's process") {
			t.Error(got)
		}
		release()
		left()
		releaseToo()
		leftToo()
		synctest.Wait()

		// The polls have ended.
		got := plans.Got
		time.Sleep(10 * changes.CancelPollInterval)
		synctest.Wait()
		if plans.Got != got || len(s.active) != 0 {
			t.Errorf("the watcher read the plan %d times after the end", plans.Got-got)
		}
	})
}
