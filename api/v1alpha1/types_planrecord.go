package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanRecord records who created a plan, who decided on it, what it changed and its outcome. Only the server writes it:
// when the plan is approved or discarded, and when it ends. It outlives its Plan, holds no values of resources, and
// cannot be changed.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanRecord struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is the plan's name and the beginning of its UID.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The plan of the record. It may no longer exist.
	Plan PlanReference `json:"plan"`
	// User who created the plan.
	// +optional
	RequestedBy *Identity `json:"requestedBy,omitempty"`
	// User who requested the drift check that caused the plan of a stack; absent for other plans. The plan has the
	// rights of requestedBy.
	// +optional
	CheckRequestedBy *Identity `json:"checkRequestedBy,omitempty"`
	// Users who wrote what the changes follow from, as in the status of the plan.
	// +optional
	// +listType=atomic
	Contributors []Contributor `json:"contributors,omitempty"`
	// Time at which the plan was created.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`
	// The decision about the plan: the user, the time, the reason, and the digest of the changes.
	Approval PlanApproval `json:"approval"`
	// All approvals of a plan for which a policy required several.
	// +optional
	// +listType=atomic
	Approvals []PlanApproval `json:"approvals,omitempty"`
	// Number of planned changes by kind.
	// +optional
	Summary *PlanSummary `json:"summary,omitempty"`
	// Number of changes by kind that were made. Empty until the plan ends.
	// +optional
	Applied *PlanSummary `json:"applied,omitempty"`
	// Outcome of the plan: Applied, AppliedInPart, ApplyFailed, Stale, Cancelled or Discarded. Empty until the plan
	// ends.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// Number of changes by outcome.
	// +optional
	Progress *PlanProgress `json:"progress,omitempty"`
	// Time at which the plan ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// The changes of the plan, at most 300. If there are more, changes that were not applied come before those that
	// were.
	// +optional
	// +listType=atomic
	Changes []PlanRecordChange `json:"changes,omitempty"`
	// Number of changes that are not in the list.
	// +optional
	MoreChanges int32 `json:"moreChanges,omitempty"`
}

// MaxRecordedChanges is the maximum number of changes in a PlanRecord.
const MaxRecordedChanges = 300

// PlanRecordChange is one change of a plan, without its values.
type PlanRecordChange struct {
	// Terraform address, such as "sim_network.main".
	Address string `json:"address"`
	// Key of the deposed instance that the change destroys. An earlier replace with createBeforeDestroy left it.
	// +optional
	Deposed string `json:"deposed,omitempty"`
	// Action of the change.
	Action Action `json:"action"`
	// Outcome of the change; Pending or Running until it ends.
	Outcome ChangeState `json:"outcome"`
}

// PlanRecordList is a list of PlanRecords.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanRecordList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlanRecord `json:"items"`
}
