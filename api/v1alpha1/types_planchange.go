package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Action is the action of a change.
type Action string

const (
	// ActionCreate creates the instance.
	ActionCreate Action = "Create"
	// ActionUpdate updates the instance in place.
	ActionUpdate Action = "Update"
	// ActionReplace destroys the instance and creates a new one. The change defines the order.
	ActionReplace Action = "Replace"
	// ActionDelete destroys the instance.
	ActionDelete Action = "Delete"
	// ActionForget removes the record of the instance and keeps the infrastructure.
	ActionForget Action = "Forget"
	// ActionRead updates the recorded state: a refresh-only plan accepts drift, or the apply reads a data source.
	ActionRead Action = "Read"
	// ActionInvoke runs an action.
	ActionInvoke Action = "Invoke"
	// ActionNoOp does nothing.
	ActionNoOp Action = "NoOp"
)

// ChangeState is the progress of one change.
type ChangeState string

const (
	// ChangePending: the change waits for approval or for its dependencies.
	ChangePending ChangeState = "Pending"
	// ChangeRunning: the change is in progress.
	ChangeRunning ChangeState = "Running"
	// ChangeDone: the change is done.
	ChangeDone ChangeState = "Done"
	// ChangeFailed: the change failed.
	ChangeFailed ChangeState = "Failed"
	// ChangeSkipped: the change was not attempted, because of a dependency or a cancel.
	ChangeSkipped ChangeState = "Skipped"
	// ChangeStale: the change was not attempted, because its object or state changed after planning.
	ChangeStale ChangeState = "Stale"
	// ChangeUnknown: the change began, and its outcome is unknown.
	ChangeUnknown ChangeState = "Unknown"
)

// DriftRemoved is the only entry of PlanChange.Drift if the resource was removed outside of Hykube.
const DriftRemoved = "(removed)"

// LeftInstance describes the new instance that a failed create or replace left.
type LeftInstance string

const (
	// LeftTainted: the create failed and left the instance. The next plan replaces it.
	LeftTainted LeftInstance = "Tainted"
	// LeftUnchecked: the create succeeded, and a postcondition failed. The next plan checks it again.
	LeftUnchecked LeftInstance = "Unchecked"
)

// StaleReason says why a change is stale. Scripts may match it.
type StaleReason string

const (
	// StaleObjectChanged: the object or its ResourceSet was changed. The apply also gives this reason if it finds the
	// object changed or deleted and does not know which.
	StaleObjectChanged StaleReason = "ObjectChanged"
	// StaleObjectDeleted: the object was deleted or marked for deletion, or its namespace was.
	StaleObjectDeleted StaleReason = "ObjectDeleted"
	// StaleUndeleted: the deletion of the object, of its namespace, or of the object that it moves from was reverted.
	StaleUndeleted StaleReason = "Undeleted"
	// StaleStateChanged: the recorded state is not the one that the plan read.
	StaleStateChanged StaleReason = "StateChanged"
	// StalePlanRunning: another plan is changing the resource.
	StalePlanRunning StaleReason = "PlanRunning"
	// StaleCreateUnknown: another plan began to create the resource, and may have made it.
	StaleCreateUnknown StaleReason = "CreateUnknown"
	// StaleReferenceChanged: a value that the resource or its ProviderConfig refers to was changed or no longer exists.
	StaleReferenceChanged StaleReason = "ReferenceChanged"
	// StaleProviderChanged: the provider has another version, is not ready, or no longer has the type.
	StaleProviderChanged StaleReason = "ProviderChanged"
	// StaleProviderConfigChanged: the ProviderConfig was changed, no longer exists, or is not the planned one.
	StaleProviderConfigChanged StaleReason = "ProviderConfigChanged"
	// StaleMissingRights: the user who made or approved the plan lacks a right that the change needs.
	StaleMissingRights StaleReason = "MissingRights"
	// StaleInconsistentPlan: with all values known, the arguments or the provider's plan differ from the approved ones.
	StaleInconsistentPlan StaleReason = "InconsistentPlan"
	// StalePolicyDenied: a rule of a policy that depended on unknown values does not permit the change with the known
	// ones.
	StalePolicyDenied StaleReason = "PolicyDenied"
	// StaleImportedElsewhere: another object imported the same resource.
	StaleImportedElsewhere StaleReason = "ImportedElsewhere"
)

// PlanChangeList is the response of the subresource "changes" of a Plan: its changes by index, with secrets masked. The
// query parameters limit and continue page it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanChangeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlanChange `json:"items"`
}

// Reasons to forget a resource of a Module, which Terraform's JSON plan does not have.
const (
	// ActionReasonReleased is the reason if the Module is deleted and has the mode Observe.
	ActionReasonReleased = "forget_because_released"
	// ActionReasonRemoved is the reason if a removed block of the Module says that the infrastructure stays.
	ActionReasonRemoved = "forget_because_removed"
)

// PlanChange is one change of a plan. Before, After, AfterUnknown, BeforeSensitive, AfterSensitive and ReplacePaths
// have the format of these fields in Terraform's JSON plan:
// https://developer.hashicorp.com/terraform/internals/json-format#change-representation
type PlanChange struct {
	// Index of the change in its plan, from 0. A change follows its dependencies.
	Index int32 `json:"index"`
	// Terraform address, such as "sim_network.main" or "data.sim_image.base".
	Address string `json:"address"`
	// managed (also if omitted), data or action.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Key of the deposed instance that the change destroys. An earlier replace with createBeforeDestroy left it. The
	// address also has a current instance.
	// +optional
	Deposed string `json:"deposed,omitempty"`
	// Former address of the record, if the resource moved.
	// +optional
	PreviousAddress string `json:"previousAddress,omitempty"`
	// Set if the change imports an existing instance.
	// +optional
	Importing *PlanImport `json:"importing,omitempty"`
	// Terraform resource type, such as "sim_network".
	Type string `json:"type"`
	// Object of the change.
	Object ObjectReference `json:"object"`
	// Source address of the provider, such as "registry.terraform.io/hashicorp/time".
	Provider string `json:"provider"`
	// Version of the provider during planning.
	// +optional
	ProviderVersion string `json:"providerVersion,omitempty"`
	// Name of the ProviderConfig.
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`
	// Action of the change.
	Action Action `json:"action"`
	// True if a replace creates the new instance before it destroys the old one.
	// +optional
	CreateBeforeDestroy bool `json:"createBeforeDestroy,omitempty"`
	// True if a replace forgets the old instance instead of destroying it.
	// +optional
	Forget bool `json:"forget,omitempty"`
	// Reason of the action in the terms of Terraform's JSON plan, such as "replace_because_cannot_update".
	// +optional
	ActionReason string `json:"actionReason,omitempty"`
	// Address of a resource that the plan destroys and that this one refers to. Set if the plan destroys this resource
	// although neither its spec nor a deletion names it.
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
	// Paths of the secret attributes whose values change, in the format of replacePaths. Other secrets stay unchanged.
	// The list leaves out secrets of resources that are created or removed.
	// +optional
	SecretsChanged *runtime.RawExtension `json:"secretsChanged,omitempty"`
	// Secret arguments whose values come from other objects. The provider receives them. At most 64; of more, the last
	// item has no path.
	// +optional
	// +listType=atomic
	Secrets []PlanSecret `json:"secrets,omitempty"`
	// Arguments of the provider that hold no secret, such as "endpoint": they say where the provider sends the secrets.
	// Set only with secrets, and at most 8.
	// +optional
	// +listType=atomic
	ProviderArguments []PlanArgument `json:"providerArguments,omitempty"`
	// Expressions whose values the change changes, and those that the object has only since its last apply. A value
	// follows such an expression from now on, even if it stays the same in this plan. Empty for a resource that is
	// created. At most 64.
	// +optional
	// +listType=atomic
	Expressions []PlanExpression `json:"expressions,omitempty"`
	// Paths of attributes that changed outside of Hykube, such as "tags.team"; "(removed)" if the resource was removed.
	// +optional
	// +listType=atomic
	Drift []string `json:"drift,omitempty"`
	// Recorded values, if they differ from the ones that were read, which are in before. Secrets are masked.
	// +optional
	Recorded *runtime.RawExtension `json:"recorded,omitempty"`
	// Which recorded values are secret.
	// +optional
	RecordedSensitive *runtime.RawExtension `json:"recordedSensitive,omitempty"`
	// True if the resource needs no change, but the apply records the values that were read. The provider returned
	// other values than the recorded ones, or the same values in another form, such as an empty list for null.
	// +optional
	UpdatesRecord bool `json:"updatesRecord,omitempty"`
	// Users who wrote what the change follows from, since the resource was last applied: the object or its ResourceSet,
	// and the ConfigMaps, Secrets and the ProviderConfig that it uses. Of a new resource, these are all last writers.
	// +optional
	// +listType=atomic
	Contributors []Contributor `json:"contributors,omitempty"`
	// Indexes of the changes that must be done first.
	// +optional
	// +listType=atomic
	DependsOn []int32 `json:"dependsOn,omitempty"`
	// Reason why the change cannot be made: lifecycle.preventDestroy forbids it, or forbids one of its dependencies. A
	// partial approval leaves it out.
	// +optional
	Blocked string `json:"blocked,omitempty"`
	// State of the change.
	State ChangeState `json:"state"`
	// True if only the first half of a replace succeeded: the destroy, or the create if that comes first.
	// +optional
	HalfDone bool `json:"halfDone,omitempty"`
	// True if the provider was called to create the resource, and failed without a state. The resource may exist
	// nevertheless, unless the provider's errors name an HTTP status such as 400 or 403.
	// +optional
	MayExist bool `json:"mayExist,omitempty"`
	// New instance that a failed create or replace left: "Tainted" if the create itself failed, so that the next plan
	// replaces the instance; "Unchecked" if only a postcondition failed. Empty if there is none.
	// +optional
	Left LeftInstance `json:"left,omitempty"`
	// Reason of a stale change, such as "ObjectChanged".
	// +optional
	StaleReason StaleReason `json:"staleReason,omitempty"`
	// Reason in one line, if the change failed, was skipped or is stale.
	// +optional
	Message string `json:"message,omitempty"`
	// Errors and warnings about the change.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// Time at which the change began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// Time at which the change ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Increases with every write of a change. Of two changes that ended, the one with the smaller number ended first.
	// Set by the server.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// True if the response omits the values and the messages of the change, because the reader may not get the object.
	// +optional
	ValuesWithheld bool `json:"valuesWithheld,omitempty"`
}

// PlanSecret is a secret argument whose value comes from other objects.
type PlanSecret struct {
	// Path of the argument, in the format of an element of replacePaths. Omitted if the items leave out further
	// arguments.
	// +optional
	Path *runtime.RawExtension `json:"path,omitempty"`
	// Objects that the secret comes from, such as "namespace.prod.sim_password.db", or "secret.db.password" for a key
	// of a Secret. At most 17.
	// +listType=atomic
	From []string `json:"from"`
	// True if the plan gives the secret to a provider that does not have it yet. A plan with such a secret approves
	// itself only if the users who caused the change may read the secret: with "get" on the subresource "state" of the
	// object, or "get" on the Secret.
	// +optional
	Discloses bool `json:"discloses,omitempty"`
}

// PlanArgument is an argument of a provider that holds no secret.
type PlanArgument struct {
	// Path of the argument, such as "endpoint".
	Name string `json:"name"`
	// Value as text, of at most 200 bytes.
	Value string `json:"value"`
}

// PlanExpression is an expression of an object's spec.
type PlanExpression struct {
	// Path of the argument, in the format of an element of replacePaths.
	Path *runtime.RawExtension `json:"path"`
	// Expression as in the spec, such as "${configmap.net.cidr}", of at most 200 bytes. Of a secret argument, only its
	// references.
	Expression string `json:"expression"`
	// True if the object has the expression only since its last apply. Then the argument had a constant value, or
	// another expression.
	// +optional
	Rewritten bool `json:"rewritten,omitempty"`
	// Names of the users who wrote the expression, or what it refers to, since the last apply. They are among the
	// contributors of the change.
	// +optional
	// +listType=atomic
	By []string `json:"by,omitempty"`
}

// PlanImport identifies an existing instance: by its ID, or by its identity.
type PlanImport struct {
	// ID in the provider's format.
	// +optional
	ID string `json:"id,omitempty"`
	// Identity with the attributes of the type's identity schema.
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
	// Name of the ResourceSet, for an instance of one.
	// +optional
	Set string `json:"set,omitempty"`
	// UID of the ResourceSet.
	// +optional
	SetUID types.UID `json:"setUID,omitempty"`
}
