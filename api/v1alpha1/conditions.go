package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Ready, Reconciling and Stalled follow kstatus, so that `kubectl wait`, Argo CD and Flux
// understand every object: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
const (
	// ConditionReady is True when what the spec asks for is what is there.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is under way, and absent or False otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will happen until somebody acts; its message says what to do.
	ConditionStalled = "Stalled"

	// ConditionDrifted is True on a resource whose infrastructure a plan found changed or removed by something other than Hykube;
	// its message names the attributes. It goes when a later read finds no drift, or a plan that records or corrects it is applied.
	ConditionDrifted = "Drifted"

	// ConditionInstalled is True on a Provider whose plugin is on the server's disk and was verified.
	ConditionInstalled = "Installed"

	// ConditionInUse is True on a Provider or ProviderConfig that is being deleted, as long as living resources need it.
	ConditionInUse = "InUse"

	// ConditionUndeleting is True on a namespace while the server takes its deletion back.
	ConditionUndeleting = "Undeleting"

	// ConditionPlanned is True on a Plan whose changes are computed and stored.
	ConditionPlanned = "Planned"
	// ConditionApproved is True on a Plan that somebody with the right to, or its policy, approved; False when it was discarded.
	ConditionApproved = "Approved"
	// ConditionApplied is True on a Plan whose every change is done, and False when some failed, were skipped or were cancelled.
	ConditionApplied = "Applied"
	// ConditionStale is True on a Plan some of whose objects or states moved after it was made; its message names them.
	ConditionStale = "Stale"
)

// Reasons of conditions. They are part of the API: scripts may match them.
const (
	// ReasonAwaitingPlan says that an object was recorded and that no plan has looked at this generation of it.
	ReasonAwaitingPlan = "AwaitingPlan"
	// ReasonAwaitingApproval says that a plan waits for a person; on a resource, that the plan in status.pendingPlan does.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonPlanning says that a plan is being computed.
	ReasonPlanning = "Planning"
	// ReasonAwaitingObjects says that a speculative plan waits for the objects that are uploaded with it.
	ReasonAwaitingObjects = "AwaitingObjects"
	// ReasonSpeculative says that a speculative plan is made. Its objects were never recorded, so it cannot be approved.
	ReasonSpeculative = "Speculative"
	// ReasonPlanned says that a plan's changes are computed and stored.
	ReasonPlanned = "Planned"
	// ReasonPlanFailed says that a plan could not be computed; the message and the diagnostics say why.
	ReasonPlanFailed = "PlanFailed"
	// ReasonNoChanges says that a plan found nothing to do.
	ReasonNoChanges = "NoChanges"
	// ReasonDeferred says that a plan can do nothing now, and that providers put changes off which it would have made.
	ReasonDeferred = "Deferred"
	// ReasonApproved says that a person approved the plan.
	ReasonApproved = "Approved"
	// ReasonAutomatic says that the plan's own policy (approval: Automatic) approved it.
	ReasonAutomatic = "Automatic"
	// ReasonDiscarded says that a person decided against the plan.
	ReasonDiscarded = "Discarded"
	// ReasonSuperseded says that a later plan with the same spec was made, or that an applied plan changed something that this plan
	// would change, before anybody decided about it; the message names that plan.
	ReasonSuperseded = "Superseded"
	// ReasonApplying says that changes are being made.
	ReasonApplying = "Applying"
	// ReasonApplied says that the change was made.
	ReasonApplied = "Applied"
	// ReasonAppliedInPart says that every change was made but for those that are blocked, which a partial approval left out.
	ReasonAppliedInPart = "AppliedInPart"
	// ReasonApplyFailed says that a provider, or Hykube, refused or failed a change.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonSkipped says that a change was not tried because one that it depends on failed.
	ReasonSkipped = "Skipped"
	// ReasonCancelling says that somebody stopped the plan, and that changes which were under way are waited for.
	ReasonCancelling = "Cancelling"
	// ReasonCancelled says that somebody stopped the plan before this change.
	ReasonCancelled = "Cancelled"
	// ReasonStale says that the object, or its state, moved after the plan was made.
	ReasonStale = "Stale"
	// ReasonBlocked says that lifecycle.preventDestroy forbids changes of a plan; the message names them.
	ReasonBlocked = "Blocked"
	// ReasonReplaceIncomplete says that a replacement ended between its destroy and its create, in whichever order they are made.
	ReasonReplaceIncomplete = "ReplaceIncomplete"
	// ReasonInvalid says that the provider, or an expression, refuses the spec.
	ReasonInvalid = "Invalid"
	// ReasonDestroyed says that a plan destroyed the infrastructure and that the object stays.
	ReasonDestroyed = "Destroyed"
	// ReasonForgotten says that a plan stopped managing the infrastructure, which exists on, and that the object stays.
	ReasonForgotten = "Forgotten"
	// ReasonDrifted says that the infrastructure was changed by something other than Hykube.
	ReasonDrifted = "Drifted"
	// ReasonGone says that the infrastructure behind the object no longer exists.
	ReasonGone = "Gone"
	// ReasonCreateUnknown says that a create was begun and its outcome was lost: a person must look.
	ReasonCreateUnknown = "CreateUnknown"
	// ReasonTainted says that the infrastructure behind the object is marked to be replaced by the next plan.
	ReasonTainted = "Tainted"
	// ReasonDeclared says that an ephemeral resource was recorded: plans that need it open it, and nothing of it is kept.
	ReasonDeclared = "Declared"
	// ReasonDeleting says that the object waits for a plan that destroys its infrastructure.
	ReasonDeleting = "AwaitingDestroy"
	// ReasonForgetting says that the object waits for a plan that forgets its infrastructure and leaves it alone.
	ReasonForgetting = "AwaitingForget"
	// ReasonMoving says that the object waits for a plan that gives its infrastructure to another object, which names it in lifecycle.moved.
	ReasonMoving = "AwaitingMove"

	// ReasonSomeResourcesRemain says that resources still need what is being deleted; the message counts them and names one.
	ReasonSomeResourcesRemain = "SomeResourcesRemain"
	// ReasonTerminating is what kubectl get shows as the reason of a Provider or ProviderConfig that is being deleted. No condition has it.
	ReasonTerminating = "Terminating"
	// ReasonUndeleteRequested says that a user asked to take the deletion of a namespace back.
	ReasonUndeleteRequested = "UndeleteRequested"
	// ReasonUndeleted says that the deletion of an object was taken back.
	ReasonUndeleted = "Undeleted"

	// ReasonInstalling says that a provider is being resolved, fetched or verified.
	ReasonInstalling = "Installing"
	// ReasonInstalled says that a provider's plugin was verified and its kinds are served.
	ReasonInstalled = "Installed"
	// ReasonInstallFailed says that a provider could not be resolved, fetched or verified.
	ReasonInstallFailed = "InstallFailed"
	// ReasonSchemaFailed says that an installed provider did not answer with a usable schema.
	ReasonSchemaFailed = "SchemaFailed"
	// ReasonUpgradeRefused says that the version which is asked for lacks types that objects are of, so that the old one stays.
	ReasonUpgradeRefused = "UpgradeRefused"
	// ReasonConfigured says that the provider accepted a ProviderConfig.
	ReasonConfigured = "Configured"
	// ReasonConfigRefused says that the provider refused a ProviderConfig.
	ReasonConfigRefused = "ConfigRefused"
	// ReasonProviderNotReady says that the provider of a configuration is missing or not ready.
	ReasonProviderNotReady = "ProviderNotReady"
	// ReasonSecretNotFound says that a Secret, or a key in one, that a configuration refers to does not exist.
	ReasonSecretNotFound = "SecretNotFound"
)

// Types of the causes in the answer to an approval that is refused. They are part of the API, as reasons are.
const (
	// CauseBlocked says that the field, a change of the plan, is blocked.
	CauseBlocked = "Blocked"
	// CauseStale says that the field, a change of the plan, moved after the plan was made.
	CauseStale = "Stale"
	// CauseNothingLeft says that the plan has no change that is neither blocked nor stale nor depends on one that is.
	CauseNothingLeft = "NothingLeft"
)

// CauseBeingDeleted is the type of a cause in the answer to an upload of objects to plan. It says that the object is marked for deletion,
// so that the next plan would destroy it, or its last user takes it along, although the upload declares it.
const CauseBeingDeleted = "BeingDeleted"

// FinalizerState keeps an object until what it stands for is destroyed. The server adds it before the
// external create and removes it after the destroy; nobody else may remove it.
const FinalizerState = "hykube.io/state"

// FinalizerRecord keeps a Plan that was decided about until its PlanRecord says how it ended. The server adds it with the decision
// and removes it; nobody else may.
const FinalizerRecord = "hykube.io/record"

// FinalizerInUse keeps a deleted Provider, ProviderConfig, Secret or ConfigMap until no living resource needs it. The server adds it when
// the object is deleted, and removes it; nobody else may.
const FinalizerInUse = "hykube.io/in-use"

// AnnotationInUseBy says on a Secret or ConfigMap that is being deleted which resources still need it.
const AnnotationInUseBy = "hykube.io/in-use-by"

// AnnotationCreatedAs is put by the server on each Plan that asks for automatic approval, with the UID of the Plan. A manifest that
// has it already is a copy, and waits for a person.
const AnnotationCreatedAs = "hykube.io/created-as"

// DefaultProviderConfig is the ProviderConfig that a resource uses when it names none.
const DefaultProviderConfig = "default"

// OutdatedByEdit says whether the condition Ready of a resource says nothing any more once its spec or lifecycle was edited. A reason that
// is about the infrastructure, such as CreateUnknown, or about the edit itself, such as Stale, lasts.
func OutdatedByEdit(reason string, ready bool) bool {
	switch reason {
	case ReasonAwaitingApproval, ReasonBlocked, ReasonInvalid:
		return true
	}
	return ready
}

// TrueReason is the reason of a condition that is true; empty when it is not.
func TrueReason(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// MessageApplied is the message of the condition Ready of a resource that is applied.
const MessageApplied = "The infrastructure matches the spec."

// Messages of the condition Ready of an object that is marked as deleted. The server and its workers write them.
const (
	// MessageDeleting goes with ReasonDeleting.
	MessageDeleting = "deleted; make a Plan to destroy the infrastructure and release the object"
	// MessageForgetting goes with ReasonForgetting.
	MessageForgetting = "deleted, and lifecycle.destroy is false; make a Plan to forget the infrastructure, which stays, and release the object"
)

// MessageMoving goes with ReasonMoving. It names the object that takes the infrastructure over.
func MessageMoving(to string) string {
	return "deleted, and " + to + " takes its infrastructure over (lifecycle.moved); make a Plan to move it and release the object"
}
