package loopback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
)

// Undelete reverts the deletion of an object, unless an approved plan destroys it. clear removes the deletion mark, and
// mark sets it again.
//
// A destroy step reads the record, then the object, and then writes its intent to the record. That write fails if the
// record has changed. So Undelete writes the record after clear. A step that saw the mark has then either written its
// intent, in which case Undelete restores the mark, or it fails.
func (a *Answers) Undelete(ctx context.Context, obj metav1.Object, k kinds.Kind, clear func(kinds.Undeleted) error,
	mark func() error) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(k.GVR.GroupResource(), obj.GetName(), fmt.Errorf(format, args...))
	}
	rec, err := a.record(ctx, obj, k)
	if err != nil {
		return err
	}
	lost, err := a.lostCreate(ctx, rec)
	if err != nil {
		return err
	}
	if rec.Intent != nil && !lost {
		return refuse("a change of it is running, or its outcome is unknown, so its deletion cannot be taken back")
	}
	p, err := a.destroys(ctx, obj)
	if err != nil {
		return err
	}
	if p != nil {
		return refuse("plan %q destroys, forgets or moves it, and was approved by %s; its deletion cannot be taken back any more", p.Name, p.Status.Approval.By.Username)
	}
	how := kinds.UndeletedUnplanned
	switch {
	case lost:
		how = kinds.UndeletedUnknown
	case unchangedSinceApply(obj, rec):
		how = kinds.UndeletedApplied
		rec.Object.Generation = obj.GetGeneration() + 1 // the generation after clear
	}
	if err := clear(how); err != nil || !rec.Living() && !lost {
		return err
	}
	if err := a.Ledger.Save(ctx, rec); !errors.Is(err, ledger.ErrConflict) {
		return err
	}
	if err := mark(); err != nil {
		return err
	}
	return refuse("a plan that was approved at the same time destroys it; its deletion cannot be taken back any more")
}

// unchangedSinceApply reports whether an object was unchanged between its last apply and its deletion, which increments
// the generation. It also requires that no plan found a problem.
func unchangedSinceApply(obj metav1.Object, rec *ledger.Instance) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return ok && isApplied(obj, rec, obj.GetGeneration()-1) && !condition.IsTrue(u, v1alpha1.ConditionStalled)
}

// lostCreate reports whether the outcome of a create is unknown and its plan has ended.
func (a *Answers) lostCreate(ctx context.Context, rec *ledger.Instance) (bool, error) {
	if rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate || rec.Exists() {
		return false, nil
	}
	c, err := a.Ledger.Change(ctx, rec.Intent.Plan, rec.Intent.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // the plan was deleted
	}
	return err == nil && c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeRunning, err
}

// destroys returns an approved plan that will still destroy, forget or move an object's infrastructure, or nil.
func (a *Answers) destroys(ctx context.Context, obj metav1.Object) (*v1alpha1.Plan, error) {
	return a.planTaking(ctx, obj.GetNamespace(), func(c *ledger.Change) bool {
		return c.Object.UID == obj.GetUID() && removes(c) ||
			c.Preconditions.From != nil && c.Preconditions.From.UID == obj.GetUID()
	})
}

// DestroysInstances returns an approved plan that will still destroy or forget instances of a ResourceSet or a Module,
// or nil.
func (a *Answers) DestroysInstances(ctx context.Context, owner metav1.Object) (*v1alpha1.Plan, error) {
	return a.planTaking(ctx, owner.GetNamespace(),
		func(c *ledger.Change) bool { return c.Object.SetUID == owner.GetUID() && removes(c) })
}

// removes reports whether a change destroys or forgets its resource.
func removes(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget
}

// planTaking returns an approved plan of a namespace with an open change that takes infrastructure away, or nil.
func (a *Answers) planTaking(ctx context.Context, namespace string,
	takes func(*ledger.Change) bool) (*v1alpha1.Plan, error) {
	if a.Client == nil {
		return nil, nil
	}
	list := &v1alpha1.PlanList{}
	if err := a.Client.Get().Namespace(namespace).Resource("plans").Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if approval := p.Status.Approval; approval == nil || approval.Decision != v1alpha1.DecisionApproved ||
			p.Ended() {
			continue
		}
		for c, err := range a.Ledger.Changes(ctx, p.UID, 0) {
			if err != nil {
				return nil, err
			}
			open := c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning
			if open && takes(c) {
				return p, nil
			}
		}
	}
	return nil, nil
}
