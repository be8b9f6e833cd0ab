package planning

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// maxReported is the maximum number of changes of a plan whose objects report that the plan waits for approval. Each
// report is a write, which takes longer than planning the change.
const maxReported = 1000

// reportAwaitingApproval writes to the objects of a plan that it waits for approval. An object that matches its spec
// without drift keeps its condition, as does one whose create has an unknown outcome.
func (a *Planner) reportAwaitingApproval(ctx context.Context, po *v1alpha1.Plan) error {
	return changes.EachObject(ctx, a.Ledger, po.UID, func(ctx context.Context, c *ledger.Change) error {
		if c.Blocked != "" {
			return nil // the object already has that reason
		}
		if from := c.Preconditions.From; from != nil {
			if err := resource.WriteStatus(ctx, a.Objects, *from, func(s *resource.Status) { s.AwaitMove(from.Generation, c.Address) }); err != nil {
				return err
			}
		}
		rec, err := a.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		lost, err := changes.UnknownCreate(ctx, a.Ledger, rec, c.Address)
		if err != nil {
			return err
		}
		outside := changes.FoundOutsideChanged(c, rec)
		return resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) {
			if c.Deposed != "" {
				if !s.Good() {
					s.Pending = po.Name // the condition keeps the reason for the plan
				}
				return
			}
			if s.CreateUnknown() {
				if lost != "" {
					s.Stall(c.Object.Generation, v1alpha1.ReasonCreateUnknown,
						fmt.Sprintf("%s A plan that resolves this waits for approval: kubectl hykube show %s -n %s", lost, po.Name, po.Namespace))
				}
				s.Pending = po.Name
				return
			}
			if s.Generation != c.Object.Generation || s.Good() && (!s.Drifted() || po.Spec.RefreshOnly) && !outside {
				return
			}
			s.AwaitApproval(po.Name,
				fmt.Sprintf("The plan %s would %s and waits for approval: kubectl hykube show %s -n %s", po.Name, changes.PlanVerbs[c.Action], po.Name, po.Namespace))
		})
	})
}
