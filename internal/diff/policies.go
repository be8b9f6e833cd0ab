package diff

import (
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// maxPolicies is the maximum number of rules on the first screen.
const maxPolicies = 6

// Policies returns lines about the rules that deny a plan, that require approvals, and that warn, in this order, and
// then about those that are undecided. It returns at most limit rules; 0 means no limit.
func Policies(plan *v1alpha1.Plan, style Style, limit int) []string {
	var out []string
	for _, e := range []v1alpha1.PlanPolicyEffect{v1alpha1.PolicyDeny, v1alpha1.PolicyRequireApprovals,
		v1alpha1.PolicyWarn} {
		for _, r := range plan.Status.Policies {
			if r.Effect == e && r.Undecided == nil {
				out = append(out, fmt.Sprintf("  %s %s: %s", effect(r, style), Clean(r.Rule, false),
					Clean(r.Message, false)))
			}
		}
	}
	for _, r := range plan.Status.Policies {
		if r.Undecided != nil {
			out = append(out, fmt.Sprintf(
				"  %s %s (%s): %s. Values of %s decide that, which are not known before the apply.",
				style.Bold("Undecided:"),
				Clean(r.Rule, false), r.Effect, strings.TrimSuffix(Clean(r.Message, false), "."),
				Clean(r.Undecided.List(), false)))
		}
	}
	if more := len(out) - limit; limit > 0 && more > 0 {
		out = append(out[:limit], style.Dim(fmt.Sprintf("  … and %s in status.policies", Plural(more, "more rule"))))
	}
	return out
}

// effect returns a text for the effect of a rule.
func effect(r v1alpha1.PlanPolicyResult, style Style) string {
	switch r.Effect {
	case v1alpha1.PolicyDeny:
		return style.Bold(style.Red("Refused by"))
	case v1alpha1.PolicyRequireApprovals:
		text := "1 approval"
		if n := r.Approvals.Count; n > 1 {
			text = fmt.Sprintf("%d approvals", n)
		}
		if len(r.Approvals.Groups) > 0 {
			text += " by members of " + Clean(strings.Join(r.Approvals.Groups, " or "), false)
		}
		return style.Bold(text + " required by")
	}
	return style.Bold("Warning of")
}
