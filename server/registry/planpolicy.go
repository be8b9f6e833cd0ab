package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/policy"
)

func newPlanPolicies(c Config) (*resourceREST, error) {
	return newPolicies(c, "planpolicies", "planpolicy", "pp", new(v1alpha1.PlanPolicy), new(v1alpha1.PlanPolicyList),
		true,
		func(p *v1alpha1.PlanPolicy) v1alpha1.PlanPolicySpec { return p.Spec },
		func(p *v1alpha1.PlanPolicy) any { return p.Spec },
		func(p *v1alpha1.PlanPolicy) *v1alpha1.PlanPolicyStatus { return &p.Status },
		func(*v1alpha1.PlanPolicy) field.ErrorList { return nil })
}

func newClusterPlanPolicies(c Config) (*resourceREST, error) {
	return newPolicies(c, "clusterplanpolicies", "clusterplanpolicy", "cpp", new(v1alpha1.ClusterPlanPolicy),
		new(v1alpha1.ClusterPlanPolicyList), false,
		func(p *v1alpha1.ClusterPlanPolicy) v1alpha1.PlanPolicySpec { return p.Spec.PlanPolicySpec },
		func(p *v1alpha1.ClusterPlanPolicy) any { return p.Spec },
		func(p *v1alpha1.ClusterPlanPolicy) *v1alpha1.PlanPolicyStatus { return &p.Status },
		validateNamespaceSelector)
}

// newPolicies returns the registry of a kind of policy. rules returns the rules of an object, and spec everything that
// users write in it. The user of each write is the author of the policy, because a rule AllowAutomatic has the author's
// rights.
func newPolicies[T deepCopier[T]](c Config, plural, singular, short string, example, list runtime.Object,
	namespaced bool,
	rules func(T) v1alpha1.PlanPolicySpec, spec func(T) any, status func(T) *v1alpha1.PlanPolicyStatus,
	validate func(T) field.ErrorList,
) (*resourceREST, error) {
	strategy := kindStrategy[T, v1alpha1.PlanPolicyStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    namespaced,
		begin: func(ctx context.Context,
			p T) {
			*status(p) = v1alpha1.PlanPolicyStatus{Author: requester(ctx)}
		},
		prepareUpdate: func(ctx context.Context, p, _ T) {
			if !byServer(ctx) {
				status(p).Author = requester(ctx)
			}
		},
		spec:   spec,
		status: status,
		validate: func(p T) field.ErrorList {
			return slices.Concat(validateObjectName(p.GetName()), policy.Validate(rules(p), field.NewPath("spec")),
				validate(p))
		},
	}
	store, err := newStoreOnly(c, plural, singular, example, list, strategy, planPolicyTable)
	if err != nil {
		return nil, err
	}
	return &resourceREST{Store: store, short: short,
		mayWrite: mayAllowAutomatic(c.Authorizer, plural,
			func(obj runtime.Object) v1alpha1.PlanPolicySpec { return rules(obj.(T)) })}, nil
}

func validateNamespaceSelector(p *v1alpha1.ClusterPlanPolicy) field.ErrorList {
	if p.Spec.NamespaceSelector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(p.Spec.NamespaceSelector,
		metav1validation.LabelSelectorValidationOptions{}, field.NewPath("spec", "namespaceSelector"))
}

// mayAllowAutomatic rejects a policy with a rule AllowAutomatic if the user may not approve all plans of the policy,
// because the rule replaces an approval.
func mayAllowAutomatic(a authorizer.Authorizer, resource string,
	spec func(runtime.Object) v1alpha1.PlanPolicySpec) func(ctx context.Context, obj, old runtime.Object) error {
	return func(ctx context.Context, obj, _ runtime.Object) error {
		if !policy.AllowsAutomatic(spec(obj)) {
			return nil
		}
		who, ok := genericapirequest.UserFrom(ctx)
		if !ok {
			return apierrors.NewInternalError(errors.New("authorize policy: the request has no user"))
		}
		m := obj.(metav1.Object)
		if who.GetName() == user.APIServerUser {
			return nil
		}
		decision, _, err := a.Authorize(ctx, approveAttributes(who, m.GetNamespace(), ""))
		if decision == authorizer.DecisionAllow {
			return nil
		}
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("authorize policy %q: %w", m.GetName(), err))
		}
		where := fmt.Sprintf("namespace %q", m.GetNamespace())
		if m.GetNamespace() == "" {
			where = "all namespaces"
		}
		return apierrors.NewForbidden(v1alpha1.Resource(resource), m.GetName(),
			fmt.Errorf("user %q has no verb \"approve\" on plans in %s, which a rule with the effect %s needs",
				who.GetName(), where, v1alpha1.PolicyAllowAutomatic))
	}
}

// applyPolicies evaluates the policies for an approval. It returns an error if they do not permit it. more is true if
// the plan needs further approvals; then applyPolicies has added this one.
func applyPolicies(ctx context.Context, p *v1alpha1.Plan, approval v1alpha1.PlanApproval,
	judge JudgeFunc) (more bool, err error) {
	given, requester := p.Status.Approvals, p.Status.RequestedBy
	all := append(given[:len(given):len(given)], approval)
	out, err := changes.NotApprovedIndexes(all)
	if byServer(ctx) {
		all = nil // a plan with automatic approval has no approvals by users
	}
	var verdict *policy.Verdict
	if err == nil {
		verdict, err = judge(ctx, p, changes.Judged{Approvals: all, Out: out})
	}
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("evaluate policies for plan %q: %w", p.Name, err))
	}
	p.Status.Policies = verdict.Results
	if why := verdict.Denied(); why != "" {
		return false, refusedByPolicy(p, "a policy refuses the plan. "+why)
	}
	if byServer(ctx) {
		if why := verdict.Manual(requester, p.Status.AutomaticApproval.ByPolicy); why != "" {
			return false, refusedByPolicy(p, "it may not be applied automatically: "+why)
		}
		return false, nil
	}
	missing := verdict.Missing(requester, all)
	counts, required := verdict.Counts(requester, given, approval)
	switch {
	case missing != "" && !counts:
		why := fmt.Sprintf("the approval of user %q does not count. %s", nameOf(approval.By), missing)
		if name := approvedBefore(given, approval.By); name != "" {
			why = fmt.Sprintf("user %q has approved the plan already. %s", name, missing)
		}
		return false, refusedByPolicy(p, why)
	case len(given) > 0 && given[0].Partial != approval.Partial:
		return false, apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
			fmt.Errorf("the other approvals have status.approval.partial %t; use the same value", given[0].Partial))
	}
	if required {
		p.Status.Approvals = all
	}
	if missing != "" {
		awaitMore(p, missing)
	}
	return missing != "", nil
}

// approvedBefore returns the name of a user behind an approval who gave an earlier one, also through a workflow; "" if
// there is none.
func approvedBefore(given []v1alpha1.PlanApproval, who *v1alpha1.Identity) string {
	if who == nil {
		return ""
	}
	for _, a := range given {
		for _, name := range who.Usernames() {
			if a.By != nil && slices.Contains(a.By.Usernames(), name) {
				return name
			}
		}
	}
	return ""
}

func refusedByPolicy(p *v1alpha1.Plan, why string) error {
	err := apierrors.NewForbidden(v1alpha1.Resource("plans"), p.Name, errors.New(why))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: v1alpha1.CausePolicy, Message: why})
	return err
}
