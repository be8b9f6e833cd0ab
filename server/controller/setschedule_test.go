package controller

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/internal/index"
)

func touched(namespace, name string) index.Touched {
	return index.Touched{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// scheduled has a schedule, and a clock that starts at the first update of a set.
type scheduled struct {
	*setSchedule
	began time.Time
}

// at returns the names of the sets that are due at a time after the first update.
func (s scheduled) at(after time.Duration) (names []string) {
	for _, t := range s.due(s.began.Add(after)) {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// update updates a set, and lets all rest after it.
func (s scheduled) update(t index.Touched, after, took time.Duration) {
	begun := s.began.Add(after)
	s.updated(t, begun, begun.Add(took), false)
	s.pause(begun, begun.Add(took))
}

// afterUpdate returns the schedule of a set whose first update took 200 ms, and which changed again.
func afterUpdate(t *testing.T, large index.Touched) scheduled {
	t.Helper()
	s := scheduled{newSetSchedule(), time.Unix(1000, 0)}
	s.changed[large] = false
	if due := s.at(0); !slices.Equal(due, []string{large.Name}) {
		t.Fatalf("a set that was not updated yet: %v are due", due)
	}
	s.update(large, 0, 200*time.Millisecond)
	if len(s.changed) > 0 {
		t.Fatalf("after their update, %v are left", s.changed)
	}
	s.changed[large] = false
	return s
}

// TestALargeSetIsCountedRarely changes a set again and again during an apply.
func TestALargeSetIsCountedRarely(t *testing.T) {
	t.Parallel()
	s := afterUpdate(t, touched("a", "large"))
	if due := s.at(10 * time.Second); len(due) > 0 {
		t.Errorf("10 s after an update of 200 ms, %v are due", due)
	}
	if due := s.at(10*time.Second + 200*time.Millisecond); len(due) != 1 {
		t.Errorf("after its pause, %v are due, want the set", due)
	}
}

// TestASetIsCountedSoonAfterAPlan ends a plan shortly before or after a set has changed.
func TestASetIsCountedSoonAfterAPlan(t *testing.T) {
	t.Parallel()
	s := afterUpdate(t, touched("a", "large"))
	s.ended["a"] = s.began.Add(500 * time.Millisecond)
	if due := s.at(time.Second); len(due) > 0 {
		t.Errorf("right after an update of 200 ms, %v are due", due)
	}
	if due := s.at(1200 * time.Millisecond); len(due) != 1 {
		t.Errorf("%v are due, want the set of the plan", due)
	}
	if due := s.at(5 * time.Second); len(due) != 1 { // it was not updated
		t.Errorf("long after the end of the plan, %v are due, want the set of the plan", due)
	}
	s.update(touched("a", "large"), 5*time.Second, 200*time.Millisecond)
	s.changed[touched("a", "large")] = false
	if due := s.at(9 * time.Second); len(due) > 0 {
		t.Errorf("changed long after the end of the plan, %v are due", due)
	}
}

// TestAPlanOfAnotherNamespaceDoesNotCount ends the plans of a namespace without changed sets.
func TestAPlanOfAnotherNamespaceDoesNotCount(t *testing.T) {
	t.Parallel()
	s := afterUpdate(t, touched("a", "large"))
	s.ended["b"] = s.began.Add(time.Second)
	if due := s.at(2 * time.Second); len(due) > 0 {
		t.Errorf("%v are due", due)
	}
}

// TestALargeSetDelaysNoSmallOne has a small set that changes after the update of a large one.
func TestALargeSetDelaysNoSmallOne(t *testing.T) {
	t.Parallel()
	s := afterUpdate(t, touched("a", "large"))
	s.changed[touched("b", "small")] = false
	if due := s.at(time.Second); len(due) > 0 {
		t.Errorf("within the pause of all sets, %v are due", due)
	}
	if due := s.at(2200 * time.Millisecond); !slices.Equal(due, []string{"small"}) {
		t.Errorf("after the pause of all sets, %v are due, want the small one", due)
	}
	s.ended["b"] = s.began.Add(time.Second)
	if due := s.at(time.Second); !slices.Equal(due, []string{"small"}) {
		t.Errorf("after the end of its plan, %v are due, want the small one", due)
	}
	s.update(touched("b", "small"), time.Second, time.Second)
	if s.rest != s.began.Add(2200*time.Millisecond) {
		t.Errorf("an update within the pause of all sets moves its end to %s", s.rest.Sub(s.began))
	}
}

func TestAFailedUpdateOfASetIsRepeated(t *testing.T) {
	t.Parallel()
	s := afterUpdate(t, touched("a", "set"))
	s.updated(touched("a", "set"), s.began, s.began.Add(time.Millisecond), true)
	if due := s.at(10 * time.Second); len(due) != 1 {
		t.Errorf("%v are due, want the set", due)
	}
}
