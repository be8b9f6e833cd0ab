package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

const (
	// maxChunks is the maximum number of chunks of an upload, and maxChunkObjects that of objects in a chunk.
	maxChunks       = 256
	maxChunkObjects = 1000
)

// ObjectsFunc checks a chunk of the objects of a speculative plan as if they were recorded, and stores them for the
// plan. It returns one result for each object. For the last chunk, it also returns the number of all uploaded objects.
type ObjectsFunc func(ctx context.Context, plan *v1alpha1.Plan,
	chunk v1alpha1.PlanObjectsSpec) (results []v1alpha1.PlanObjectResult, uploaded int, err error)

// objectsREST serves the subresource "objects": the upload of a speculative plan's objects. It has no read access.
type objectsREST struct {
	subresource
	plans   *genericregistry.Store
	objects ObjectsFunc
}

var _ rest.NamedCreater = (*objectsREST)(nil)

func newObjects(plans *genericregistry.Store, objects ObjectsFunc) rest.Storage {
	return &objectsREST{subresource{func() runtime.Object { return new(v1alpha1.PlanObjects) }}, plans, objects}
}

// Create accepts a chunk.
func (r *objectsREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	in := obj.(*v1alpha1.PlanObjects)
	stored, err := r.plans.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := stored.(*v1alpha1.Plan)
	if err := mayUpload(ctx, p, &in.Spec); err != nil {
		return nil, err
	}
	if errs := validateChunk(&in.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.Kind("PlanObjects"), name, errs)
	}
	if err := validate(ctx, in.DeepCopy()); err != nil {
		return nil, err
	}
	out := &v1alpha1.PlanObjects{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace}}
	if len(opts.DryRun) > 0 {
		return out, nil
	}
	if in.Spec.Discard {
		_, _, err := r.plans.Delete(ctx, name, rest.ValidateAllObjectFunc,
			&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return out, err
	}
	var uploaded int
	if out.Status.Results, uploaded, err = r.objects(ctx, p, in.Spec); err != nil {
		return nil, apiError(err)
	}
	refused := false
	for i := range out.Status.Results {
		refused = refused || out.Status.Results[i].Outcome == v1alpha1.ObjectRefused
	}
	if in.Spec.Complete && !refused {
		return out, r.complete(ctx, p, int32(uploaded))
	}
	return out, nil
}

// mayUpload returns an error if the plan does not accept uploads, or not from this user.
func mayUpload(ctx context.Context, p *v1alpha1.Plan, chunk *v1alpha1.PlanObjectsSpec) error {
	who := requester(ctx)
	switch {
	case !p.Spec.Speculative:
		return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
			errors.New("it plans recorded objects; only a plan with spec.speculative accepts uploaded objects"))
	case who == nil || p.Status.RequestedBy == nil || !who.Within(p.Status.RequestedBy):
		return apierrors.NewForbidden(v1alpha1.Resource("plans"), p.Name,
			fmt.Errorf("only %s, who created the plan, may upload its objects", nameOf(p.Status.RequestedBy)))
	case chunk.Discard:
		return nil
	case p.Status.UploadedObjects != nil:
		return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
			errors.New("its upload is complete; make another plan"))
	case p.Ended():
		return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name, errors.New("it has ended; make another plan"))
	}
	return nil
}

func validateChunk(chunk *v1alpha1.PlanObjectsSpec) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if chunk.Chunk < 0 || chunk.Chunk >= maxChunks {
		errs = append(errs, field.Invalid(spec.Child("chunk"), chunk.Chunk,
			fmt.Sprintf("must be between 0 and %d", maxChunks-1)))
	}
	if n := len(chunk.Objects) + len(chunk.Prune); n > maxChunkObjects {
		errs = append(errs, field.TooMany(spec.Child("objects"), n, maxChunkObjects))
	}
	if chunk.FieldManager == "" && !chunk.Discard {
		errs = append(errs, field.Required(spec.Child("fieldManager"),
			"the field manager that would record the objects"))
	}
	return errs
}

// complete marks the upload as complete, so that planning starts.
func (r *objectsREST) complete(ctx context.Context, p *v1alpha1.Plan, count int32) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		next := old.(*v1alpha1.Plan).DeepCopy()
		if next.UID != p.UID {
			return nil, apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
				errors.New("another plan has this name now"))
		}
		next.Status.UploadedObjects = &count
		condition.Reconciling(&next.Status.Conditions, next.Generation, v1alpha1.ReasonPlanning,
			"Waiting to be planned.")
		return next, nil
	})
	_, _, err := updateWhole(ctx, r.plans, p.Name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
		&metav1.UpdateOptions{})
	return err
}

// refuseSpeculative rejects the approval of a speculative plan, whose objects were never recorded.
func refuseSpeculative(p *v1alpha1.Plan, decision v1alpha1.Decision) error {
	if !p.Spec.Speculative || decision != v1alpha1.DecisionApproved {
		return nil
	}
	return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
		errors.New("it is speculative: its objects were never recorded, so it cannot be approved. Record and apply them with `kubectl hykube apply -f PATH`"))
}
