package v1alpha1

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceSet is a set of resources that are made from one template: the counterpart of Terraform's count and for_each.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The instances have its labels, too.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The template and its repetition.
	// +optional
	Spec ResourceSetSpec `json:"spec,omitempty"`
	// Number and state of the instances.
	// +optional
	Status ResourceSetStatus `json:"status,omitempty"`
}

// ResourceSetSpec is a template and its repetition. Exactly one of count, forEach and forEachFrom is set.
type ResourceSetSpec struct {
	// Number of instances. Their addresses have an index, as in sim_instance.web[0], and count.index is the index.
	// +optional
	Count *int32 `json:"count,omitempty"`
	// One instance for each key of a map, or for each string of a list. The addresses have the key, as in
	// sim_instance.web["a"]. each.key is the key, and each.value is the value of the map, or the string.
	// +optional
	ForEach *JSON `json:"forEach,omitempty"`
	// The keys and values come from another object, as with forEach.
	// +optional
	ForEachFrom *ForEachSource `json:"forEachFrom,omitempty"`
	// Template of each instance.
	Template ResourceTemplate `json:"template"`
	// Existing infrastructure to import as instances, as with lifecycle.import of a single object.
	// +optional
	// +listType=map
	// +listMapKey=key
	Imports []InstanceImport `json:"imports,omitempty"`
	// Records that move from other objects to instances, as with lifecycle.moved of a single object.
	// +optional
	// +listType=map
	// +listMapKey=key
	Moved []InstanceMove `json:"moved,omitempty"`
	// How a plan updates and replaces the instances. Without it, only the limits of the provider apply.
	// +optional
	Rollout *ResourceSetRollout `json:"rollout,omitempty"`
}

// ForEachSource is another object with the keys and values of a ResourceSet.
type ForEachSource struct {
	// A ConfigMap in the same namespace.
	ConfigMap ForEachConfigMap `json:"configMap"`
}

// ForEachConfigMap is a ConfigMap with the keys and values of a ResourceSet.
type ForEachConfigMap struct {
	// Name of the ConfigMap.
	Name string `json:"name"`
	// Key of the ConfigMap. Its text is a map or a list of strings, as JSON or YAML. If it is empty, each key of the
	// ConfigMap is a key of the set.
	// +optional
	Key string `json:"key,omitempty"`
}

// ResourceTemplate is the template of a ResourceSet: an object of a provider's kind.
type ResourceTemplate struct {
	// Group and version, such as "sim.hykube.io/v1".
	APIVersion string `json:"apiVersion"`
	// Kind of a managed resource, such as "sim-instance".
	Kind string `json:"kind"`
	// Name and labels.
	// +optional
	Metadata ResourceTemplateMetadata `json:"metadata,omitempty"`
	// The provider's arguments, as in an object of the kind.
	// +optional
	Spec *runtime.RawExtension `json:"spec,omitempty"`
	// Terraform's meta-arguments, as in an object of the kind. import and moved are in the spec of the set.
	// +optional
	Lifecycle *runtime.RawExtension `json:"lifecycle,omitempty"`
}

// ResourceTemplateMetadata is the metadata of a template.
type ResourceTemplateMetadata struct {
	// Name in the addresses of the instances: "web" for sim_instance.web[0]. Defaults to the name of the set.
	// +optional
	Name string `json:"name,omitempty"`
	// Labels of the instances, in addition to those of the set.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// InstanceImport is existing infrastructure to import as an instance.
type InstanceImport struct {
	// Index or key of the instance, without brackets and quotes.
	Key string `json:"key"`
	// ID of the resource, in the provider's own format. Either this or the identity is set.
	// +optional
	ID string `json:"id,omitempty"`
	// Identity of the resource.
	// +optional
	Identity *runtime.RawExtension `json:"identity,omitempty"`
}

// InstanceMove moves the record of another object to an instance.
type InstanceMove struct {
	// Index or key of the instance, without brackets and quotes.
	Key string `json:"key"`
	// Address that the infrastructure is recorded under, such as "sim_instance.web". Its object must be marked for
	// deletion.
	From string `json:"from"`
}

// ResourceSetStatus is the state of the instances of a ResourceSet.
type ResourceSetStatus struct {
	InstancesStatus `json:",inline"`
}

// InstancesStatus is the state of the instances of a ResourceSet or a Module.
type InstancesStatus struct {
	// Users who wrote the object since all its instances were applied. Set by the server.
	// +optional
	// +listType=atomic
	Contributors []Contributor `json:"contributors,omitempty"`
	// Last generation of the object for which the numbers below are true.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Number of instances in the spec.
	// +optional
	Instances int32 `json:"instances,omitempty"`
	// Number of these that are applied and ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// Number of these with a failure, such as a change that the provider refused, or drift.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// Number of these that wait for a plan, or are being changed.
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// Number of instances that are no longer in the spec, and that the next plan destroys.
	// +optional
	Leaving int32 `json:"leaving,omitempty"`
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceSetList is a list of ResourceSets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSet `json:"items"`
}

// ResourceSetInstanceList is a page of the instances of a ResourceSet or a Module, from its subresource "instances".
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceSetInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The instances as objects of their kind.
	// +listType=atomic
	Items []runtime.RawExtension `json:"items"`
}

// FieldInstance is the field of an instance of a ResourceSet that names its set and has its key. Objects that users
// write cannot have it.
const FieldInstance = "instance"

// FieldKeysUnknown is the field within FieldInstance that is true if the keys of the set are not known.
const FieldKeysUnknown = "keysUnknown"

// JSON is any JSON value.
type JSON struct {
	Raw []byte `json:"-"`
}

// OpenAPISchemaType allows all types.
func (JSON) OpenAPISchemaType() []string { return nil }

// OpenAPISchemaFormat returns no format.
func (JSON) OpenAPISchemaFormat() string { return "" }

// MarshalJSON returns the value.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON stores the value.
func (j *JSON) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return errors.New("not JSON")
	}
	j.Raw = append(j.Raw[:0], data...)
	return nil
}
