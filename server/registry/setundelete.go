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

// undeleteSetREST serves the subresource "undelete" of ResourceSets and Modules: a POST reverts the deletion of the
// object, and so of its instances. It ignores the request body.
type undeleteSetREST struct {
	subresource
	owners  *genericregistry.Store
	backend *Backend
	// authorize requires a right besides that to the subresource.
	authorize func(ctx context.Context, owner object) error
}

var _ rest.NamedCreater = (*undeleteSetREST)(nil)

func newUndeleteSet(c Config, sets *genericregistry.Store) rest.Storage {
	authorize := func(ctx context.Context, owner object) error {
		return authorizeUndelete(ctx, c, owner.(*v1alpha1.ResourceSet))
	}
	return &undeleteSetREST{subresource{sets.New}, sets, c.Backend, authorize}
}

// newUndeleteModule returns the storage for Modules. As with the deletion of a Module, the rights to the kinds of its
// resources do not matter.
func newUndeleteModule(c Config, modules *genericregistry.Store) rest.Storage {
	return &undeleteSetREST{subresource{modules.New}, modules, c.Backend,
		func(context.Context, object) error { return nil }}
}

// Create reverts the deletion, unless an approved plan destroys instances. A plan may be approved at the same time.
// Either its approval finds the object changed, and the plan is stale, or the second check here finds the plan.
func (r *undeleteSetREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	found, err := r.owners.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	owner := found.(object)
	if err := r.authorize(ctx, owner); err != nil {
		return nil, err
	}
	if err := r.refuseDestroyed(ctx, owner); err != nil {
		return nil, err
	}
	dry := len(opts.DryRun) > 0
	out, err := deletion.Undo(ctx, r.owners, name, owner.GetUID(), dry, func(obj runtime.Object) {
		s := instancesStatus(obj)
		condition.Set(&s.Conditions, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonUndeleted,
			"the deletion was taken back; make a Plan to see what needs changes")
		s.Contributors = addWriter(ctx, s.Contributors, v1alpha1.WroteUndelete)
	})
	if err != nil || dry {
		return out, err
	}
	if refused := r.refuseDestroyed(ctx, owner); refused != nil {
		if err := deletion.Redo(ctx, r.owners, name, owner.GetUID(), func(runtime.Object) {}); err != nil {
			return nil, err
		}
		return nil, refused
	}
	return out, nil
}

// instancesStatus returns the status of a ResourceSet or a Module.
func instancesStatus(owner runtime.Object) *v1alpha1.InstancesStatus {
	if m, ok := owner.(*v1alpha1.Module); ok {
		return &m.Status.InstancesStatus
	}
	return &owner.(*v1alpha1.ResourceSet).Status.InstancesStatus
}

// authorizeUndelete requires the right to take back the deletion of the kind of the template, as for single objects.
func authorizeUndelete(ctx context.Context, c Config, set *v1alpha1.ResourceSet) error {
	kind, err := c.Kinds.TemplateKind(kinds.TemplateOf(set))
	if err != nil {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	who, err := requireUser(ctx, "undelete ResourceSet")
	if err != nil {
		return err
	}
	right := store.Right{Verb: store.VerbCreate, Namespace: set.Namespace, Group: kind.GVR.Group,
		Resource: kind.GVR.Resource + "/undelete"}
	may, err := rights.Access{Authorizer: c.Authorizer}.May(ctx, who, right)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case !may:
		return apierrors.NewForbidden(v1alpha1.Resource("resourcesets/undelete"), set.Name,
			fmt.Errorf("user %q has no right to %s in the namespace %q", who.Username, right, set.Namespace))
	}
	return nil
}

// refuseDestroyed returns a conflict if an approved plan will destroy or forget instances.
func (r *undeleteSetREST) refuseDestroyed(ctx context.Context, owner object) error {
	p, err := r.backend.DestroysInstances(ctx, owner)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if p == nil {
		return nil
	}
	return apierrors.NewConflict(r.owners.DefaultQualifiedResource, owner.GetName(),
		fmt.Errorf("plan %q destroys or forgets its instances, and was approved by %s; its deletion cannot be taken back any more", p.Name, p.Status.Approval.By.Username))
}
