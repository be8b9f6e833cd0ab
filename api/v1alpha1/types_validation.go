package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Validation checks objects as they are written, and answers in its own status; it is never stored. It reads no object and no
// state: a reference to an object that is not among those of the validation is no error.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Validation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace is that of objects which name none.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Objects to check.
	// +optional
	Spec ValidationSpec `json:"spec,omitempty"`
	// Problems that were found.
	// +optional
	Status ValidationStatus `json:"status,omitempty"`
}

// ValidationSpec is what to check.
type ValidationSpec struct {
	// Objects of the kinds of hykube.io and of the providers. Of ConfigMaps and Secrets the keys are used, for what refers to them.
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// ValidationStatus is what is wrong.
type ValidationStatus struct {
	// Errors and warnings, in the order of the objects.
	// +optional
	// +listType=atomic
	Problems []ValidationProblem `json:"problems,omitempty"`
}

// ValidationProblem is an error or a warning about an object.
type ValidationProblem struct {
	// Number of the object in spec.objects, from 0.
	Index int32 `json:"index"`
	// Error or Warning.
	Severity Severity `json:"severity"`
	// Field, such as "spec.name"; of an expression also its place in the value, such as "spec.name, column 3".
	// +optional
	Field string `json:"field,omitempty"`
	// Problem and remedy.
	Message string `json:"message"`
}
