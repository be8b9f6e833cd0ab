package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Query asks a provider what exists, and answers in its own status; it is never stored. It finds what could be imported:
// all resources of a type that the provider can list, or one that is named by its ID or identity.
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

// QuerySpec is what to look for.
type QuerySpec struct {
	// Terraform resource type, such as "sim_instance".
	Type string `json:"type"`
	// Name of the Provider object, when more than one has the type.
	// +optional
	Provider string `json:"provider,omitempty"`
	// Name of the ProviderConfig to use. When it is left out it is found as for a resource of the type.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// Arguments of the list resource, such as a region or a filter; validated against its schema.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Largest number of resources to return; 100 when it is left out, 10000 at most.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// Look for the one resource that would be imported with this ID or identity, and list nothing.
	// +optional
	Import *PlanImport `json:"import,omitempty"`
	// Read each resource, too, and make a manifest that imports it.
	// +optional
	Manifests bool `json:"manifests,omitempty"`
}

// QueryStatus is what was found.
type QueryStatus struct {
	// Resources that were found, in the provider's order.
	// +optional
	// +listType=atomic
	Results []QueryResult `json:"results,omitempty"`
	// There is more than the limit let through.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// Errors and warnings of the provider.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// QueryResult is a resource that exists.
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
	// Name of the object that has it already, as a Terraform address; empty when none does.
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
	// Values of the resource, secrets masked; set when the query asks for manifests.
	// +optional
	Attributes *runtime.RawExtension `json:"attributes,omitempty"`
	// An object that imports the resource and asks for what is there; secrets are left out.
	// +optional
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`
	// Errors and warnings about it.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}
