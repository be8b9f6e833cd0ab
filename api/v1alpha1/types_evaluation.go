package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Evaluation evaluates one expression over the recorded values, and answers in its own status; it is never stored. It reads each
// object that the expression refers to with the rights of its author.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Evaluation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace is that of references which name none.
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
	// The value in HCL syntax. "(sensitive value)" is in the place of what is sensitive, and "(known after apply)" in that of what no
	// plan has applied yet. It is empty when there are errors.
	// +optional
	Value string `json:"value,omitempty"`
	// Type of the value, such as "list(string)"; empty when it is not known, or when a part of the value is sensitive.
	// +optional
	Type string `json:"type,omitempty"`
	// A part of the value, or all of it, is sensitive and left out.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
	// Errors and warnings. The attribute is the place in the expression, such as "column 3".
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}
