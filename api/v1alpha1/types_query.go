package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Query lists existing resources that could be imported: all resources of a type that the provider can list, or the one
// with an ID or identity. The response has the result in its status; the server never stores a Query.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Query struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace is that of the ProviderConfig.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Type and arguments of the query.
	// +optional
	Spec QuerySpec `json:"spec,omitempty"`
	// Results of the query.
	// +optional
	Status QueryStatus `json:"status,omitempty"`
}

// QuerySpec defines which resources to find.
type QuerySpec struct {
	// Terraform resource type, such as "sim_instance".
	Type string `json:"type"`
	// Name of the Provider object. Required if more than one provider has the type.
	// +optional
	Provider string `json:"provider,omitempty"`
	// Name of the ProviderConfig. The default is that of a resource of the type.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// Arguments of the list resource, such as a region or a filter; validated against its schema.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Maximum number of resources to return. The default is 100; the maximum is 10000.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// Find only the resource with this ID or identity, and list no others.
	// +optional
	Import *PlanImport `json:"import,omitempty"`
	// Also read each resource, and return a manifest that imports it.
	// +optional
	Manifests bool `json:"manifests,omitempty"`
	// Names of objects of the type in the namespace, also of instances. Also read each resource, and name in its
	// matches those of the objects that it may belong to. Their specs are evaluated with the rights of the author. At
	// most 10000.
	// +optional
	// +listType=atomic
	Objects []string `json:"objects,omitempty"`
}

// QueryStatus is the result of a query.
type QueryStatus struct {
	// Found resources, in the provider's order.
	// +optional
	// +listType=atomic
	Results []QueryResult `json:"results,omitempty"`
	// True if there are more resources than the limit.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// Errors and warnings of the provider.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// QueryResult is an existing resource.
type QueryResult struct {
	// Display name that the provider returned.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Identity for an import.
	// +optional
	Identity *runtime.RawExtension `json:"identity,omitempty"`
	// ID for an import, if the type has no identity.
	// +optional
	ID string `json:"id,omitempty"`
	// Terraform address of the object that already manages the resource. Empty if there is none.
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
	// Values of the resource, with secrets masked. Set if the query requests manifests, or names objects.
	// +optional
	Attributes *runtime.RawExtension `json:"attributes,omitempty"`
	// Object that imports the resource with its current values. Secrets are omitted.
	// +optional
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`
	// Those objects of the query whose specs the resource agrees with. Values that are not known or secret are not
	// compared. Empty if an object manages the resource.
	// +optional
	// +listType=atomic
	Matches []string `json:"matches,omitempty"`
	// Errors and warnings about the resource.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}
