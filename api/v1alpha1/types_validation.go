package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Validation checks objects without recording them. The response has the result in its status; the server never stores
// a Validation. It reads no other object and no state: a reference to an object outside of the validation is no error.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Validation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace applies to objects without one.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Objects to check.
	// +optional
	Spec ValidationSpec `json:"spec,omitempty"`
	// Problems that were found.
	// +optional
	Status ValidationStatus `json:"status,omitempty"`
}

// ValidationSpec defines the objects to check.
type ValidationSpec struct {
	// Objects of the kinds of hykube.io and of the providers. The keys of ConfigMaps and Secrets serve to check
	// references to them.
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// ValidationStatus is the result of a validation.
type ValidationStatus struct {
	// Errors and warnings, in the order of the objects.
	// +optional
	// +listType=atomic
	Problems []ValidationProblem `json:"problems,omitempty"`
}

// ValidationProblem is an error or a warning about an object.
type ValidationProblem struct {
	// Index of the object in spec.objects, from 0.
	Index int32 `json:"index"`
	// Error or Warning.
	Severity Severity `json:"severity"`
	// Field, such as "spec.name". For an expression, it includes the position in the value, such as "spec.name, column
	// 3".
	// +optional
	Field string `json:"field,omitempty"`
	// Problem and remedy.
	Message string `json:"message"`
}
