package condition

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Find returns a condition of an unstructured object; nil when it has none of that type.
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

// IsTrue says whether an unstructured object has a condition with the status True.
func IsTrue(u *unstructured.Unstructured, conditionType string) bool {
	return Find(u, conditionType)["status"] == string(metav1.ConditionTrue)
}

// holder has the conditions as a status has them.
type holder struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Edit changes the conditions of an unstructured object. Conditions that cannot be read are dropped. The status may be shared with
// another copy of the object, so that Edit replaces it and leaves the old one as it is.
func Edit(u *unstructured.Unstructured, change func(*[]metav1.Condition)) {
	old, _ := u.Object["status"].(map[string]any)
	var h holder
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(old, &h)
	change(&h.Conditions)
	status := maps.Clone(old)
	if status == nil {
		status = map[string]any{}
	}
	if next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h); err == nil { // strings, numbers and times always convert
		status["conditions"] = next["conditions"]
	}
	u.Object["status"] = status
}
