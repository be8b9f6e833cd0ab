package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/deletion"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
)

// undeleteSetREST serves the subresource "undelete" of ResourceSets: a POST reverts the deletion of a set, and so of its
// instances. It ignores the request body.
type undeleteSetREST struct {
	subresource
	sets    *genericregistry.Store
	backend *Backend
	kinds   *kinds.Kinds
	access  rights.Access
}

var _ rest.NamedCreater = (*undeleteSetREST)(nil)

func newUndeleteSet(c Config, sets *genericregistry.Store) rest.Storage {
	return &undeleteSetREST{subresource{sets.New}, sets, c.Backend, c.Kinds, rights.Access{Authorizer: c.Authorizer}}
}

// Create reverts the deletion, unless an approved plan destroys instances of the set. A plan may be approved at the same
// time. Either its approval finds the set changed, and the plan is stale, or the second check here finds the plan.
func (r *undeleteSetREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	found, err := r.sets.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	set := found.(*v1alpha1.ResourceSet)
	if err := r.authorize(ctx, set); err != nil {
		return nil, err
	}
	if err := r.refuseDestroyed(ctx, set); err != nil {
		return nil, err
	}
	dry := len(opts.DryRun) > 0
	out, err := deletion.Undo(ctx, r.sets, name, set.UID, dry, func(obj runtime.Object) {
		s := obj.(*v1alpha1.ResourceSet)
		condition.Set(&s.Status.Conditions, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonUndeleted, "the deletion was taken back; make a Plan to see whether the instances need changes")
		s.Status.Contributors = addWriter(ctx, s.Status.Contributors, v1alpha1.WroteUndelete)
	})
	if err != nil || dry {
		return out, err
	}
	if refused := r.refuseDestroyed(ctx, set); refused != nil {
		if err := deletion.Redo(ctx, r.sets, name, set.UID, func(runtime.Object) {}); err != nil {
			return nil, err
		}
		return nil, refused
	}
	return out, nil
}

// authorize requires the right to take back the deletion of the kind of the template, as for single objects.
func (r *undeleteSetREST) authorize(ctx context.Context, set *v1alpha1.ResourceSet) error {
	kind, err := r.kinds.TemplateKind(kinds.TemplateOf(set))
	if err != nil {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	who, err := requireUser(ctx, "undelete ResourceSet")
	if err != nil {
		return err
	}
	right := store.Right{Verb: store.VerbCreate, Namespace: set.Namespace, Group: kind.GVR.Group, Resource: kind.GVR.Resource + "/undelete"}
	may, err := r.access.May(ctx, who, right)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case !may:
		return apierrors.NewForbidden(v1alpha1.Resource("resourcesets/undelete"), set.Name, fmt.Errorf("user %q has no right to %s in the namespace %q", who.Username, right, set.Namespace))
	}
	return nil
}

// refuseDestroyed returns a conflict if an approved plan will destroy or forget instances of a set.
func (r *undeleteSetREST) refuseDestroyed(ctx context.Context, set *v1alpha1.ResourceSet) error {
	p, err := r.backend.DestroysSet(ctx, set)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if p == nil {
		return nil
	}
	return apierrors.NewConflict(v1alpha1.Resource("resourcesets"), set.Name,
		fmt.Errorf("plan %q destroys or forgets its instances, and was approved by %s; its deletion cannot be taken back any more", p.Name, p.Status.Approval.By.Username))
}
