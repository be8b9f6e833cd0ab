package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// begun are the conditions of an object at its creation: kstatus takes an object without any for ready.
func begun(reason, message string) []metav1.Condition {
	now := metav1.Now()
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: now,
		}
	}
	return []metav1.Condition{
		condition(v1alpha1.ConditionReady, metav1.ConditionFalse),
		condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue),
	}
}
