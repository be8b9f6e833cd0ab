package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/speculation"
)

// category is the category of `kubectl get hykube`.
const category = "hykube"

// resourceREST serves one kind: the generic store with short names.
type resourceREST struct {
	*genericregistry.Store
	short string
	// held handles deletes of objects that may be in use; nil for kinds whose objects are never in use.
	held *Held
	// mayWrite returns an error if the author may not write the object. old is nil for a new object. A nil function
	// permits all writes.
	mayWrite func(ctx context.Context, obj, old runtime.Object) error
	// busy returns the reason why an object cannot be deleted now. A nil function permits all deletes.
	busy func(runtime.Object) error
	// mayDelete returns an error if the user may not delete the object. A nil function permits all deletes.
	mayDelete func(ctx context.Context, obj runtime.Object) error
	// warnDeleted adds warnings about an object that a user deletes. A nil function adds none.
	warnDeleted func(ctx context.Context, obj runtime.Object)
	// current waits until the objects of a namespace show all earlier writes of other objects. A nil function does not
	// wait.
	current func(ctx context.Context, namespace string)
}

var (
	_ rest.StandardStorage      = (*resourceREST)(nil)
	_ rest.ShortNamesProvider   = (*resourceREST)(nil)
	_ rest.CategoriesProvider   = (*resourceREST)(nil)
	_ rest.SingularNameProvider = (*resourceREST)(nil)
)

func (r *resourceREST) ShortNames() []string { return []string{r.short} }
func (r *resourceREST) Categories() []string { return []string{category} }

// Create creates an object. It rejects a very long name without repeating it in the error.
func (r *resourceREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	o := obj.(object)
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest(kinds.MessageVersionAtCreate)
	}
	if name := o.GetName(); len(name) > validation.DNS1123SubdomainMaxLength {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("create %s %q: metadata.name has %d characters, and the limit is %d",
				r.SingularQualifiedResource.Resource, shorten(name), len(name), validation.DNS1123SubdomainMaxLength))
	}
	return r.Store.Create(ctx, obj, r.authorizing(validate), opts)
}

// Update changes an object.
func (r *resourceREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceCreate bool, opts *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, speculation.Adopt(ctx, info), r.authorizing(create),
		func(ctx context.Context, obj, old runtime.Object) error {
			if err := update(ctx, obj, old); err != nil || r.mayWrite == nil {
				return err
			}
			return r.mayWrite(ctx, obj, old)
		}, forceCreate, opts)
}

// authorizing adds the check of mayWrite to the validation of a new object.
func (r *resourceREST) authorizing(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil || r.mayWrite == nil {
			return err
		}
		return r.mayWrite(ctx, obj, nil)
	}
}

// Delete deletes an object unless it is busy.
func (r *resourceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	validate = r.warned(r.withDeleteChecks(validate), opts)
	if r.held != nil {
		return r.held.Delete(ctx, name, validate, opts)
	}
	return r.Store.Delete(ctx, name, validate, opts)
}

// warned adds the warnings about an object that a user deletes, except in a dry run. It adds them before the deletion,
// because a controller may react to the deletion before the response.
func (r *resourceREST) warned(validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if r.warnDeleted != nil && !dryRun(opts) && !byServer(ctx) {
			r.warnDeleted(ctx, obj)
		}
		return nil
	}
}

// DeleteCollection deletes the objects of a list. It stops at the first busy one.
func (r *resourceREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc,
	opts *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	validate = r.warned(r.withDeleteChecks(validate), opts)
	if r.held != nil {
		return r.held.DeleteCollection(ctx, validate, opts, list)
	}
	return r.Store.DeleteCollection(ctx, validate, opts, list)
}

// Get returns an object.
func (r *resourceREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	if r.awaitCurrent(ctx) && opts != nil {
		newest := *opts
		newest.ResourceVersion = ""
		opts = &newest
	}
	return r.Store.Get(ctx, name, opts)
}

// List returns the objects of a namespace, or of all.
func (r *resourceREST) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	if r.awaitCurrent(ctx) && opts != nil && opts.ResourceVersion == "0" { // any version, and so also the newest
		newest := *opts
		newest.ResourceVersion, newest.ResourceVersionMatch = "", ""
		opts = &newest
	}
	return r.Store.List(ctx, opts)
}

// Watch sends the changes of objects. It may begin with a list.
func (r *resourceREST) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	r.awaitCurrent(ctx)
	return r.Store.Watch(ctx, opts)
}

// awaitCurrent waits until the objects are current, if the kind needs that and a client asks. The server's own reads do
// not wait, because its controllers make the objects current.
func (r *resourceREST) awaitCurrent(ctx context.Context) bool {
	if r.current == nil || byServer(ctx) {
		return false
	}
	r.current(ctx, request.NamespaceValue(ctx))
	return true
}

// withDeleteChecks adds the checks of mayDelete and busy to the validation of a delete.
func (r *resourceREST) withDeleteChecks(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if r.mayDelete != nil {
			if err := r.mayDelete(ctx, obj); err != nil {
				return err
			}
		}
		if r.busy == nil {
			return nil
		}
		if err := r.busy(obj); err != nil {
			return apierrors.NewConflict(r.DefaultQualifiedResource, obj.(object).GetName(), err)
		}
		return nil
	}
}

// subresource has the common methods of all subresources. The storage is closed with the main resource.
type subresource struct{ empty func() runtime.Object }

func (s subresource) New() runtime.Object { return s.empty() }
func (s subresource) Destroy()            {}

const (
	// defaultPage and maxPage are the default and the maximum number of items in a response of a paged subresource.
	defaultPage = 500
	maxPage     = 5000
)

// paged is a subresource whose response is one page of a list. what is a phrase for errors, such as "changes of plan".
type paged struct {
	subresource
	what string
}

// NewGetOptions returns the options limit and continue, as for a list.
func (paged) NewGetOptions() (runtime.Object, bool, string) {
	return new(metav1.ListOptions), false, ""
}

// page returns the limit and the continue token of a request.
func (p paged) page(name string, options runtime.Object) (limit int, cont string, err error) {
	opts, ok := options.(*metav1.ListOptions)
	switch {
	case !ok:
		return 0, "", apierrors.NewInternalError(fmt.Errorf("list %s %q: unexpected options %T", p.what, name, options))
	case opts.Limit < 0:
		return 0, "", apierrors.NewBadRequest(fmt.Sprintf("list %s %q: limit %d is negative", p.what, name, opts.Limit))
	case opts.Limit == 0:
		return defaultPage, opts.Continue, nil
	}
	return int(min(opts.Limit, maxPage)), opts.Continue, nil
}

// apiError returns an error of the API as it is, and any other as an internal error; nil for nil.
func apiError(err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok || err == nil {
		return err
	}
	return apierrors.NewInternalError(err)
}

// statusREST serves the subresource "status".
type statusREST struct {
	subresource
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = (*statusREST)(nil)
	_ rest.ResetFieldsStrategy = (*statusREST)(nil)
	_ rest.TableConvertor      = (*statusREST)(nil)
)

func (r *statusREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, opts)
}

// Update implements rest.Updater. It never creates an object.
func (r *statusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, update, false, opts)
}

func (r *statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

func (r *statusREST) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, opts)
}

// newStoreOnly returns the store of a kind without status.
func newStoreOnly[T deepCopier[T], S any](c Config, plural, singular string, example, list runtime.Object,
	strategy kindStrategy[T, S], table tableConvertor) (*genericregistry.Store, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return example.DeepCopyObject() },
		NewListFunc:               func() runtime.Object { return list.DeepCopyObject() },
		DefaultQualifiedResource:  v1alpha1.Resource(plural),
		SingularQualifiedResource: v1alpha1.Resource(singular),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            table,
	}
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: c.RESTOptions, AttrFunc: attributes})
}

// newStore returns the store of a kind and the storage for its status. The plural is the singular with an s.
func newStore[T deepCopier[T], S any](c Config, singular string, example, list runtime.Object,
	strategy kindStrategy[T, S], table tableConvertor) (*genericregistry.Store, *statusREST, error) {
	store, err := newStoreOnly(c, singular+"s", singular, example, list, strategy, table)
	if err != nil {
		return nil, nil, err
	}
	store.AfterUpdate = func(runtime.Object, *metav1.UpdateOptions) { c.Changed() }
	store.AfterDelete = func(runtime.Object, *metav1.DeleteOptions) { c.Changed() }
	statusStore := *store
	status := statusStrategy[T, S]{strategy}
	statusStore.UpdateStrategy, statusStore.ResetFieldsStrategy = status, status
	return store, &statusREST{subresource{store.New}, &statusStore}, nil
}
