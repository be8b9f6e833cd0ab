package applying

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// stopGracePeriod is the time for which calls of a cancelled plan may continue before providers are told to stop.
	// Most calls finish within it, and their outcome is known. The outcome of an interrupted create often is not.
	stopGracePeriod = 10 * time.Second
)

// cancelWatcher tracks the plans that this process applies. A cancelled plan starts no further step. Its running calls
// may finish, and after a grace period the providers are told to stop.
type cancelWatcher struct {
	changes.CancelReader
	// grace is stopGracePeriod, except in tests.
	grace time.Duration

	mu     sync.Mutex
	active map[types.UID]*activePlan
}

// activePlan holds the running steps and leases of one plan.
type activePlan struct {
	plan       workflows.Plan
	generation int64
	// cancelled ends when the plan is known to be cancelled.
	cancelled context.Context
	cancel    context.CancelCauseFunc
	// ended is closed when no step is running any more.
	ended chan struct{}

	// The mutex of the cancelWatcher guards the following fields.
	steps         map[*ledger.Change]time.Time
	leases        map[session.Stoppable]struct{}
	stopRequested bool // the providers were told to stop
	reported      string
}

func newCancelWatcher(reader changes.CancelReader) *cancelWatcher {
	return &cancelWatcher{CancelReader: reader, grace: stopGracePeriod, active: map[types.UID]*activePlan{}}
}

// beginStep registers a running step of a plan. The caller must call leave.
func (s *cancelWatcher) beginStep(po *v1alpha1.Plan, p workflows.Plan, c *ledger.Change) (u *activePlan, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u = s.active[po.UID]
	if u == nil {
		u = &activePlan{plan: p, generation: po.Generation, ended: make(chan struct{}), steps: map[*ledger.Change]time.Time{}, leases: map[session.Stoppable]struct{}{}}
		u.cancelled, u.cancel = context.WithCancelCause(context.Background())
		s.active[po.UID] = u
		go s.watch(u)
	}
	if po.Status.Cancel != nil {
		u.cancel(changes.ErrCancelled)
	}
	u.steps[c] = time.Now()
	return u, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(u.steps, c); len(u.steps) == 0 {
			delete(s.active, po.UID)
			close(u.ended)
		}
	}
}

// makesSteps reports whether steps of a plan are running.
func (s *cancelWatcher) makesSteps(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[uid] != nil
}

// trackLease registers a process that works for a plan; the caller must call back. It ignores processes without a plan,
// those of a plan without running steps, and those that cannot be stopped.
func (s *cancelWatcher) trackLease(po *v1alpha1.Plan, p tfprotov6.ProviderServer) (back func()) {
	l, ok := p.(session.Stoppable)
	if po == nil || !ok {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.active[po.UID]
	if u == nil {
		return func() {}
	}
	u.leases[l] = struct{}{}
	if u.stopRequested {
		l.Stop()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(u.leases, l)
	}
}

// watch polls a plan for a cancel until no step is running any more.
func (s *cancelWatcher) watch(u *activePlan) {
	tick := time.NewTicker(s.Every())
	defer tick.Stop()
	defer u.cancel(nil)
	var since time.Time
	for {
		if u.isCancelled() {
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= s.grace {
				s.stopProviders(u)
			}
			s.reportWaiting(u, since.Add(s.grace))
		}
		select {
		case <-tick.C:
		case <-u.ended:
			return
		}
		if !u.isCancelled() && s.IsCancelled(u.plan) {
			u.cancel(changes.ErrCancelled)
		}
	}
}

// stopProviders tells the providers of a plan to stop.
func (s *cancelWatcher) stopProviders(u *activePlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.stopRequested {
		u.stopRequested = true
		for l := range u.leases {
			l.Stop()
		}
	}
}

// reportWaiting writes to the Plan object which calls a cancelled plan waits for, if that has changed.
func (s *cancelWatcher) reportWaiting(u *activePlan, asked time.Time) {
	s.mu.Lock()
	text := u.waitingText(asked)
	known := text == u.reported
	u.reported = text
	s.mu.Unlock()
	if known || text == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Plans.UpdateStatus(ctx, u.plan.Namespace, u.plan.Name, workflows.ObjectUID(u.plan), func(st *v1alpha1.PlanStatus) {
		if !st.Ended() {
			condition.Reconciling(&st.Conditions, u.generation, v1alpha1.ReasonCancelling, text)
		}
	})
	if err != nil && !errors.Is(err, store.ErrGone) {
		s.Logger.Warn("report the running calls of a cancelled plan", "namespace", u.plan.Namespace, "plan", u.plan.Name, "error", err)
	}
}

// waitingText lists the calls that a cancelled plan waits for. It returns "" if there are none.
func (u *activePlan) waitingText(asked time.Time) string {
	if len(u.steps) == 0 {
		return ""
	}
	calls := "1 running call"
	if n := len(u.steps); n > 1 {
		calls = fmt.Sprintf("%d running calls", n)
	}
	text := fmt.Sprintf("Cancelling: waiting for %s: %s.", calls, changes.Since(u.steps))
	stopped := 0
	for l := range u.leases {
		if l.Stopped() {
			stopped++
		}
	}
	switch {
	case len(u.leases) == 0:
		return text
	case !u.stopRequested:
		return text + fmt.Sprintf(" At %s the server asks their providers to stop.", asked.UTC().Format(time.TimeOnly+"Z"))
	case stopped == len(u.leases):
		return text + " The server asked the provider to stop and waits for its answer."
	default:
		return text + " Another plan uses the provider's process, so the server asks it to stop later."
	}
}

// isCancelled reports whether the plan is known to be cancelled.
func (u *activePlan) isCancelled() bool {
	return u != nil && errors.Is(context.Cause(u.cancelled), changes.ErrCancelled)
}

// withCancel returns a context that ends with ctx or when the plan is cancelled. If u is nil, the plan cannot be
// cancelled.
func (u *activePlan) withCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	if u == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(u.cancelled, func() { cancel(changes.ErrCancelled) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// interrupted reports whether an error only means that the plan was cancelled before the provider was called to change
// anything.
func (s *stepRun) interrupted(err error) bool {
	return s.active.isCancelled() && !s.answered && (errors.Is(err, changes.ErrCancelled) || errors.Is(err, context.Canceled))
}

// resetPending resets a change that began to Pending.
func (a *Applier) resetPending(ctx context.Context, in workflows.StepInput, c *ledger.Change) (workflows.StepResult, error) {
	if !c.HalfDone { // otherwise the first half of the replace is done
		a.progress.moved(in.Plan, v1alpha1.ChangeRunning, v1alpha1.ChangePending)
		c.State, c.StartedAt = v1alpha1.ChangePending, nil
		if err := a.Ledger.SaveChange(ctx, workflows.ObjectUID(in.Plan), c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	return workflows.StepResult{State: string(c.State)}, nil
}
