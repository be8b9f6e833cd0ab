package planapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/policy"
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

// ReadyMessage returns the message of the condition Ready: of a plan that waits, the approvals that it still needs, or
// why it is stale.
func ReadyMessage(p *v1alpha1.Plan) string {
	return diff.Clean(readyCondition(p).Message, true)
}

// Requester returns the name of the user who asked for a plan with the rights of a user. check is the user who
// requested the drift check that caused it; nil without one.
func Requester(rights, check *v1alpha1.Identity) string {
	if check != nil && (rights == nil || check.Username != rights.Username) {
		return check.Username + ", with the rights of " + Username(rights)
	}
	return Username(rights)
}

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1",
	Resource: "selfsubjectaccessreviews"}

// May reports whether the user has a right. If the server does not answer, it returns true, because the server will
// reject the request itself.
func May(ctx context.Context, s *session.Session, verb, resource, subresource, namespace string) bool {
	return Allowed(ctx, s, verb, v1alpha1.SchemeGroupVersion.WithResource(resource), subresource, namespace)
}

// Allowed is may for a resource of any group.
func Allowed(ctx context.Context, s *session.Session, verb string, gvr schema.GroupVersionResource, subresource,
	namespace string) bool {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"group": gvr.Group, "version": "*", "verb": verb, "resource": gvr.Resource, "subresource": subresource,
			"namespace": namespace,
		}},
	}}
	answer, err := s.Objects.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return true
	}
	allowed, found, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed || !found
}

// MayApprove reports whether the user may approve plans in a namespace.
func MayApprove(ctx context.Context, s *session.Session, namespace string) bool {
	return May(ctx, s, "approve", "plans", "", namespace) && May(ctx, s, "update", "plans", "approval", namespace)
}

// WaitsForApproval returns the text about a plan that waits: the commands for a user who may approve it, else the
// missing right.
func WaitsForApproval(ctx context.Context, s *session.Session, p *v1alpha1.Plan) string {
	if !MayApprove(ctx, s, p.Namespace) {
		return CannotApproveText(p)
	}
	if !ApprovalCounts(ctx, s, p) {
		return AnotherApproves(p)
	}
	return fmt.Sprintf("The plan waits in namespace %s for a decision:\n  %s\n  kubectl hykube discard %s -n %s",
		p.Namespace, ApproveCommand(p), p.Name, p.Namespace)
}

var selfReviews = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1",
	Resource: "selfsubjectreviews"}

// self returns the user's identity, or nil if the server does not tell it.
func self(ctx context.Context, s *session.Session) *v1alpha1.Identity {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1",
		"kind": "SelfSubjectReview"}}
	answer, err := s.Objects.Resource(selfReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil
	}
	name, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	groups, _, _ := unstructured.NestedStringSlice(answer.Object, "status", "userInfo", "groups")
	if name == "" {
		return nil
	}
	return &v1alpha1.Identity{Username: name, Groups: groups}
}

// ApprovalCounts reports whether the policies count the user's approval of a plan. They do not count a second approval
// of one user, and with excludeRequester not that of the requester.
func ApprovalCounts(ctx context.Context, s *session.Session, p *v1alpha1.Plan) bool {
	if !RequiresApprovals(p) {
		return true
	}
	who := self(ctx, s)
	if who == nil {
		return true // the server refuses the approval itself
	}
	counts, required := policy.VerdictOf(p).Counts(p.Status.RequestedBy, p.AllApprovals(),
		v1alpha1.PlanApproval{By: who})
	return counts || !required
}

// FrozenText returns the text about a namespace whose plans the server does not apply.
func FrozenText(namespace string) string {
	return fmt.Sprintf("The server applies no plan in namespace %s, because its database was restored from a backup. "+
		"An administrator lets it act with: kubectl hykube thaw %[1]s", namespace)
}

// WhyItWaits returns why a plan would wait after the user approved it; "" if the server would apply it.
func WhyItWaits(ctx context.Context, s *session.Session, p *v1alpha1.Plan) string {
	if !MayApprove(ctx, s, p.Namespace) {
		return mayNotApprove
	}
	if !RequiresApprovals(p) {
		return ""
	}
	who := self(ctx, s)
	if who == nil {
		return "" // the server refuses the approval itself
	}
	return diff.Clean(policy.VerdictOf(p).Missing(p.Status.RequestedBy, []v1alpha1.PlanApproval{{By: who}}), false)
}

// AnotherApproves returns the text about a plan for which the user's approval does not count.
func AnotherApproves(p *v1alpha1.Plan) string {
	who := ""
	if names := policy.VerdictOf(p).Excludes(p.Status.RequestedBy); len(names) > 0 {
		requested := "requested the plan"
		if name := p.StackName(); name != "" {
			requested += fmt.Sprintf(" as the author of the stack %s", name)
		}
		who = fmt.Sprintf(" A policy counts no approval of a user who %s, or wrote a part of the changes: %s.",
			requested, diff.Clean(strings.Join(names, ", "), false))
	}
	return fmt.Sprintf("Plan %s waits in namespace %s for the approval of another user, because yours does not count.%s That user approves it with: %s",
		p.Name, p.Namespace, who, ApproveCommand(p))
}

// ApproveCommand returns the command that approves a plan.
func ApproveCommand(p *v1alpha1.Plan) string {
	return v1alpha1.ApproveCommand(p.Name, p.Namespace, p.Status.Digest)
}

// mayNotApprove names the rights of an approver.
const mayNotApprove = `You may not: that needs the verb "approve" on plans, and "update" on plans/approval.`

// CannotApproveText returns the text about a plan that the user may not approve.
func CannotApproveText(p *v1alpha1.Plan) string {
	return fmt.Sprintf("Plan %s waits in namespace %s for someone who may approve it. %s", p.Name, p.Namespace,
		mayNotApprove)
}
