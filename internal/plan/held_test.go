package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph/graphtest"
)

func TestHeld(t *testing.T) {
	const create, update, replace, remove, noop, invoke = v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionDelete, v1alpha1.ActionNoOp, v1alpha1.ActionInvoke
	for name, tc := range map[string]struct {
		changes []Planned
		stopped []int
		want    []int // besides those that are stopped
	}{
		"an independent change is made": {[]Planned{{Action: update}, {Action: update}, {Action: remove}}, []int{0}, nil},
		"direct and indirect references to its new values are left out": {
			[]Planned{{Action: update}, {Action: create, DependsOn: []int{0}}, {Action: invoke, DependsOn: []int{1}}}, []int{0}, []int{1, 2}},
		"also when only unchanged instances are between": {
			[]Planned{{Action: replace}, {Action: noop, DependsOn: []int{0}}, {Action: noop, DependsOn: []int{1}}, {Action: update, DependsOn: []int{2}}, {Action: update, DependsOn: []int{2}}},
			[]int{0}, []int{3, 4}},
		"a replaced dependent keeps its old instance": {
			[]Planned{{Action: replace}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}}, []int{0}, []int{1}},
		"a dependency of a stopped replace is not replaced, nor its dependants": {
			[]Planned{{Action: replace}, {Action: replace, DependsOn: []int{0}, Requires: []int{0}}, {Action: update, DependsOn: []int{0}}}, []int{1}, []int{0, 2}},
		"a dependency of a stopped change is updated": {
			[]Planned{{Action: update}, {Action: update, DependsOn: []int{0}, Requires: []int{0}}}, []int{1}, nil},
		"what a stopped update used to refer to is not destroyed": {
			[]Planned{{Action: remove, Requested: true}, {Action: update, Requires: []int{0}}}, []int{1}, []int{0}},
		"the old instance on which a stopped update depends is not destroyed": {
			[]Planned{{Action: noop}, {Action: remove, Deposed: true, Of: 0}, {Action: update, DependsOn: []int{0}, Requires: []int{0, 1}}}, []int{2}, []int{1}},
		"the dependants and dependencies of a stopped delete stay, requested or not": {
			[]Planned{{Action: remove, Requested: true}, {Action: remove, Requires: []int{0}}, {Action: remove, Requested: true, Requires: []int{1}}, {Action: remove, Requires: []int{2}}},
			[]int{1}, []int{0, 2, 3}},
		"a requested destroy of a dependant of a dependency is made": {
			[]Planned{{Action: remove, Requested: true}, {Action: remove, Requested: true, Requires: []int{0}}, {Action: remove, Requested: true, Requires: []int{0}}}, []int{1}, []int{0}},
		"and is not made if it was not requested": {
			[]Planned{{Action: remove, Requested: true}, {Action: remove, Requires: []int{0}}, {Action: remove, Requires: []int{0}}}, []int{1}, []int{0, 2}},
		"what is deleted may leave a stopped replace behind": {
			[]Planned{{Action: replace}, {Action: remove, Requested: true, Requires: []int{0}}}, []int{0}, nil},
		"what moves away from a stopped delete moves": {
			[]Planned{{Action: remove, Requested: true}, {Action: update, Requires: []int{0}}}, []int{0}, nil},
		"what is left over of a stopped delete's dependents is their own matter": {
			[]Planned{{Action: update}, {Action: remove, Deposed: true, Of: 0}, {Action: remove, Requested: true, Requires: []int{0, 1}}}, []int{1}, nil},
		"records that contradict each other": {
			[]Planned{{Action: remove, Requires: []int{1}}, {Action: remove, Requires: []int{0}}}, []int{0}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]bool, len(tc.changes))
			for _, i := range append(tc.stopped, tc.want...) {
				want[i] = true
			}
			var got []bool
			for _, h := range Held(tc.changes, tc.stopped) {
				got = append(got, h.Reason != NotHeld)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("held (-want +got)\n%s", diff)
			}
		})
	}
}

// A change that is left out for several others names them, at most a few.
func TestHeldChangeNamesItsBlockers(t *testing.T) {
	const update, remove = v1alpha1.ActionUpdate, v1alpha1.ActionDelete
	stays := Planned{Action: remove, Requested: true, Requires: []int{0}}
	for name, tc := range map[string]struct {
		changes []Planned
		stopped []int
		of      int
		want    Hold
	}{
		"two that stay on it": {[]Planned{{Action: remove}, stays, stays, {Action: remove, Requested: true, Requires: []int{0}}}, []int{1, 2}, 0, Hold{HeldUnder, 1, []int{2}, 0}},
		"more than are named": {[]Planned{{Action: remove}, stays, stays, stays, stays, stays, stays}, []int{1, 2, 3, 4, 5, 6}, 0, Hold{HeldUnder, 1, []int{2, 3, 4}, 2}},
		"what it refers to":   {[]Planned{{Action: update}, {Action: update}, {Action: update, DependsOn: []int{0, 1}}}, []int{0, 1}, 2, Hold{HeldByReference, 0, []int{1}, 0}},
		"a dependency":        {[]Planned{{Action: remove}, {Action: remove}, {Action: remove, Requires: []int{0, 1}}}, []int{0, 1}, 2, Hold{HeldWith, 0, []int{1}, 0}},
		"one":                 {[]Planned{{Action: update}, {Action: update}, {Action: update, DependsOn: []int{0, 1}}}, []int{0}, 2, Hold{HeldByReference, 0, nil, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Held(tc.changes, tc.stopped)[tc.of]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestChangesReferToNoHeldChange draws plans. No change that is made may refer to one that is left out, and no
// instance that stays may lose a dependency.
func TestChangesReferToNoHeldChange(t *testing.T) {
	actions := []v1alpha1.Action{v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionReplace, v1alpha1.ActionDelete, v1alpha1.ActionNoOp}
	rapid.Check(t, func(rt *rapid.T) {
		refer := graphtest.Draw(rt, true)
		if len(refer) == 0 {
			return
		}
		changes := make([]Planned, len(refer))
		for i := range changes {
			changes[i] = Planned{Of: -1, Action: rapid.SampledFrom(actions).Draw(rt, "action"), Requested: rapid.Bool().Draw(rt, "asked"),
				CreateBeforeDestroy: rapid.Bool().Draw(rt, "create before destroy"),
				Requires:            rapid.SliceOfN(rapid.IntRange(0, len(refer)-1), 0, 3).Draw(rt, "requires")}
			if changes[i].Action != v1alpha1.ActionDelete {
				changes[i].DependsOn = refer[i]
			}
		}
		stopped := rapid.SliceOfN(rapid.IntRange(0, len(refer)-1), 1, 2).Draw(rt, "stopped")
		held := Held(changes, stopped)
		for i, c := range changes {
			if held[i].Reason != NotHeld && held[held[i].By].Reason == NotHeld {
				rt.Fatalf("%d is held because of %d, which is not", i, held[i].By)
			}
			for _, d := range c.DependsOn {
				if held[d].Reason != NotHeld && held[i].Reason == NotHeld && c.applies() {
					rt.Fatalf("%d goes on and refers to %d", i, d)
				}
			}
			for _, d := range c.Requires {
				if d != i && held[i].Reason != NotHeld && held[d].Reason == NotHeld && changes[d].destroys() {
					rt.Fatalf("%d stays, and its dependency %d is destroyed", i, d)
				}
			}
		}
	})
}
