package applying

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/workflows"
)

// Report sends the progress of a lane to the run of its plan.
type Report func(ctx context.Context, p workflows.Progress) error

// reportEvery is the minimum number of changes between two reports of a lane. A larger plan has about a hundred
// reports, so that its history stays small.
const reportEvery = 100

// reportTimeout is the maximum time of one report.
const reportTimeout = 10 * time.Second

// reporter reports the progress of a lane: after each hundred changes or each percent of them, whichever is more, and
// when one of the first MaxNotMade changes fails.
type reporter struct {
	*Applier
	plan    workflows.Plan
	every   int32
	reports chan workflows.Progress // the latest one that is not sent
	sent    chan struct{}           // closed after the last one

	mu   sync.Mutex
	next int32 // the number of changes that have ended at the next report
	// notMade are the first changes that failed.
	notMade []workflows.NotMade
}

// newReporter returns the reporter of a lane, which continues after the changes that have ended. The caller must call
// end.
func (a *Applier) newReporter(ctx context.Context, p workflows.Plan, work *changes.Stored, report Report) *reporter {
	counts := work.Progress()
	r := &reporter{Applier: a, plan: p, every: max(reportEvery, counts.Total/100)}
	r.reports, r.sent = make(chan workflows.Progress, 1), make(chan struct{})
	r.next = endedChanges(counts) + r.every
	for i := range work.Changes {
		r.notMade = addNotMade(r.notMade, &work.Changes[i])
	}
	go r.send(ctx, report)
	return r
}

// endedChanges returns the number of changes that have ended.
func endedChanges(p v1alpha1.PlanProgress) int32 { return p.Done + p.Failed + p.Skipped }

// stepped reports the progress after a step of a change, if it is time. The run shows the progress, but no step depends
// on that.
func (r *reporter) stepped(ctx context.Context, change int32, result workflows.StepResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.progress.of(r.plan)
	failed := notMadeState(v1alpha1.ChangeState(result.State)) && len(r.notMade) < workflows.MaxNotMade
	if failed {
		c, err := r.Ledger.Change(ctx, workflows.ObjectUID(r.plan), change)
		if err != nil {
			return // the step has recorded the outcome, and the end of the apply lists it
		}
		r.notMade = append(r.notMade, notMade(new(changes.StoredChangeOf(c))))
	}
	if n := endedChanges(counts); failed || n >= r.next {
		r.next = n + r.every
		select {
		case <-r.reports: // an older one that was not sent
		default:
		}
		r.reports <- workflows.Progress{Total: int(counts.Total), Done: int(counts.Done), Failed: int(counts.Failed),
			NotMade: slices.Clone(r.notMade)}
	}
}

func (r *reporter) send(ctx context.Context, report Report) {
	defer close(r.sent)
	for p := range r.reports {
		ctx, cancel := context.WithTimeout(ctx, reportTimeout)
		err := bug.Guard(r.Logger, "report the progress of a plan", func() error { return report(ctx, p) })
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "report the progress of a plan to its run", "namespace", r.plan.Namespace, "plan",
				r.plan.Name, "error", err)
		}
		cancel()
	}
}

// end waits until all is sent.
func (r *reporter) end() {
	close(r.reports)
	<-r.sent
}

// addNotMade adds a change to the first ones that were not made, if it is one.
func addNotMade(list []workflows.NotMade, c *changes.StoredChange) []workflows.NotMade {
	if len(list) == workflows.MaxNotMade || !notMadeState(c.State) || c.NoSteps {
		return list
	}
	return append(list, notMade(c))
}

// notMadeState reports whether a change in a state counts as failed.
func notMadeState(s v1alpha1.ChangeState) bool {
	return s == v1alpha1.ChangeFailed || s == v1alpha1.ChangeStale || s == v1alpha1.ChangeUnknown
}

// maxWhy is the maximum number of bytes of a reason in a run.
const maxWhy = 200

// notMade describes a change that was not made, without text that may have values.
func notMade(c *changes.StoredChange) workflows.NotMade {
	n := workflows.NotMade{Change: title(&c.Brief, false), Why: string(c.State)}
	if c.Action == v1alpha1.ActionReplace {
		n.Change = "replace " + c.Address
	}
	if reason := cmp.Or(whyFailed(c), string(c.StaleReason)); reason != "" {
		n.Why += ", " + strings.ToValidUTF8(reason[:min(len(reason), maxWhy)], "")
	}
	return n
}
