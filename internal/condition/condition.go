// Package condition sets the conditions of an object by the rules of kstatus, so that kubectl wait, Argo CD and Flux
// understand them: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md. It imports
// api/v1alpha1 and knows no kind.
package condition

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// maxMessage is the maximum length of a message in metav1.Condition.
const maxMessage = 32768

// Set sets one condition.
func Set(conditions *[]metav1.Condition, generation int64, conditionType string, ok bool, reason, message string) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	set(conditions, generation, conditionType, status, reason, message)
}

// Unknown sets one condition whose status is not known.
func Unknown(conditions *[]metav1.Condition, generation int64, conditionType, reason, message string) {
	set(conditions, generation, conditionType, metav1.ConditionUnknown, reason, message)
}

func set(conditions *[]metav1.Condition, generation int64, conditionType string, status metav1.ConditionStatus, reason,
	message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..." // the cut may split a character
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// Ready sets the conditions of an object whose desired state is reached.
func Ready(conditions *[]metav1.Condition, generation int64, reason, message string) {
	idle(conditions, generation, true, reason, message)
}

// Reconciling sets the conditions of an object on which work is in progress.
func Reconciling(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, false, reason, message)
	Set(conditions, generation, v1alpha1.ConditionReconciling, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Waiting sets the conditions of an object that waits for a user's decision, without an error.
func Waiting(conditions *[]metav1.Condition, generation int64, reason, message string) {
	idle(conditions, generation, false, reason, message)
}

// idle sets the conditions of an object without work in progress and without an error.
func idle(conditions *[]metav1.Condition, generation int64, ready bool, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, ready, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Stalled sets the conditions of an object that makes no progress until a user acts. The message says what to do.
func Stalled(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, false, reason, message)
	Set(conditions, generation, v1alpha1.ConditionStalled, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
}

// Find returns a condition of an unstructured object, or nil if it has none of that type.
func Find(u *unstructured.Unstructured, conditionType string) map[string]any {
	status, _ := u.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// IsTrue reports whether an unstructured object has the condition with status True.
func IsTrue(u *unstructured.Unstructured, conditionType string) bool {
	return Find(u, conditionType)["status"] == string(metav1.ConditionTrue)
}

// holder decodes and encodes the conditions of a status.
type holder struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Of returns the conditions of the status of an unstructured object. It drops conditions that it cannot decode.
func Of(status map[string]any) []metav1.Condition {
	var h holder
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &h)
	return h.Conditions
}

// Edit changes the conditions of an unstructured object. It drops conditions that it cannot decode. It replaces the
// status map, because other copies of the object may share it.
func Edit(u *unstructured.Unstructured, change func(*[]metav1.Condition)) {
	old, _ := u.Object["status"].(map[string]any)
	h := holder{Of(old)}
	change(&h.Conditions)
	status := maps.Clone(old)
	if status == nil {
		status = map[string]any{}
	}
	// strings, numbers and times always convert
	if next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h); err == nil {
		status["conditions"] = next["conditions"]
	}
	u.Object["status"] = status
}
