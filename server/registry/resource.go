package registry

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
	hykubestorage "github.com/hykube/hykube/server/storage"
)

// resourcesREST serves Resources: one table of the objects of all providers' kinds, and of the instances of
// ResourceSets. It is read-only. A user sees only objects of kinds for which the user has the same right: to list,
// watch or get. The server checks that once for each kind and namespace, not for each object.
type resourcesREST struct {
	tableConvertor
	collection *hykubestorage.Collection
	objects    *hykubestorage.Objects
	kinds      *kinds.Kinds
	access     rights.Access
	// backend has the index, with the instances of ResourceSets.
	backend *Backend
}

var (
	_ rest.Getter               = resourcesREST{}
	_ rest.Lister               = resourcesREST{}
	_ rest.Watcher              = resourcesREST{}
	_ rest.Scoper               = resourcesREST{}
	_ rest.SingularNameProvider = resourcesREST{}
	_ rest.CategoriesProvider   = resourcesREST{}
	_ rest.ShortNamesProvider   = resourcesREST{}
)

// newResources returns the storage for Resources.
func newResources(c Config) resourcesREST {
	return resourcesREST{
		tableConvertor: resourceTable, objects: c.StoredObjects, kinds: c.Kinds,
		access:     rights.Access{Authorizer: c.Authorizer},
		collection: c.Collection, backend: c.Backend,
	}
}

// NewResource returns an empty Resource.
func NewResource() runtime.Object { return new(v1alpha1.ResourceSummary) }

func (resourcesREST) New() runtime.Object     { return NewResource() }
func (resourcesREST) NewList() runtime.Object { return new(v1alpha1.ResourceSummaryList) }
func (resourcesREST) Destroy()                {}
func (resourcesREST) NamespaceScoped() bool   { return true }
func (resourcesREST) GetSingularName() string { return "resource" }
func (resourcesREST) Categories() []string    { return []string{category} }
func (resourcesREST) ShortNames() []string    { return []string{"res"} }

// Get implements rest.Getter.
func (r resourcesREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	missing := apierrors.NewNotFound(v1alpha1.Resource("resources"), name)
	gvk, object, ok := kinds.ParseSummaryName(name)
	if !ok {
		return nil, missing
	}
	kind, err := r.kinds.Served(gvk)
	if err != nil {
		return nil, err
	}
	who, err := requireUser(ctx, "get resource")
	if err != nil {
		return nil, err
	}
	right := store.Right{Verb: store.VerbGet, Namespace: genericapirequest.NamespaceValue(ctx), Group: kind.GVR.Group,
		Resource: kind.GVR.Resource, Name: object}
	if may, err := r.access.May(ctx, who, right); err != nil {
		return nil, apierrors.NewInternalError(err)
	} else if !may {
		return nil, apierrors.NewForbidden(kind.GVR.GroupResource(), object,
			fmt.Errorf("you need the verb %q on it to read it as a Resource", store.VerbGet))
	}
	u, err := r.read(ctx, kind, right.Namespace, object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if u == nil {
		return nil, missing
	}
	return kinds.Summarize(u), nil
}

// read returns a stored object or an instance of a ResourceSet; nil if it does not exist.
func (r resourcesREST) read(ctx context.Context, kind kinds.Kind, namespace,
	name string) (*unstructured.Unstructured, error) {
	if !v1alpha1.IsVirtualName(name) || r.backend.Index == nil {
		return r.objects.Get(ctx, kind.Stored(), namespace, name)
	}
	version, kindName := kind.GVK.ToAPIVersionAndKind()
	found, ok, err := r.backend.Index.Find(ctx,
		v1alpha1.ObjectReference{APIVersion: version, Kind: kindName, Namespace: namespace, Name: name})
	if err != nil || !ok {
		return nil, err
	}
	u, err := r.backend.Instance(ctx, index.Located{Namespace: namespace, Found: found})
	if err != nil {
		return nil, err
	}
	u.SetResourceVersion("") // it has none that a watch could begin from
	return u, nil
}

// view returns the objects that a request may read. The server does not know the plural of a kind that it does not
// serve. So only users with the right to all kinds of the provider see objects of that kind.
func (r resourcesREST) view(ctx context.Context, verb string, predicate storage.SelectionPredicate,
	may func(context.Context, store.Right) (bool, error)) hykubestorage.View {
	wantedKind, byKind := predicate.Field.RequiresExactMatch(v1alpha1.ResourceFieldKind)
	wantedProvider, byProvider := predicate.Field.RequiresExactMatch(v1alpha1.ResourceFieldProvider)
	visible := func(stored schema.GroupResource, namespace string) (bool, error) {
		right := store.Right{Verb: verb, Namespace: namespace, Group: stored.Group, Resource: "*"}
		kind, served := r.kinds.Stored(stored)
		if provider, _ := v1alpha1.ProviderOfGroup(stored.Group); byProvider && provider != wantedProvider ||
			byKind && served && kind.GVK.Kind != wantedKind {
			return false, nil
		}
		if served {
			right.Resource = kind.GVR.Resource
		}
		ok, err := may(ctx, right)
		if err != nil {
			return false, apierrors.NewInternalError(err)
		}
		return ok, nil
	}
	return hykubestorage.View{Namespace: genericapirequest.NamespaceValue(ctx), Visible: visible}
}

// WithReadOnlyResources answers writes of Resources with the command for the object itself.
func WithReadOnlyResources(next http.Handler, codecs Codecs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName || info.Resource != "resources" ||
			info.Subresource != "" {
			next.ServeHTTP(w, r)
			return
		}
		switch info.Verb {
		case "get", "list", "watch":
			next.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewMethodNotSupported(v1alpha1.Resource("resources"), info.Verb)
		err.ErrStatus.Message = readOnlyMessage(info)
		responsewriters.ErrorNegotiated(err, codecs.Factory,
			schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
	})
}

// readOnlyMessage names the command for the object of a Resource.
func readOnlyMessage(info *genericapirequest.RequestInfo) string {
	const about = "resources.hykube.io is a read-only table of the objects of all providers' kinds"
	gvk, name, ok := kinds.ParseSummaryName(info.Name)
	command := map[string]string{"delete": "delete", "update": "edit", "patch": "edit"}[info.Verb]
	if !ok || command == "" {
		return about + "; write the objects of the kinds themselves, which `kubectl api-resources` lists"
	}
	return fmt.Sprintf("%s; %s the object itself: kubectl %s -n %s %s.%s %s", about, command, command, info.Namespace,
		gvk.Kind, gvk.Group, name)
}
