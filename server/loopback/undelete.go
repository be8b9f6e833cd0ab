package loopback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
)

// Undelete takes the deletion of an object back, unless a destroy of it is approved. clear clears the mark of the object; mark sets it
// again.
//
// A step that destroys reads the record, then the object, and then writes its intent into the record, which fails when the record was
// written in between. So the record is written once more after the mark was cleared: a step that saw the mark before has written its
// intent by then, and the mark comes back, or it fails.
func (a *Answers) Undelete(ctx context.Context, obj metav1.Object, k kinds.Kind, clear, mark func() error) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(k.GVR.GroupResource(), obj.GetName(), fmt.Errorf(format, args...))
	}
	rec, err := a.record(ctx, obj, k)
	if err != nil {
		return err
	}
	if rec.Intent != nil {
		return refuse("a change of it is under way, or its outcome was lost, so that its deletion cannot be taken back")
	}
	p, err := a.destroys(ctx, obj)
	if err != nil {
		return err
	}
	if p != nil {
		return refuse("plan %q destroys, forgets or moves it, and was approved by %s; its deletion cannot be taken back any more", p.Name, p.Status.Approval.By.Username)
	}
	if err := clear(); err != nil || !rec.Living() {
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

// destroys finds an approved plan that has yet to destroy, forget or move what stands behind an object; nil when there is none.
func (a *Answers) destroys(ctx context.Context, obj metav1.Object) (*v1alpha1.Plan, error) {
	if a.Client == nil {
		return nil, nil
	}
	list := &v1alpha1.PlanList{}
	if err := a.Client.Get().Namespace(obj.GetNamespace()).Resource("plans").Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if approval := p.Status.Approval; approval == nil || approval.Decision != v1alpha1.DecisionApproved || p.Status.FinishedAt != nil {
			continue
		}
		for c, err := range a.Ledger.Changes(ctx, p.UID, 0) {
			if err != nil {
				return nil, err
			}
			open := c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning
			taken := c.Object.UID == obj.GetUID() && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget) ||
				c.Bound.From != nil && c.Bound.From.UID == obj.GetUID()
			if open && taken {
				return p, nil
			}
		}
	}
	return nil, nil
}
