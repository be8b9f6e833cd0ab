package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/workflows"
)

// overdue finds runs of schedules that should have begun.
type overdue struct {
	mu sync.Mutex
	// since holds the time at which a generation of a stack was first seen, because an edit may set another schedule.
	since map[types.UID]seenGeneration
}

type seenGeneration struct {
	generation int64
	at         time.Time
}

// Overdue returns, by the name of the workflow, the time since which the run of a schedule is missing; 0 if none is. It
// reads only the cache. Run must have called work.
func (c *Stacks) Overdue() map[string]time.Duration { return c.overdue.find(c.all(), time.Now()) }

func (o *overdue) find(stacks []*v1alpha1.Stack, now time.Time) map[string]time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	since := map[types.UID]seenGeneration{}
	late := map[string]time.Duration{workflows.DriftCheckName: 0, workflows.ScheduledPlanName: 0}
	for _, s := range stacks {
		known := o.since[s.UID]
		if known.generation != s.Generation {
			known = seenGeneration{s.Generation, now}
		}
		since[s.UID] = known
		for _, w := range wanted(s) {
			last, busy := lastRun(s, w.Workflow)
			times, err := cron.Parse(w.Expression, w.Zone)
			if err != nil || w.Suspended || busy {
				continue // the validation refuses other expressions
			}
			if last.Before(known.at) {
				last = known.at
			}
			late[w.Workflow] = max(late[w.Workflow], now.Sub(times.Next(last)))
		}
	}
	o.since = since
	return late
}

// lastRun returns the time of the last request of a schedule. busy is true while a drift check runs, since no other
// begins meanwhile.
func lastRun(s *v1alpha1.Stack, workflow string) (last time.Time, busy bool) {
	asked := s.Status.Scheduled
	if workflow == workflows.DriftCheckName {
		if s.Status.Drift == nil {
			return time.Time{}, false
		}
		asked, busy = s.Status.Drift.Requested, s.Status.Drift.Busy()
	}
	if asked != nil {
		last = asked.At.Time
	}
	return last, busy
}
