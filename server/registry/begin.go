package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/condition"
)

// begun are the conditions of an object at its creation: kstatus takes an object without any for ready.
func begun(reason, message string) (conditions []metav1.Condition) {
	condition.Reconciling(&conditions, 1, reason, message)
	return conditions
}
