// Package condition sets the conditions of an object by the rules of kstatus, so that kubectl wait, Argo CD and Flux
// understand them: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md. It imports
// api/v1alpha1 and knows no kind.
package condition

import (
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is what metav1.Condition allows.
const maxMessage = 32768

// Set sets one condition.
func Set(conditions *[]metav1.Condition, generation int64, conditionType string, ok bool, reason, message string) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..." // the cut may go through a character
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// Ready says that what is asked for is what is there.
func Ready(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Reconciling says that work is under way.
func Reconciling(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, false, reason, message)
	Set(conditions, generation, v1alpha1.ConditionReconciling, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Waiting says that a person is to decide; nothing is wrong.
func Waiting(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, false, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Stalled says that nothing will happen until somebody acts; the message says what to do.
func Stalled(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, false, reason, message)
	Set(conditions, generation, v1alpha1.ConditionStalled, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
}
