package changes

import (
	"context"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// earlierPlans is the maximum number of records of earlier plans that the rules of policies can read.
const earlierPlans = 50

// Judge evaluates the current policies for a plan. approvals are the approvals of the plan, or those that it would
// have.
func Judge(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, approvals []v1alpha1.PlanApproval) (*policy.Verdict, error) {
	found, set, err := policies(ctx, src, po.Namespace)
	if err != nil {
		return nil, err
	}
	subject := policy.NewSubject(po)
	if set.Empty() {
		return set.Evaluate(ctx, subject)
	}
	if set.UsesEarlier() {
		if subject.Earlier, err = src.Policies.Earlier(ctx, po.Namespace, earlierPlans); err != nil {
			return nil, fmt.Errorf("read records of plans in namespace %q: %w", po.Namespace, err)
		}
	}
	for c, err := range src.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return nil, err
		}
		subject.Add(&c.PlanChange)
	}
	subject.Approvals, subject.NamespaceLabels, subject.Now = approvals, found.NamespaceLabels, time.Now()
	return set.Evaluate(ctx, subject)
}

func policies(ctx context.Context, src *scope.Sources, namespace string) (*store.PlanPolicies, *policy.Set, error) {
	found, err := src.Policies.Of(ctx, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("read policies for plans in namespace %q: %w", namespace, err)
	}
	return found, policy.NewSet(found.Policies, found.Cluster, found.NamespaceLabels), nil
}

// AutomaticByPolicy reports whether a policy for the plans of a namespace has a rule with the effect AllowAutomatic.
func AutomaticByPolicy(ctx context.Context, src *scope.Sources, namespace string) (bool, error) {
	_, set, err := policies(ctx, src, namespace)
	return err == nil && set.HasAutomatic(), err
}
