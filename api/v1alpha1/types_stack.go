package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Stack is a set of resources that is planned, applied and watched as one. The server makes a Plan for it when the
// selected resources have changed.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Stack struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Selection of the resources, and rules for their plans.
	// +optional
	Spec StackSpec `json:"spec,omitempty"`
	// State of the resources, the last plan and the outputs.
	// +optional
	Status StackStatus `json:"status,omitempty"`
}

// StackSpec selects resources, and defines when and how the server plans and applies them.
type StackSpec struct {
	// Labels of the resources. Without a selector, the stack has all resources of the namespace that no other stack
	// selects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// When to make plans, and how.
	// +optional
	Plan StackPlanPolicy `json:"plan,omitempty"`
	// Workflow of a user that the server starts instead of making a plan. Without it, the server makes plans.
	// +optional
	Workflow *StackWorkflow `json:"workflow,omitempty"`
	// Who approves the plans: Manual (the default) or Automatic. Automatic acts with the rights of status.author, who
	// needs the verb "approve" on plans.
	// +optional
	Approval ApprovalMode `json:"approval,omitempty"`
	// Reaction to a failed plan or apply: Halt (the default), Retry or Continue.
	// +optional
	OnError ErrorPolicy `json:"onError,omitempty"`
	// Number and pause of further plans; only with onError Retry.
	// +optional
	Retry *StackRetry `json:"retry,omitempty"`
	// Drift checks: when the server reads the infrastructure again, and its reaction to changes made outside of Hykube.
	// Without it, the server makes no drift checks.
	// +optional
	Drift *StackDrift `json:"drift,omitempty"`
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
	// Make no plan, and start no workflow. A plan that exists already, and a workflow that runs, are not affected.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// StackWorkflow names a workflow of a user. The server starts it in the Temporal namespace hykube.NAMESPACE, with the
// workflow ID stack.NAME, so that a stack has at most one running workflow.
type StackWorkflow struct {
	// Name under which a worker registered the workflow.
	Type string `json:"type"`
	// Task queue of that worker.
	TaskQueue string `json:"taskQueue"`
	// JSON object that the workflow gets in the field "input" of its argument, up to 64 KiB.
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`
}

// PlanTrigger is an event after which the server makes a plan of a stack.
type PlanTrigger string

const (
	// TriggerChange makes a plan when the selected resources have changed.
	TriggerChange PlanTrigger = "Change"
	// TriggerSchedule makes a plan at the times of spec.plan.schedule, even if nothing has changed.
	TriggerSchedule PlanTrigger = "Schedule"
	// TriggerDriftCheck is the trigger of the refresh-only plans of a drift check. Only the server uses it.
	TriggerDriftCheck PlanTrigger = "DriftCheck"
	// TriggerDrift is the trigger of a plan that corrects the drift that a check found. Only the server uses it.
	TriggerDrift PlanTrigger = "Drift"
)

// No field of StackPlanPolicy is named "on", which is the boolean true in the YAML that kubectl reads.

// StackPlanPolicy defines when and how the server makes plans of a stack.
type StackPlanPolicy struct {
	// Events after which the server makes a plan, or starts spec.workflow: Change, Schedule or both. Change is the
	// default.
	// +optional
	// +listType=set
	Triggers []PlanTrigger `json:"triggers,omitempty"`
	// Times of the trigger Schedule: a cron expression of five fields such as "0 6 * * 1-5", or "@every 6h".
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Time zone of the schedule, such as Europe/Berlin; UTC by default.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Time without a further change before the server makes a plan, from 0s to 1h; 5s by default.
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`
	// Which resources a plan reads from their provider first: None, Changed (the default) or All.
	// +optional
	Refresh RefreshMode `json:"refresh,omitempty"`
}

// DriftAction is the reaction to drift that a drift check found.
type DriftAction string

const (
	// DriftReport records the drift: the objects get the condition Drifted. This is the default.
	DriftReport DriftAction = "Report"
	// DriftPlan records the drift and makes a plan that corrects it. The plan waits for an approval.
	DriftPlan DriftAction = "Plan"
	// DriftCorrect records the drift and makes a plan that corrects it, with automatic approval. Policies still apply
	// to the plan. It requires approval Automatic.
	DriftCorrect DriftAction = "Correct"
)

// StackDrift defines the drift checks of a stack: their times, their limits, and the reaction to drift.
type StackDrift struct {
	// Times of the checks: a cron expression of five fields such as "0 */6 * * *", or "@every 6h". Without it, the
	// server checks only when a user requests it.
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Time zone of the schedule and of the window, such as Europe/Berlin; UTC by default.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Reaction to drift: Report (the default), Plan or Correct.
	// +optional
	Action DriftAction `json:"action,omitempty"`
	// Limits of the reads of a check. If a check reaches maxReads, the next check begins after the last resource that
	// was read.
	// +optional
	Budget *ReadBudget `json:"budget,omitempty"`
	// Time of the day in which a check may read, such as "22:00-06:00". A check pauses outside of it.
	// +optional
	Window string `json:"window,omitempty"`
}

// ErrorPolicy is the reaction of a stack to a failed plan or apply.
type ErrorPolicy string

const (
	// OnErrorHalt makes no further plan until the stack or a selected resource changes. Stacks that depend on this one
	// wait. This is the default.
	OnErrorHalt ErrorPolicy = "Halt"
	// OnErrorRetry makes further plans, as often as spec.retry says.
	OnErrorRetry ErrorPolicy = "Retry"
	// OnErrorContinue is OnErrorHalt, except that stacks that depend on this one do not wait: their plans use the
	// recorded values.
	OnErrorContinue ErrorPolicy = "Continue"
)

// StackRetry limits the plans that the server makes again after a failure.
type StackRetry struct {
	// Number of further plans, 1 to 100.
	Times int32 `json:"times"`
	// Pause before the first of them, from 1s to 1h; 30s by default. Each further pause is twice as long, up to 1h.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
}

// StackOutputTargets names the objects with the outputs of a stack. The stack creates them, and writes to no object
// that it did not create.
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
	// Generation of the spec that the author wrote. Later ones only suspend the stack, or let it continue. Set by the
	// server.
	// +optional
	AuthorGeneration int64 `json:"authorGeneration,omitempty"`
	// Last generation of the spec of which a plan was applied as a whole, after the approval of a user other than the
	// author. If that is authorGeneration or a later one, the author may approve plans of what others wrote, also where
	// a policy excludes the requester.
	// +optional
	ApprovedGeneration int64 `json:"approvedGeneration,omitempty"`
	// Number of resources that the stack selects.
	// +optional
	Resources int32 `json:"resources,omitempty"`
	// Number of these whose infrastructure does not match the spec.
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// Digest of the selected resources: the objects with their generations, and the versions of the values that they
	// refer to. The condition Ready belongs to this digest.
	// +optional
	Contents string `json:"contents,omitempty"`
	// The last plan that the stack made.
	// +optional
	Plan *StackPlan `json:"plan,omitempty"`
	// The last run of spec.workflow that the stack started.
	// +optional
	Run *StackRun `json:"run,omitempty"`
	// The last request for a plan that spec.plan.schedule made.
	// +optional
	Scheduled *StackRequest `json:"scheduled,omitempty"`
	// The drift checks.
	// +optional
	Drift *StackDriftStatus `json:"drift,omitempty"`
	// Values of spec.outputs, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Outputs []StackOutput `json:"outputs,omitempty"`
	// Digest of the recorded values, the spec and the written objects for which the outputs were evaluated.
	// +optional
	OutputsVersion string `json:"outputsVersion,omitempty"`
}

// StackRequest is a request for a plan or a drift check of a stack. The server acts on each request once.
type StackRequest struct {
	// Unique ID of the request.
	ID string `json:"id"`
	// Time of the request.
	At metav1.Time `json:"at"`
	// User who sent the request; absent for a schedule.
	// +optional
	By *Identity `json:"by,omitempty"`
	// True for a time of the schedule at which the stack selected no resource. No plan follows from it.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
}

// StackDriftStatus is the state of the drift checks of a stack.
type StackDriftStatus struct {
	// The last request for a check.
	// +optional
	Requested *StackRequest `json:"requested,omitempty"`
	// The check that runs.
	// +optional
	Running *DriftCheck `json:"running,omitempty"`
	// The last check that ended.
	// +optional
	Last *DriftCheck `json:"last,omitempty"`
	// Address after which the next check begins, because the last one reached its maximum number of reads.
	// +optional
	ReadAfter string `json:"readAfter,omitempty"`
}

// Busy reports whether a check runs, or was requested and has not begun.
func (s *StackDriftStatus) Busy() bool {
	return s.Running != nil || s.Requested != nil && (s.Last == nil || s.Last.ID != s.Requested.ID)
}

// AcceptsRequest reports whether a user may request a check: none runs or is requested, or the running one only waits
// for an approval.
func (s *StackDriftStatus) AcceptsRequest() bool {
	return !s.Busy() || s.Running != nil && s.Running.AwaitsApproval && s.Running.ID == s.Requested.ID
}

// DriftOutcome is the outcome of a drift check.
type DriftOutcome string

const (
	// DriftNone: no resource of the stack has recorded drift after the check.
	DriftNone DriftOutcome = "NoDrift"
	// DriftFound: resources of the stack have recorded drift after the check, from this check or an earlier one.
	DriftFound DriftOutcome = "Drifted"
	// DriftFailed: a plan of the check failed, was denied by a policy, was discarded or was cancelled.
	DriftFailed DriftOutcome = "Failed"
)

// DriftCheck is a drift check. It makes one or more refresh-only plans, one after another.
type DriftCheck struct {
	// ID of the request.
	ID string `json:"id"`
	// Time of the request.
	StartedAt metav1.Time `json:"startedAt"`
	// Time at which the check ended.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Outcome of the check; empty while it runs.
	// +optional
	Outcome DriftOutcome `json:"outcome,omitempty"`
	// The reason why the check waits or failed.
	// +optional
	Message string `json:"message,omitempty"`
	// True if the last plan of the check waits for an approval. The next check then replaces this one.
	// +optional
	AwaitsApproval bool `json:"awaitsApproval,omitempty"`
	// Number of plans that the check has made.
	// +optional
	Plans int32 `json:"plans,omitempty"`
	// The last of these plans.
	// +optional
	Plan *PlanReference `json:"plan,omitempty"`
	// Address after which the next plan begins.
	// +optional
	ReadAfter string `json:"readAfter,omitempty"`
	// Number of resources that ended plans of the check have read.
	// +optional
	Read int32 `json:"read,omitempty"`
	// Number of these that have drifted since the last time they were read.
	// +optional
	Drifted int32 `json:"drifted,omitempty"`
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
	// Creates of resources of the stack whose outcome was unknown after the plan. When users have resolved all, the
	// stack makes its next plan.
	// +optional
	UnknownCreates int32 `json:"unknownCreates,omitempty"`
}

// RunOutcome is the outcome of a workflow run.
type RunOutcome string

const (
	// RunCompleted: the workflow returned without an error.
	RunCompleted RunOutcome = "Completed"
	// RunFailed: the workflow returned an error.
	RunFailed RunOutcome = "Failed"
	// RunTimedOut: a timeout of the workflow ended it.
	RunTimedOut RunOutcome = "TimedOut"
	// RunTerminated: a user terminated the workflow.
	RunTerminated RunOutcome = "Terminated"
	// RunCancelled: a user cancelled the workflow, and the workflow ended.
	RunCancelled RunOutcome = "Cancelled"
	// RunLost: Temporal no longer has the run, so its outcome is unknown.
	RunLost RunOutcome = "Lost"
)

// StackRun is a run of the workflow of a stack.
type StackRun struct {
	// Workflow ID in the Temporal namespace hykube.NAMESPACE.
	WorkflowID string `json:"workflowID"`
	// Run ID. A workflow that continues as new gets another one.
	RunID string `json:"runID"`
	// ID of the first run of the workflow, if it continued as new.
	// +optional
	FirstRunID string `json:"firstRunID,omitempty"`
	// The origin of the run.
	RunOrigin `json:",inline"`
	// Time of the start.
	StartedAt metav1.Time `json:"startedAt"`
	// Time of the end; absent until the run ends.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Outcome of the run; empty until it ends.
	// +optional
	Outcome RunOutcome `json:"outcome,omitempty"`
	// Message of the failure, up to 2,000 bytes.
	// +optional
	Message string `json:"message,omitempty"`
	// Type of the error of a run that failed, up to 100 bytes. The steps of the package sdk/steps have types such as
	// Discarded.
	// +optional
	FailureType string `json:"failureType,omitempty"`
	// The last plan of the run, according to the annotations of the plan.
	// +optional
	Plan *PlanReference `json:"plan,omitempty"`
}

// RunOrigin identifies the state of a stack for which the server started a workflow run. The memo of the run contains
// it, too.
type RunOrigin struct {
	// Number of the run among those of the stack.
	Number int64 `json:"number"`
	// Generation of the stack's spec.
	StackGeneration int64 `json:"stackGeneration"`
	// Digest of the selected resources; see status.contents of the stack.
	Contents string `json:"contents"`
	// Trigger of the run; Change by default.
	// +optional
	Trigger PlanTrigger `json:"trigger,omitempty"`
	// ID of the request, for the trigger Schedule.
	// +optional
	Request string `json:"request,omitempty"`
}

// PlanStack identifies the stack, and the state of the stack, for which a plan was made.
type PlanStack struct {
	// Name of the stack.
	Stack string `json:"stack"`
	// UID of the stack.
	StackUID types.UID `json:"stackUID"`
	// Generation of the stack's spec.
	StackGeneration int64 `json:"stackGeneration"`
	// True if another user than the author approved an earlier plan of the stack as the author wrote it, and that was
	// applied as a whole. The author then counts as the requester only of what nobody else wrote.
	// +optional
	AuthorApproved bool `json:"authorApproved,omitempty"`
	// Number of the plan among those of the stack.
	Number int64 `json:"number"`
	// Digest of the selected resources; see status.contents of the stack.
	Contents string `json:"contents"`
	// Trigger of the plan; Change by default.
	// +optional
	Trigger PlanTrigger `json:"trigger,omitempty"`
	// ID of the request, for the triggers Schedule, DriftCheck and Drift.
	// +optional
	Request string `json:"request,omitempty"`
	// User who requested the drift check that caused the plan; absent for a schedule, and for other triggers. The plan
	// has the rights of the stack's author.
	// +optional
	CheckRequestedBy *Identity `json:"checkRequestedBy,omitempty"`
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
