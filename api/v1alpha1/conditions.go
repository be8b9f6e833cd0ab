package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Ready, Reconciling and Stalled follow kstatus, so that `kubectl wait`, Argo CD and Flux
// understand every object: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
const (
	// ConditionReady is True if the infrastructure or object matches its spec.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is in progress, and absent or False otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True if nothing will happen until a user acts. Its message says what to do.
	ConditionStalled = "Stalled"

	// ConditionDrifted is True on a resource whose infrastructure was changed or removed outside of Hykube, as an
	// approved refresh-only plan recorded. Its message names the attributes. A plan removes the condition if the
	// infrastructure matches the spec again, without or with changes.
	ConditionDrifted = "Drifted"

	// ConditionInstalled is True on a Provider whose plugin is on the server's disk and verified.
	ConditionInstalled = "Installed"

	// ConditionVerified is True on a Provider whose package has a checksum that spec.checksums, the publisher's signed
	// list or a network mirror names. It is Unknown for a package of a mirror directory whose checksum neither a list
	// nor a signature confirms.
	ConditionVerified = "Verified"
	// ConditionSigned is True on a Provider whose package is on a list of checksums with a verified signature. Its
	// message names the key. It is Unknown for a package from a mirror, unless a signature is required.
	ConditionSigned = "Signed"

	// ConditionSandboxed is True on a Provider whose processes cannot access files and processes of the server. Its
	// message names the restrictions, and those that the machine does not support.
	ConditionSandboxed = "Sandboxed"

	// ConditionInUse is True on a Provider or ProviderConfig that is being deleted while existing resources still need
	// it.
	ConditionInUse = "InUse"

	// ConditionUndeleting is True on a namespace while the server reverts its deletion.
	ConditionUndeleting = "Undeleting"

	// ConditionPlanned is True on a Plan whose changes are computed and stored.
	ConditionPlanned = "Planned"
	// ConditionApproved is True on a Plan that a user or its own policy approved. It is False on a discarded Plan.
	ConditionApproved = "Approved"
	// ConditionApplied is True on a Plan if every change is done. It is False if changes failed, were skipped or were
	// cancelled.
	ConditionApplied = "Applied"
	// ConditionStale is True on a Plan if an object or a recorded state changed after planning. Its message names them.
	ConditionStale = "Stale"
)

// Reasons of conditions. They are part of the API: scripts may match them.
const (
	// ReasonAwaitingPlan: no plan has applied this generation of the object.
	ReasonAwaitingPlan = "AwaitingPlan"
	// ReasonAwaitingApproval: a plan waits for a user's approval.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonPlanning: planning is in progress.
	ReasonPlanning = "Planning"
	// ReasonQueued: the plan waits for other plans, because the server makes and applies a limited number at once.
	ReasonQueued = "Queued"
	// ReasonAwaitingProvider: planning waits for a provider for longer than usual. The message names the resources.
	ReasonAwaitingProvider = "AwaitingProvider"
	// ReasonAwaitingObjects: a speculative plan waits for the upload of its objects.
	ReasonAwaitingObjects = "AwaitingObjects"
	// ReasonSpeculative: the speculative plan is complete. It cannot be approved, because its objects were never
	// recorded.
	ReasonSpeculative = "Speculative"
	// ReasonPlanned: the changes of a plan are computed and stored.
	ReasonPlanned = "Planned"
	// ReasonPlanFailed: planning failed; the message and the diagnostics say why.
	ReasonPlanFailed = "PlanFailed"
	// ReasonNoChanges: the plan has no changes.
	ReasonNoChanges = "NoChanges"
	// ReasonDeferred: the plan can change nothing now, because providers deferred changes.
	ReasonDeferred = "Deferred"
	// ReasonApproved: a user approved the plan.
	ReasonApproved = "Approved"
	// ReasonAutomatic: the plan's own policy (approval: Automatic) approved it.
	ReasonAutomatic = "Automatic"
	// ReasonDiscarded: a user discarded the plan.
	ReasonDiscarded = "Discarded"
	// ReasonSuperseded: before a decision about this plan, a later plan with the same spec was made, or an applied plan
	// changed one of its objects. The message names that plan.
	ReasonSuperseded = "Superseded"
	// ReasonApplying: the apply is in progress.
	ReasonApplying = "Applying"
	// ReasonRolloutPaused: the plan waits between two waves of a ResourceSet's rollout.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonServerCopied: the approved plan waits, because the server runs on a copy of its database. The server with
	// the original may apply the plan.
	ReasonServerCopied = "ServerCopied"
	// ReasonServerFrozen: the approved plan waits, because the database was restored from a backup and is not thawed,
	// or because the plan was approved before the thaw.
	ReasonServerFrozen = "ServerFrozen"
	// ReasonApplied: the change was applied.
	ReasonApplied = "Applied"
	// ReasonAppliedInPart: a partial approval left blocked changes out, and all other changes were applied.
	ReasonAppliedInPart = "AppliedInPart"
	// ReasonApplyFailed: a provider or Hykube refused a change, or the change failed.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonSkipped: the change was not attempted, because one of its dependencies failed.
	ReasonSkipped = "Skipped"
	// ReasonCancelling: a user cancelled the plan, and the server waits for the running changes.
	ReasonCancelling = "Cancelling"
	// ReasonCancelled: a user cancelled the plan before this change.
	ReasonCancelled = "Cancelled"
	// ReasonStale: the object or its recorded state changed after planning.
	ReasonStale = "Stale"
	// ReasonBlocked: lifecycle.preventDestroy forbids changes of the plan; the message names them.
	ReasonBlocked = "Blocked"
	// ReasonPolicyDenied: rules of policies deny the plan; the message names them.
	ReasonPolicyDenied = "PolicyDenied"
	// ReasonReplaceIncomplete: a replacement stopped between its destroy and its create, in either order.
	ReasonReplaceIncomplete = "ReplaceIncomplete"
	// ReasonDestroyed: a plan destroyed the infrastructure and kept the object.
	ReasonDestroyed = "Destroyed"
	// ReasonForgotten: a plan stopped managing the infrastructure, which still exists, and kept the object.
	ReasonForgotten = "Forgotten"
	// ReasonAccountChanged: a drift check found resources changed or missing with other arguments of their
	// ProviderConfig than before, so they may be those of another account. It recorded nothing about them.
	ReasonAccountChanged = "AccountChanged"
	// ReasonDrifted: the infrastructure was changed outside of Hykube.
	ReasonDrifted = "Drifted"
	// ReasonGone: the object's infrastructure no longer exists.
	ReasonGone = "Gone"
	// ReasonCreateUnknown: a create began and its outcome is unknown; a user must check the infrastructure.
	ReasonCreateUnknown = "CreateUnknown"
	// ReasonRecordLost: a plan applied the object, and the ledger has no record of it. No plan creates it again until a
	// user says whether the infrastructure exists.
	ReasonRecordLost = "RecordLost"
	// ReasonWithoutObject: a record of infrastructure has no object, as after a restore of another moment. Only a
	// Resource has this reason.
	ReasonWithoutObject = "WithoutObject"
	// ReasonTainted: the next plan will replace the object's infrastructure.
	ReasonTainted = "Tainted"
	// ReasonKeysUnknown: the keys of a ResourceSet come from a ConfigMap that does not exist or has no keys.
	ReasonKeysUnknown = "KeysUnknown"
	// ReasonInstancesFailed: instances of a ResourceSet have failures.
	ReasonInstancesFailed = "InstancesFailed"
	// ReasonSettling: resources of the Stack changed less than spec.plan.settle ago. The server makes a plan after that
	// time without a further change.
	ReasonSettling = "Settling"
	// ReasonSuspended: the Stack makes no plan, because of spec.suspend.
	ReasonSuspended = "Suspended"
	// ReasonAwaitingSchedule: the Stack has changes and waits for the time of its schedule.
	ReasonAwaitingSchedule = "AwaitingSchedule"
	// ReasonAwaitingStack: the Stack waits for a stack in spec.dependsOn. The message names it.
	ReasonAwaitingStack = "AwaitingStack"
	// ReasonAwaitingDependency: a resource of the Stack refers to a resource that the Stack does not select and that is
	// not applied. The message names both.
	ReasonAwaitingDependency = "AwaitingDependency"
	// ReasonSelectorOverlaps: an older Stack of the namespace selects some of the same resources; the message names it.
	// The Stack makes no plan.
	ReasonSelectorOverlaps = "SelectorOverlaps"
	// ReasonRetrying: the last plan of the Stack failed, and the server makes another one after a pause.
	ReasonRetrying = "Retrying"
	// ReasonWorkflowRunning: the workflow of the Stack runs. The message names its run.
	ReasonWorkflowRunning = "WorkflowRunning"
	// ReasonAwaitingWorker: the workflow of the Stack waits for a worker, because none polls its task queue.
	ReasonAwaitingWorker = "AwaitingWorker"
	// ReasonWorkflowFailed: the workflow of the Stack failed, timed out or was terminated. The message says why.
	ReasonWorkflowFailed = "WorkflowFailed"
	// ReasonWorkflowIncomplete: the workflow of the Stack completed, and the infrastructure of some resources does not
	// match their specs.
	ReasonWorkflowIncomplete = "WorkflowIncomplete"
	// ReasonWorkflowRefused: Temporal does not accept the workflow of the Stack. The message says why.
	ReasonWorkflowRefused = "WorkflowRefused"
	// ReasonMissingRights: the author of the Stack lacks a right; the message names it.
	ReasonMissingRights = "MissingRights"
	// ReasonOutputsFailed: the infrastructure matches the specs, but an output of the Stack or Module cannot be
	// evaluated or written.
	ReasonOutputsFailed = "OutputsFailed"
	// ReasonNothingSent: the Notification had no message to send since its spec was written.
	ReasonNothingSent = "NothingSent"
	// ReasonDelivered: the receiver of the Notification accepted the last message.
	ReasonDelivered = "Delivered"
	// ReasonDeliveryRetrying: the receiver did not accept a message, and the server tries again. The message says why.
	ReasonDeliveryRetrying = "DeliveryRetrying"
	// ReasonDeliveryFailed: the server no longer tries to send the last message. The message of the condition says why.
	ReasonDeliveryFailed = "DeliveryFailed"
	// ReasonDeclared: the ephemeral resource is recorded. Plans that need it open it, and store nothing of it.
	ReasonDeclared = "Declared"
	// ReasonDeleting: the object waits for a plan that destroys its infrastructure.
	ReasonDeleting = "AwaitingDestroy"
	// ReasonForgetting: the object waits for a plan that removes its record and keeps the infrastructure.
	ReasonForgetting = "AwaitingForget"
	// ReasonMoving: the object waits for a plan that moves its infrastructure to another object, whose lifecycle.moved
	// names it.
	ReasonMoving = "AwaitingMove"

	// ReasonSomeResourcesRemain: resources still need the object that is being deleted. The message has their number
	// and names one.
	ReasonSomeResourcesRemain = "SomeResourcesRemain"
	// ReasonTerminating: kubectl get shows this reason for a Provider or ProviderConfig that is being deleted. No
	// condition has it.
	ReasonTerminating = "Terminating"
	// ReasonUndeleteRequested: a user requested to revert the deletion of a namespace.
	ReasonUndeleteRequested = "UndeleteRequested"
	// ReasonUndeleted: the deletion of the object was reverted.
	ReasonUndeleted = "Undeleted"

	// ReasonInstalling: the server resolves, fetches or verifies a provider.
	ReasonInstalling = "Installing"
	// ReasonInstalled: the provider's plugin is verified and its kinds are served.
	ReasonInstalled = "Installed"
	// ReasonInstallFailed: the server could not resolve, fetch or verify a provider.
	ReasonInstallFailed = "InstallFailed"
	// ReasonVerificationFailed: the package does not have the expected checksum or signature.
	ReasonVerificationFailed = "VerificationFailed"
	// ReasonSourceRefused: the server's trust policy does not allow the source of the provider.
	ReasonSourceRefused = "SourceRefused"
	// ReasonChecksumListed: spec.checksums has the checksum of the package.
	ReasonChecksumListed = "ChecksumListed"
	// ReasonChecksumSigned: the publisher's signed list has the checksum of the package.
	ReasonChecksumSigned = "ChecksumSigned"
	// ReasonChecksumFromMirror: the network mirror of the package names its checksum.
	ReasonChecksumFromMirror = "ChecksumFromMirror"
	// ReasonChecksumUnknown: neither a list nor a mirror names the checksum of the package.
	ReasonChecksumUnknown = "ChecksumUnknown"
	// ReasonChecksumMismatch: the package has another checksum than expected, or its files changed on the disk.
	ReasonChecksumMismatch = "ChecksumMismatch"
	// ReasonSigned: a trusted key signed the list of checksums.
	ReasonSigned = "Signed"
	// ReasonSignatureUnknown: the package is from a mirror, and no signature is required.
	ReasonSignatureUnknown = "SignatureUnknown"
	// ReasonUnsigned: a signature is required, and there is none for the package.
	ReasonUnsigned = "Unsigned"
	// ReasonUnknownKey: the signature is by none of the trusted keys.
	ReasonUnknownKey = "UnknownKey"
	// ReasonBadSignature: the signature is invalid, its key was not valid, or it is for another version.
	ReasonBadSignature = "BadSignature"
	// ReasonContained: the processes of a provider run in a sandbox.
	ReasonContained = "Contained"
	// ReasonSandboxOff: the Provider, or the server, disables the sandbox.
	ReasonSandboxOff = "SandboxOff"
	// ReasonSandboxUnsupported: the server's machine lacks a feature that a sandbox needs; the message names it.
	ReasonSandboxUnsupported = "SandboxUnsupported"
	// ReasonSandboxRefused: the server does not start a provider because of its sandbox. The server requires one, or a
	// granted path contains the server's own files.
	ReasonSandboxRefused = "SandboxRefused"
	// ReasonSchemaFailed: an installed provider returned no usable schema.
	ReasonSchemaFailed = "SchemaFailed"
	// ReasonUpgradeRefused: the requested version lacks types of existing objects, or its package could not be
	// verified, so the old version stays.
	ReasonUpgradeRefused = "UpgradeRefused"
	// ReasonConfigured: the provider accepted the ProviderConfig.
	ReasonConfigured = "Configured"
	// ReasonConfigRefused: the provider refused the ProviderConfig.
	ReasonConfigRefused = "ConfigRefused"
	// ReasonProviderNotReady: the provider of the ProviderConfig is missing or not ready.
	ReasonProviderNotReady = "ProviderNotReady"
	// ReasonSecretNotFound: the ProviderConfig or the Notification refers to a Secret, or a key in one, that does not
	// exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretRefused: the value of a Secret is no address, header or signing key for the Notification. The message
	// says which, and why.
	ReasonSecretRefused = "SecretRefused"
	// ReasonStarterLostRight: the user who started a workflow may not start it any more, so the server ended it. It is
	// the reason of an Event.
	ReasonStarterLostRight = "StarterLostRight"
)

// Types of the causes in the response to a refused approval. They are part of the API, as reasons are.
const (
	// CauseBlocked: the change that the field names is blocked.
	CauseBlocked = "Blocked"
	// CauseStale: the object or state of the change that the field names changed after planning.
	CauseStale = "Stale"
	// CausePolicy: a rule of a policy denies the plan, or does not count the approval.
	CausePolicy = "Policy"
	// CauseNothingLeft: every change of the plan is blocked or stale, or depends on such a change.
	CauseNothingLeft = "NothingLeft"
)

// CauseBeingDeleted is the type of a cause in the response to an upload of objects. The object is marked for deletion
// although the upload declares it. The server removes it after a plan destroyed its infrastructure, or when no resource
// needs it.
const CauseBeingDeleted = "BeingDeleted"

// FinalizerState keeps an object until its infrastructure is destroyed. The server adds it before the create and
// removes it after the destroy. No other client may remove it.
const FinalizerState = "hykube.io/state"

// FinalizerRecord keeps an approved or discarded Plan until its PlanRecord has the outcome. The server adds it with the
// decision and removes it. No other client may remove it.
const FinalizerRecord = "hykube.io/record"

// FinalizerInUse keeps a deleted Provider, ProviderConfig, Secret or ConfigMap until no existing resource needs it. The
// server adds it on deletion and removes it. No other client may remove it.
const FinalizerInUse = "hykube.io/in-use"

// AnnotationInUseBy lists, on a Secret or ConfigMap that is being deleted, the resources that still need it.
const AnnotationInUseBy = "hykube.io/in-use-by"

// AnnotationWriters lists, on a Secret or ConfigMap, who wrote each key last, as a JSON list of Contributor. In an
// entry, wrote has the keys; an entry without keys is for all keys that no other entry names. Only the server writes
// it.
const AnnotationWriters = "hykube.io/writers"

// AnnotationCreatedAs holds the UID of a Plan with automatic approval; the server sets it on creation. A manifest that
// already has it is a copy, and the Plan then waits for approval.
const AnnotationCreatedAs = "hykube.io/created-as"

// DefaultProviderConfig is the ProviderConfig of a resource that names none.
const DefaultProviderConfig = "default"

// OutdatedByEdit reports whether an edit of the spec or lifecycle makes a resource's condition Ready obsolete. A reason
// about the infrastructure, such as CreateUnknown, or about the edit, such as Stale, stays valid.
func OutdatedByEdit(reason string, ready bool) bool {
	switch reason {
	case ReasonBlocked:
		return true
	}
	return ready
}

// TrueReason returns the reason of a condition that is true. It returns "" if the condition is missing or not true.
func TrueReason(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// MessageApplied is the message of the condition Ready of a resource that is applied.
const MessageApplied = "The infrastructure matches the spec."

// Messages of the condition Ready of an object that is marked for deletion. The server and its workers write them.
const (
	// MessageDeleting is the message for ReasonDeleting.
	MessageDeleting = "deleted; make a Plan to destroy the infrastructure and then remove the object"
	// MessageForgetting is the message for ReasonForgetting.
	MessageForgetting = "deleted, and lifecycle.destroy is false; make a Plan to forget the infrastructure, which stays, and to remove the object"
)

// MessageMoving returns the message for ReasonMoving. to is the address of the object that gets the infrastructure.
func MessageMoving(to string) string {
	return "deleted, and " + to + " names it in lifecycle.moved; make a Plan to move its infrastructure there and to remove the object"
}

// WarningAgentFrozen is the agent of the warning in each answer about a namespace whose plans the server does not
// apply, because its database was restored from a backup.
const WarningAgentFrozen = "hykube-frozen"
