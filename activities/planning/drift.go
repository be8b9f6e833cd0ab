package planning

import (
	"context"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/api/meta"
)

// This file records on objects which infrastructure changed outside of Hykube. This is only an observation: it changes
// no generation and no digest, and makes no plan stale.

// maxPaths is the maximum number of attributes in a condition.
const maxPaths = 20

// observe updates the condition Drifted of a change's object, if the plan read the resource.
func (a *Planner) observe(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change) error {
	if !c.Read || c.Deposed != "" || po.Spec.Speculative {
		return nil
	}
	obj, err := a.Objects.Get(ctx, c.Object)
	if err != nil {
		return store.IgnoreGone(err)
	}
	if had := resource.StatusOf(obj).Drifted(); len(c.Drift) == 0 && !had {
		return nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Digest() != c.Preconditions.State || rec.Intent != nil {
		return err // another plan changed it after this one read it
	}
	return resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) {
		if len(c.Drift) == 0 {
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDrifted)
			return
		}
		reason, message := v1alpha1.ReasonDrifted, "Changed outside of Hykube: "+pathsText(c.Drift)
		if slices.Contains(c.Drift, gone) {
			reason, message = v1alpha1.ReasonGone, "Removed outside of Hykube"
		}
		condition.Set(&s.Conditions, c.Object.Generation, v1alpha1.ConditionDrifted, true, reason, message+".")
		if reason == v1alpha1.ReasonGone {
			s.StallDrifted(c.Object.Generation)
		}
	})
}

func pathsText(paths []string) string {
	if n := len(paths) - maxPaths; n > 0 {
		return strings.Join(paths[:maxPaths], ", ") + ", and more"
	}
	return strings.Join(paths, ", ")
}
