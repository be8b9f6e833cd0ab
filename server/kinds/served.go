package kinds

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/waitgroup"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/speculation"
)

// served is a kind with its handlers, which the first request creates.
type served struct {
	Kind
	kinds *Kinds
	// ctx ends when the kind is no longer served.
	ctx context.Context
	// requests counts the running requests except watches.
	requests waitgroup.SafeWaitGroup

	mu      sync.Mutex
	serving *serving
}

// serving holds the handlers for the requests of one kind.
type serving struct {
	object *objectREST
	status *statusREST

	objectScope, statusScope *handlers.RequestScope
}

// decodeFor sets the decoder of a request's body. The serving must be a copy for that request.
func (u *serving) decodeFor(s *served, w *write) {
	for _, scope := range []**handlers.RequestScope{&u.objectScope, &u.statusScope} {
		own := **scope
		own.Serializer = negotiated{kind: s, write: w}
		*scope = &own
	}
}

// errEnded is the error if a kind was removed or replaced while a request looked it up.
var errEnded = errors.New("kind is no longer served")

// acquire returns the handlers of the kind, and creates them for the first request. The caller must call done after the
// request. It returns errEnded if the kind is no longer served.
func (s *served) acquire(watch bool) (serving *serving, done func(), err error) {
	done = func() {}
	// A watch lasts until the kind is removed. Other requests may finish.
	if !watch {
		if s.requests.Add(1) != nil {
			return nil, nil, errEnded
		}
		done = s.requests.Done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		err = errEnded
	} else if s.serving == nil {
		s.serving, err = s.newServing()
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("serve kind %q: %w", s.GVK.Kind, err)
	}
	return s.serving, done, nil
}

// release releases the storage after the running requests.
func (s *served) release() {
	s.requests.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving != nil {
		s.serving.object.DestroyFunc()
		s.serving = nil
	}
}

func (s *served) newServing() (*serving, error) {
	strat := strategy{typer: typer{s.kinds.codecs.scheme}, NameGenerator: names.SimpleNameGenerator, kind: s,
		warns: isDeprecated(s.Schema.Block)}
	listKind := s.GVK.GroupVersion().WithKind(s.GVK.Kind + "List")
	store := &genericregistry.Store{
		NewFunc: func() runtime.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(s.GVK)
			return u
		},
		NewListFunc: func() runtime.Object {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(listKind)
			return l
		},
		PredicateFunc:             match,
		DefaultQualifiedResource:  s.GVR.GroupResource(),
		SingularQualifiedResource: kschema.GroupResource{Group: s.GVR.Group, Resource: s.GVK.Kind},
		CreateStrategy:            strat,
		UpdateStrategy:            strat,
		DeleteStrategy:            strat,
		ResetFieldsStrategy:       strat,
		TableConvertor:            table{s.Mode, s.GVK.Kind, s.hasInstances},
		AfterUpdate: func(obj runtime.Object, opts *metav1.UpdateOptions) {
			s.kinds.config.Changed()
			if len(opts.DryRun) == 0 {
				s.kinds.noteWritten(obj)
			}
		},
		AfterDelete: func(runtime.Object, *metav1.DeleteOptions) { s.kinds.config.Changed() },
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: restOptions{s},
		AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("make storage: %w", err)
	}
	statusStore := *store
	statusStrat := statusStrategy{strat}
	statusStore.UpdateStrategy = statusStrat
	statusStore.ResetFieldsStrategy = statusStrat

	out := &serving{object: &objectREST{store, s}, status: &statusREST{&statusStore, s}}
	var err error
	if out.objectScope, err = s.scope("", store.GetResetFields()); err != nil {
		return nil, err
	}
	if out.statusScope, err = s.scope("status", statusStore.GetResetFields()); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *served) scope(subresource string,
	reset map[fieldpath.APIVersion]*fieldpath.Set) (*handlers.RequestScope, error) {
	k := s.kinds
	scope := &handlers.RequestScope{
		Namer:                    handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: false},
		Serializer:               negotiated{kind: s},
		ParameterCodec:           metav1.ParameterCodec,
		StandardSerializers:      k.codecs.standard,
		Creater:                  creater{},
		Convertor:                converter{copies: true},
		Defaulter:                noDefaults{},
		Typer:                    typer{k.codecs.scheme},
		UnsafeConvertor:          converter{},
		Authorizer:               k.config.Authorizer,
		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		TableConvertor:           table{s.Mode, s.GVK.Kind, s.hasInstances},
		Resource:                 s.GVR,
		Kind:                     s.GVK,
		Subresource:              subresource,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          s.GVK.GroupVersion(),
		MaxRequestBodyBytes:      MaxRequestBodyBytes,
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		k.merge, scope.Convertor, scope.Defaulter, scope.Creater, scope.Kind, scope.HubGroupVersion, subresource,
		fieldpath.NewExcludeFilterSetMap(reset),
	)
	if err != nil {
		return nil, fmt.Errorf("make field manager: %w", err)
	}
	scope.FieldManager = manager
	return scope, nil
}

// restOptions stores objects as JSON, under the key that Kind.Stored returns.
type restOptions struct{ kind *served }

func (o restOptions) GetRESTOptions(resource kschema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	opts, err := o.kind.kinds.config.RESTOptions.GetRESTOptions(resource, nil)
	if err != nil {
		return opts, err
	}
	cfg := *opts.StorageConfig
	cfg.Codec = storageCodec{kind: o.kind.GVK, resource: resource}
	// Storage metrics have a label with the resource's name, of which there may be thousands.
	cfg.GroupResource.Resource = metricsResource
	opts.StorageConfig = &cfg
	stored := o.kind.Stored()
	opts.ResourcePrefix = "/" + stored.Group + "/" + stored.Resource
	opts.CountMetricPollPeriod = 0
	return opts, nil
}

// metricsResource is the label of all providers' kinds in metrics, so that the number of series does not grow with the
// kinds.
const metricsResource = "resources"

// MessageVersionAtCreate rejects a create with a resourceVersion, as in a copy of a stored object. The store would
// report an internal error.
const MessageVersionAtCreate = "a create must not set metadata.resourceVersion: remove it"

// objectREST serves the objects of a kind.
type objectREST struct {
	*genericregistry.Store
	kind *served
}

func (r *objectREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if obj.(*unstructured.Unstructured).GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest(MessageVersionAtCreate)
	}
	return r.Store.Create(ctx, obj, r.kind.authorizingCreate(validate), options)
}

func (r *objectREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, created, err := r.Store.Update(ctx, name, applyErrors{speculation.Adopt(ctx, info)},
		r.kind.authorizingCreate(create), r.kind.authorizingUpdate(update), forceCreate, options)
	return obj, created, r.kind.withoutPatched(name, err)
}

// Get returns an object, or an instance of a ResourceSet.
func (r *objectREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if !v1alpha1.IsVirtualName(name) || r.kind.kinds.config.Infrastructure.Instance == nil {
		return r.Store.Get(ctx, name, options)
	}
	u, err := r.kind.kinds.config.Infrastructure.Instance(ctx, r.kind.reference(request.NamespaceValue(ctx), name))
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	case u == nil:
		return nil, apierrors.NewNotFound(r.kind.GVR.GroupResource(), name)
	}
	return u, nil
}

// reference returns the reference of an object by its name.
func (s *served) reference(namespace, name string) v1alpha1.ObjectReference {
	version, kind := s.GVK.ToAPIVersionAndKind()
	return v1alpha1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
}

// applyErrors is an update whose errors from server-side apply become a BadRequest. Server-side apply returns an error
// without an API status for an invalid object, such as one with a string for a list in its metadata. The handler would
// report an internal error, but the error is the client's, since the stored object is valid.
type applyErrors struct{ rest.UpdatedObjectInfo }

func (r applyErrors) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := r.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if _, status := errors.AsType[*apierrors.StatusError](err); err != nil && !status && ctx.Err() == nil {
		err = apierrors.NewBadRequest(err.Error())
	}
	return obj, err
}

// withoutPatched removes the patched object from an error about a patch. The handler puts the object, including
// secrets, before the reason, and only in the text.
func (s *served) withoutPatched(name string, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil || status.ErrStatus.Details.Kind != "" {
		return err
	}
	var errs field.ErrorList
	for _, c := range status.ErrStatus.Details.Causes {
		start := strings.IndexByte(c.Message, '"')
		if c.Field != "patch" || start < 0 {
			return err
		}
		object, quoteErr := strconv.QuotedPrefix(c.Message[start:])
		if quoteErr != nil {
			return err
		}
		reason := strings.TrimPrefix(c.Message[start+len(object):], ": ")
		errs = append(errs, field.Invalid(field.NewPath("patch"), field.OmitValueType{}, reason))
	}
	if len(errs) == 0 {
		return err
	}
	return apierrors.NewInvalid(s.GVK.GroupKind(), name, errs)
}

// statusREST serves the subresource "status".
type statusREST struct {
	store *genericregistry.Store
	kind  *served
}

var _ rest.Patcher = &statusREST{}

func (r *statusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: objectREST owns the storage.
func (r *statusREST) Destroy() {}

func (r *statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update never creates an object.
func (r *statusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, created, err := r.store.Update(ctx, name, applyErrors{info}, create, update, false, options)
	return obj, created, r.kind.withoutPatched(name, err)
}

func (r *statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
