package activities

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/workflows"
)

// publishEvery bounds how often a plan's progress is written to its object: watchers want it soon, the store seldom.
const publishEvery = 250 * time.Millisecond

// progress counts the changes of the plans that this process applies, and writes the counts to the Plan objects. The truth
// is in the ledger; Begin counts anew from there.
type progress struct {
	plans  Plans
	logger *slog.Logger

	mu     sync.Mutex
	counts map[workflows.Plan]*tally
}

type tally struct {
	v1alpha1.PlanProgress
	scheduled bool
}

func newProgress(plans Plans, logger *slog.Logger) *progress {
	return &progress{plans: plans, logger: logger, counts: map[workflows.Plan]*tally{}}
}

// begin starts to count a plan.
func (p *progress) begin(plan workflows.Plan, counts v1alpha1.PlanProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[plan] = &tally{PlanProgress: counts}
}

// end stops to count a plan.
func (p *progress) end(plan workflows.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, plan)
}

// moved counts a change that went from one state to another.
func (p *progress) moved(plan workflows.Plan, from, to v1alpha1.ChangeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.counts[plan]
	if t == nil {
		return
	}
	tallyState(&t.PlanProgress, from, -1)
	tallyState(&t.PlanProgress, to, +1)
	if !t.scheduled {
		t.scheduled = true
		time.AfterFunc(publishEvery, func() { p.publish(plan) })
	}
}

func (p *progress) publish(plan workflows.Plan) {
	p.mu.Lock()
	t := p.counts[plan]
	if t == nil {
		p.mu.Unlock()
		return
	}
	t.scheduled = false
	counts := t.PlanProgress
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := p.plans.UpdateStatus(ctx, plan.Namespace, plan.Name, uidOf(plan), func(s *v1alpha1.PlanStatus) {
		if !s.Ended() {
			s.Progress = &counts
		}
	})
	if err != nil && !errors.Is(err, ErrGone) {
		p.logger.Warn("write progress of plan", "namespace", plan.Namespace, "plan", plan.Name, "error", err)
	}
}

func tallyState(p *v1alpha1.PlanProgress, state v1alpha1.ChangeState, by int32) {
	switch state {
	case v1alpha1.ChangeRunning:
		p.Running += by
	case v1alpha1.ChangeDone:
		p.Done += by
	case v1alpha1.ChangeFailed, v1alpha1.ChangeStale, v1alpha1.ChangeUnknown:
		p.Failed += by
	case v1alpha1.ChangeSkipped:
		p.Skipped += by
	}
}
