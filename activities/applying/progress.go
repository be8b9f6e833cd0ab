package applying

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// publishEvery is the default minimum time between two writes of a plan's progress to its object. A write of a large
// plan takes long. So the next write also waits for at least pauseFactor times the duration of the last one.
const (
	publishEvery = 250 * time.Millisecond
	pauseFactor  = 20
)

// progress counts the changes of the plans that this process applies, and writes the counts to the Plan objects. The
// ledger has the authoritative states, from which Begin counts. Beside other processes, which run other steps of the
// plan, each write counts from the ledger.
type progress struct {
	*Applier

	mu     sync.Mutex
	counts map[workflows.Plan]*tally
}

type tally struct {
	v1alpha1.PlanProgress
	scheduled bool
	// pause is the time until the next write.
	pause time.Duration
}

// begin starts counting a plan.
func (p *progress) begin(plan workflows.Plan, counts v1alpha1.PlanProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[plan] = &tally{PlanProgress: counts}
}

// shared reports whether other processes may run steps of a plan.
func (p *progress) shared() bool { return p.Processes.Processes() > 1 }

// resume starts counting a plan whose apply began in an earlier process. work has no change that this process began.
func (p *progress) resume(plan workflows.Plan, work *changes.Stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[plan] == nil || p.shared() {
		p.counts[plan] = &tally{PlanProgress: work.Progress()}
	}
}

// of returns the counts of a plan; zero if it is not counted.
func (p *progress) of(plan workflows.Plan) v1alpha1.PlanProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.counts[plan]; t != nil {
		return t.PlanProgress
	}
	return v1alpha1.PlanProgress{}
}

// end stops counting a plan.
func (p *progress) end(plan workflows.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, plan)
}

// transition counts the transition of a change from one state to another.
func (p *progress) transition(plan workflows.Plan, from, to v1alpha1.ChangeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.counts[plan]
	if t == nil && p.shared() { // another process began the plan
		t = &tally{}
		p.counts[plan] = t
	}
	if t == nil {
		return
	}
	changes.TallyState(&t.PlanProgress, from, -1)
	changes.TallyState(&t.PlanProgress, to, +1)
	p.schedule(plan, t)
}

// schedule schedules a write, unless one is scheduled or runs. It requires p.mu.
func (p *progress) schedule(plan workflows.Plan, t *tally) {
	if !t.scheduled {
		t.scheduled = true
		time.AfterFunc(cmp.Or(p.ProgressInterval, max(publishEvery, t.pause)), func() { p.publish(plan) })
	}
}

func (p *progress) publish(plan workflows.Plan) {
	p.mu.Lock()
	t := p.counts[plan]
	if t == nil {
		p.mu.Unlock()
		return
	}
	counts, began, ended := t.PlanProgress, time.Now(), false
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.pause = pauseFactor * time.Since(began)
		if ended {
			delete(p.counts, plan)
			return
		}
		if t.scheduled = false; t.PlanProgress != counts && p.counts[plan] == t {
			p.schedule(plan, t)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	written := counts
	if p.shared() {
		work, err := changes.Load(ctx, p.Ledger, workflows.ObjectUID(plan))
		if err != nil {
			p.Logger.Warn("count the changes of a plan", "namespace", plan.Namespace, "plan", plan.Name, "error", err)
			return
		}
		written = work.Progress()
	}
	err := p.Plans.UpdateStatus(ctx, plan.Namespace, plan.Name, workflows.ObjectUID(plan),
		func(s *v1alpha1.PlanStatus) {
			if ended = s.Ended(); !ended {
				s.Progress = &written
			}
		})
	if err != nil && !errors.Is(err, store.ErrGone) {
		p.Logger.Warn("write progress of plan", "namespace", plan.Namespace, "plan", plan.Name, "error", err)
	}
}
