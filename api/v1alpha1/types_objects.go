package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PlanObjects is what the subresource "objects" of a speculative Plan takes: a chunk of the objects to plan. Each is judged as
// if it were recorded by server-side apply, and kept, encrypted, until the plan is made. Only who made the plan can upload,
// and nobody can read an upload back.
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
	// Result of recording each object.
	// +optional
	Status PlanObjectsStatus `json:"status,omitempty"`
}

// PlanObjectsSpec is a chunk of an upload.
type PlanObjectsSpec struct {
	// Number of the chunk, from 0. A chunk that is sent again replaces the one of the same number.
	Chunk int32 `json:"chunk"`
	// Objects, as server-side apply takes them.
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// Objects to plan as if they were deleted; the UID must be theirs.
	// +optional
	// +listType=atomic
	Prune []ObjectReference `json:"prune,omitempty"`
	// Field manager of server-side apply, under which the objects would be recorded.
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// Take over fields that other managers own.
	// +optional
	ForceConflicts bool `json:"forceConflicts,omitempty"`
	// True for the last chunk. The server then makes the plan, unless it refuses an object of this chunk.
	// +optional
	Complete bool `json:"complete,omitempty"`
	// Remove the plan and all that was uploaded with it. Nothing else of the spec counts then.
	// +optional
	Discard bool `json:"discard,omitempty"`
}

// PlanObjectsStatus is what recording the objects of a chunk would do.
type PlanObjectsStatus struct {
	// One result for each of spec.objects, and after them one for each of spec.prune.
	// +optional
	// +listType=atomic
	Results []PlanObjectResult `json:"results,omitempty"`
}

// ObjectOutcome is what recording an object would do to it.
type ObjectOutcome string

const (
	// ObjectCreated makes an object that is not there.
	ObjectCreated ObjectOutcome = "Created"
	// ObjectConfigured changes an object.
	ObjectConfigured ObjectOutcome = "Configured"
	// ObjectUnchanged leaves an object as it is.
	ObjectUnchanged ObjectOutcome = "Unchanged"
	// ObjectPruned deletes an object.
	ObjectPruned ObjectOutcome = "Pruned"
	// ObjectRefused would fail; the error says why.
	ObjectRefused ObjectOutcome = "Refused"
)

// PlanObjectResult is what recording one object would do.
type PlanObjectResult struct {
	// Created, Configured, Unchanged, Pruned or Refused.
	Outcome ObjectOutcome `json:"outcome"`
	// Keys of the data of a Secret or a ConfigMap, or fields of another object, that would change; never a value.
	// +optional
	// +listType=atomic
	Keys []string `json:"keys,omitempty"`
	// Fields that other managers own: recording the object needs forceConflicts. The object is planned as if they were taken over.
	// +optional
	// +listType=atomic
	Conflicts []metav1.StatusCause `json:"conflicts,omitempty"`
	// Version of the object that was compared with; see ObjectVersion. Empty when there is none.
	// +optional
	Version string `json:"version,omitempty"`
	// Warnings that recording it would answer with.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// Error of the refused object.
	// +optional
	Error *metav1.Status `json:"error,omitempty"`
}

// ObjectVersion is another one whenever somebody else writes what an object asks for. A status does not count where the kind
// counts generations.
func ObjectVersion(obj metav1.Object) string {
	if g := obj.GetGeneration(); g > 0 {
		return string(obj.GetUID()) + "/" + strconv.FormatInt(g, 10)
	}
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
