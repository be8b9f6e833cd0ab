package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

// This file keeps the status of objects true while a plan that changes them waits for approval, is applied, or ends without that.

// applyingAfter is how long a step takes before its object says that it is being applied. Most steps are shorter, and write once.
const applyingAfter = 2 * time.Second

// maxReported bounds the changes of a plan whose objects say that it waits for approval: each is one write, which takes longer than to
// plan the change.
const maxReported = 1000

var planVerbs = map[v1alpha1.Action]string{
	v1alpha1.ActionCreate: "create it", v1alpha1.ActionUpdate: "update it", v1alpha1.ActionReplace: "replace it",
	v1alpha1.ActionDelete: "destroy it", v1alpha1.ActionForget: "forget it", v1alpha1.ActionRead: "read it",
	v1alpha1.ActionInvoke: "run it", v1alpha1.ActionNoOp: "record it",
}

// reportAwaitingApproval says on the objects of a plan that it waits for approval. An object that is what its spec asks for, and did not drift, stays so.
func (a *Activities) reportAwaitingApproval(ctx context.Context, po *v1alpha1.Plan) error {
	return a.eachObject(ctx, po.UID, func(ctx context.Context, c *ledger.Change) error {
		if c.Blocked != "" {
			return nil // the object was told that already
		}
		return a.writeStatus(ctx, c.Object, func(s *status) {
			if c.Deposed != "" {
				if !s.good() {
					s.pending = po.Name // the condition goes on to say what the plan is for
				}
				return
			}
			if s.generation != c.Object.Generation || s.good() && (!s.drifted() || po.Spec.RefreshOnly) {
				return
			}
			s.wait(c.Object.Generation, v1alpha1.ReasonAwaitingApproval,
				fmt.Sprintf("The plan %s, which would %s, waits for approval: kubectl hykube show %s -n %s", po.Name, planVerbs[c.Action], po.Name, po.Namespace))
			s.pending = po.Name
		})
	})
}

// Settle takes back on the objects of a plan that it waits for approval: it was decided against, is refused, or is gone.
func (a *Activities) Settle(ctx context.Context, p workflows.Plan) error {
	return a.eachObject(ctx, types.UID(p.UID), func(ctx context.Context, c *ledger.Change) error {
		obj, err := a.Objects.Get(ctx, c.Object)
		if errors.Is(err, ErrGone) || err == nil && statusOf(obj).pending != p.Name {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err := a.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		return a.writeStatus(ctx, c.Object, func(s *status) {
			if s.pending == p.Name {
				s.settle(rec)
			}
		})
	})
}

// settle writes the condition of an object that no plan changes.
func (s *status) settle(rec *ledger.Instance) {
	g := s.judged
	switch applied := rec.Plan != "" && rec.Object.Generation == s.generation && rec.Intent == nil; {
	case s.deleting:
		s.wait(g, v1alpha1.ReasonDeleting, "deleted; make a Plan to destroy the infrastructure and release the object")
	case s.drifted():
		s.stallDrifted(g)
	case rec.Tainted:
		s.wait(g, v1alpha1.ReasonTainted, "marked to be replaced: the next plan replaces it")
	case applied && rec.Exists() && len(rec.Deposed) > 0:
		s.stallDeposed(g, rec)
	case applied && (rec.Exists() || rec.Mode == v1alpha1.ModeAction):
		s.ready(g, messageApplied)
	default:
		s.wait(g, v1alpha1.ReasonAwaitingPlan, "recorded, and no plan of it was approved; make a Plan to apply it")
	}
}

// eachObject calls do for each change of a plan that does something to its object, some of them at once.
func (a *Activities) eachObject(ctx context.Context, plan types.UID, do func(context.Context, *ledger.Change) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for c, err := range a.Ledger.Changes(ctx, plan, 0) {
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		if c.State != v1alpha1.ChangePending || c.Action == "" || changesNothing(c) {
			continue
		}
		group.Go(func() error { return do(ctx, c) })
	}
	return group.Wait()
}

// reportApplying makes the object of a step that takes a while say that it is being applied. The function that it returns ends that,
// and may be called twice.
func (a *Activities) reportApplying(ctx context.Context, c *ledger.Change) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	say := time.AfterFunc(applyingAfter, func() {
		defer close(over)
		verb := strings.TrimSuffix(planVerbs[c.Action], " it")
		err := a.writeStatus(ctx, c.Object, func(s *status) {
			if s.generation == c.Object.Generation && ctx.Err() == nil {
				s.reconcile(c.Object.Generation, fmt.Sprintf("A plan was approved, and its %s is under way.", verb))
			}
		})
		if err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "say that a change is under way", "address", c.Address, "error", err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		if !say.Stop() {
			<-over
		}
	})
}
