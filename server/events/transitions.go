package events

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Of returns the Events for the transitions of a Plan, a Stack, a Provider or a Notification between two versions of
// its conditions. The begin of work has no Event, because its end has one.
func Of(before, now []metav1.Condition) (out []Event) {
	for _, kind := range []string{v1alpha1.ConditionApproved, v1alpha1.ConditionVerified} {
		if c := changed(before, now, kind); c != nil && c.Status == metav1.ConditionTrue {
			out = append(out, Event{Reason: c.Reason, Message: c.Message})
		}
	}
	ready := changed(before, now, v1alpha1.ConditionReady)
	if ready == nil {
		return out
	}
	e := Event{Reason: ready.Reason, Message: ready.Message,
		Warning: meta.IsStatusConditionTrue(now, v1alpha1.ConditionStalled)}
	switch ready.Reason {
	case v1alpha1.ReasonDiscarded, v1alpha1.ReasonSuperseded, v1alpha1.ReasonCancelled: // users did that
		e.Warning = false
	case v1alpha1.ReasonRetrying, v1alpha1.ReasonStale, v1alpha1.ReasonAwaitingWorker: // a user must act
		e.Warning = true
	default:
		if meta.IsStatusConditionTrue(now, v1alpha1.ConditionReconciling) {
			return out
		}
	}
	return append(out, e)
}

// OfResource returns the Event for a failure of a resource, drift or an unknown outcome, and for the end of one of
// these. ok is false for other transitions: changes that succeed, and changes that were skipped because of others, have
// no Event.
func OfResource(before, now []metav1.Condition) (e Event, ok bool) {
	ready := changed(before, now, v1alpha1.ConditionReady)
	stalled := meta.IsStatusConditionTrue(before, v1alpha1.ConditionStalled)
	switch {
	case ready == nil, ready.Reason == v1alpha1.ReasonSkipped, ready.Reason == v1alpha1.ReasonCancelled:
		return Event{}, false
	case meta.IsStatusConditionTrue(now, v1alpha1.ConditionStalled):
		return Event{Warning: true, Reason: ready.Reason, Message: ready.Message}, true
	case ready.Status == metav1.ConditionTrue && stalled:
		return Event{Reason: ready.Reason, Message: ready.Message}, true
	}
	return Event{}, false
}

// changed returns a condition if it has another status or reason than before; else nil.
func changed(before, now []metav1.Condition, kind string) *metav1.Condition {
	c, old := meta.FindStatusCondition(now, kind), meta.FindStatusCondition(before, kind)
	if c == nil || old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return nil
	}
	return c
}
