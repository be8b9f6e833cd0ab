package plan

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Planned is what Steps needs to know of one change.
type Planned struct {
	Action v1alpha1.Action
	// DependsOn holds the changes that the new configuration refers to. They have no cycle (see Order).
	DependsOn []int
	// Requires holds the changes that the recorded state referred to.
	Requires []int
}

// Step is one call to a provider. A replace has two: the destroy of the old instance and the create of the new one.
type Step struct {
	// Change is the number of the change that the step is part of.
	Change int `json:"change"`
	// Destroy is true for a delete and for the first half of a replace.
	Destroy bool `json:"destroy,omitempty"`
	// DependsOn holds the numbers of the steps that must be done before.
	DependsOn []int `json:"dependsOn,omitempty"`
}

// Steps puts changes into the order in which infrastructure allows them: creates and updates follow what they
// refer to; destroys run in the reverse order of the references that were recorded when the instances were
// applied; what is deleted goes after everything that used to refer to it has been changed or destroyed; a
// replaced instance is destroyed after its dependants are, if those are destroyed too, and created again before
// they are. The steps have no cycle, and the work is linear in changes and references.
// https://github.com/hashicorp/terraform/blob/main/docs/destroying.md
func Steps(changes []Planned) []Step {
	var s sequence
	destroy, apply := make([]int, len(changes)), make([]int, len(changes))
	for i, c := range changes {
		destroy[i], apply[i] = -1, -1
		switch c.Action {
		case v1alpha1.ActionDelete, v1alpha1.ActionReplace:
			destroy[i] = s.add(Step{Change: i, Destroy: true})
		}
		switch c.Action {
		case v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionRead:
			apply[i] = s.add(Step{Change: i})
		}
	}
	for i, c := range changes {
		if apply[i] >= 0 {
			if destroy[i] >= 0 {
				s.after(apply[i], destroy[i], must)
			}
			for _, d := range c.DependsOn {
				if apply[d] >= 0 {
					s.after(apply[i], apply[d], must)
				}
			}
		}
		for _, d := range c.Requires {
			switch {
			case destroy[i] >= 0 && destroy[d] >= 0:
				s.after(destroy[d], destroy[i], should)
			case destroy[i] >= 0 && apply[d] >= 0:
				// What stands on it is gone before it is changed.
				s.after(apply[d], destroy[i], should)
			case apply[i] >= 0 && changes[d].Action == v1alpha1.ActionDelete:
				s.after(destroy[d], apply[i], may)
			}
		}
	}
	// New and recorded references can contradict each other: with a -> b -> c before and a -> c now, b deleted and
	// c replaced, a waits for the new c, c for the end of b, and b for the update of a. Then b goes first, as it
	// always does in Terraform.
	s.breakCycles(may)
	// Recorded references alone can contradict each other when an earlier apply ended half-way.
	s.breakCycles(should)
	return s.steps
}

// strength says which of two contradicting orders gives way: the weaker.
type strength int

const (
	may strength = iota
	should
	must
)

type sequence struct {
	steps []Step
	// strengths are those of each step's DependsOn.
	strengths [][]strength
}

func (s *sequence) add(step Step) int {
	s.steps = append(s.steps, step)
	s.strengths = append(s.strengths, nil)
	return len(s.steps) - 1
}

func (s *sequence) after(step, dep int, how strength) {
	if step == dep {
		return
	}
	s.steps[step].DependsOn = append(s.steps[step].DependsOn, dep)
	s.strengths[step] = append(s.strengths[step], how)
}

// breakCycles drops the dependencies of a strength that run along a cycle.
func (s *sequence) breakCycles(weak strength) {
	deps := func(i int) []int { return s.steps[i].DependsOn }
	if order, _ := Order(len(s.steps), deps); order != nil {
		return
	}
	component := collect(len(s.steps), deps).components()
	for i := range s.steps {
		var keptDeps []int
		var kept []strength
		for k, d := range s.steps[i].DependsOn {
			if s.strengths[i][k] == weak && component[i] == component[d] {
				continue
			}
			keptDeps, kept = append(keptDeps, d), append(kept, s.strengths[i][k])
		}
		s.steps[i].DependsOn, s.strengths[i] = slices.Clip(keptDeps), kept
	}
}
