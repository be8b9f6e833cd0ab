package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Provider asks the server to install a Terraform provider plugin and to serve a kind for each of its
// resource types, in the group "<name>.hykube.io".
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Provider struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name becomes the first label of the API group of the provider's kinds.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Provider package to install.
	Spec ProviderSpec `json:"spec"`
	// Installed package and its conditions.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// ProviderSpec is what to install.
type ProviderSpec struct {
	// Address of the provider: "[HOST/]NAMESPACE/TYPE", as in Terraform's required_providers. HOST is
	// registry.terraform.io when it is left out.
	Source string `json:"source"`
	// Version constraint in Terraform's syntax, such as "~> 6.0" or ">= 1.2, < 2.0". The newest version
	// that meets it and that this platform can run is taken; empty means any release.
	// +optional
	Version string `json:"version,omitempty"`
}

// ProviderStatus is what is installed.
type ProviderStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Version that was installed, such as "0.14.2".
	// +optional
	Version string `json:"version,omitempty"`
	// Checksum of the installed plugin's files, in the "h1:" form of Terraform's dependency lock file.
	// A plugin that no longer has it is refused.
	// +optional
	Checksum string `json:"checksum,omitempty"`
	// Protocol that the plugin speaks, such as "5" or "6".
	// +optional
	Protocol string `json:"protocol,omitempty"`
	// Number of kinds that the provider serves.
	// +optional
	Kinds int32 `json:"kinds,omitempty"`
	// Installed, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderList is a list of Providers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}

// ProviderConfig is one configuration of a provider: region, endpoints, credentials. Resources in its
// namespace use the one named "default" unless their lifecycle.providerConfig names another.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Configuration of the provider.
	Spec ProviderConfigSpec `json:"spec"`
	// Whether the provider accepts it.
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigSpec is the configuration of a provider.
type ProviderConfigSpec struct {
	// Name of the Provider object that this configures. It cannot be changed.
	Provider string `json:"provider"`
	// Arguments of the provider, under its own names, checked against its schema. Strings are templates, as in the spec of a
	// resource: they may refer to resources, data sources, ConfigMaps, Secrets and ephemeral resources. Plans create those
	// before the resources that use this configuration. Each provider has its own arguments:
	// "kubectl hykube provider schema PROVIDER --config" lists them.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Arguments with values from Secrets in the same namespace. The server reads the Secrets each time it configures the provider
	// and never stores the values in a plan.
	// +optional
	// +listType=map
	// +listMapKey=argument
	SecretRefs []SecretArgument `json:"secretRefs,omitempty"`
	// Content of Terraform's provider_meta block: arguments that the provider gets with every call about a resource. Few
	// providers accept any.
	// +optional
	Meta *runtime.RawExtension `json:"meta,omitempty"`
	// Limits on concurrent calls and on calls per second.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// SecretArgument sets one argument of the provider from a key of a Secret.
type SecretArgument struct {
	// Argument of the provider's configuration; a nested one is spelled with dots, such as "auth.password".
	Argument string `json:"argument"`
	// Name of the Secret.
	Name string `json:"name"`
	// Key in the Secret's data.
	Key string `json:"key"`
}

// Limits bound the load that one configuration puts on the provider's API.
type Limits struct {
	// Calls that may be under way at once; 0 means 16, and the most is 1024.
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// Calls per second, averaged over a second; 0 means no limit.
	// +optional
	RatePerSecond int32 `json:"ratePerSecond,omitempty"`
}

// ProviderConfigStatus says whether the provider accepts the configuration.
type ProviderConfigStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}
