package changes

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// Approved reports whether a plan was approved. It ignores later changes of the plan's digest.
func Approved(po *v1alpha1.Plan) bool {
	approval := po.Status.Approval
	return meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApproved) && approval != nil &&
		approval.Decision == v1alpha1.DecisionApproved
}

// ApprovedItself reports whether a plan was approved without a person.
func ApprovedItself(po *v1alpha1.Plan) bool {
	approved := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionApproved)
	return approved != nil && approved.Status == metav1.ConditionTrue && approved.Reason == v1alpha1.ReasonAutomatic
}

// ApprovedByAnother reports whether a person who is none of the writers approved a plan. The writers must all be named.
func ApprovedByAnother(po *v1alpha1.Plan, writers []v1alpha1.Contributor) bool {
	if !Approved(po) || ApprovedItself(po) {
		return false
	}
	return slices.ContainsFunc(po.AllApprovals(), func(a v1alpha1.PlanApproval) bool {
		return a.Decision == v1alpha1.DecisionApproved && a.Automatic == nil && isAnother(a.By, writers)
	})
}

// isAnother reports whether no user behind an identity is one of the writers. A writer without a name may be anybody.
func isAnother(who *v1alpha1.Identity, writers []v1alpha1.Contributor) bool {
	return who != nil && who.Username != "" && !slices.ContainsFunc(writers,
		func(w v1alpha1.Contributor) bool { return w.More || w.Shares(who) })
}

// NotApproved returns why no change of a plan may be applied; "" if the approval has the digest in the plan's status.
func NotApproved(po *v1alpha1.Plan) string {
	approval := po.Status.Approval
	switch {
	case !Approved(po):
		return "The plan is not approved."
	case po.Status.Digest == "" || approval.Digest != po.Status.Digest:
		return otherChanges
	}
	return ""
}

const otherChanges = "The digest of the approval does not match the stored changes. Make a new plan."

// NotApproved returns why no change of a plan may be applied; "" if the approval has the digest of the stored changes.
func (w *Stored) NotApproved(po *v1alpha1.Plan) string {
	if why := NotApproved(po); why != "" {
		return why
	}
	if w.Digest != po.Status.Digest {
		return otherChanges
	}
	return ""
}

// ReadPlan reads the Plan object of a workflow. It returns a final error if the Plan was deleted.
func ReadPlan(ctx context.Context, plans store.Plans, p workflows.Plan) (*v1alpha1.Plan, error) {
	obj, err := plans.Get(ctx, p.Namespace, p.Name, workflows.ObjectUID(p))
	if errors.Is(err, store.ErrGone) {
		return nil, workflows.Deleted()
	}
	return obj, err
}

// Now returns the current time for a field of a status.
func Now() *metav1.Time { return new(metav1.Now()) }
