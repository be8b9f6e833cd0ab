package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Plan works out what would have to be created, updated, replaced, deleted and read to make the
// infrastructure of a namespace what its objects ask for, and, once it is approved, does exactly that.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Plan struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Which resources to plan, and how. Immutable.
	// +optional
	Spec PlanSpec `json:"spec,omitempty"`
	// The planned changes, the approval and the progress.
	// +optional
	Status PlanStatus `json:"status,omitempty"`
}

// RefreshMode says which resources are read from their provider before they are planned.
type RefreshMode string

const (
	// RefreshNone plans from what is recorded and reads nothing.
	RefreshNone RefreshMode = "None"
	// RefreshChanged reads the resources that the plan is about to change. This is the default.
	RefreshChanged RefreshMode = "Changed"
	// RefreshAll reads every resource that the plan looks at, and so finds drift.
	RefreshAll RefreshMode = "All"
)

// ApprovalMode says who approves a plan.
type ApprovalMode string

const (
	// ApprovalManual waits for somebody with the verb "approve" on the plan. This is the default.
	ApprovalManual ApprovalMode = "Manual"
	// ApprovalAutomatic applies the plan as soon as it is made. Creating such a plan needs the verb "approve". A copy of a plan, such
	// as one from a backup, waits for a person all the same; see status.automaticApproval.
	ApprovalAutomatic ApprovalMode = "Automatic"
)

// PlanSpec selects the resources of a plan and how to plan them. Without selector and targets a plan selects every resource of the namespace.
type PlanSpec struct {
	// Plan only resources with these labels, and their dependencies.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Plan only these resources, and their dependencies, each as a Terraform address such as "sim_network.main".
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// Which resources to read from their provider first: None, Changed (the default) or All.
	// +optional
	Refresh RefreshMode `json:"refresh,omitempty"`
	// Leave out these resources, and all that depend on them, each as a Terraform address.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitempty"`
	// Only update the recorded state from the infrastructure, and change no infrastructure.
	// +optional
	RefreshOnly bool `json:"refreshOnly,omitempty"`
	// Resources to replace even when nothing about them changed, as Terraform addresses.
	// +optional
	// +listType=set
	Replace []string `json:"replace,omitempty"`
	// Actions to run even when they ran before, as Terraform addresses such as "action.sim_reboot.now".
	// +optional
	// +listType=set
	Invoke []string `json:"invoke,omitempty"`
	// Destroy the infrastructure of the selected resources, and keep their objects.
	// +optional
	Destroy bool `json:"destroy,omitempty"`
	// Who approves: Manual (the default) or Automatic.
	// +optional
	Approval ApprovalMode `json:"approval,omitempty"`
	// Plan the objects of an upload (subresource "objects") as if they were recorded. The server never records them, and nobody can
	// approve the plan.
	// +optional
	Speculative bool `json:"speculative,omitempty"`
	// Value of the function plantimestamp in this plan. Defaults to the creation time of the plan.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
}

// PlanStatus is what was found, who approved it, and how far it is.
type PlanStatus struct {
	// Generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Planned, Approved, Applied, Stale, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// User who created the plan. Set by the server.
	// +optional
	RequestedBy *Identity `json:"requestedBy,omitempty"`
	// Number of changes by kind.
	// +optional
	Summary *PlanSummary `json:"summary,omitempty"`
	// Digest of the changes ("sha256:..."). An approval names it, so that the server applies exactly the changes that the approver read.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Digest of the effect of the changes ("hmac-sha256:..."), without UIDs, generations and versions. Two plans of one server with
	// the same contents have the same effect. The server computes it with a key of its own, so that it reveals no secrets.
	// +optional
	Contents string `json:"contents,omitempty"`
	// Number of uploaded objects of a speculative plan. Set when the upload is complete.
	// +optional
	UploadedObjects *int32 `json:"uploadedObjects,omitempty"`
	// Plans that are changing the same resources. Make another plan when they have ended.
	// +optional
	// +listType=map
	// +listMapKey=uid
	WaitsFor []PlanReference `json:"waitsFor,omitempty"`
	// The decision about the plan. Written through the subresource "approval" alone.
	// +optional
	Approval *PlanApproval `json:"approval,omitempty"`
	// Whether the plan approves itself; set when spec.approval is Automatic. The server decides that once, when the plan is created.
	// +optional
	AutomaticApproval *AutomaticApproval `json:"automaticApproval,omitempty"`
	// Set when a user cancelled the plan. Only the subresource "cancel" writes it.
	// +optional
	Cancel *PlanCancel `json:"cancel,omitempty"`
	// How far the work is.
	// +optional
	Progress *PlanProgress `json:"progress,omitempty"`
	// Errors and warnings of the plan, at most 100; those of single changes stand with them (subresource "changes").
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// The workflow runs that made and applied the plan.
	// +optional
	Runs *PlanRuns `json:"runs,omitempty"`
	// Time at which the changes were complete.
	// +optional
	PlannedAt *metav1.Time `json:"plannedAt,omitempty"`
	// Time at which the last change ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// PlanReference names a plan.
type PlanReference struct {
	// Name; empty when the plan does not exist any more.
	// +optional
	Name string `json:"name,omitempty"`
	// UID.
	UID types.UID `json:"uid"`
}

// AutomaticApproval is what the server decided about a plan with spec.approval Automatic when the plan was created.
type AutomaticApproval struct {
	// True if the server applies the plan as soon as planning is done; false if it waits for an approval.
	Granted bool `json:"granted"`
	// Reason why the plan waits for an approval.
	// +optional
	Message string `json:"message,omitempty"`
}

// ApprovesItself says whether a plan is applied as soon as it is made.
func (p *Plan) ApprovesItself() bool {
	return p.Status.AutomaticApproval != nil && p.Status.AutomaticApproval.Granted
}

// Ended says whether nothing will be done for a plan any more: it was applied, it failed, there was nothing to do, or it was discarded,
// cancelled or superseded. A plan with blocked changes waits for a decision.
func (p *Plan) Ended() bool { return p.Status.Ended() }

// Ended is the Ended of the plan with the status. The finish time follows a moment later when a plan ends without being applied, since
// the server writes to its objects first.
func (s *PlanStatus) Ended() bool {
	stalled := s.StalledFor()
	return s.FinishedAt != nil || meta.IsStatusConditionTrue(s.Conditions, ConditionReady) || stalled != "" && stalled != ReasonBlocked
}

// StalledFor is the reason for which a plan is stalled; empty when it is not.
func (s *PlanStatus) StalledFor() string { return TrueReason(s.Conditions, ConditionStalled) }

// PlanFailed says whether the plan could not be made.
func (p *Plan) PlanFailed() bool {
	planned := meta.FindStatusCondition(p.Status.Conditions, ConditionPlanned)
	return planned != nil && planned.Reason == ReasonPlanFailed
}

// Identity is who did something, as the server's authentication saw them.
type Identity struct {
	// User name.
	Username string `json:"username"`
	// Groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
}

// PlanSummary counts changes by kind.
type PlanSummary struct {
	// Resources to create.
	Create int32 `json:"create"`
	// Resources to update in place.
	Update int32 `json:"update"`
	// Resources to destroy and create again.
	Replace int32 `json:"replace"`
	// Resources to destroy.
	Delete int32 `json:"delete"`
	// Resources to take over that exist already; each counts under what else happens to it, too.
	// +optional
	Import int32 `json:"import,omitempty"`
	// Resources whose record goes to another object; each counts under what else happens to it, too.
	// +optional
	Move int32 `json:"move,omitempty"`
	// Resources to forget without destroying them.
	// +optional
	Forget int32 `json:"forget,omitempty"`
	// Data sources that can be read only while the plan is applied.
	// +optional
	Read int32 `json:"read,omitempty"`
	// Actions to run.
	// +optional
	Invoke int32 `json:"invoke,omitempty"`
	// Resources that need no change.
	NoOp int32 `json:"noOp"`
	// Resources that something other than Hykube changed or removed.
	Drifted int32 `json:"drifted"`
	// Changes among the others that cannot be made, because lifecycle.preventDestroy forbids them or a change that they need.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// Resources of which nothing but the recorded state is brought up to date with what was read; each counts under noOp, too.
	// +optional
	RecordUpdates int32 `json:"recordUpdates,omitempty"`
	// Objects in the plan's scope.
	// +optional
	Resources int32 `json:"resources,omitempty"`
	// Resources that exist, as far as is recorded, and that the plan did not read from their provider.
	// +optional
	NotRead int32 `json:"notRead,omitempty"`
	// Resources that the plan leaves out and that refer to values that it changes. At most 1000 of them are counted for each change.
	// +optional
	Referrers int32 `json:"referrers,omitempty"`
	// The counts in one line, such as "+3 ~1 -/+0 -0"; "no changes" when there is nothing to do.
	// +optional
	Text string `json:"text,omitempty"`
}

// Decision is what was decided about a plan.
type Decision string

const (
	// DecisionApproved lets the plan be applied.
	DecisionApproved Decision = "Approved"
	// DecisionDiscarded ends the plan without applying it.
	DecisionDiscarded Decision = "Discarded"
)

// PlanApproval is a decision about a plan.
type PlanApproval struct {
	// Approved or Discarded.
	Decision Decision `json:"decision"`
	// Digest of the changes that the decision is about. It must equal status.digest of the plan.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Leave out blocked and stale changes, and those that depend on them, and apply the rest. If false, one such change prevents
	// the approval.
	// +optional
	Partial bool `json:"partial,omitempty"`
	// Reason, as the user wrote it.
	// +optional
	Message string `json:"message,omitempty"`
	// User who decided. Set by the server.
	// +optional
	By *Identity `json:"by,omitempty"`
	// When. Set by the server.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// PlanCancel is a request to stop a plan between two changes.
type PlanCancel struct {
	// User who cancelled the plan. Set by the server.
	// +optional
	By *Identity `json:"by,omitempty"`
	// When. Set by the server.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// PlanProgress is how far the applying of a plan is.
type PlanProgress struct {
	// Changes to make.
	Total int32 `json:"total"`
	// Changes made.
	Done int32 `json:"done"`
	// Changes being made.
	Running int32 `json:"running"`
	// Changes that failed.
	Failed int32 `json:"failed"`
	// Changes that were not tried, because something that they depend on failed, was stale or was cancelled.
	Skipped int32 `json:"skipped"`
	// Changes that a partial approval left out because they are blocked. They are not among the total.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// Replacements among the failed changes that ended between their destroy and their create.
	// +optional
	HalfDone int32 `json:"halfDone,omitempty"`
}

// PlanRuns names the Temporal workflows of a plan, as the Web UI shows them.
type PlanRuns struct {
	// Workflow that made the plan.
	// +optional
	Plan string `json:"plan,omitempty"`
	// Workflow that applied it.
	// +optional
	Apply string `json:"apply,omitempty"`
}

// Severity of a diagnostic.
type Severity string

const (
	// SeverityError stops the change that it is about.
	SeverityError Severity = "Error"
	// SeverityWarning stops nothing.
	SeverityWarning Severity = "Warning"
)

// Diagnostic is an error or a warning, from a provider or from Hykube, whole.
type Diagnostic struct {
	// Error or Warning.
	Severity Severity `json:"severity"`
	// What is wrong, in a short sentence that does not change from case to case.
	Summary string `json:"summary"`
	// What, why it matters, and what to do.
	// +optional
	Detail string `json:"detail,omitempty"`
	// Terraform address of the resource, such as "sim_network.main".
	// +optional
	Address string `json:"address,omitempty"`
	// Path of the attribute, such as "spec.rule[0].port".
	// +optional
	Attribute string `json:"attribute,omitempty"`
}

// PlanList is a list of Plans.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plan `json:"items"`
}
