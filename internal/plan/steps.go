package plan

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
)

// Planned is what Steps needs to know of one change.
type Planned struct {
	Action v1alpha1.Action
	// CreateBeforeDestroy turns the two halves of a replace around; a delete with it waits for the updates of what used to
	// refer to it.
	CreateBeforeDestroy bool
	// Forget is true for a replace that forgets the old instance: it has no half that destroys.
	Forget bool
	// Record is true for a NoOp that leaves something to write down all the same: an import, a move, a condition that could
	// not be checked yet.
	Record bool
	// Deposed is true for the destroy of what an earlier replace left behind; Of is then the change of the current
	// instance, or -1.
	Deposed bool
	Of      int
	// Requested is true for a delete that somebody asked for by itself, and not only because something that it stands on is deleted.
	Requested bool
	// DependsOn holds the changes that the new configuration refers to. They have no cycle (see Order).
	DependsOn []int
	// Requires holds the changes that the recorded state referred to.
	Requires []int
}

// Step is one call to a provider. A replace has two: the destroy of the old instance and the create of the new one.
type Step struct {
	// Change is the number of the change that the step is part of.
	Change int `json:"change"`
	// Destroy is true for a delete and for that half of a replace that destroys the old instance.
	Destroy bool `json:"destroy,omitempty"`
	// DependsOn holds the numbers of the steps that must be done before.
	DependsOn []int `json:"dependsOn,omitempty"`
}

// destroys says whether a change has a step that destroys something.
func (c *Planned) destroys() bool {
	return c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionReplace && !c.Forget
}

// applies says whether a change has a step that does something other than destroy.
func (c *Planned) applies() bool {
	switch c.Action {
	case v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionRead, v1alpha1.ActionForget, v1alpha1.ActionInvoke:
		return true
	case v1alpha1.ActionNoOp:
		return c.Record
	}
	return false
}

// createsFirst says whether the new instance of a replace is there before the old one goes.
func (c *Planned) createsFirst() bool {
	return c.Action == v1alpha1.ActionReplace && c.CreateBeforeDestroy && !c.Forget
}

// Steps puts changes into the order in which infrastructure allows them: creates and updates follow what they
// refer to; destroys run in the reverse order of the references that were recorded when the instances were
// applied; what is deleted goes after everything that used to refer to it has been destroyed, and before what used to
// refer to it is updated, unless it was made with createBeforeDestroy; a replaced instance is destroyed after its dependants are, if those are destroyed too, and created again before
// they are. With createBeforeDestroy the new instance comes first, then its dependants are changed, then the old instance
// goes. A replaced instance is destroyed after all that its new one needs is there, as far as that does not wait for the destroy
// itself, so that the old instance stays when something below it fails. The steps have no cycle. The work is linear in changes and
// references, and in the pairs of changes between which only unchanged instances are.
// https://github.com/hashicorp/terraform/blob/main/docs/destroying.md
func Steps(changes []Planned) []Step {
	s := newSequence(changes)
	for i := range changes {
		s.orderHalves(i)
		s.orderReferences(i)
		for _, d := range changes[i].Requires {
			s.orderRecorded(i, d)
		}
	}
	s.delayReplaceDestroys()
	s.breakCycles()
	return s.steps
}

// newSequence returns the steps of changes without an order.
func newSequence(changes []Planned) *sequence {
	s := &sequence{changes: changes, destroy: make([]int, len(changes)), apply: make([]int, len(changes)), needed: map[int][]int{}}
	for i := range changes {
		c := &changes[i]
		s.destroy[i], s.apply[i] = -1, -1
		if c.destroys() && !c.createsFirst() {
			s.destroy[i] = s.add(Step{Change: i, Destroy: true})
		}
		if c.applies() {
			s.apply[i] = s.add(Step{Change: i})
		}
		if c.createsFirst() {
			s.destroy[i] = s.add(Step{Change: i, Destroy: true})
		}
	}
	return s
}

// orderHalves orders the two steps of a replace, and the destroy of a deposed instance with those of the current one.
func (s *sequence) orderHalves(i int) {
	c, destroy, apply := &s.changes[i], s.destroy, s.apply
	switch {
	case apply[i] >= 0 && destroy[i] >= 0 && c.createsFirst():
		s.after(destroy[i], apply[i], required)
	case apply[i] >= 0 && destroy[i] >= 0:
		s.after(apply[i], destroy[i], required)
	case c.Deposed && c.Of >= 0 && c.Of < len(s.changes):
		// The dependents of a deposed instance move to the current instance before it goes.
		for _, own := range []int{apply[c.Of], destroy[c.Of]} {
			if own >= 0 && destroy[i] >= 0 { // it may be forgotten, too, in any order
				s.after(destroy[i], own, afterCurrentInstance)
			}
		}
	}
}

// orderReferences puts a change after the changes that its new configuration refers to.
func (s *sequence) orderReferences(i int) {
	if s.apply[i] < 0 || s.changes[i].Action == v1alpha1.ActionForget {
		return
	}
	s.needs(i, func(d int) { s.after(s.apply[i], s.apply[d], required) })
}

// needs calls each with the changes that the new configuration of a change refers to and that have a step to wait for. As in Terraform,
// it refers through an unchanged instance to what that refers to: while a dependency of that fails, nobody knows that it stays unchanged.
func (s *sequence) needs(i int, each func(d int)) {
	for _, d := range s.changes[i].DependsOn {
		switch {
		case s.apply[d] >= 0 && s.changes[d].Action != v1alpha1.ActionForget:
			each(d)
		case s.changes[d].Action == v1alpha1.ActionNoOp:
			for _, far := range s.behind(d) {
				each(far)
			}
		}
	}
}

// behind returns the changes that an unchanged one needs, each once, in ascending order.
func (s *sequence) behind(unchanged int) []int {
	if found, ok := s.needed[unchanged]; ok {
		return found
	}
	var found []int
	s.needs(unchanged, func(d int) { found = append(found, d) })
	slices.Sort(found)
	found = slices.Compact(found)
	s.needed[unchanged] = found
	return found
}

// orderRecorded orders change i with change d, which the recorded state of i referred to.
func (s *sequence) orderRecorded(i, d int) {
	on, destroy, apply := &s.changes[d], s.destroy, s.apply
	if destroy[i] >= 0 && destroy[d] >= 0 {
		s.after(destroy[d], destroy[i], reverseDestroy)
	}
	if s.destroyedBeforeChange(i, d) {
		s.after(apply[d], destroy[i], dependentsDestroyedFirst)
	}
	if destroy[d] < 0 || apply[i] < 0 {
		return
	}
	switch {
	case on.createsFirst():
		// A dependent of the old instance moves to the new one before the old one goes.
		s.after(destroy[d], apply[i], dependentsMoveFirst)
	case on.Action != v1alpha1.ActionDelete || destroy[i] >= 0:
	case on.CreateBeforeDestroy || on.Deposed:
		s.after(destroy[d], apply[i], deleteBeforeUpdate)
	default:
		// As in Terraform: createBeforeDestroy asks for the other order.
		s.after(apply[i], destroy[d], deleteBeforeUpdate)
	}
}

// destroyedBeforeChange says whether i is destroyed before d is changed, or created anew beside its old instance.
func (s *sequence) destroyedBeforeChange(i, d int) bool {
	c, on := &s.changes[i], &s.changes[d]
	switch {
	case s.destroy[i] < 0 || s.apply[d] < 0, s.destroy[d] >= 0 && !on.createsFirst():
		return false
	case c.createsFirst() || c.Deposed, on.Action == v1alpha1.ActionForget:
		return false
	}
	return s.apply[i] < 0 || !slices.Contains(c.DependsOn, d)
}

// delayReplaceDestroys puts the destroy of a replace after all that its create needs. What waits for that destroy itself, such as the create
// of a dependency that is replaced, too, cannot come first; then what that needs does.
func (s *sequence) delayReplaceDestroys() {
	changes, destroy, apply := s.changes, s.destroy, s.apply
	var late []int
	references := 0
	direct := make([][]int, len(s.steps))
	for i := range changes {
		references += len(changes[i].DependsOn)
		if c := &changes[i]; c.Action == v1alpha1.ActionReplace && destroy[i] >= 0 && !c.createsFirst() {
			late = append(late, i)
			s.needs(i, func(d int) { direct[destroy[i]] = append(direct[destroy[i]], apply[d]) })
		}
	}
	if len(late) == 0 {
		return
	}
	component := graph.Collect(len(s.steps), func(i int) []int { return slices.Concat(s.kept(deleteBeforeUpdate)(i), direct[i]) }).Components()
	// A plan in which very many replaces stand on very many others would have an edge for each pair. The replaces share a budget
	// that is linear in the plan; it suffices for all but such plans.
	budget := 8*(len(changes)+references) + 1<<16
	seen := make([]int, len(changes))
	for _, i := range late {
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			s.needs(queue[0], func(d int) {
				budget--
				switch {
				case seen[d] == i+1 || budget < 0:
				case component[apply[d]] != component[destroy[i]]:
					s.after(destroy[i], apply[d], dependenciesBeforeReplace)
				default:
					queue = append(queue, d)
				}
				seen[d] = i + 1
			})
		}
	}
}

// edgePriority says which of two contradicting orders gives way: the weaker.
type edgePriority int

const (
	// afterCurrentInstance is for what is left over of a replace: it goes after the current instance, unless that waits for its end.
	afterCurrentInstance edgePriority = iota
	// dependentsDestroyedFirst is for what is updated or created first: what stood on it and is destroyed goes before, unless something that stands on that has to
	// be created first, and that after the update, or is replaced, and needs the update.
	dependentsDestroyedFirst
	// dependenciesBeforeReplace is for the destroy of what is replaced: what the new instance needs is there before the old one goes, unless Terraform's
	// own order is the other one.
	dependenciesBeforeReplace
	// deleteBeforeUpdate is for what is deleted: who referred to it is updated after that, or before, if it was made with createBeforeDestroy.
	// New and recorded references can contradict each other: with a -> b -> c before and a -> c now, b deleted and c replaced, a
	// waits for the new c, c for the end of b, and b, made with createBeforeDestroy, for the update of a. Then b goes first.
	deleteBeforeUpdate
	// dependentsMoveFirst is for what is created first: who stands on the old instance moves over before that goes, unless it waits for
	// something that can only be replaced after that.
	dependentsMoveFirst
	// reverseDestroy is for destroys, which run in the reverse order of the recorded references. Those alone can contradict each other
	// when an earlier apply ended half-way.
	reverseDestroy
	required
)

type sequence struct {
	changes []Planned
	// destroy and apply are the numbers of the steps of each change; -1 where it has none.
	destroy, apply []int
	steps          []Step
	// needed remembers the answers of behind.
	needed map[int][]int
	// strengths are those of each step's DependsOn.
	strengths [][]edgePriority
}

func (s *sequence) add(step Step) int {
	s.steps = append(s.steps, step)
	s.strengths = append(s.strengths, nil)
	return len(s.steps) - 1
}

func (s *sequence) after(step, dep int, how edgePriority) {
	if step == dep {
		return
	}
	s.steps[step].DependsOn = append(s.steps[step].DependsOn, dep)
	s.strengths[step] = append(s.strengths[step], how)
}

// breakCycles drops dependencies until there is no cycle: it puts them together again, the strong ones first, and leaves out those
// that run along a cycle then.
func (s *sequence) breakCycles() {
	if order, _ := graph.Order(len(s.steps), s.kept(afterCurrentInstance)); order != nil {
		return
	}
	for weakest := reverseDestroy; weakest >= afterCurrentInstance; weakest-- {
		if order, _ := graph.Order(len(s.steps), s.kept(weakest)); order == nil {
			s.drop(weakest, graph.Collect(len(s.steps), s.kept(weakest)).Components())
		}
	}
}

// kept returns what lists the dependencies of a step that are of a strength or of a greater one.
func (s *sequence) kept(weakest edgePriority) func(i int) []int {
	return func(i int) []int {
		var deps []int
		for k, d := range s.steps[i].DependsOn {
			if s.strengths[i][k] >= weakest {
				deps = append(deps, d)
			}
		}
		return deps
	}
}

// drop leaves out the dependencies of a strength that run within a component.
func (s *sequence) drop(weak edgePriority, component []int) {
	for i := range s.steps {
		var keptDeps []int
		var kept []edgePriority
		for k, d := range s.steps[i].DependsOn {
			if s.strengths[i][k] == weak && component[i] == component[d] {
				continue
			}
			keptDeps, kept = append(keptDeps, d), append(kept, s.strengths[i][k])
		}
		s.steps[i].DependsOn, s.strengths[i] = slices.Clip(keptDeps), kept
	}
}
