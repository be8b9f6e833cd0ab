package applying

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/types"
)

// This file checks that each step is permitted. A scheduled activity proves nothing: a process with access to the task
// queue can name any plan and any step.

// applyingPlan reads the plan of a step. It returns an error if the plan is not approved, has not begun, or has ended.
func (a *Applier) applyingPlan(ctx context.Context, p workflows.Plan) (*v1alpha1.Plan, error) {
	po, err := changes.ReadPlan(ctx, a.Plans, p)
	if err != nil {
		return nil, err
	}
	why := changes.NotApproved(po)
	switch {
	case why != "":
	case po.Status.Progress == nil:
		why = "The apply of the plan has not started."
	case po.Status.FinishedAt != nil:
		why = "The apply of the plan has ended."
	default:
		return po, a.held(po)
	}
	return nil, refused(p, why)
}

// held returns the error of an activity whose plan is held; nil if it is not. Temporal asks again.
func (a *Applier) held(po *v1alpha1.Plan) error {
	if reason, _ := a.Hold.Of(po); reason != "" {
		return &RetryError{fmt.Errorf("the plan waits (%s); status.conditions of the plan says why", reason)}
	}
	return nil
}

func refused(p workflows.Plan, why string) error {
	return workflows.Final(fmt.Errorf("plan %s/%s: refused, and nothing was changed. %s", p.Namespace, p.Name, why))
}

// stepKey identifies a step of a plan.
type stepKey struct {
	change  int
	destroy bool
}

// stepOrder has the steps of a plan.
type stepOrder struct {
	// before maps each step to the steps that must be done first.
	before map[stepKey][]stepKey
	// approved has the approved changes, by their indexes.
	approved []approvedChange
}

// stepOrders caches the orders of the plans that this process applies. The zero value is empty.
type stepOrders struct {
	mu     sync.Mutex
	byPlan map[types.UID]*stepOrder
}

// approvedChange identifies a change of an approved plan.
type approvedChange struct {
	object types.UID
	// hash is that of changes.HashOf; 0 for a step that has ended, which calls no provider.
	hash uint64
	// follows is true for a step after other steps of the plan, which may have changed what the provider computes.
	follows bool
}

// approvedChanges returns the approved changes, by their indexes.
func approvedChanges(work *changes.Stored) []approvedChange {
	out := make([]approvedChange, len(work.Changes))
	for i := range work.Changes {
		out[i] = approvedChange{object: work.Changes[i].Object.UID, hash: work.Changes[i].Hash}
	}
	return out
}

// check returns an error if a stored change is not the approved one. Only a planning activity that did not notice its
// end could have replaced it.
func (a approvedChange) check(p workflows.Plan, c *ledger.Change) error {
	if a.hash == 0 || changes.HashOf(changes.Covered(c)) == a.hash {
		return nil
	}
	return refused(p, fmt.Sprintf("The change of %s was planned again after the approval. Make a new plan.", c.Address))
}

// checkOrder returns the change of a step. It returns an error if the plan lacks the step or if the step's dependencies
// are not done. It permits a step that has ended.
func (a *Applier) checkOrder(ctx context.Context, po *v1alpha1.Plan,
	in workflows.StepInput) (of approvedChange, err error) {
	c, err := a.Ledger.Change(ctx, po.UID, int32(in.Change))
	if err != nil {
		return approvedChange{}, err
	}
	if ended(c, in.Destroy) {
		return approvedChange{object: c.Object.UID}, nil
	}
	order, err := a.orderOf(ctx, po, in.Plan)
	if err != nil {
		return approvedChange{}, err
	}
	before, ok := order.before[stepKey{in.Change, in.Destroy}]
	if !ok {
		return approvedChange{}, refused(in.Plan,
			fmt.Sprintf("The plan has no such step: change %d, destroy %t.", in.Change, in.Destroy))
	}
	for _, k := range before {
		c, err := a.Ledger.Change(ctx, po.UID, int32(k.change))
		if err != nil {
			return approvedChange{}, err
		}
		if c.State != v1alpha1.ChangeDone && !(c.HalfDone && firstHalf(c, k.destroy)) {
			return approvedChange{}, refused(in.Plan,
				fmt.Sprintf("The step depends on %s, which has not succeeded.", c.Address))
		}
	}
	of = order.approved[in.Change]
	of.follows = len(before) > 0
	return of, nil
}

// orderOf returns the order of a plan's steps. It reads it once from the ledger and checks it against the approved
// digest. Then it also resumes the plan's progress.
func (a *Applier) orderOf(ctx context.Context, po *v1alpha1.Plan, p workflows.Plan) (*stepOrder, error) {
	a.orders.mu.Lock()
	order, ok := a.orders.byPlan[po.UID]
	a.orders.mu.Unlock()
	if ok {
		return order, nil
	}
	work, err := changes.Load(ctx, a.Ledger, po.UID)
	if err != nil {
		return nil, err
	}
	if why := work.NotApproved(po); why != "" {
		return nil, refused(p, why)
	}
	if err := a.takeOver(ctx, po, work); err != nil {
		return nil, err
	}
	a.progress.resume(p, work)
	order = &stepOrder{before: make(map[stepKey][]stepKey, len(work.Steps)), approved: approvedChanges(work)}
	for _, s := range work.Steps {
		var before []stepKey
		for _, d := range s.DependsOn {
			before = append(before, stepKey{work.Steps[d].Change, work.Steps[d].Destroy})
		}
		order.before[stepKey{s.Change, s.Destroy}] = before
	}
	a.orders.mu.Lock()
	defer a.orders.mu.Unlock()
	if a.orders.byPlan == nil {
		a.orders.byPlan = map[types.UID]*stepOrder{}
	}
	a.orders.byPlan[po.UID] = order
	return order, nil
}

// forget removes the order of a plan that has ended.
func (s *stepOrders) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byPlan, uid)
}

// errStepsRunning is the error for finishing a plan while this process runs steps of it.
var errStepsRunning = errors.New("steps of the plan are still running; the plan can end after them")

// checkRights returns an error if the creator or the approver of the plan has lost a right that the change needs, or if
// the mode of its Module does not permit the change. It checks this at each step. rec is the instance that the change
// replaces; nil if there is none.
func (s *stepRun) checkRights(ctx context.Context, rec *ledger.Instance) error {
	if err := changes.CheckObserved(ctx, s.Sources, s.Change); err != nil {
		return err
	}
	return changes.ActorsOf(s.Sources, s.Plan).Check(ctx, s.Change, rec)
}

// checkAfterWait checks the rights and the object of the step again. Both may have changed while the step waited for
// the limits of its ProviderConfig or for a provider process. A step that creates or updates need not read the object,
// because AddFinalizer detects a change of it.
func (s *stepRun) checkAfterWait(ctx context.Context, rec *ledger.Instance) error {
	if err := s.checkRights(ctx, rec); err != nil || s.deposedKey() != "" {
		return err
	}
	if s.resource.Mode == v1alpha1.ModeManaged && !s.Destroy {
		return nil
	}
	obj, err := s.Objects.Get(ctx, s.Change.Object)
	switch {
	case errors.Is(err, store.ErrGone):
		return changes.ErrObjectDeleted
	case err != nil:
		return err
	}
	return s.CheckObject(obj.GetDeletionTimestamp() != nil, obj.GetGeneration(), resourceset.Content(obj))
}
