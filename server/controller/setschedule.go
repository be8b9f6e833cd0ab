package controller

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/internal/index"
)

const (
	// setInterval is the time between two looks at the changed sets.
	setInterval = 500 * time.Millisecond
	// setRest is the ratio of the pause after the update of a set to the time that it took, because an update counts
	// all instances of a set. After the end of a plan, restAfterPlan is the ratio: the set then has its final state.
	setRest, restAfterPlan = 50, 5
	// restOfAll is the ratio of the pause after the updates of several sets to the time that they took.
	restOfAll = 10
	// lately is the time after the end of a plan in which the changes of its sets become known.
	lately = 2 * time.Second
)

// setSchedule decides when the statuses of changed sets are updated. A large set is updated rarely while a plan changes
// it, and soon after the plan has ended.
type setSchedule struct {
	// changed holds the sets that changed since their last update. The value is true if a plan has ended since.
	changed map[index.Touched]bool
	// last holds the last update of each set.
	last map[setName]setUpdate
	// ended holds the namespaces whose plans ended lately, with the time of the last end.
	ended map[string]time.Time
	// rest is the end of the pause for all sets.
	rest time.Time
}

// setUpdate is the update of the status of a set.
type setUpdate struct {
	ended time.Time
	took  time.Duration
}

// setName identifies a ResourceSet or a Module.
type setName struct {
	types.NamespacedName
	module bool
}

func nameOf(t index.Touched) setName { return setName{t.NamespacedName, t.Module} }

func newSetSchedule() *setSchedule {
	return &setSchedule{changed: map[index.Touched]bool{}, last: map[setName]setUpdate{}, ended: map[string]time.Time{}}
}

// add notes that a set changed.
func (s *setSchedule) add(t index.Touched) {
	if _, known := s.changed[t]; !known {
		s.changed[t] = false
	}
}

// due returns the sets whose statuses must be updated now.
func (s *setSchedule) due(now time.Time) (due []index.Touched) {
	maps.DeleteFunc(s.ended, func(_ string, at time.Time) bool { return now.Sub(at) > lately })
	for t, soon := range s.changed {
		if _, ended := s.ended[t.Namespace]; ended && !soon {
			soon, s.changed[t] = true, true
		}
		last, ratio := s.last[nameOf(t)], time.Duration(setRest)
		if soon {
			ratio = restAfterPlan
		}
		if (soon || !now.Before(s.rest)) && now.Sub(last.ended) >= ratio*last.took {
			due = append(due, t)
		}
	}
	return due
}

// updated notes the update of a set. A failed one is tried again after its pause.
func (s *setSchedule) updated(t index.Touched, begun, now time.Time, failed bool) {
	if s.last[nameOf(t)] = (setUpdate{now, now.Sub(begun)}); !failed {
		delete(s.changed, t)
	}
	if t.Removed != "" {
		delete(s.last, nameOf(t))
	}
}

// pause lets all sets rest after updates that began at a time. Updates during a rest do not prolong it.
func (s *setSchedule) pause(begun, now time.Time) {
	if !begun.Before(s.rest) {
		s.rest = now.Add(restOfAll * now.Sub(begun))
	}
}
