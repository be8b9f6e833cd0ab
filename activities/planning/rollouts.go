package planning

import (
	"cmp"
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
)

// This file finds the rollouts of the ResourceSets that a plan changes.

// rolled counts the changes of a ResourceSet that its rollout limits.
type rolled struct {
	// one is one of the instances.
	one   v1alpha1.ObjectReference
	count int
}

// noteRolled counts a change that the rollout of its set limits.
func (t *totals) noteRolled(c *ledger.Change) {
	if t.rolled[c.Object.SetUID] == nil {
		t.rolled[c.Object.SetUID] = &rolled{one: c.Object}
	}
	t.rolled[c.Object.SetUID].count++
}

// findRollouts sets the rollouts of the changes, sorted by the names of their sets.
func (t *totals) findRollouts(ctx context.Context, a *scope.Sources) error {
	for uid, changed := range t.rolled {
		name, _, _ := v1alpha1.ParseInstanceName(changed.one.Name)
		set, err := scope.SetAt(ctx, a, changed.one.Namespace, resource.AddressOf(changed.one.Kind, name))
		if err != nil {
			return err
		}
		if set == nil || set.UID != uid {
			continue // all of these instances leave their set
		}
		if rollout := set.PlanRollout(changed.count); rollout != nil {
			t.rollouts = append(t.rollouts, *rollout)
		}
	}
	slices.SortFunc(t.rollouts, func(a, b v1alpha1.PlanRollout) int {
		return cmp.Compare(a.ResourceSet, b.ResourceSet)
	})
	return nil
}
