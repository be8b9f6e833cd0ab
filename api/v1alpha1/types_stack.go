package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Stack is a set of resources that is planned, applied and watched as one. The server makes a Plan for it when what it
// selects has changed.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Stack struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The resources, and when and how to plan and apply them.
	// +optional
	Spec StackSpec `json:"spec,omitempty"`
	// State of the resources, the last plan and the outputs.
	// +optional
	Status StackStatus `json:"status,omitempty"`
}

// StackSpec selects resources, and says when and how to plan and apply them.
type StackSpec struct {
	// Labels of the resources. Without a selector, the stack has all resources of the namespace that no other stack
	// selects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// When to make plans, and how.
	// +optional
	Plan StackPlanPolicy `json:"plan,omitempty"`
	// Who approves the plans: Manual (the default) or Automatic. Automatic acts with the rights of status.author, who
	// needs the verb "approve" on plans.
	// +optional
	Approval ApprovalMode `json:"approval,omitempty"`
	// What to do after a plan or an apply failed: Halt (the default), Retry or Continue.
	// +optional
	OnError ErrorPolicy `json:"onError,omitempty"`
	// Number and pause of further plans; only with onError Retry.
	// +optional
	Retry *StackRetry `json:"retry,omitempty"`
	// Named values, each a template such as "https://${sim_dns_record.www.fqdn}". The server evaluates them when all
	// resources are applied, with the rights of status.author.
	// +optional
	Outputs map[string]string `json:"outputs,omitempty"`
	// Objects to which the server writes the outputs.
	// +optional
	WriteOutputsTo *StackOutputTargets `json:"writeOutputsTo,omitempty"`
	// Names of other stacks of the namespace. The server makes no plan of this stack until they are Ready.
	// +optional
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`
	// Number of finished plans of this stack that the server keeps, 1 to 100; 20 by default.
	// +optional
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
	// Make no plan. A plan that exists already is not affected.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// PlanTrigger is an event after which the server makes a plan of a stack.
type PlanTrigger string

// TriggerChange makes a plan when the selected resources have changed.
const TriggerChange PlanTrigger = "Change"

// StackPlanPolicy says when to make plans of a stack, and how.
//
// No field is named "on", which is the boolean true in the YAML that kubectl reads.
type StackPlanPolicy struct {
	// Events after which the server makes a plan: Change, which is the default.
	// +optional
	// +listType=set
	Triggers []PlanTrigger `json:"triggers,omitempty"`
	// Time without a further change before the server makes a plan, from 0s to 1h; 5s by default.
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`
	// Which resources a plan reads from their provider first: None, Changed (the default) or All.
	// +optional
	Refresh RefreshMode `json:"refresh,omitempty"`
}

// ErrorPolicy says what happens to a stack after a plan or an apply failed.
type ErrorPolicy string

const (
	// OnErrorHalt makes no further plan until the stack, or something that it selects, changes. Stacks that depend on
	// this one wait. This is the default.
	OnErrorHalt ErrorPolicy = "Halt"
	// OnErrorRetry makes further plans, as often as spec.retry says.
	OnErrorRetry ErrorPolicy = "Retry"
	// OnErrorContinue is OnErrorHalt, except that stacks that depend on this one do not wait: they are planned with the
	// values that are recorded.
	OnErrorContinue ErrorPolicy = "Continue"
)

// StackRetry says how often a stack is planned again after a failure.
type StackRetry struct {
	// Number of further plans, 1 to 100.
	Times int32 `json:"times"`
	// Pause before the first of them, from 1s to 1h; 30s by default. Each further pause is twice as long, up to 1h.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
}

// StackOutputTargets names the objects with the outputs of a stack. The stack creates them, and writes to no object that
// it did not create.
type StackOutputTargets struct {
	// Name of the ConfigMap with the outputs that are not sensitive.
	// +optional
	ConfigMap string `json:"configMap,omitempty"`
	// Name of the Secret with the sensitive outputs.
	// +optional
	Secret string `json:"secret,omitempty"`
}

// StackStatus is the state of a stack.
type StackStatus struct {
	// Generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// User who last wrote the spec. Plans of the stack, their automatic approval and outputs have the rights of this
	// user. Set by the server.
	// +optional
	Author *Identity `json:"author,omitempty"`
	// Number of resources that the stack selects.
	// +optional
	Resources int32 `json:"resources,omitempty"`
	// Number of these whose infrastructure is not as written.
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// Digest of what the stack selects: the objects with their generations, and the versions of what they refer to. It is
	// the digest for which the condition Ready was determined.
	// +optional
	Contents string `json:"contents,omitempty"`
	// The last plan that the stack made.
	// +optional
	Plan *StackPlan `json:"plan,omitempty"`
	// Values of spec.outputs, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Outputs []StackOutput `json:"outputs,omitempty"`
	// Digest of the recorded values and the spec for which the outputs were evaluated.
	// +optional
	OutputsVersion string `json:"outputsVersion,omitempty"`
}

// StackPlan is the last plan that a stack made.
type StackPlan struct {
	// Name of the plan.
	Name string `json:"name"`
	// UID of the plan.
	UID types.UID `json:"uid"`
	// The origin of the plan.
	PlanStack `json:",inline"`
	// Reason of the plan's condition Ready.
	// +optional
	Reason string `json:"reason,omitempty"`
	// True when the plan has ended.
	// +optional
	Ended bool `json:"ended,omitempty"`
}

// PlanStack says for which stack, and which state of it, a plan was made.
type PlanStack struct {
	// Name of the stack.
	Stack string `json:"stack"`
	// UID of the stack.
	StackUID types.UID `json:"stackUID"`
	// Generation of the stack's spec.
	StackGeneration int64 `json:"stackGeneration"`
	// Number of the plan among those of the stack.
	Number int64 `json:"number"`
	// Digest of what the stack selected; see the status of the stack.
	Contents string `json:"contents"`
	// Number of plans of the same contents that failed before this one, with onError Retry.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
}

// StackOutput is an output of a stack.
type StackOutput struct {
	// Name of the output.
	Name string `json:"name"`
	// The value, as JSON. Empty if it is sensitive.
	// +optional
	Value string `json:"value,omitempty"`
	// True if the value is sensitive: only the Secret of spec.writeOutputsTo has it.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// StackList is a list of Stacks.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stack `json:"items"`
}
