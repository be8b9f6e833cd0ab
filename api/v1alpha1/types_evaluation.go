package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Evaluation evaluates one expression over the recorded values. The response has the result in its status; the server
// never stores an Evaluation. It reads each object that the expression refers to with the rights of its author.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Evaluation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace applies to references without one.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Expression to evaluate.
	// +optional
	Spec EvaluationSpec `json:"spec,omitempty"`
	// The result.
	// +optional
	Status EvaluationStatus `json:"status,omitempty"`
}

// EvaluationSpec is the expression to evaluate.
type EvaluationSpec struct {
	// Expression, with or without "${" and "}" around it, such as "cidrsubnet(sim_network.main.cidr, 8, 2)".
	Expression string `json:"expression"`
}

// EvaluationStatus is the result of an evaluation.
type EvaluationStatus struct {
	// The value in HCL syntax. Sensitive values are replaced by "(sensitive value)", and values before the first apply
	// by "(known after apply)". Empty if there are errors.
	// +optional
	Value string `json:"value,omitempty"`
	// Type of the value, such as "list(string)". Empty if it is unknown, or if a part of the value is sensitive.
	// +optional
	Type string `json:"type,omitempty"`
	// True if the value contains sensitive parts, which are masked.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
	// Errors and warnings. The attribute is the position in the expression, such as "column 3".
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}
