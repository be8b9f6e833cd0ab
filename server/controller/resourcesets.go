package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/index"
)

// ResourceSets writes the status of ResourceSets, which counts their instances by state.
type ResourceSets struct {
	Index *index.Index
	// Update changes the status of a set. It does nothing if there is no set with the UID.
	Update func(ctx context.Context, namespace, name string, uid types.UID, change func(*v1alpha1.ResourceSetStatus)) error
	// Release removes the finalizer of a set that is being deleted and has no records, because the step of the last
	// instance may have failed to do it. Forget removes the statuses of the instances of a removed set.
	Release func(ctx context.Context, namespace, name string, uid types.UID) error
	Forget  func(ctx context.Context, namespace string, uid types.UID) error
	Logger  *slog.Logger
}

const (
	// setInterval is the time between two updates of the changed sets.
	setInterval = 500 * time.Millisecond
	// setRest is the ratio of the pause after the updates to the time that they took. Each update counts all instances of
	// a set.
	setRest = 20
)

// run updates the changed sets until ctx ends.
func (c *ResourceSets) run(ctx context.Context) {
	failed := map[index.Touched]bool{}
	for {
		begun := time.Now()
		changed := c.Index.Touched()
		for t := range failed {
			changed = append(changed, t)
		}
		clear(failed)
		for _, t := range changed {
			if err := c.update(ctx, t); err != nil && ctx.Err() == nil {
				c.Logger.Warn("update the status of a ResourceSet; trying again", "namespace", t.Namespace, "name", t.Name, "error", err)
				failed[t] = true
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(setInterval, setRest*time.Since(begun))):
		}
	}
}

func (c *ResourceSets) update(ctx context.Context, t index.Touched) error {
	if t.Removed != "" {
		if err := c.Forget(ctx, t.Namespace, t.Removed); err != nil {
			return err
		}
	}
	sets, err := c.Index.Sets(ctx, t.Namespace, t.Name)
	if err != nil || len(sets) == 0 {
		return err
	}
	set := sets[0]
	if set.Deleting != nil && set.Held {
		if err := c.Release(ctx, set.Namespace, set.Name, set.UID); err != nil {
			return err
		}
	}
	err = c.Update(ctx, set.Namespace, set.Name, set.UID, func(s *v1alpha1.ResourceSetStatus) { summarize(s, &set) })
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another write changed or removed the set, so the index will name it again
	}
	return err
}

// summarize sets the status of a set from its instances.
func summarize(s *v1alpha1.ResourceSetStatus, set *index.SetInstances) {
	s.ObservedGeneration = set.Generation
	s.Instances, s.Ready, s.Failed, s.Pending = int32(len(set.Instances)), 0, 0, 0
	s.Leaving = int32(len(set.Leaving))
	applying, failed := 0, ""
	note := func(n index.Node, leaving bool) {
		switch o := n.Object; {
		case o.Instance.Stalled:
			s.Failed++
			if failed == "" {
				failed = o.Address().String()
			}
		case leaving:
		case o.Has(index.Good):
			s.Ready++
		default:
			s.Pending++
		}
		if n.Object.Instance.Applying {
			applying++
		}
	}
	for _, n := range set.Instances {
		note(n, false)
	}
	for _, n := range set.Leaving {
		note(n, true)
	}
	g, c := set.Generation, &s.Conditions
	progress := fmt.Sprintf("%d of %d instances are ready", s.Ready, s.Instances)
	if s.Leaving > 0 {
		progress += fmt.Sprintf(", and the next plan destroys %d that left the set", s.Leaving)
	}
	switch {
	case set.Problem != "":
		condition.Stalled(c, g, v1alpha1.ReasonKeysUnknown, "The instances are not known: "+set.Problem+".")
	case applying > 0:
		condition.Reconciling(c, g, v1alpha1.ReasonApplying, progress+"; an apply is in progress.")
	case s.Failed > 0:
		condition.Stalled(c, g, v1alpha1.ReasonInstancesFailed, fmt.Sprintf("%s, and %d have a failure, such as %s. kubectl hykube instances %s shows them.", progress, s.Failed, failed, set.Name))
	case set.Deleting != nil:
		condition.Waiting(c, g, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
	case s.Pending+s.Leaving > 0:
		condition.Waiting(c, g, v1alpha1.ReasonAwaitingPlan, progress+"; make a Plan to apply the rest.")
	default:
		condition.Ready(c, g, v1alpha1.ReasonApplied, progress+".")
	}
}
