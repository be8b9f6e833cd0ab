package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Plan computes the changes that make the infrastructure of a namespace match its objects: creates, updates,
// replacements, deletes and reads. After approval, the server applies exactly these changes.
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

// RefreshMode selects the resources that planning reads from their provider.
type RefreshMode string

const (
	// RefreshNone plans from the recorded state and reads nothing.
	RefreshNone RefreshMode = "None"
	// RefreshChanged reads the resources that the plan is about to change. This is the default.
	RefreshChanged RefreshMode = "Changed"
	// RefreshAll reads every resource that the plan visits, and so detects drift.
	RefreshAll RefreshMode = "All"
)

// ApprovalMode selects the approval of a plan.
type ApprovalMode string

const (
	// ApprovalManual waits for the approval of a user with the verb "approve" on the plan. This is the default.
	ApprovalManual ApprovalMode = "Manual"
	// ApprovalAutomatic applies the plan as soon as planning is done. To create such a plan, a user needs the verb
	// "approve". A copy of a plan, such as one from a backup, still waits for an approval; see
	// status.automaticApproval.
	ApprovalAutomatic ApprovalMode = "Automatic"
)

// PlanSpec selects the resources of a plan and how to plan them. Without selector and targets a plan selects every
// resource of the namespace.
type PlanSpec struct {
	// Plan only resources with these labels, and their dependencies.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Plan only these resources, and their dependencies, each as a Terraform address such as "sim_network.main".
	// +optional
	// +listType=atomic
	Targets []string `json:"targets,omitempty"`
	// Which resources to read from their provider first: None, Changed (the default) or All.
	// +optional
	Refresh RefreshMode `json:"refresh,omitempty"`
	// Leave out these resources, and all that depend on them, each as a Terraform address.
	// +optional
	// +listType=atomic
	Exclude []string `json:"exclude,omitempty"`
	// Only update the recorded state from the infrastructure, and change no infrastructure.
	// +optional
	RefreshOnly bool `json:"refreshOnly,omitempty"`
	// Limits of the reads of a refresh-only plan. With limits, the plan reads resources whose infrastructure is
	// recorded, and no data sources, in the order of their addresses.
	// +optional
	ReadBudget *ReadBudget `json:"readBudget,omitempty"`
	// Read only resources after this one in the order of addresses; only with readBudget. See status.readTo.
	// +optional
	ReadAfter string `json:"readAfter,omitempty"`
	// Resources to replace even when nothing about them changed, as Terraform addresses.
	// +optional
	// +listType=atomic
	Replace []string `json:"replace,omitempty"`
	// Actions to run even when they ran before, as Terraform addresses such as "action.sim_reboot.now".
	// +optional
	// +listType=atomic
	Invoke []string `json:"invoke,omitempty"`
	// Destroy the infrastructure of the selected resources, and keep their objects.
	// +optional
	Destroy bool `json:"destroy,omitempty"`
	// Who approves: Manual (the default) or Automatic.
	// +optional
	Approval ApprovalMode `json:"approval,omitempty"`
	// Plan the objects of an upload (subresource "objects") as if they were recorded. The server never records them,
	// and no user can approve the plan.
	// +optional
	Speculative bool `json:"speculative,omitempty"`
	// The speculative plan that the user saw, of the same user and in the last hour. This plan takes over the answers
	// of providers to the questions of that plan, so that it has the values that the user saw. It asks a provider again
	// about what was recorded, or configured, differently since.
	// +optional
	Shown *PlanReference `json:"shown,omitempty"`
	// Value of the function plantimestamp in this plan. Defaults to the creation time of the plan.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
}

// ReadBudget limits reads of infrastructure. The limits of the ProviderConfig hold, too.
type ReadBudget struct {
	// Maximum number of reads in a second, up to 10000; 0 means no limit.
	// +optional
	ReadsPerSecond int32 `json:"readsPerSecond,omitempty"`
	// Maximum number of resources to read; 0 means no limit.
	// +optional
	MaxReads int32 `json:"maxReads,omitempty"`
}

// PlanStatus has the changes of a plan, its approval and its progress.
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
	// Time at which the server accepted the plan. Unlike creationTimestamp, it orders plans of one second. Set by the
	// server.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`
	// Users who wrote what the changes follow from, since the resources were last applied. Rights of these users, and
	// not only of requester and approvers, decide whether the plan approves itself. Set by the server.
	// +optional
	// +listType=atomic
	Contributors []Contributor `json:"contributors,omitempty"`
	// The stack that made the plan. Set by the server.
	// +optional
	Stack *PlanStack `json:"stack,omitempty"`
	// Number of changes by kind.
	// +optional
	Summary *PlanSummary `json:"summary,omitempty"`
	// Digest of the changes ("sha256:..."). An approval names it, so that the server applies exactly the changes that
	// the approver read.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Digest of the effect of the changes ("hmac-sha256:..."), without UIDs, generations and versions. Two plans of one
	// server with the same contents have the same effect. The server computes it with a key of its own, so that it
	// reveals no secrets.
	// +optional
	Contents string `json:"contents,omitempty"`
	// Address of the last resource that a plan with spec.readBudget read. Empty if none follows.
	// +optional
	ReadTo string `json:"readTo,omitempty"`
	// Number of uploaded objects of a speculative plan. Set when the upload is complete.
	// +optional
	UploadedObjects *int32 `json:"uploadedObjects,omitempty"`
	// Plans that are currently changing the same resources. Create a new plan after they have ended.
	// +optional
	// +listType=map
	// +listMapKey=uid
	WaitsFor []PlanReference `json:"waitsFor,omitempty"`
	// How the apply updates and replaces the instances of ResourceSets with spec.rollout. The plan keeps the rollout
	// that the set had when the plan was made.
	// +optional
	// +listType=map
	// +listMapKey=uid
	Rollouts []PlanRollout `json:"rollouts,omitempty"`
	// Outputs of Modules that the changes change, at most 100. A plan with more than 10,000 changes lists none, and no
	// plan lists an output of more than 1,000 resources, or one that its requester may not read.
	// +optional
	// +listType=atomic
	Outputs []PlanOutput `json:"outputs,omitempty"`
	// The decision about the plan. Only the subresource "approval" writes it.
	// +optional
	Approval *PlanApproval `json:"approval,omitempty"`
	// The rules of PlanPolicies and ClusterPlanPolicies that hold for the plan, at most 50: those that deny it first.
	// The server evaluates all rules when the plan is made, at each approval, and before the apply.
	// +optional
	// +listType=atomic
	Policies []PlanPolicyResult `json:"policies,omitempty"`
	// The approvals of a plan for which a policy requires several. The last of them also sets the field approval.
	// +optional
	// +listType=atomic
	Approvals []PlanApproval `json:"approvals,omitempty"`
	// Whether the plan approves itself; set when spec.approval is Automatic. The server decides that once, when the
	// plan is created. A policy can withdraw it.
	// +optional
	AutomaticApproval *AutomaticApproval `json:"automaticApproval,omitempty"`
	// Set when a user cancelled the plan. Only the subresource "cancel" writes it.
	// +optional
	Cancel *PlanCancel `json:"cancel,omitempty"`
	// Time until which the apply pauses for a rollout while no step of it runs. Then the plan does not count as one
	// that is being applied. Empty when the apply continues.
	// +optional
	PausedUntil *metav1.Time `json:"pausedUntil,omitempty"`
	// Progress of the planning and the apply.
	// +optional
	Progress *PlanProgress `json:"progress,omitempty"`
	// Errors and warnings of the plan, errors first: at most 100, and at most 256 KiB of text. If the list leaves some
	// out, the last warning counts them. The subresource "changes" has those of single changes.
	// +optional
	// +listType=atomic
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// Assertions in check blocks of Modules that do not hold, as warnings: with the planned values, and after an apply
	// with the recorded ones. The limits are those of the diagnostics.
	// +optional
	// +listType=atomic
	Checks []Diagnostic `json:"checks,omitempty"`
	// The workflow runs that made and applied the plan.
	// +optional
	Runs *PlanRuns `json:"runs,omitempty"`
	// Time at which the changes were complete.
	// +optional
	PlannedAt *metav1.Time `json:"plannedAt,omitempty"`
	// Time at which an object of the waiting plan was changed, so that the plan became stale.
	// +optional
	StaleAt *metav1.Time `json:"staleAt,omitempty"`
	// Time at which the last change ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// PlanOutput is an output of a Module whose value a plan changes. A value that is sensitive, or too large for the Plan,
// is omitted. Without the right to get the Module, all values are omitted.
type PlanOutput struct {
	// Name of the Module.
	Module string `json:"module"`
	// Name of the output.
	Name string `json:"name"`
	// Value before the plan. Omitted if there is none, or if a part of it is not recorded.
	// +optional
	Before *JSON `json:"before,omitempty"`
	// Value after the apply.
	// +optional
	After *JSON `json:"after,omitempty"`
	// True if the value, or a part of it, is known after the apply.
	// +optional
	AfterUnknown bool `json:"afterUnknown,omitempty"`
	// True if the value is sensitive.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// PlanReference names a plan.
type PlanReference struct {
	// Name. Empty if the plan no longer exists.
	// +optional
	Name string `json:"name,omitempty"`
	// UID.
	UID types.UID `json:"uid"`
}

// AutomaticApproval is the server's decision about a plan with spec.approval Automatic, made when the plan is created.
type AutomaticApproval struct {
	// True if the server applies the plan as soon as planning is done; false if it waits for an approval.
	Granted bool `json:"granted"`
	// True if the creator of the plan may not approve plans. Then the server applies the plan only if a policy's rule
	// AllowAutomatic holds.
	// +optional
	ByPolicy bool `json:"byPolicy,omitempty"`
	// Reason why the plan waits for an approval.
	// +optional
	Message string `json:"message,omitempty"`
}

// ApprovesItself reports whether the server applies the plan as soon as planning is done.
func (p *Plan) ApprovesItself() bool {
	return p.Status.AutomaticApproval != nil && p.Status.AutomaticApproval.Granted
}

// ApprovalFollows reports whether the server approves the plan next: planning is done, and the plan approves itself.
func (p *Plan) ApprovalFollows() bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, ConditionReady)
	return p.ApprovesItself() && p.Status.Approval == nil && !p.Ended() && ready != nil &&
		ready.Reason == ReasonPlanning &&
		meta.IsStatusConditionTrue(p.Status.Conditions, ConditionPlanned)
}

// Ended reports whether the plan has ended: it was applied, failed, had no changes, or was discarded, cancelled or
// superseded. A plan with blocked changes, or one that a policy denies, has not ended: it waits for a decision.
func (p *Plan) Ended() bool { return p.Status.Ended() }

// Ended reports whether the plan with this status has ended. For a plan that ends without an apply, the finish time is
// set a moment later, since the server first writes its objects.
func (s *PlanStatus) Ended() bool {
	stalled := s.StalledFor()
	return s.FinishedAt != nil || meta.IsStatusConditionTrue(s.Conditions, ConditionReady) ||
		stalled != "" && stalled != ReasonBlocked && stalled != ReasonPolicyDenied
}

// Undecided reports whether the plan has not ended, and no user has approved, discarded or cancelled it.
func (p *Plan) Undecided() bool {
	return !p.Ended() && p.Status.Approval == nil && p.Status.Cancel == nil
}

// StalledFor returns the reason why a plan is stalled; "" if it is not.
func (s *PlanStatus) StalledFor() string { return TrueReason(s.Conditions, ConditionStalled) }

// AllApprovals returns the approvals of a plan, oldest first.
func (p *Plan) AllApprovals() []PlanApproval {
	if a := p.Status.Approval; len(p.Status.Approvals) == 0 && a != nil && a.Decision == DecisionApproved {
		return []PlanApproval{*a}
	}
	return p.Status.Approvals
}

// ApproveCommand returns the command that approves a plan with a digest, and no later plan of the same name.
func ApproveCommand(name, namespace, digest string) string {
	return fmt.Sprintf("kubectl hykube approve %s -n %s --digest %s", name, namespace, digest)
}

// PlanFailed reports whether planning failed.
func (p *Plan) PlanFailed() bool {
	planned := meta.FindStatusCondition(p.Status.Conditions, ConditionPlanned)
	return planned != nil && planned.Reason == ReasonPlanFailed
}

// Identity is the user of a request, as the server authenticated it.
type Identity struct {
	// User name.
	Username string `json:"username"`
	// Groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// True if the token file of the server named the user. Such a user has no rights any more once the file does not
	// name the user, and has no rights of a group once the file does not give the group.
	// +optional
	TokenFile bool `json:"tokenFile,omitempty"`
	// Users whose workers acted for the user in a workflow that the user started. Each of them needs the rights, too.
	// Empty if the user sent the request without a workflow.
	// +optional
	// +listType=atomic
	Through []WorkflowUser `json:"through,omitempty"`
}

// WorkflowUser is a user who took part in a workflow that another user started.
type WorkflowUser struct {
	// User name.
	Username string `json:"username"`
	// Groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// True if the token file of the server named the user.
	// +optional
	TokenFile bool `json:"tokenFile,omitempty"`
}

// Shares reports whether one user is part of both identities: as the user, or through a workflow.
func (i *Identity) Shares(other *Identity) bool {
	return i != nil && other != nil && slices.ContainsFunc(i.Usernames(),
		func(name string) bool { return slices.Contains(other.Usernames(), name) })
}

// Within reports whether each user behind the identity is also behind another one.
func (i *Identity) Within(other *Identity) bool {
	return !slices.ContainsFunc(i.Usernames(),
		func(name string) bool { return !slices.Contains(other.Usernames(), name) })
}

// String returns the name of the user, and of those through whose workers the request came: "alice through flow".
func (i Identity) String() string {
	if len(i.Through) == 0 {
		return i.Username
	}
	return i.Username + " through " + strings.Join(i.Usernames()[1:], ", ")
}

// Usernames returns the names of all users behind an identity: the user's own, and then those of the users in Through.
func (i *Identity) Usernames() []string {
	names := []string{i.Username}
	for _, u := range i.Through {
		names = append(names, u.Username)
	}
	return names
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
	// Existing resources to import. Each also counts under its other change.
	// +optional
	Import int32 `json:"import,omitempty"`
	// Resources whose record moves to another object. Each also counts under its other change.
	// +optional
	Move int32 `json:"move,omitempty"`
	// Resources to forget without destroying them.
	// +optional
	Forget int32 `json:"forget,omitempty"`
	// Data sources that are read during the apply.
	// +optional
	Read int32 `json:"read,omitempty"`
	// Actions to run.
	// +optional
	Invoke int32 `json:"invoke,omitempty"`
	// Resources that need no change.
	NoOp int32 `json:"noOp"`
	// Resources that were changed or removed outside of Hykube.
	Drifted int32 `json:"drifted"`
	// Changes among the others that lifecycle.preventDestroy forbids, directly or for one of their dependencies.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// Resources whose recorded state alone is updated with the values that were read. Each also counts under noOp.
	// +optional
	RecordUpdates int32 `json:"recordUpdates,omitempty"`
	// Objects in the plan's scope.
	// +optional
	Resources int32 `json:"resources,omitempty"`
	// Resources that exist according to the recorded state, and that planning did not read from their provider.
	// +optional
	NotRead int32 `json:"notRead,omitempty"`
	// Number of resources outside of the plan that refer to values that it changes. At most 1000 are counted for each
	// change.
	// +optional
	Referrers int32 `json:"referrers,omitempty"`
	// The counts in one line, such as "+3 ~1 -/+0 -0", or "no changes".
	// +optional
	Text string `json:"text,omitempty"`
}

// Decision is a decision about a plan.
type Decision string

const (
	// DecisionApproved permits the apply of the plan.
	DecisionApproved Decision = "Approved"
	// DecisionDiscarded ends the plan without an apply.
	DecisionDiscarded Decision = "Discarded"
)

// PlanApproval is a decision about a plan.
type PlanApproval struct {
	// Approved or Discarded.
	Decision Decision `json:"decision"`
	// Digest of the changes that were decided on. It must equal status.digest of the plan.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Leave out blocked and stale changes, and those that depend on them, and apply the rest. If false, one such change
	// prevents the approval.
	// +optional
	Partial bool `json:"partial,omitempty"`
	// Indexes of the changes that a partial approval leaves out, such as "0-3,7": at the time of the approval they were
	// blocked or stale, or depended on such a change. The apply leaves them out, too, and policies judge the plan
	// without them. Set by the server.
	// +optional
	LeftOut string `json:"leftOut,omitempty"`
	// Reason for the decision, as text.
	// +optional
	Message string `json:"message,omitempty"`
	// User who decided. Set by the server.
	// +optional
	By *Identity `json:"by,omitempty"`
	// Time of the decision. Set by the server.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// Set if the plan approved itself, so that no user decided. Then by is the user with whose rights it did: the
	// author of the stack, or else the user who made the plan. Set by the server.
	// +optional
	Automatic *AutomaticDecision `json:"automatic,omitempty"`
}

// AutomaticDecision is why a plan approved itself.
type AutomaticDecision struct {
	// Name of the stack with spec.approval Automatic that made the plan; empty if spec.approval of the plan itself is
	// Automatic.
	// +optional
	Stack string `json:"stack,omitempty"`
	// The rule AllowAutomatic that allowed it, such as "PlanPolicy/production/no-deletes"; empty if no such rule holds.
	// +optional
	Rule string `json:"rule,omitempty"`
	// User who last wrote the policy of the rule; empty if the server does not know the user.
	// +optional
	RuleAuthor string `json:"ruleAuthor,omitempty"`
}

// String returns the reason, as in: stack "shop", allowed by PlanPolicy/production/no-deletes of ada.
func (a *AutomaticDecision) String() string {
	text := "spec.approval Automatic"
	if a.Stack != "" {
		text = fmt.Sprintf("stack %q", a.Stack)
	}
	if a.Rule != "" {
		text += ", allowed by " + a.Rule
	}
	if a.RuleAuthor != "" {
		text += " of " + a.RuleAuthor
	}
	return text
}

// PlanCancel is a request to stop a plan before its next change.
type PlanCancel struct {
	// User who cancelled the plan. Set by the server.
	// +optional
	By *Identity `json:"by,omitempty"`
	// Time of the request. Set by the server.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// PlanProgress counts the changes of an apply by their progress.
type PlanProgress struct {
	// Changes in the apply.
	Total int32 `json:"total"`
	// Changes that are done.
	Done int32 `json:"done"`
	// Changes in progress.
	Running int32 `json:"running"`
	// Changes that failed.
	Failed int32 `json:"failed"`
	// Changes that were not attempted, because a dependency failed, was stale or was cancelled.
	Skipped int32 `json:"skipped"`
	// Blocked changes that a partial approval left out. The total does not include them.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// Replacements among the failed changes that stopped between their destroy and their create.
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
	// SeverityError stops the change that it concerns.
	SeverityError Severity = "Error"
	// SeverityWarning stops nothing.
	SeverityWarning Severity = "Warning"
)

// Diagnostic is an error or a warning from a provider or from Hykube.
type Diagnostic struct {
	// Error or Warning.
	Severity Severity `json:"severity"`
	// The problem in a short sentence that is the same in all cases.
	Summary string `json:"summary"`
	// Details of the problem, its effect, and the remedy.
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

// Changes returns the number of changes; 0 for nil. An import or a move is one together with what it changes.
func (s *PlanSummary) Changes() int32 {
	if s == nil {
		return 0
	}
	return max(s.Create+s.Update+s.Replace+s.Delete+s.Forget+s.Read+s.Invoke, s.Import, s.Move)
}

// Count adds a planned or applied change to the counts. A replace that forgets the old instance counts as a create and
// a forget.
func (s *PlanSummary) Count(c *PlanChange) {
	switch c.Action {
	case ActionCreate:
		s.Create++
	case ActionUpdate:
		s.Update++
	case ActionReplace:
		if c.Forget { // the old instance is not destroyed
			s.Create++
			s.Forget++
			break
		}
		s.Replace++
	case ActionDelete:
		s.Delete++
	case ActionForget:
		s.Forget++
	case ActionInvoke:
		s.Invoke++
	case ActionRead:
		if c.Mode == ModeData {
			s.Read++
		}
	case ActionNoOp:
		s.NoOp++
	}
	if c.Importing != nil {
		s.Import++
	}
	if c.PreviousAddress != "" {
		s.Move++
	}
	if len(c.Drift) > 0 {
		s.Drifted++
	}
	if c.UpdatesRecord {
		s.RecordUpdates++
	}
}

// Unread returns the text for a plan without changes: nothing changed according to the recorded state, and how many
// resources were not read.
func (s *PlanSummary) Unread() string {
	known := "No resource or reference changed since the last apply."
	if s.NoOp > 0 {
		known = "The recorded state matches the objects."
	}
	if s.NotRead == 1 {
		return known + " 1 resource was not read; --refresh=All looks for drift."
	}
	return fmt.Sprintf("%s %d resources were not read; --refresh=All looks for drift.", known, s.NotRead)
}
