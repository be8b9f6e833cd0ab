package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Action is what a change does.
type Action string

const (
	// ActionCreate makes what does not exist.
	ActionCreate Action = "Create"
	// ActionUpdate changes what exists, in place.
	ActionUpdate Action = "Update"
	// ActionReplace destroys what exists and makes it anew; the change says in which order.
	ActionReplace Action = "Replace"
	// ActionDelete destroys what exists.
	ActionDelete Action = "Delete"
	// ActionForget removes the record of what exists, and leaves the infrastructure alone.
	ActionForget Action = "Forget"
	// ActionRead brings the recorded state up to date: drift accepted by a refresh-only plan, or a data source that can be
	// read only while the plan is applied.
	ActionRead Action = "Read"
	// ActionInvoke runs an action.
	ActionInvoke Action = "Invoke"
	// ActionNoOp does nothing.
	ActionNoOp Action = "NoOp"
)

// ChangeState is how far one change is.
type ChangeState string

const (
	// ChangePending waits for approval, or for what it depends on.
	ChangePending ChangeState = "Pending"
	// ChangeRunning is being made.
	ChangeRunning ChangeState = "Running"
	// ChangeDone was made.
	ChangeDone ChangeState = "Done"
	// ChangeFailed was tried and failed.
	ChangeFailed ChangeState = "Failed"
	// ChangeSkipped was not tried, because of what it depends on, or a cancel.
	ChangeSkipped ChangeState = "Skipped"
	// ChangeStale was not tried, because its object or state changed after the plan was made.
	ChangeStale ChangeState = "Stale"
	// ChangeUnknown was begun, and its outcome was lost.
	ChangeUnknown ChangeState = "Unknown"
)

// PlanChangeList is what the subresource "changes" of a Plan answers: its changes in the order of their
// indexes, secrets masked. It is paged by the query parameters limit and continue.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanChangeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlanChange `json:"items"`
}

// PlanChange is one change of a plan. Before, After, AfterUnknown, BeforeSensitive, AfterSensitive and
// ReplacePaths have the shapes of the same fields in Terraform's JSON plan:
// https://developer.hashicorp.com/terraform/internals/json-format#change-representation
type PlanChange struct {
	// Number of the change in its plan, from 0; dependencies come before what depends on them.
	Index int32 `json:"index"`
	// Terraform address, such as "sim_network.main" or "data.sim_image.base".
	Address string `json:"address"`
	// managed (also when it is left out), data or action.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Key of the old instance that the change destroys, which a replace with createBeforeDestroy left behind; the address
	// has a current instance beside it.
	// +optional
	Deposed string `json:"deposed,omitempty"`
	// Address that the record comes from, when the resource was moved.
	// +optional
	PreviousAddress string `json:"previousAddress,omitempty"`
	// Set when the change takes over something that exists already.
	// +optional
	Importing *PlanImport `json:"importing,omitempty"`
	// Terraform resource type, such as "sim_network".
	Type string `json:"type"`
	// The object that the change is about.
	Object ObjectReference `json:"object"`
	// Source address of the provider, such as "registry.terraform.io/hashicorp/time".
	Provider string `json:"provider"`
	// Version of the provider that planned it.
	// +optional
	ProviderVersion string `json:"providerVersion,omitempty"`
	// Name of the ProviderConfig that is used.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// What it does.
	Action Action `json:"action"`
	// A replace creates the new instance before it destroys the old one.
	// +optional
	CreateBeforeDestroy bool `json:"createBeforeDestroy,omitempty"`
	// A replace forgets the old instance and does not destroy it.
	// +optional
	Forget bool `json:"forget,omitempty"`
	// Why, in the terms of Terraform's JSON plan, such as "replace_because_cannot_update".
	// +optional
	ActionReason string `json:"actionReason,omitempty"`
	// Address of the resource without which this one cannot stay, because it refers to that. Set when the plan destroys a resource that
	// neither its spec nor a deletion names.
	// +optional
	DestroyedWith string `json:"destroyedWith,omitempty"`
	// Values before. Secrets are masked.
	// +optional
	Before *runtime.RawExtension `json:"before,omitempty"`
	// Values after, without those that are known only after apply. Secrets are masked.
	// +optional
	After *runtime.RawExtension `json:"after,omitempty"`
	// Which values are known only after apply.
	// +optional
	AfterUnknown *runtime.RawExtension `json:"afterUnknown,omitempty"`
	// Which values before are secret.
	// +optional
	BeforeSensitive *runtime.RawExtension `json:"beforeSensitive,omitempty"`
	// Which values after are secret.
	// +optional
	AfterSensitive *runtime.RawExtension `json:"afterSensitive,omitempty"`
	// Paths of the attributes that force a replace.
	// +optional
	ReplacePaths *runtime.RawExtension `json:"replacePaths,omitempty"`
	// Paths of the secret attributes whose values change, in the format of replacePaths. Other secrets stay unchanged. The list
	// leaves out secrets of resources that are created or removed.
	// +optional
	SecretsChanged *runtime.RawExtension `json:"secretsChanged,omitempty"`
	// Paths of attributes that were found changed by something other than Hykube, such as "tags.team".
	// +optional
	// +listType=atomic
	Drift []string `json:"drift,omitempty"`
	// Values as they were recorded, when they were found changed; before holds those that were found. Secrets are masked.
	// +optional
	Recorded *runtime.RawExtension `json:"recorded,omitempty"`
	// Which of the recorded values are secret.
	// +optional
	RecordedSensitive *runtime.RawExtension `json:"recordedSensitive,omitempty"`
	// The resource needs no change, and the apply records the values that were read: the provider returned other values than the
	// recorded ones, or the same values in another form, such as an empty list for null.
	// +optional
	UpdatesRecord bool `json:"updatesRecord,omitempty"`
	// Indexes of the changes that must be done before this one.
	// +optional
	// +listType=atomic
	DependsOn []int32 `json:"dependsOn,omitempty"`
	// Why the change cannot be made: lifecycle.preventDestroy forbids it, or forbids a change that it needs. An approval with partial
	// leaves it out.
	// +optional
	Blocked string `json:"blocked,omitempty"`
	// State of the change.
	State ChangeState `json:"state"`
	// The first half of a replace succeeded: the destroy, or the create if that comes first.
	// +optional
	HalfDone bool `json:"halfDone,omitempty"`
	// What happened, in one line, when it failed, was skipped or is stale.
	// +optional
	Message string `json:"message,omitempty"`
	// Errors and warnings about it.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// When it was begun.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// When it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Grows with every write of a change: of two changes that ended, the one with the smaller number ended first. Set by the server.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
}

// PlanImport identifies an existing instance: by its ID, or by its identity.
type PlanImport struct {
	// ID in the provider's own form.
	// +optional
	ID string `json:"id,omitempty"`
	// Identity, by the attributes of the type's identity schema.
	// +optional
	Identity *runtime.RawExtension `json:"identity,omitempty"`
}

// ObjectReference names one generation of one object.
type ObjectReference struct {
	// Group and version, such as "sim.hykube.io/v1".
	APIVersion string `json:"apiVersion"`
	// Kind, such as "sim-network".
	Kind string `json:"kind"`
	// Namespace.
	Namespace string `json:"namespace"`
	// Name.
	Name string `json:"name"`
	// UID.
	UID types.UID `json:"uid"`
	// Generation.
	Generation int64 `json:"generation"`
}
