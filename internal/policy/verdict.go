package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Verdict holds the rules that hold for a plan.
type Verdict struct {
	// Results are the rules that hold, and those that cannot be evaluated.
	Results []v1alpha1.PlanPolicyResult
	// restricted is true if a plan needs a rule with the effect AllowAutomatic to be applied automatically.
	restricted bool
}

// First returns at most limit results, and the number of further ones. If it leaves some out, denials come first, then
// required approvals.
func (v *Verdict) First(limit int) (results []v1alpha1.PlanPolicyResult, further int) {
	if len(v.Results) <= limit {
		return v.Results, 0
	}
	for _, effect := range []v1alpha1.PlanPolicyEffect{v1alpha1.PolicyDeny, v1alpha1.PolicyRequireApprovals, v1alpha1.PolicyAllowAutomatic, v1alpha1.PolicyWarn} {
		results = append(results, v.withEffect(effect)...)
	}
	return results[:limit], len(results) - limit
}

// withEffect returns the results with the effect.
func (v *Verdict) withEffect(effect v1alpha1.PlanPolicyEffect) []v1alpha1.PlanPolicyResult {
	var out []v1alpha1.PlanPolicyResult
	for _, r := range v.Results {
		if r.Effect == effect {
			out = append(out, r)
		}
	}
	return out
}

// Denied returns the rules that deny the plan, with their messages; "" if there are none.
func (v *Verdict) Denied() string { return sentences(v.withEffect(v1alpha1.PolicyDeny)) }

func sentences(results []v1alpha1.PlanPolicyResult) string {
	var out []string
	for _, r := range results {
		out = append(out, r.Rule+": "+r.Message)
	}
	return strings.Join(out, "; ")
}

// Missing returns the approvals that the plan still needs; "" if it needs none.
func (v *Verdict) Missing(requester *v1alpha1.Identity, approvals []v1alpha1.PlanApproval) string {
	var out []string
	for _, r := range v.withEffect(v1alpha1.PolicyRequireApprovals) {
		if n := count(r.Approvals) - approvers(r.Approvals, requester, approvals); n > 0 {
			out = append(out, fmt.Sprintf("%s requires %s: %s", r.Rule, missingText(r.Approvals, n), r.Message))
		}
	}
	return strings.Join(out, "; ")
}

// Counts evaluates an approval in addition to others. counts is true if a rule that the others do not satisfy counts
// it. required is true if any rule requires approvals.
func (v *Verdict) Counts(requester *v1alpha1.Identity, approvals []v1alpha1.PlanApproval, next v1alpha1.PlanApproval) (counts, required bool) {
	for _, r := range v.withEffect(v1alpha1.PolicyRequireApprovals) {
		required = true
		before := approvers(r.Approvals, requester, approvals)
		if before < count(r.Approvals) && approvers(r.Approvals, requester, append(slices.Clone(approvals), next)) > before {
			counts = true
		}
	}
	return counts, required
}

// Manual returns the reason why a plan with spec.approval Automatic waits for an approval; "" if the server may apply
// it. byPolicy is true for a plan whose creator may not approve it.
func (v *Verdict) Manual(requester *v1alpha1.Identity, byPolicy bool) string {
	if text := v.Denied(); text != "" {
		return text
	}
	if text := v.Missing(requester, nil); text != "" {
		return text
	}
	switch {
	case len(v.withEffect(v1alpha1.PolicyAllowAutomatic)) > 0, !v.restricted && !byPolicy:
		return ""
	case byPolicy && requester != nil:
		return fmt.Sprintf("the user %q may not approve plans, and no rule of a policy allows this plan to be applied automatically", requester.Username)
	}
	return "no rule of a policy allows this plan to be applied automatically"
}

// approvers returns the number of different users whose approvals count for a rule.
func approvers(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity, approvals []v1alpha1.PlanApproval) int {
	seen := map[string]bool{}
	for _, approval := range approvals {
		by := approval.By
		switch {
		case by == nil || by.Username == "":
		case a.ExcludeRequester && (requester == nil || by.Username == requester.Username):
		case len(a.Groups) > 0 && !slices.ContainsFunc(a.Groups, func(g string) bool { return slices.Contains(by.Groups, g) }):
		default:
			seen[by.Username] = true
		}
	}
	return len(seen)
}

// missingText describes the missing approvals of a rule. more is their number.
func missingText(a *v1alpha1.RequiredApprovals, more int) string {
	text := "1 more approval"
	if more > 1 {
		text = fmt.Sprintf("%d more approvals", more)
	}
	if len(a.Groups) > 0 {
		text += " by members of " + strings.Join(a.Groups, " or ")
	}
	if a.ExcludeRequester {
		text += ", not by the requester"
	}
	return text
}
