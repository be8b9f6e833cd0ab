package activities

import (
	"maps"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
)

// storedPlans holds the plans of a scenario by their names. A change replaces a stored plan, so that goroutines which outlive a
// phase can read the old one.
type storedPlans struct {
	mu     sync.Mutex
	byName map[string]*v1alpha1.Plan
}

// get returns a plan, which the caller must not change; nil if there is none.
func (s *storedPlans) get(name string) *v1alpha1.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

// len returns the number of plans.
func (s *storedPlans) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byName)
}

// put stores a plan, which nothing may change after that.
func (s *storedPlans) put(po *v1alpha1.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[po.Name] = po
}

// change changes a copy of a plan and stores it. It returns false if there is none.
func (s *storedPlans) change(name string, change func(*v1alpha1.Plan)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	po := s.byName[name]
	if po == nil {
		return false
	}
	po = po.DeepCopy()
	change(po)
	s.byName[name] = po
	return true
}

// all returns all plans, and restore stores them again.
func (s *storedPlans) all() map[string]*v1alpha1.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byName)
}

func (s *storedPlans) restore(plans map[string]*v1alpha1.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName = maps.Clone(plans)
}
