package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/graph/graphtest"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestSteps(t *testing.T) {
	const create, update, replace, remove, noop = v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionDelete, v1alpha1.ActionNoOp
	for name, tc := range map[string]struct {
		changes []Planned
		want    []string // "-1 after +0": "-" is a destroy and "+" an apply of the change
	}{
		"creates follow what they refer to": {[]Planned{{Action: create}, {Action: create, DependsOn: []int{0}}}, []string{"+1 after +0"}},
		"deletes run in reverse":            {[]Planned{{Action: remove}, {Action: remove, Requires: []int{0}}}, []string{"-0 after -1"}},
		"a replaced pair: down in reverse, up in order": {[]Planned{{Action: replace}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+0 after -0", "+1 after +0", "+1 after -1", "-0 after -1"}},
		"an update follows the replace of what it refers to": {[]Planned{{Action: replace}, {Action: update, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+0 after -0", "+1 after +0"}},
		"what is deleted goes before what used to refer to it is updated": {[]Planned{{Action: remove}, {Action: update, Requires: []int{0}}}, []string{"+1 after -0"}},
		"made with createBeforeDestroy, it goes after that": {
			[]Planned{{Action: remove, CreateBeforeDestroy: true}, {Action: update, Requires: []int{0}}}, []string{"-0 after +1"}},
		"a dependant is destroyed before the change": {[]Planned{{Action: update}, {Action: remove, Requires: []int{0}}}, []string{"+0 after -1"}},
		"nothing waits for a no-op":                  {[]Planned{{Action: noop}, {Action: update, DependsOn: []int{0}, Requires: []int{0}}}, nil},
		"what is behind unchanged instances comes first": {
			[]Planned{{Action: update}, {Action: update}, {Action: noop, DependsOn: []int{0, 1}}, {Action: noop, DependsOn: []int{2, 1}}, {Action: update, DependsOn: []int{3}}},
			[]string{"+4 after +0", "+4 after +1"}},
		"a contradiction: the delete goes first": { // a -> b -> c before, a -> c now
			[]Planned{{Action: update, DependsOn: []int{2}, Requires: []int{1}}, {Action: remove, Requires: []int{2}}, {Action: replace}},
			[]string{"+0 after +2", "+0 after -1", "+2 after -2", "-2 after -1"}},
		"a contradiction: what is made with createBeforeDestroy goes first, too": {
			[]Planned{{Action: update, DependsOn: []int{2}, Requires: []int{1}}, {Action: remove, CreateBeforeDestroy: true, Requires: []int{2}}, {Action: replace}},
			[]string{"+0 after +2", "+2 after -2", "-2 after -1"}},
		"records that contradict each other": {[]Planned{{Action: remove, Requires: []int{1}}, {Action: remove, Requires: []int{0}}}, nil},
		"create before destroy: the dependant moves over before the old one goes": {
			[]Planned{{Action: replace, CreateBeforeDestroy: true}, {Action: update, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+1 after +0", "-0 after +0", "-0 after +1"}},
		"a pair, both created first": {
			[]Planned{{Action: replace, CreateBeforeDestroy: true}, {Action: replace, CreateBeforeDestroy: true, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+1 after +0", "-0 after +0", "-0 after +1", "-0 after -1", "-1 after +1"}},
		"created first below what is replaced the usual way": {
			[]Planned{{Action: replace, CreateBeforeDestroy: true}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+0 after -1", "+1 after +0", "+1 after -1", "-0 after +0", "-0 after +1", "-0 after -1"}},
		"a replaced instance stays until what its new one refers to is created": {[]Planned{{Action: create}, {Action: replace, DependsOn: []int{0}}},
			[]string{"+1 after +0", "+1 after -1", "-1 after +0"}},
		"a replaced instance is destroyed before the update of what it refers to": {[]Planned{{Action: update}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+0 after -1", "+1 after +0", "+1 after -1"}},
		"a replaced instance stays until what its new one refers to is updated, also beside a contradiction": { // the update of 0 and the destroy of 3
			[]Planned{{Action: update}, {Action: update}, {Action: replace, Requires: []int{1}}, {Action: replace, DependsOn: []int{1}, Requires: []int{0}},
				{Action: replace, CreateBeforeDestroy: true, DependsOn: []int{0}, Requires: []int{2, 3}}},
			[]string{"+1 after -2", "+2 after -2", "+3 after +1", "+3 after -3", "+4 after +0", "-2 after -4", "-3 after +1", "-3 after -4", "-4 after +4"}},
		"a replaced instance stays until what only its new one refers to is updated": {[]Planned{{Action: update}, {Action: replace, DependsOn: []int{0}}},
			[]string{"+1 after +0", "+1 after -1", "-1 after +0"}},
		"a new and a recorded reference": {[]Planned{{Action: create}, {Action: update}, {Action: replace, DependsOn: []int{0, 1}, Requires: []int{1}}},
			[]string{"+1 after -2", "+2 after +0", "+2 after +1", "+2 after -2", "-2 after +0"}},
		"what only the new one refers to waits for what the old one refers to": {[]Planned{{Action: update}, {Action: create, DependsOn: []int{0}}, {Action: replace, DependsOn: []int{1}, Requires: []int{0}}},
			[]string{"+0 after -2", "+1 after +0", "+2 after +1", "+2 after -2"}},
		"a delete made with createBeforeDestroy follows the update of what it refers to": {[]Planned{{Action: update}, {Action: remove, CreateBeforeDestroy: true, Requires: []int{0}}},
			[]string{"-1 after +0"}},
		"a recorded reference through an unchanged instance": {[]Planned{{Action: update}, {Action: noop, DependsOn: []int{0}, Requires: []int{0}}, {Action: remove, Requires: []int{1}}},
			[]string{"+0 after -2"}},
		"a recorded reference through an updated instance": {
			[]Planned{{Action: update}, {Action: update, DependsOn: []int{0}, Requires: []int{0}}, {Action: replace, DependsOn: []int{1}, Requires: []int{1}}},
			[]string{"+0 after -2", "+1 after +0", "+1 after -2", "+2 after +1", "+2 after -2"}},
		"a recorded reference through an updated instance to a deleted one": {[]Planned{{Action: remove}, {Action: update, Requires: []int{0}}, {Action: remove, Requires: []int{1}}},
			[]string{"+1 after -0", "+1 after -2", "-0 after -2"}},
		"created first below a pair that is replaced the usual way": {
			[]Planned{{Action: replace, CreateBeforeDestroy: true}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}, {Action: replace, DependsOn: []int{1}, Requires: []int{1}}},
			[]string{"+0 after -1", "+1 after +0", "+1 after -1", "+2 after +1", "+2 after -2", "-0 after +0", "-0 after +1", "-0 after +2", "-0 after -1", "-1 after -2"}},
		"a data source is read after the destroy of an instance that leaves": {[]Planned{{Action: remove}, {Action: v1alpha1.ActionRead, DependsOn: []int{0}}},
			[]string{"+1 after -0"}},
		"a data source is read before the destroy of an instance that was created first": {[]Planned{{Action: remove, CreateBeforeDestroy: true}, {Action: v1alpha1.ActionRead, DependsOn: []int{0}}},
			[]string{"-0 after +1"}},
		"a replaced instance stays until what it refers to is read": {[]Planned{{Action: v1alpha1.ActionRead}, {Action: replace, DependsOn: []int{0}}},
			[]string{"+1 after +0", "+1 after -1", "-1 after +0"}},
		"a replaced instance stays until a replaced one that it refers to anew is there": {[]Planned{{Action: replace}, {Action: replace, DependsOn: []int{0}}},
			[]string{"+0 after -0", "+1 after +0", "+1 after -1", "-1 after +0"}},
		"a replaced pair is destroyed before the update of what the lower one refers to": {
			[]Planned{{Action: update}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}, {Action: replace, DependsOn: []int{1}, Requires: []int{1}}},
			[]string{"+0 after -1", "+1 after +0", "+1 after -1", "+2 after +1", "+2 after -2", "-1 after -2"}},
		"a replaced pair stays until what is read between them needs is there": {
			[]Planned{{Action: create}, {Action: replace}, {Action: v1alpha1.ActionRead, DependsOn: []int{0, 1}}, {Action: replace, DependsOn: []int{2}, Requires: []int{1}}},
			[]string{"+1 after -1", "+2 after +0", "+2 after +1", "+3 after +2", "+3 after -3", "-1 after -3", "-3 after +0"}},
		"a contradiction: what is deleted goes first, and what it waits for before that": {
			[]Planned{{Action: remove}, {Action: update, Requires: []int{0}}, {Action: replace, DependsOn: []int{1}, Requires: []int{0}}},
			[]string{"+1 after -0", "+2 after +1", "+2 after -0", "+2 after -2", "-0 after -2"}},
		"what was created first is destroyed after a former dependent is created anew": {
			[]Planned{{Action: remove, CreateBeforeDestroy: true}, {Action: replace, Requires: []int{0}}},
			[]string{"+1 after -1", "-0 after +1", "-0 after -1"}},
		"an update below what is created first does not wait for its end": {
			[]Planned{{Action: update}, {Action: replace, CreateBeforeDestroy: true, DependsOn: []int{0}, Requires: []int{0}}},
			[]string{"+1 after +0", "-1 after +1"}},
		"a deposed instance is destroyed after the current one, and before its dependencies": {
			[]Planned{{Action: remove}, {Action: update, Requires: []int{0}}, {Action: remove, Deposed: true, Of: 1, Requires: []int{0}}},
			[]string{"+1 after -0", "-0 after -2"}},
		"what is deposed is forgotten with the current instance": {
			[]Planned{{Action: v1alpha1.ActionForget}, {Action: v1alpha1.ActionForget, Deposed: true, Of: 0}}, nil},
		"a deposed instance is destroyed before a current one that waits for the same dependency": {
			[]Planned{{Action: replace}, {Action: replace, DependsOn: []int{0}}, {Action: remove, Deposed: true, Of: 1, Requires: []int{0}}},
			[]string{"+0 after -0", "+1 after +0", "+1 after -1", "-0 after -2", "-1 after +0"}},
		"a replace that forgets the old one creates alone": {[]Planned{{Action: replace, Forget: true, CreateBeforeDestroy: true}}, nil},
		"nothing waits for what is forgotten":              {[]Planned{{Action: v1alpha1.ActionForget}, {Action: remove, Requires: []int{0}}}, nil},
		"an import is something to wait for":               {[]Planned{{Action: noop, Record: true}, {Action: create, DependsOn: []int{0}}}, []string{"+1 after +0"}},
		"a record of itself":                               {[]Planned{{Action: remove, Requires: []int{0}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Steps(tc.changes)
			text := func(i int) string {
				if steps[i].Destroy {
					return fmt.Sprintf("-%d", steps[i].Change)
				}
				return fmt.Sprintf("+%d", steps[i].Change)
			}
			var got []string
			for i, s := range steps {
				for _, d := range s.DependsOn {
					got = append(got, text(i)+" after "+text(d))
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			schematest.SameStrings(t, got, tc.want)
		})
	}
}

func TestStepsHaveNoCycle(t *testing.T) {
	actions := []v1alpha1.Action{v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionDelete, v1alpha1.ActionNoOp, v1alpha1.ActionRead, v1alpha1.ActionInvoke, v1alpha1.ActionForget}
	rapid.Check(t, func(rt *rapid.T) {
		wanted := graphtest.Draw(rt, true)
		changes := make([]Planned, len(wanted))
		for i := range changes {
			changes[i] = Planned{
				Action: rapid.SampledFrom(actions).Draw(rt, "action"), DependsOn: wanted[i], Of: -1,
				CreateBeforeDestroy: rapid.Bool().Draw(rt, "create before destroy"), Record: rapid.Bool().Draw(rt, "record"),
				Requires: rapid.SliceOfN(rapid.IntRange(0, len(wanted)-1), 0, 3).Draw(rt, "requires"),
			}
			if of := rapid.IntRange(-1, len(wanted)-1).Draw(rt, "of"); (changes[i].Action == v1alpha1.ActionDelete || changes[i].Action == v1alpha1.ActionForget) && of >= 0 && of != i && !changes[of].Deposed {
				changes[i].Deposed, changes[i].Of, changes[i].DependsOn = true, of, nil
			}
		}
		steps := Steps(changes)
		if order, cycle := graph.Order(len(steps), func(i int) []int { return steps[i].DependsOn }); len(order) != len(steps) {
			rt.Fatalf("cycle %v in %+v", cycle, steps)
		}
		apply := map[int]int{}
		for i, s := range steps {
			if !s.Destroy {
				apply[s.Change] = i
			}
		}
		for i, s := range steps {
			if s.Destroy {
				continue
			}
			for _, d := range changes[s.Change].DependsOn {
				forgotten := changes[d].Action == v1alpha1.ActionForget || changes[s.Change].Action == v1alpha1.ActionForget
				if a, ok := apply[d]; ok && !forgotten && !slices.Contains(steps[i].DependsOn, a) {
					rt.Fatalf("change %d does not wait for %d", s.Change, d)
				}
			}
		}
	})
}

// needs reports whether the new configuration of a change refers to another change, directly or through others.
func needs(changes []Planned, i, other int) bool {
	return slices.ContainsFunc(changes[i].DependsOn, func(d int) bool {
		return d == other || needs(changes, d, other)
	})
}

// TestStepsOfAPlanOfManyReplacesAreFew expects as many dependencies as the plan has references, not one for each pair.
func TestStepsOfAPlanOfManyReplacesAreFew(t *testing.T) {
	const n = 2000
	var changes []Planned
	for range n {
		changes = append(changes, Planned{Action: v1alpha1.ActionUpdate, Of: -1})
	}
	hub := Planned{Action: v1alpha1.ActionReplace, Of: -1}
	for i := range n {
		hub.DependsOn = append(hub.DependsOn, i)
	}
	changes = append(changes, hub)
	for range n {
		changes = append(changes, Planned{Action: v1alpha1.ActionReplace, Of: -1, DependsOn: []int{n}, Requires: []int{n}})
	}
	dependencies := 0
	for _, s := range Steps(changes) {
		dependencies += len(s.DependsOn)
	}
	if most := 50 * n * 3; dependencies > most {
		t.Errorf("%d dependencies, want at most %d", dependencies, most)
	}
}

// TestStepsFollowTheRulesOfTerraform draws plans, and checks Terraform's rules for every order of their steps. New
// references to existing resources may contradict the recorded ones; see the priorities of edges. Then not all rules
// can hold.
func TestStepsFollowTheRulesOfTerraform(t *testing.T) {
	const create, update, replace, remove, noop, forget = v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionDelete, v1alpha1.ActionNoOp, v1alpha1.ActionForget
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		below := func(i int, what string) []int {
			if i == 0 {
				return nil
			}
			return rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, min(i, 4), rapid.ID[int]).Draw(rt, what)
		}
		moves := rapid.Bool().Draw(rt, "new references to what was there")
		changes := make([]Planned, n)
		first := make([]bool, n)
		for i := range changes {
			c := Planned{Of: -1, Action: rapid.SampledFrom([]v1alpha1.Action{create, update, replace, remove, noop, forget}).Draw(rt, "action")}
			if c.Action != remove && c.Action != forget {
				// An unchanged resource refers to unchanged resources.
				c.DependsOn = slices.DeleteFunc(below(i, "depends on"), func(d int) bool { return changes[d].Action == remove || changes[d].Action == forget })
				first[i] = rapid.Bool().Draw(rt, "create before destroy")
			}
			if !moves {
				c.DependsOn = slices.DeleteFunc(c.DependsOn, func(d int) bool { return changes[d].Action != create })
			}
			if c.Action != create {
				c.Requires = slices.DeleteFunc(below(i, "requires"), func(d int) bool { return changes[d].Action == create })
			}
			for _, d := range c.Requires {
				if stays := c.Action != remove && c.Action != forget && changes[d].Action != remove && changes[d].Action != forget; stays && !moves && rapid.Bool().Draw(rt, "still") {
					c.DependsOn = append(c.DependsOn, d)
				}
			}
			c.Forget = c.Action == replace && rapid.IntRange(0, 5).Draw(rt, "forget") == 0
			c.Record = rapid.Bool().Draw(rt, "record")
			changes[i] = c
		}
		for i := n - 1; i >= 0; i-- { // it spreads to what they depend on
			for _, d := range changes[i].DependsOn {
				first[d] = first[d] || first[i]
			}
			changes[i].CreateBeforeDestroy = changes[i].Action == replace && first[i] && !changes[i].Forget
		}
		for i := range n {
			if changes[i].Action != create && rapid.IntRange(0, 3).Draw(rt, "deposed") == 0 {
				changes = append(changes, Planned{Action: remove, Deposed: true, Of: i, Requires: below(i, "deposed requires")})
			}
		}
		steps := Steps(changes)
		order, cycle := graph.Order(len(steps), func(i int) []int { return steps[i].DependsOn })
		if cycle != nil {
			rt.Fatalf("cycle %v in %+v", cycle, steps)
		}
		// before[a][b] says that step a is done before step b, in every order.
		before := make([]map[int]bool, len(steps))
		for i := range before {
			before[i] = map[int]bool{}
		}
		for _, i := range order {
			for _, d := range steps[i].DependsOn {
				for j := range steps {
					if j == d || before[j][d] {
						before[j][i] = true
					}
				}
			}
		}
		apply, destroy := map[int]int{}, map[int]int{}
		for i, s := range steps {
			if s.Destroy {
				destroy[s.Change] = i
			} else {
				apply[s.Change] = i
			}
		}
		want := func(why string, first map[int]int, a int, then map[int]int, b int) {
			x, ok := first[a]
			y, ok2 := then[b]
			if ok && ok2 && !before[x][y] {
				rt.Fatalf("%s: change %d, then %d in\n%+v\n%+v", why, a, b, changes, steps)
			}
		}
		// The destroy of a replace waits for all that its create waits for and that does not wait for the destroy. A delete may
		// have to come between them. Two replaces whose destroys wait for each other in this way wait for neither.
		waits := make([][]int, len(steps))
		if !slices.ContainsFunc(changes, func(c Planned) bool { return c.Action == remove && !c.Deposed }) {
			for i, c := range changes {
				if c.Action != replace || c.CreateBeforeDestroy || c.Forget {
					continue
				}
				for j := range steps {
					if j != destroy[i] && !steps[j].Destroy && before[j][apply[i]] && needs(changes, i, steps[j].Change) {
						waits[destroy[i]] = append(waits[destroy[i]], j)
					}
				}
			}
		}
		component := graph.Collect(len(steps), func(i int) []int { return slices.Concat(steps[i].DependsOn, waits[i]) }).Components()
		for i := range steps {
			for _, j := range waits[i] {
				if component[i] != component[j] {
					want("the old one stays until what the new one needs is there", apply, steps[j].Change, destroy, steps[i].Change)
				}
			}
		}
		for i, c := range changes {
			if c.Action == replace && !c.Forget {
				if c.CreateBeforeDestroy {
					want("the new one first", apply, i, destroy, i)
				} else {
					want("the old one first", destroy, i, apply, i)
				}
			}
			for _, d := range c.DependsOn {
				want("what it refers to is there", apply, d, apply, i)
			}
			for _, d := range c.Requires {
				want("destroys run in reverse", destroy, i, destroy, d)
				if !c.createsFirst() && !c.Deposed && changes[d].Action != forget && !moves && !slices.ContainsFunc(changes, func(c Planned) bool { return c.CreateBeforeDestroy }) {
					want("a dependent is destroyed before what it refers to changes", destroy, i, apply, d)
				}
				if changes[d].CreateBeforeDestroy && c.Action != forget && !moves && !slices.ContainsFunc(c.DependsOn, func(x int) bool { return x != d }) {
					want("a dependant of the old instance moves to the new one", apply, i, destroy, d)
				}
				if changes[d].Action != remove || c.Action != update || moves || len(c.DependsOn) > 0 {
					continue
				}
				if changes[d].CreateBeforeDestroy || changes[d].Deposed {
					want("what is no longer used goes last", apply, i, destroy, d)
				} else if !slices.ContainsFunc(changes, func(c Planned) bool { return c.createsFirst() }) {
					// Otherwise a dependant of both would have to be created before the destroy of its own old
					// instance.
					want("what is deleted goes first", destroy, d, apply, i)
				}
			}
		}
	})
}
