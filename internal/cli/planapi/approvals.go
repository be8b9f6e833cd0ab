package planapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// DecisionWord returns the participle of a decision.
func DecisionWord(d v1alpha1.Decision) string {
	if d == v1alpha1.DecisionDiscarded {
		return "discarded"
	}
	return "approved"
}

// Decisions returns the decisions about a plan, oldest first.
func Decisions(p *v1alpha1.Plan) []v1alpha1.PlanApproval {
	out, last := p.Status.Approvals, p.Status.Approval
	if n := len(out); last == nil || n > 0 && equality.Semantic.DeepEqual(out[n-1], *last) {
		return out
	}
	return append(slices.Clip(out), *last)
}

// ApprovedBy returns the users who approved a plan, and when.
func ApprovedBy(p *v1alpha1.Plan) string {
	var out []string
	for _, a := range Decisions(p) {
		out = append(out, By(&a))
	}
	return strings.Join(out, ",")
}

// ApprovedSoFar returns a line with the approvals that a plan has and still needs. It returns "" for a plan without an
// approval, and for one that needs no more.
func ApprovedSoFar(p *v1alpha1.Plan) string {
	if !Waiting(p) || len(p.Status.Approvals) == 0 {
		return ""
	}
	return ReadyMessage(p) + "\n"
}

// By returns who made a decision and when, with a leading space.
func By(a *v1alpha1.PlanApproval) string {
	out := ""
	switch {
	case a.Automatic != nil:
		out += fmt.Sprintf(" by the plan itself (%s), with the rights of %s", a.Automatic, Username(a.By))
	case a.By != nil:
		out += " by " + a.By.String()
	}
	if a.At != nil {
		out += " at " + a.At.UTC().Format(time.RFC3339)
	}
	return out
}

// Username returns the name of a user for a table; "-" if it is not known.
func Username(who *v1alpha1.Identity) string {
	if who == nil {
		return "an unknown user"
	}
	return who.String()
}

// ReadyMessage returns the message of the condition Ready: of a plan that waits, the approvals that it still needs, or why it is stale.
func ReadyMessage(p *v1alpha1.Plan) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return diff.Clean(c.Message, true)
	}
	return ""
}

// Requester returns the name of the user who asked for a plan with the rights of a user. check is the user who requested the drift
// check that caused it; nil without one.
func Requester(rights, check *v1alpha1.Identity) string {
	if check != nil && (rights == nil || check.Username != rights.Username) {
		return check.Username + ", with the rights of " + Username(rights)
	}
	return Username(rights)
}

// PlanAnew returns the next step after a plan that was not applied completely.
func PlanAnew(p *v1alpha1.Plan) string {
	return fmt.Sprintf("make a new plan for the rest: kubectl hykube plan -n %s", p.Namespace)
}
