package objects

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// ReasonMeanings returns the reasons of the condition Ready of objects, with their explanations.
func ReasonMeanings() map[string]string {
	return map[string]string{
		v1alpha1.ReasonAwaitingPlan:      "written, and not applied yet: kubectl hykube plan",
		v1alpha1.ReasonDeleting:          "deleted, and not destroyed yet: kubectl hykube plan",
		v1alpha1.ReasonForgetting:        "deleted, and not forgotten yet: kubectl hykube plan",
		v1alpha1.ReasonMoving:            "deleted, and not moved to another object yet: kubectl hykube plan",
		v1alpha1.ReasonDestroyed:         "destroyed by a plan; the objects stay",
		v1alpha1.ReasonForgotten:         "no longer managed; the objects stay",
		v1alpha1.ReasonApplied:           "no change is needed, as far as is known",
		v1alpha1.ReasonDrifted:           "changed outside of Hykube",
		v1alpha1.ReasonGone:              "removed outside of Hykube",
		v1alpha1.ReasonApplying:          "being applied",
		v1alpha1.ReasonApplyFailed:       "failed",
		v1alpha1.ReasonStale:             "not applied: they changed after the plan was made",
		v1alpha1.ReasonBlocked:           "left unchanged, because a preventDestroy forbids the change: the message names it",
		v1alpha1.ReasonSkipped:           "not tried, because of another that failed",
		v1alpha1.ReasonCancelled:         "not tried, because the plan was cancelled",
		v1alpha1.ReasonTainted:           "marked to be replaced by the next plan",
		v1alpha1.ReasonReplaceIncomplete: "replaced in part: the message says which instance exists",
		v1alpha1.ReasonUndeleted:         "no longer deleted, and not planned since: kubectl hykube plan",
		v1alpha1.ReasonKeysUnknown:       "kept: the instances of their ResourceSet or Module are not known; kubectl get resourcesets,modules has the reason",
		v1alpha1.ReasonDeclared:          "opened by the plans that need them",
		v1alpha1.ReasonRecordLost:        "applied, and without a record: check whether they exist, then kubectl hykube resolve",
		v1alpha1.ReasonCreateUnknown:     "may have been created: check whether they exist, then kubectl hykube resolve",
	}
}

// ReasonWords returns the explanation of a reason of the condition Ready.
func ReasonWords(reason string) string {
	if w := ReasonMeanings()[reason]; w != "" {
		return reason + " (" + w + ")"
	}
	return reason
}

// AwaitedEnd returns, for an object that is marked for deletion, the reason that names the change it waits for. It
// returns reason for other objects.
func AwaitedEnd(u *unstructured.Unstructured, reason string) string {
	switch {
	case u.GetDeletionTimestamp() == nil, reason == v1alpha1.ReasonMoving, reason == v1alpha1.ReasonKeysUnknown,
		reason == v1alpha1.ReasonForgetting, reason == v1alpha1.ReasonCreateUnknown:
		return reason
	}
	if destroy, set, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); set && !destroy {
		return v1alpha1.ReasonForgetting
	}
	return v1alpha1.ReasonDeleting
}

// Readiness returns the reason and the message of an object's condition Ready.
func Readiness(u *unstructured.Unstructured) (reason, message string, ok bool) {
	c := condition.Find(u, v1alpha1.ConditionReady)
	reason, _ = c["reason"].(string)
	message, _ = c["message"].(string)
	ok = c["status"] == string(metav1.ConditionTrue)
	if instance, _ := u.Object[v1alpha1.FieldInstance].(map[string]any); instance[v1alpha1.FieldKeysUnknown] == true {
		return v1alpha1.ReasonKeysUnknown,
			fmt.Sprintf("its %s %v does not know its keys, so no plan changes or destroys it",
				v1alpha1.OwnerKind(u.GetName()), instance["set"]), false
	}
	judged, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if c == nil || judged != u.GetGeneration() && v1alpha1.OutdatedByEdit(reason, ok) { // it is about an earlier spec
		return v1alpha1.ReasonAwaitingPlan, "", false
	}
	return reason, message, ok
}
