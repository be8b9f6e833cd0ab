package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanRecord says who asked for a plan, who decided about it, what it changed and how it ended. The server alone writes it: when
// the plan is approved or discarded, and when it ends. It outlives its Plan, holds no values of resources, and cannot be changed.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanRecord struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is the plan's name and the beginning of its UID.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The plan that the record is about. It may not exist any more.
	Plan PlanReference `json:"plan"`
	// Who asked for the plan.
	// +optional
	RequestedBy *Identity `json:"requestedBy,omitempty"`
	// When the plan was asked for.
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`
	// The decision about the plan: who, when, with which words, and the digest of the changes that were decided about.
	Approval PlanApproval `json:"approval"`
	// Number of planned changes by kind.
	// +optional
	Summary *PlanSummary `json:"summary,omitempty"`
	// How the plan ended: Applied, AppliedInPart, ApplyFailed, Stale, Cancelled or Discarded; empty until then.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// Number of changes by how they ended.
	// +optional
	Progress *PlanProgress `json:"progress,omitempty"`
	// When the plan ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// The changes of the plan, at most 300. Of a plan with more, those that were not made come before those that were.
	// +optional
	// +listType=atomic
	Changes []PlanRecordChange `json:"changes,omitempty"`
	// Number of changes that are not listed.
	// +optional
	MoreChanges int32 `json:"moreChanges,omitempty"`
}

// MaxRecordedChanges is the largest number of changes that a PlanRecord lists.
const MaxRecordedChanges = 300

// PlanRecordChange is one change of a plan, without its values.
type PlanRecordChange struct {
	// Terraform address, such as "sim_network.main".
	Address string `json:"address"`
	// Key of the old instance that the change destroys, which a replace with createBeforeDestroy left behind.
	// +optional
	Deposed string `json:"deposed,omitempty"`
	// What the change does.
	Action Action `json:"action"`
	// How the change ended; Pending and Running until then.
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
