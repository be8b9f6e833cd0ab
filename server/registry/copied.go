package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// A plan that approves itself runs as soon as it is made, so a copy of one, from a backup or from another server, must not: what it
// would do there was in nobody's mind. This file tells a copy from a plan that its author wrote.

// foreign is the generation that a decoded plan gets when its metadata say that a server wrote it. No server counts below zero, and
// whatever a client sends as generation is dropped in the end.
const foreign = -1

// noteOrigin keeps in an object that a client sent what the API machinery removes from it before a create: that the object has
// metadata which only servers write.
func noteOrigin(obj runtime.Object) {
	p, ok := obj.(*v1alpha1.Plan)
	if !ok {
		return
	}
	if p.UID != "" || p.ResourceVersion != "" || !p.CreationTimestamp.IsZero() || p.DeletionTimestamp != nil || p.Generation != 0 {
		p.Generation = foreign
	}
}

// noting is a decoder of what clients send.
type noting struct{ runtime.Decoder }

func (d noting) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if p, ok := obj.(*v1alpha1.Plan); ok {
		noteOrigin(p)
		if len(p.ManagedFields) > 0 {
			p.Generation = foreign
		}
	}
	return obj, gvk, err
}

// markOf says what shows that a plan is a copy of another; empty when nothing does.
func markOf(p *v1alpha1.Plan) string {
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

// appliedWithStatus says whether the manifest in the annotation of `kubectl apply` was one that a server had written.
func appliedWithStatus(manifest string) bool {
	var applied struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Status map[string]any `json:"status"`
	}
	return json.Unmarshal([]byte(manifest), &applied) == nil && (len(applied.Status) > 0 || applied.Metadata.UID != "")
}

// beginPlan sets the status of a new plan, and decides whether the plan approves itself.
func beginPlan(ctx context.Context, p *v1alpha1.Plan) {
	mark := markOf(p)
	p.Status = v1alpha1.PlanStatus{RequestedBy: requester(ctx)}
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerRecord }) // nothing was decided yet
	message := "Waiting to be planned."
	if p.Spec.Approval == v1alpha1.ApprovalAutomatic {
		p.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: mark == ""}
		if mark != "" {
			p.Status.AutomaticApproval.Message = fmt.Sprintf("The plan waits for a person although spec.approval is Automatic, since it is a copy of another plan: it came with %s.", mark)
			message += " " + p.Status.AutomaticApproval.Message
		}
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[v1alpha1.AnnotationCreatedAs] = string(p.UID)
	}
	if p.Spec.Speculative {
		p.Status.Conditions = begun(v1alpha1.ReasonAwaitingObjects, "Waiting for the objects that it is to plan.")
		return
	}
	p.Status.Conditions = begun(v1alpha1.ReasonPlanning, message)
}

// warnOfCopy tells the creator of a plan that it waits.
func warnOfCopy(p *v1alpha1.Plan) []string {
	if a := p.Status.AutomaticApproval; a != nil && !a.Granted {
		return []string{fmt.Sprintf("plan %q: %s", p.Name, strings.ToLower(a.Message[:1])+a.Message[1:])}
	}
	return nil
}
