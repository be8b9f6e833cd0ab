// Package notification finds the transitions that a Notification reports, and encodes their messages in the format of
// the receiver. It is pure: it knows no clock, no network and no Secret. It imports the API types only.
package notification

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Reasons lists all reasons of messages.
var Reasons = []v1alpha1.NotificationReason{v1alpha1.NotifyAwaitingApproval, v1alpha1.NotifyFailed,
	v1alpha1.NotifyDrifted, v1alpha1.NotifyStale}

// Kinds of the objects of messages.
const (
	KindPlan  = "Plan"
	KindStack = "Stack"
)

// Transition is a change of an object's state that Notifications report. It has names and no values, so that Temporal
// may store it.
type Transition struct {
	// ID identifies the transition. It is the same each time that the transition is computed.
	ID     string                      `json:"id"`
	Reason v1alpha1.NotificationReason `json:"reason"`
	Kind   string                      `json:"kind"`
	Name   string                      `json:"name"`
	UID    types.UID                   `json:"uid"`
	At     time.Time                   `json:"at"`
}

// OfPlan returns the current transition of a plan. ok is false if there is none to report, and for a speculative plan,
// whose user waits for the result of a command.
func OfPlan(p *v1alpha1.Plan) (t Transition, ok bool) {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || p.Spec.Speculative || p.DeletionTimestamp != nil {
		return t, false
	}
	t = Transition{Kind: KindPlan, Name: p.Name, UID: p.UID}
	var at *metav1.Time
	switch ready.Reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonBlocked:
		if p.Status.Cancel != nil || p.Status.Approval != nil {
			return t, false
		}
		t.Reason, at = v1alpha1.NotifyAwaitingApproval, p.Status.PlannedAt
	case v1alpha1.ReasonPlanFailed, v1alpha1.ReasonApplyFailed, v1alpha1.ReasonPolicyDenied:
		t.Reason, at = v1alpha1.NotifyFailed, stalledSince(p.Status.Conditions)
	case v1alpha1.ReasonStale:
		t.Reason, at = v1alpha1.NotifyStale, p.Status.StaleAt
		if at == nil {
			at = stalledSince(p.Status.Conditions)
		}
	default:
		return t, false
	}
	if at == nil {
		at = &p.CreationTimestamp
	}
	// A plan reports each reason only once, so the ID does not contain the time.
	t.At, t.ID = at.Time, string(p.UID)+"-"+string(t.Reason)
	return t, true
}

// OfStack returns the current transition of a stack. ok is false if there is none to report, or if the stack waits for
// its plan, which has a transition of its own.
func OfStack(s *v1alpha1.Stack) (t Transition, ok bool) {
	ready, at := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady),
		stalledSince(s.Status.Conditions)
	if ready == nil || at == nil || s.DeletionTimestamp != nil {
		return t, false
	}
	t = Transition{Kind: KindStack, Name: s.Name, UID: s.UID, At: at.Time}
	switch ready.Reason {
	case v1alpha1.ReasonDrifted:
		t.Reason = v1alpha1.NotifyDrifted
	case v1alpha1.ReasonOutputsFailed, v1alpha1.ReasonMissingRights, v1alpha1.ReasonSelectorOverlaps,
		v1alpha1.ReasonWorkflowFailed, v1alpha1.ReasonWorkflowIncomplete, v1alpha1.ReasonWorkflowRefused:
		t.Reason = v1alpha1.NotifyFailed
	default:
		return t, false
	}
	t.ID = string(s.UID) + "-" + ready.Reason + "-" + at.UTC().Format("20060102T150405Z")
	return t, true
}

// stalledSince returns the time at which an object stalled; nil if it is not stalled.
func stalledSince(conditions []metav1.Condition) *metav1.Time {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return &c.LastTransitionTime
}
