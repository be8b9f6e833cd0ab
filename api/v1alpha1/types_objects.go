package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PlanObjects is a chunk of the objects of a speculative Plan, for its subresource "objects". The server checks each
// object as in a server-side apply, and keeps it, encrypted, until planning is done. Only the creator of the plan can
// upload objects, and no user can read an upload back.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanObjects struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Chunk of the upload.
	// +optional
	Spec PlanObjectsSpec `json:"spec,omitempty"`
	// Result for each object.
	// +optional
	Status PlanObjectsStatus `json:"status,omitempty"`
}

// PlanObjectsSpec is a chunk of an upload.
type PlanObjectsSpec struct {
	// Number of the chunk, from 0. It replaces an earlier chunk of the same number.
	Chunk int32 `json:"chunk"`
	// Objects in the format of server-side apply.
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// Objects that the plan treats as deleted. The UID must match.
	// +optional
	// +listType=atomic
	Prune []ObjectReference `json:"prune,omitempty"`
	// Field manager of the server-side apply.
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// Take ownership of fields that other managers own.
	// +optional
	ForceConflicts bool `json:"forceConflicts,omitempty"`
	// True for the last chunk. The server then starts planning, unless it refuses an object of this chunk.
	// +optional
	Complete bool `json:"complete,omitempty"`
	// Remove the plan and its uploaded objects. The server ignores all other fields of the spec.
	// +optional
	Discard bool `json:"discard,omitempty"`
}

// PlanObjectsStatus is the result for the objects of a chunk.
type PlanObjectsStatus struct {
	// One result for each of spec.objects, followed by one for each of spec.prune.
	// +optional
	// +listType=atomic
	Results []PlanObjectResult `json:"results,omitempty"`
}

// ObjectOutcome is the effect that recording an object would have.
type ObjectOutcome string

const (
	// ObjectCreated: the object would be created.
	ObjectCreated ObjectOutcome = "Created"
	// ObjectConfigured: the object would change.
	ObjectConfigured ObjectOutcome = "Configured"
	// ObjectUnchanged: the object would not change.
	ObjectUnchanged ObjectOutcome = "Unchanged"
	// ObjectPruned: the object would be deleted.
	ObjectPruned ObjectOutcome = "Pruned"
	// ObjectRefused: the request would fail; the error has the reason.
	ObjectRefused ObjectOutcome = "Refused"
)

// PlanObjectResult is the result for one object.
type PlanObjectResult struct {
	// Created, Configured, Unchanged, Pruned or Refused.
	Outcome ObjectOutcome `json:"outcome"`
	// Keys of a Secret's or ConfigMap's data, or fields of another object, that would change. Values are never listed.
	// +optional
	// +listType=atomic
	Keys []string `json:"keys,omitempty"`
	// Fields that other managers own. Recording the object requires forceConflicts. The plan treats the object as if it
	// had taken ownership.
	// +optional
	// +listType=atomic
	Conflicts []metav1.StatusCause `json:"conflicts,omitempty"`
	// Version of the existing object that was compared; see ObjectVersion. Empty if there is none.
	// +optional
	Version string `json:"version,omitempty"`
	// Warnings of the recording.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// Error of the refused object.
	// +optional
	Error *metav1.Status `json:"error,omitempty"`
}

// ObjectVersion returns a text that changes whenever an object's desired state is written. For a kind with generations,
// a write of the status does not change it.
func ObjectVersion(obj metav1.Object) string {
	if g := obj.GetGeneration(); g > 0 {
		return string(obj.GetUID()) + "/" + strconv.FormatInt(g, 10)
	}
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
