package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// A plan with automatic approval runs as soon as it is planned. A copy of one, from a backup or another server, must
// not run, because its changes there were never intended. This file distinguishes a copy from an original plan.

// generationOfCopy is the generation of a decoded plan whose metadata come from a server. No server uses a negative
// generation, and the create later drops the client's generation.
const generationOfCopy = -1

// markCopy sets generationOfCopy in a plan of a request whose metadata only a server writes. The API machinery removes
// these metadata before a create, so they must be noted earlier.
func markCopy(obj runtime.Object) {
	p, ok := obj.(*v1alpha1.Plan)
	if !ok {
		return
	}
	if p.UID != "" || p.ResourceVersion != "" || !p.CreationTimestamp.IsZero() || p.DeletionTimestamp != nil ||
		p.Generation != 0 {
		p.Generation = generationOfCopy
	}
}

// copyMarker is a decoder that calls markCopy.
type copyMarker struct{ runtime.Decoder }

func (d copyMarker) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if p, ok := obj.(*v1alpha1.Plan); ok {
		markCopy(p)
		if len(p.ManagedFields) > 0 {
			p.Generation = generationOfCopy
		}
	}
	return obj, gvk, err
}

// copyEvidence returns the property that shows that a plan is a copy, or "" if there is none.
func copyEvidence(p *v1alpha1.Plan) string {
	switch {
	case p.Annotations[v1alpha1.AnnotationCreatedAs] != "":
		return "annotation " + v1alpha1.AnnotationCreatedAs
	case !equality.Semantic.DeepEqual(p.Status, v1alpha1.PlanStatus{}):
		return "status"
	case p.Generation != 0:
		return "metadata that a server wrote, such as uid, creationTimestamp, resourceVersion or managedFields"
	case slices.Contains(p.Finalizers, v1alpha1.FinalizerRecord):
		return "finalizer " + v1alpha1.FinalizerRecord
	case appliedWithStatus(p.Annotations[corev1.LastAppliedConfigAnnotation]):
		return "annotation " + corev1.LastAppliedConfigAnnotation + " of an object with a status"
	}
	return ""
}

// appliedWithStatus reports whether the manifest in the annotation of `kubectl apply` came from a server.
func appliedWithStatus(manifest string) bool {
	var applied struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Status map[string]any `json:"status"`
	}
	return json.Unmarshal([]byte(manifest), &applied) == nil && (len(applied.Status) > 0 || applied.Metadata.UID != "")
}

// beginPlan sets the status of a new plan. It decides whether the plan is approved automatically.
func beginPlan(ctx context.Context, p *v1alpha1.Plan) {
	by, stack := requester(ctx), (*v1alpha1.PlanStack)(nil)
	if byServer(ctx) && p.Status.Stack != nil {
		by, stack = p.Status.RequestedBy, p.Status.Stack
		p.Status = v1alpha1.PlanStatus{}
	}
	mark := copyEvidence(p)
	p.Status = v1alpha1.PlanStatus{RequestedBy: by, RequestedAt: new(metav1.NowMicro()), Stack: stack}
	// A new plan has no decision, so no record has to be written before its deletion.
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerRecord })
	message := "Waiting to be planned."
	if p.Spec.Approval == v1alpha1.ApprovalAutomatic {
		p.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: mark == ""}
		if mark != "" {
			p.Status.AutomaticApproval.Message = fmt.Sprintf(
				"The plan waits for an approval although spec.approval is Automatic, since it is a copy of another plan: it came with %s.", mark)
			message += " " + p.Status.AutomaticApproval.Message
		}
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[v1alpha1.AnnotationCreatedAs] = string(p.UID)
	}
	if p.Spec.Speculative {
		p.Status.Conditions = initialConditions(v1alpha1.ReasonAwaitingObjects,
			"Waiting for the upload of its objects.")
		return
	}
	p.Status.Conditions = initialConditions(v1alpha1.ReasonPlanning, message)
}

// warnOfCopy returns a warning for a plan that waits because it is a copy.
func warnOfCopy(_ context.Context, p *v1alpha1.Plan) []string {
	if a := p.Status.AutomaticApproval; a != nil && !a.Granted {
		return []string{fmt.Sprintf("plan %q: %s", p.Name, strings.ToLower(a.Message[:1])+a.Message[1:])}
	}
	return nil
}
