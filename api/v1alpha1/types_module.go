package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Module is a Terraform module that the server plans and applies as it is. Its resources have Terraform's addresses,
// after that of the Module: module.shop.sim_network.main. They are no stored objects.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Module struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is an identifier of Terraform's language. The resources have the labels,
	// too.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The files of the module, and what they get.
	// +optional
	Spec ModuleSpec `json:"spec,omitempty"`
	// State of the resources.
	// +optional
	Status ModuleStatus `json:"status,omitempty"`
}

// ModuleSpec names the files of a root module, and gives it its inputs and providers.
type ModuleSpec struct {
	// The files of the module.
	Source ModuleSource `json:"source"`
	// Values of the module's input variables, by name. A text may have expressions of Hykube, as in
	// "${sim_network.main.cidr}" or "${secret.db.password}".
	// +optional
	Inputs map[string]JSON `json:"inputs,omitempty"`
	// Names of the ProviderConfigs for the provider configurations of the root module, by their addresses in the
	// module: aws, or aws.west for the alias west. A resource whose configuration has no entry has the default
	// ProviderConfig.
	// +optional
	Providers map[string]string `json:"providers,omitempty"`
	// Whether plans may change the resources: Manage (the default) or Observe. With Observe, plans and drift checks
	// show what differs, and no plan that changes a resource of the Module can be approved. If the Module is deleted,
	// plans forget the resources, and destroy nothing.
	// +optional
	Mode ModuleMode `json:"mode,omitempty"`
}

// ModuleMode says whether plans may change the resources of a Module.
type ModuleMode string

// Modes of a Module.
const (
	// ModuleManage lets plans change the resources. This is the default.
	ModuleManage ModuleMode = "Manage"
	// ModuleObserve lets plans only read the resources, and forget them if the Module is deleted.
	ModuleObserve ModuleMode = "Observe"
)

// ModuleSource names the files of a module.
type ModuleSource struct {
	// Name of a ConfigMap in the same namespace. Without items, each key is the name of a file in the directory of the
	// root module, such as main.tf.
	ConfigMap string `json:"configMap"`
	// Files of the module by the keys of the ConfigMap, for files in other directories.
	// +optional
	// +listType=map
	// +listMapKey=key
	Items []ModuleItem `json:"items,omitempty"`
}

// ModuleItem is a file of a module.
type ModuleItem struct {
	// Key of the ConfigMap.
	Key string `json:"key"`
	// Path of the file relative to the root module's directory, with slashes, such as modules/net/main.tf.
	Path string `json:"path"`
}

// ModuleStatus is the state of the resources of a Module.
type ModuleStatus struct {
	InstancesStatus `json:",inline"`
	// Digest of the files that the numbers are about: sha256- and 64 hexadecimal digits.
	// +optional
	Digest string `json:"digest,omitempty"`
	// The user who last wrote the spec. The outputs are evaluated with the rights of that user.
	// +optional
	Author *Identity `json:"author,omitempty"`
	// Users who last wrote the parts of the spec that outputs depend on, each with these parts, such as
	// inputs["region"]. A user without parts wrote all parts that no other has. Unlike contributors, they stay after an
	// apply. Set by the server.
	// +optional
	// +listType=atomic
	Writers []Contributor `json:"writers,omitempty"`
	// Outputs of the root module whose recorded values are known, by name.
	// +optional
	Outputs map[string]ModuleOutput `json:"outputs,omitempty"`
}

// ModuleOutput is an output of a root module.
type ModuleOutput struct {
	// The value; absent if it is sensitive.
	// +optional
	Value *JSON `json:"value,omitempty"`
	// True if the value is sensitive: only expressions, such as "${module.shop.password}", have it.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// ModuleList is a list of Modules.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ModuleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Module `json:"items"`
}
