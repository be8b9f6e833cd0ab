package plan

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
)

// Planned describes one change to Steps and Held.
type Planned struct {
	Action v1alpha1.Action
	// CreateBeforeDestroy makes a replace create the new instance before it destroys the old one. A delete with it
	// waits for the updates of its former dependents.
	CreateBeforeDestroy bool
	// Forget is true for a replace that forgets the old instance, so that it has no destroy step.
	Forget bool
	// Record is true for a NoOp whose step must record something: an import, a move, or a condition that was not known
	// during planning.
	Record bool
	// Deposed is true for the destroy of an instance that an earlier replace left deposed. Of is then the change of the
	// current instance, or -1.
	Deposed bool
	Of      int
	// Requested is true for a delete that the user requested directly, and not only because a dependency is deleted.
	Requested bool
	// DependsOn holds the indexes of the changes that the new configuration refers to. They have no cycle (see Order).
	DependsOn []int
	// Requires holds the indexes of the changes that the recorded state referred to.
	Requires []int
}

// Step is one operation of an apply. A replace has two: the destroy of the old instance and the create of the new one.
type Step struct {
	// Change is the index of the step's change.
	Change int `json:"change"`
	// Destroy is true for a delete, and for the half of a replace that destroys the old instance.
	Destroy bool `json:"destroy,omitempty"`
	// DependsOn holds the indexes of the steps that must finish first.
	DependsOn []int `json:"dependsOn,omitempty"`
}

// destroys reports whether a change has a destroy step.
func (c *Planned) destroys() bool {
	return c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionReplace && !c.Forget
}

// applies reports whether a change has a step other than a destroy.
func (c *Planned) applies() bool {
	switch c.Action {
	case v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionRead,
		v1alpha1.ActionForget, v1alpha1.ActionInvoke:
		return true
	case v1alpha1.ActionNoOp:
		return c.Record
	}
	return false
}

// createsFirst reports whether a replace creates the new instance before it destroys the old one.
func (c *Planned) createsFirst() bool {
	return c.Action == v1alpha1.ActionReplace && c.CreateBeforeDestroy && !c.Forget
}

// Steps orders the steps of an apply by these rules:
//
//   - Creates and updates run after the changes that their configuration refers to.
//   - Destroys run in the reverse order of the recorded references.
//   - A delete runs after the destroys of its dependents, and before its former dependents are updated or created anew.
//     With createBeforeDestroy it runs after that. The same holds for the reads of data sources that depend on it.
//   - A destroy runs before the update or replace of what its recorded state refers to, also indirectly. With
//     createBeforeDestroy it runs after that.
//   - A replace destroys its old instance after its dependents are destroyed, if they are. It creates the new one
//     before they are created.
//   - With createBeforeDestroy, a replace creates the new instance, then its dependents change, also the indirect ones,
//     then it destroys the old instance.
//   - A replace destroys its old instance only after those dependencies of the new one are ready that the recorded
//     state does not refer to, unless these wait for the destroy. So the old instance stays if such a dependency fails.
//     Only this rule is not Terraform's, which has no order for them.
//
// The steps have no cycle. The work is linear in changes and references, and in the pairs of changes that only
// unchanged instances separate. https://github.com/hashicorp/terraform/blob/main/docs/destroying.md
func Steps(changes []Planned) []Step {
	s := newSequence(changes)
	for i := range changes {
		s.orderHalves(i)
		s.orderReferences(i)
		for _, d := range changes[i].Requires {
			s.orderRecorded(i, d)
		}
	}
	s.orderIndirect()
	s.breakCycles() // the rule of delayReplaceDestroys must not yield to edges that are dropped
	s.delayReplaceDestroys()
	s.breakCycles()
	return s.steps
}

// newSequence returns the steps of the changes, without dependencies.
func newSequence(changes []Planned) *sequence {
	count := 0
	for i := range changes {
		if changes[i].destroys() {
			count++
		}
		if changes[i].applies() {
			count++
		}
	}
	s := &sequence{changes: changes, destroy: make([]int, len(changes)), apply: make([]int, len(changes)),
		needed: map[int][]int{},
		steps:  make([]Step, 0, count), strengths: make([][]edgePriority, 0, count)}
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

// orderHalves orders the two steps of a replace, and the destroy of a deposed instance after the steps of the current
// one.
func (s *sequence) orderHalves(i int) {
	c, destroy, apply := &s.changes[i], s.destroy, s.apply
	switch {
	case apply[i] >= 0 && destroy[i] >= 0 && c.createsFirst():
		s.after(destroy[i], apply[i], required)
	case apply[i] >= 0 && destroy[i] >= 0:
		s.after(apply[i], destroy[i], required)
	case c.Deposed && c.Of >= 0 && c.Of < len(s.changes):
		// The dependents of a deposed instance must use the current instance before the deposed one is destroyed.
		for _, own := range []int{apply[c.Of], destroy[c.Of]} {
			if own >= 0 && destroy[i] >= 0 { // a deposed instance may also be forgotten, in any order
				s.after(destroy[i], own, afterCurrentInstance)
			}
		}
	}
}

// orderReferences orders a change after the changes that its new configuration refers to.
func (s *sequence) orderReferences(i int) {
	if s.apply[i] < 0 || s.changes[i].Action == v1alpha1.ActionForget {
		return
	}
	s.needs(i, func(d int) { s.after(s.apply[i], s.apply[d], required) })
	if s.changes[i].Action == v1alpha1.ActionRead { // of a data source, which refers to a set that an instance leaves
		for _, d := range s.changes[i].DependsOn {
			s.orderDeleted(i, d)
		}
	}
}

// orderDeleted orders the apply step of change i after the delete d, as in Terraform. createBeforeDestroy reverses the
// order.
func (s *sequence) orderDeleted(i, d int) {
	switch on := &s.changes[d]; {
	case on.Action != v1alpha1.ActionDelete || s.destroy[d] < 0:
	case on.CreateBeforeDestroy || on.Deposed:
		s.after(s.destroy[d], s.apply[i], deleteBeforeUpdate)
	default:
		s.after(s.apply[i], s.destroy[d], deleteBeforeUpdate)
	}
}

// needs calls each for the changes that the new configuration of change i refers to and that have an apply step. As in
// Terraform, it follows references through unchanged instances: whether such an instance stays unchanged depends on the
// success of its dependencies.
func (s *sequence) needs(i int, each func(d int)) {
	for _, d := range s.changes[i].DependsOn {
		switch {
		case s.apply[d] >= 0 && s.changes[d].Action != v1alpha1.ActionForget:
			each(d)
		case s.changes[d].Action == v1alpha1.ActionNoOp:
			for _, far := range s.changesBefore(d) {
				each(far)
			}
		}
	}
}

// changesBefore returns the changes that an unchanged change depends on, in ascending order and without duplicates.
func (s *sequence) changesBefore(unchanged int) []int {
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

// orderRecorded orders change i relative to change d, which the recorded state of i refers to.
func (s *sequence) orderRecorded(i, d int) {
	on, destroy, apply := &s.changes[d], s.destroy, s.apply
	if destroy[i] >= 0 && destroy[d] >= 0 {
		s.after(destroy[d], destroy[i], reverseDestroy)
	}
	s.orderChange(i, d)
	if destroy[d] < 0 || apply[i] < 0 {
		return
	}
	switch {
	case on.createsFirst():
		// A dependent must use the new instance before the old one is destroyed.
		s.after(destroy[d], apply[i], dependentsMoveFirst)
	default:
		s.orderDeleted(i, d)
	}
}

// orderChange orders the destroy of change i before the apply step of change d, which its recorded state refers to. As
// in Terraform, createBeforeDestroy of i reverses the order. The destroys of both imply the order if that of d comes
// first.
func (s *sequence) orderChange(i, d int) {
	c, on := &s.changes[i], &s.changes[d]
	switch {
	case s.destroy[i] < 0 || s.apply[d] < 0 || on.Action == v1alpha1.ActionForget,
		s.destroy[d] >= 0 && !on.createsFirst():
	case c.Action == v1alpha1.ActionDelete && c.CreateBeforeDestroy && !c.Deposed:
		s.after(s.destroy[i], s.apply[d], dependentsDestroyedFirst)
	case !c.createsFirst() && !c.Deposed:
		s.after(s.apply[d], s.destroy[i], dependentsDestroyedFirst)
	}
}

// destroysFirst reports whether a change destroys its instance before all that its recorded state refers to changes.
func (s *sequence) destroysFirst(i int) bool {
	c := &s.changes[i]
	return s.destroy[i] >= 0 && !c.Deposed && !c.CreateBeforeDestroy
}

// orderIndirect orders changes whose recorded states refer to each other through other instances. Terraform records
// these references, too.
func (s *sequence) orderIndirect() {
	requires := graph.Collect(len(s.changes), func(i int) []int { return s.changes[i].Requires })
	budget := s.budget()
	// An instance that is destroyed itself needs no edge to what is behind it: its own destroy comes between them.
	s.behind(&budget, requires, s.destroysFirst, s.destroysFirst, func(i, d int) {
		s.orderChange(i, d)
		if s.destroy[d] >= 0 {
			s.after(s.destroy[d], s.destroy[i], dependentsDestroyedFirst)
		}
	})
	// With createBeforeDestroy, all dependents change before the destroy.
	last := func(d int) bool {
		return s.destroy[d] >= 0 && (s.changes[d].CreateBeforeDestroy || s.changes[d].Deposed)
	}
	none := func(int) bool { return false }
	s.behind(&budget, requires.Reverse(), last, none, func(d, i int) {
		if s.apply[i] >= 0 && s.changes[i].Action != v1alpha1.ActionForget {
			s.after(s.destroy[d], s.apply[i], dependentsDestroyedFirst)
		}
	})
}

// behind calls each for the changes from which a search starts, with all changes behind their neighbors. The search
// does not follow the edges of changes for which ends returns true. It spends the budget, and ends without it.
func (s *sequence) behind(budget *int, edges *graph.Edges, starts, ends func(int) bool, each func(from, to int)) {
	seen := make([]int, len(s.changes))
	for i := range s.changes {
		if !starts(i) {
			continue
		}
		seen[i] = i + 1
		queue := slices.Clone(edges.Of(i))
		for _, m := range queue {
			seen[m] = i + 1
		}
		for ; len(queue) > 0; queue = queue[1:] {
			if ends(queue[0]) {
				continue
			}
			for _, d := range edges.Of(queue[0]) {
				if *budget--; *budget < 0 {
					return
				}
				if seen[d] != i+1 {
					seen[d] = i + 1
					each(i, d)
					queue = append(queue, d)
				}
			}
		}
	}
}

// budget returns the number of pairs of changes that a rule may order: if very many changes depend on very many others,
// there would be an edge for each pair. It is linear in the plan, and suffices for all other plans.
func (s *sequence) budget() int {
	references := 0
	for i := range s.changes {
		references += len(s.changes[i].DependsOn) + len(s.changes[i].Requires)
	}
	return 8*(len(s.changes)+references) + 1<<16
}

// delayReplaceDestroys orders the destroy of a replace after the dependencies of the new instance. A dependency that
// waits for that destroy, such as one that the old instance refers to, cannot come first. Then the dependencies of that
// dependency come first.
func (s *sequence) delayReplaceDestroys() {
	changes, destroy, apply := s.changes, s.destroy, s.apply
	var late []int
	direct := make([][]int, len(s.steps))
	for i := range changes {
		if c := &changes[i]; c.Action == v1alpha1.ActionReplace && destroy[i] >= 0 && !c.createsFirst() {
			late = append(late, i)
			s.needs(i, func(d int) { direct[destroy[i]] = append(direct[destroy[i]], apply[d]) })
		}
	}
	if len(late) == 0 {
		return
	}
	component := graph.Collect(len(s.steps),
		func(i int) []int { return slices.Concat(s.kept(dependentsDestroyedFirst)(i), direct[i]) }).Components()
	budget := s.budget()
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

// edgePriority decides which of two contradicting edges is dropped: the one with the lower priority.
type edgePriority int

const (
	// afterCurrentInstance: the destroy of a deposed instance follows the steps of the current instance, unless these
	// wait for that destroy.
	afterCurrentInstance edgePriority = iota
	// dependenciesBeforeReplace: the destroy of a replace follows the dependencies of the new instance, unless
	// Terraform's order is the opposite.
	dependenciesBeforeReplace
	// dependentsDestroyedFirst: the destroy of a dependent precedes an update, or a replace that creates first; or it
	// follows them with createBeforeDestroy. It is dropped if something that the destroy waits for needs the result of
	// that update or replace first.
	dependentsDestroyedFirst
	// deleteBeforeUpdate: a delete precedes the updates of its former dependents, or follows them with
	// createBeforeDestroy. New and recorded references can contradict each other. Example: a -> b -> c before and a ->
	// c now; b is deleted, c is replaced, and b has createBeforeDestroy. Then a waits for the new c, c for the destroy
	// of b, and b for the update of a. The edge from b to a is dropped, so b is destroyed first.
	deleteBeforeUpdate
	// dependentsMoveFirst: with createBeforeDestroy, the dependents of a replace change before the old instance is
	// destroyed. It is dropped if a dependent waits for something that can only be replaced after that destroy.
	dependentsMoveFirst
	// reverseDestroy: destroys run in the reverse order of the recorded references. Recorded references contradict each
	// other only if an earlier apply was interrupted.
	reverseDestroy
	required
)

type sequence struct {
	changes []Planned
	// destroy and apply map each change to the index of its step; -1 if it has none.
	destroy, apply []int
	steps          []Step
	// needed caches the results of changesBefore.
	needed map[int][]int
	// strengths[i] holds the priorities of the DependsOn of step i.
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

// breakCycles drops edges until there is no cycle. It considers the edges by descending priority and drops those that
// complete a cycle.
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

// kept returns a function that lists the dependencies of a step with at least the given priority.
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

// drop removes the edges of one priority that connect two steps of the same component.
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
