package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The function Resource of this package prevents a Go type of that name.

// ResourceSummary is the kind Resource: one row of the table of all objects of providers' kinds, and of all instances
// of ResourceSets. It is read-only. The server derives it from the object when a client reads it, and stores nothing.
// Its metadata is that of the object, except that the name contains the kind, such as "sim-network.main".
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceSummary struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is KIND.NAME, such as "sim-network.main". If the provider's name is not the
	// prefix of the kind, the name is PROVIDER:KIND.NAME. Namespace, UID, labels, timestamps and resource version are
	// those of the object. The resource version of an instance of a ResourceSet is that of the list or the event.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The object.
	Object ObjectReference `json:"object"`
	// Provider of the kind.
	Provider string `json:"provider"`
	// ProviderConfig that the object names. Empty if it names none.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// State of the object.
	// +optional
	Status ResourceSummaryStatus `json:"status,omitempty"`
	// Attribute that contains the text of the field selector "attribute", such as "tags.team". Empty without that
	// selector.
	// +optional
	Found string `json:"found,omitempty"`
}

// ResourceSummaryStatus is the state of an object of a provider's kind.
type ResourceSummaryStatus struct {
	// Status of the condition Ready: True, False or Unknown.
	// +optional
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Reason of the condition Ready.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message of the condition Ready.
	// +optional
	Message string `json:"message,omitempty"`
	// ID of the resource at the provider. Masked if it is sensitive.
	// +optional
	ID string `json:"id,omitempty"`
	// Generation of the object that was applied last.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`
}

// Labels of the fields by which Resources can be selected, besides metadata.name and metadata.namespace.
const (
	ResourceFieldKind           = "kind"
	ResourceFieldProvider       = "provider"
	ResourceFieldProviderConfig = "providerConfig"
	ResourceFieldReady          = "ready"
	ResourceFieldReason         = "reason"
	ResourceFieldID             = "id"
	// ResourceFieldSearch selects, in a list, the Resources whose name contains a text in any case, or whose ID is the
	// text. ResourceFieldAttribute selects those with an attribute in the status that contains a text in any case. A
	// value that is masked contains nothing.
	ResourceFieldSearch    = "search"
	ResourceFieldAttribute = "attribute"
	// ResourceFieldRecord selects, in a list, what the stores disagree about: one of the values below.
	ResourceFieldRecord = "record"
)

// Values of the field selector "record".
const (
	// RecordLost selects the objects that a plan applied and of which the ledger has no record. Their reason is
	// RecordLost.
	RecordLost = "Lost"
	// RecordWithoutObject selects the records of infrastructure whose object does not exist. Their reason is
	// WithoutObject.
	RecordWithoutObject = "WithoutObject"
)

// ResourceSummaryList is the kind ResourceList: a list of Resources.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceSummaryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSummary `json:"items"`
}
