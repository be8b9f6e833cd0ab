package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits on a push of a Terraform state.
const (
	// MaxStatePageBytes is the maximum size of the entries of one page as JSON, and so of one resource.
	MaxStatePageBytes = 1536 << 10
	// MaxStateEntries is the maximum number of resources in one push.
	MaxStateEntries = 100_000
	// MaxStateBytes is the maximum size of the records of one push.
	MaxStateBytes = 256 << 20
)

// StatePush takes a part of a Terraform state into the records of a namespace. A client sends the entries in pages, and
// then commits. The server checks each page and changes nothing before the commit, which records all entries or none.
// The response has the problems in its status; the server never stores a StatePush.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type StatePush struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace is that of the objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// A page of the state.
	// +optional
	Spec StatePushSpec `json:"spec,omitempty"`
	// Result of the page or of the commit.
	// +optional
	Status StatePushStatus `json:"status,omitempty"`
}

// StatePushSpec is one page of a push.
type StatePushSpec struct {
	// UUID that the client generates for all pages of one push. A namespace has one push at a time: the first page of a
	// new one discards the pages of the last.
	ID string `json:"id"`
	// Number of the page, from 0.
	// +optional
	Page int32 `json:"page,omitempty"`
	// Lineage and serial of the state.
	Lineage string `json:"lineage"`
	// +optional
	Serial int64 `json:"serial,omitempty"`
	// Version of Terraform that wrote the state.
	// +optional
	TerraformVersion string `json:"terraformVersion,omitempty"`
	// Name of the Module whose resources the entries are. Empty for objects and instances of ResourceSets.
	// +optional
	Module string `json:"module,omitempty"`
	// Replace the records of a state with the same lineage, and accept a serial that was pushed already.
	// +optional
	Force bool `json:"force,omitempty"`
	// Entries of the page, at most 1536 KiB. A commit has none.
	// +optional
	// +listType=atomic
	Entries []StateEntry `json:"entries,omitempty"`
	// Record all entries of the pages. The response may ask for another commit with remaining.
	// +optional
	Commit bool `json:"commit,omitempty"`
}

// StatePushStatus is the result of a page or a commit.
type StatePushStatus struct {
	// Reasons why the page cannot be recorded.
	// +optional
	// +listType=atomic
	Problems []StateProblem `json:"problems,omitempty"`
	// True once all entries are recorded.
	// +optional
	Committed bool `json:"committed,omitempty"`
	// Number of objects whose status the commit has not written yet: the client commits again until it is 0.
	// +optional
	Remaining int32 `json:"remaining,omitempty"`
}

// StateProblem is a reason why a resource of a state cannot be recorded.
type StateProblem struct {
	// Address in the state.
	Address string `json:"address"`
	// What is wrong.
	Problem string `json:"problem"`
	// What to do.
	// +optional
	Remedy string `json:"remedy,omitempty"`
}

// StateEntry is a managed resource of a Terraform state, and the object for it.
type StateEntry struct {
	// Address in the state, such as module.a.sim_network.main[0].
	Address string `json:"address"`
	// Terraform type of the resource, such as sim_network.
	Type string `json:"type"`
	// Name of the object, of an instance of a ResourceSet, or of a resource of a Module, such as main, web[0] or
	// module.shop:main.
	Name string `json:"name"`
	// Registry address of the provider, such as registry.terraform.io/hashicorp/random.
	Provider string `json:"provider"`
	// Name of the ProviderConfig. Empty means that of an object without lifecycle.providerConfig.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// Current instance, if there is one.
	// +optional
	Current *StateInstance `json:"current,omitempty"`
	// Deposed instances.
	// +optional
	// +listType=atomic
	Deposed []StateInstance `json:"deposed,omitempty"`
}

// StateInstance is an instance in a Terraform state.
type StateInstance struct {
	// Key of a deposed instance: 8 hexadecimal digits.
	// +optional
	Key string `json:"key,omitempty"`
	// Version of the schema of the attributes.
	// +optional
	SchemaVersion int64 `json:"schemaVersion,omitempty"`
	// Attributes, with secrets.
	// +optional
	Attributes *runtime.RawExtension `json:"attributes,omitempty"`
	// Attributes as Terraform 0.11 wrote them.
	// +optional
	FlatAttributes map[string]string `json:"flatAttributes,omitempty"`
	// Paths of sensitive values, each as the JSON that Terraform writes, such as
	// [{"type":"get_attr","value":"password"}].
	// +optional
	// +listType=atomic
	SensitivePaths []string `json:"sensitivePaths,omitempty"`
	// Private data of the provider.
	// +optional
	Private []byte `json:"private,omitempty"`
	// Identity, and the version of its schema.
	// +optional
	Identity *runtime.RawExtension `json:"identity,omitempty"`
	// +optional
	IdentityVersion int64 `json:"identityVersion,omitempty"`
	// True if the next plan replaces the instance.
	// +optional
	Tainted bool `json:"tainted,omitempty"`
	// True if the instance is replaced by creating the new one first.
	// +optional
	CreateBeforeDestroy bool `json:"createBeforeDestroy,omitempty"`
	// Addresses of the objects that the instance depends on. In a pull, those in the state.
	// +optional
	// +listType=atomic
	Dependencies []string `json:"dependencies,omitempty"`
}

// StatePull returns the records of a namespace as a Terraform state. It has the secrets, so it needs the right to get
// the raw state of each kind. The response has a page of the entries in its status; the server never stores a
// StatePull.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type StatePull struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The namespace is that of the records.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Which page to return.
	// +optional
	Spec StatePullSpec `json:"spec,omitempty"`
	// The page.
	// +optional
	Status StatePullStatus `json:"status,omitempty"`
}

// StatePullSpec selects a page.
type StatePullSpec struct {
	// Name of a Module: only its resources, with their addresses in its root module. Empty for the records of the whole
	// namespace.
	// +optional
	Module string `json:"module,omitempty"`
	// Token of the previous page. Empty for the first page.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// StatePullStatus is a page of a state.
type StatePullStatus struct {
	// Lineage and serial of the state: those of the last push, with a higher serial. Only the first page has them.
	// +optional
	Lineage string `json:"lineage,omitempty"`
	// +optional
	Serial int64 `json:"serial,omitempty"`
	// Version of Terraform that wrote the pushed state. Empty without a push.
	// +optional
	TerraformVersion string `json:"terraformVersion,omitempty"`
	// Entries of the page.
	// +optional
	// +listType=atomic
	Entries []StateEntry `json:"entries,omitempty"`
	// Outputs of the Module. Only the last page of its state has them.
	// +optional
	// +listType=map
	// +listMapKey=name
	Outputs []StateOutput `json:"outputs,omitempty"`
	// Outputs without a value for the state, and why.
	// +optional
	// +listType=atomic
	Problems []StateProblem `json:"problems,omitempty"`
	// Token of the next page. Empty for the last page.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// StateOutput is an output of the root module in a Terraform state.
type StateOutput struct {
	Name string `json:"name"`
	// Value, with secrets.
	Value JSON `json:"value"`
	// Type of the value, as Terraform writes it, such as "string" or ["list","string"].
	Type JSON `json:"type"`
	// True if the module declares the output as sensitive.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}
