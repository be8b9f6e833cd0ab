package applying

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/types"
)

// stopGracePeriod is the time for which calls of a cancelled plan may continue before the watcher asks their providers
// to stop. Most calls finish within it, and their outcome is known. The outcome of an interrupted create often is not.
const stopGracePeriod = 10 * time.Second

// cancelWatcher tracks the plans that this process applies. A cancelled plan starts no further step. Its running calls
// may finish. After a grace period the watcher asks their providers to stop.
//
// It polls the Plan object: with Temporal's cancellation, the workflows would issue a new command, and the histories of
// running plans would not replay.
type cancelWatcher struct {
	changes.CancelReader
	sessions *session.Pool
	// grace is stopGracePeriod, except in tests.
	grace time.Duration

	mu     sync.Mutex
	active map[types.UID]*activePlan
}

// activePlan holds the running steps of one plan.
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
	stopRequested bool // the watcher asked the providers to stop
	reported      string
}

func newCancelWatcher(reader changes.CancelReader, sessions *session.Pool) *cancelWatcher {
	return &cancelWatcher{CancelReader: reader, sessions: sessions, grace: stopGracePeriod,
		active: map[types.UID]*activePlan{}}
}

// beginStep registers a running step of a plan. The caller must call leave.
func (s *cancelWatcher) beginStep(po *v1alpha1.Plan, p workflows.Plan, c *ledger.Change) (u *activePlan, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u = s.active[po.UID]
	if u == nil {
		u = &activePlan{plan: p, generation: po.Generation, ended: make(chan struct{}),
			steps: map[*ledger.Change]time.Time{}}
		u.cancelled, u.cancel = context.WithCancelCause(context.Background())
		s.active[po.UID] = u
		go func() {
			_ = bug.Guard(s.Logger, "watch for a cancel of plan "+p.Name, func() error { s.watch(u); return nil })
		}()
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

// hasRunningSteps reports whether steps of a plan are running.
func (s *cancelWatcher) hasRunningSteps(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[uid] != nil
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

// stopProviders asks the providers of a plan to stop. Each poll asks again, because a step may have acquired another
// process since.
func (s *cancelWatcher) stopProviders(u *activePlan) {
	for _, l := range s.sessions.Working(workflows.ObjectUID(u.plan)) {
		l.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.stopRequested = true
}

// reportWaiting writes to the Plan object which calls a cancelled plan waits for, if that has changed.
func (s *cancelWatcher) reportWaiting(u *activePlan, asked time.Time) {
	leases := s.sessions.Working(workflows.ObjectUID(u.plan))
	s.mu.Lock()
	text := u.waitingText(leases, asked)
	known := text == u.reported
	u.reported = text
	s.mu.Unlock()
	if known || text == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Plans.UpdateStatus(ctx, u.plan.Namespace, u.plan.Name, workflows.ObjectUID(u.plan),
		func(st *v1alpha1.PlanStatus) {
			if !st.Ended() {
				condition.Reconciling(&st.Conditions, u.generation, v1alpha1.ReasonCancelling, text)
			}
		})
	if err != nil && !errors.Is(err, store.ErrGone) {
		s.Logger.Warn("report the running calls of a cancelled plan", "namespace", u.plan.Namespace, "plan",
			u.plan.Name, "error", err)
	}
}

// waitingText lists the calls that a cancelled plan waits for. It returns "" if there are none.
func (u *activePlan) waitingText(leases []session.Stoppable, asked time.Time) string {
	if len(u.steps) == 0 {
		return ""
	}
	calls := "1 running call"
	if n := len(u.steps); n > 1 {
		calls = fmt.Sprintf("%d running calls", n)
	}
	text := fmt.Sprintf("Cancelling: waiting for %s: %s.", calls, changes.ListRunning(u.steps))
	stopped := 0
	for _, l := range leases {
		if l.Stopped() {
			stopped++
		}
	}
	switch {
	case len(leases) == 0:
		return text
	case !u.stopRequested:
		return text + fmt.Sprintf(" At %s the server asks their providers to stop.",
			asked.UTC().Format(time.TimeOnly+"Z"))
	case stopped == len(leases):
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
	if u.isCancelled() { // AfterFunc would cancel it a little later
		cancel(changes.ErrCancelled)
	}
	stop := context.AfterFunc(u.cancelled, func() { cancel(changes.ErrCancelled) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// interrupted reports whether an error only means that the plan was cancelled before the provider was called to change
// anything.
func (s *stepRun) interrupted(err error) bool {
	return s.active.isCancelled() && !s.answered && (errors.Is(err, changes.ErrCancelled) ||
		errors.Is(err, context.Canceled))
}

// resetPending resets a change that began to Pending.
func (a *Applier) resetPending(ctx context.Context, in workflows.StepInput,
	c *ledger.Change) (workflows.StepResult, error) {
	if !c.HalfDone { // otherwise the first half of the replace is done
		a.progress.transition(in.Plan, v1alpha1.ChangeRunning, v1alpha1.ChangePending)
		c.State, c.StartedAt = v1alpha1.ChangePending, nil
		if err := a.Ledger.SaveChange(ctx, workflows.ObjectUID(in.Plan), c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	return workflows.StepResult{State: string(c.State)}, nil
}
