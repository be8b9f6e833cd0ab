package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiservicestorage "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Priorities of the groups. The groups of custom resources have the same ones.
const (
	groupPriority   = 1000
	versionPriority = 100
)

// providerReader reads Providers.
type providerReader interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// apiServiceREST serves the API group of each Provider as an APIService, as Kubernetes does for the groups of custom
// resources. Clients that cache a whole cluster watch these, and discover new kinds when one becomes available. Nothing
// is stored: an APIService is derived from a Provider and has its resource version, so watches continue after a
// restart.
type apiServiceREST struct {
	providers providerReader
	rest.TableConvertor
}

var (
	_ rest.Storage              = (*apiServiceREST)(nil)
	_ rest.Scoper               = (*apiServiceREST)(nil)
	_ rest.SingularNameProvider = (*apiServiceREST)(nil)
	_ rest.Getter               = (*apiServiceREST)(nil)
	_ rest.Lister               = (*apiServiceREST)(nil)
	_ rest.Watcher              = (*apiServiceREST)(nil)
)

// NewAPIServices returns the group apiregistration.k8s.io with the Providers of the group from NewGroup.
func NewAPIServices(hykube *genericapiserver.APIGroupInfo) (*genericapiserver.APIGroupInfo, error) {
	providers, ok := hykube.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version]["providers"].(providerReader)
	if !ok {
		return nil, fmt.Errorf("make registry of API services: the group %q has no providers", v1alpha1.GroupName)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	info := genericapiserver.NewDefaultAPIGroupInfo(apiregistration.GroupName, scheme, metav1.ParameterCodec,
		serializer.NewCodecFactory(scheme))
	info.VersionedResourcesStorageMap[apiregistrationv1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"apiservices": &apiServiceREST{providers: providers, TableConvertor: new(apiservicestorage.REST)},
	}
	return &info, nil
}

func (r *apiServiceREST) New() runtime.Object     { return new(apiregistration.APIService) }
func (r *apiServiceREST) NewList() runtime.Object { return new(apiregistration.APIServiceList) }
func (r *apiServiceREST) Destroy()                {}
func (r *apiServiceREST) NamespaceScoped() bool   { return false }
func (r *apiServiceREST) GetSingularName() string { return "apiservice" }

func (r *apiServiceREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	provider, ok := providerOf(name)
	if !ok {
		return nil, apierrors.NewNotFound(apiregistration.Resource("apiservices"), name)
	}
	obj, err := r.providers.Get(ctx, provider, opts)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(apiregistration.Resource("apiservices"), name)
	}
	if err != nil {
		return nil, err
	}
	return apiService(obj.(*v1alpha1.Provider)), nil
}

func (r *apiServiceREST) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	obj, err := r.providers.List(unnamed(ctx), unselected(opts))
	if err != nil {
		return nil, err
	}
	list := obj.(*v1alpha1.ProviderList)
	out := &apiregistration.APIServiceList{ListMeta: list.ListMeta}
	for i := range list.Items {
		if s := apiService(&list.Items[i]); selected(opts, s) {
			out.Items = append(out.Items, *s)
		}
	}
	return out, nil
}

func (r *apiServiceREST) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	w, err := r.providers.Watch(unnamed(ctx), unselected(opts))
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		obj := e.Object
		if cached, ok := obj.(runtime.CacheableObject); ok {
			obj = cached.GetObject()
		}
		provider, ok := obj.(*v1alpha1.Provider)
		switch {
		case !ok:
			return e, true // an error event
		case e.Type == watch.Bookmark:
			e.Object = &apiregistration.APIService{ObjectMeta: provider.ObjectMeta}
			return e, true
		}
		s := apiService(provider)
		e.Object = s
		return e, selected(opts, s)
	}), nil
}

// apiService returns the APIService of a Provider. It is available while the kinds are served, even if the provider
// could not be installed again.
func apiService(p *v1alpha1.Provider) *apiregistration.APIService {
	group := v1alpha1.ProviderGroup(p.Name)
	s := &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name:              v1alpha1.ResourceVersion + "." + group,
			UID:               types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(p.UID)).String()),
			ResourceVersion:   p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp,
			Labels:            map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"},
		},
		Spec: apiregistration.APIServiceSpec{
			Group: group, Version: v1alpha1.ResourceVersion, GroupPriorityMinimum: groupPriority,
			VersionPriority: versionPriority,
		},
	}
	available := apiregistration.APIServiceCondition{Type: apiregistration.Available,
		Status: apiregistration.ConditionFalse}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionInstalled); c != nil {
		available.Status = apiregistration.ConditionStatus(c.Status)
		available.LastTransitionTime, available.Reason, available.Message = c.LastTransitionTime, c.Reason, c.Message
		if p.Status.Kinds > 0 {
			available.Status = apiregistration.ConditionTrue
		}
	}
	s.Status.Conditions = []apiregistration.APIServiceCondition{available}
	return s
}

func providerOf(apiService string) (string, bool) {
	group, ok := strings.CutPrefix(apiService, v1alpha1.ResourceVersion+".")
	if !ok {
		return "", false
	}
	return v1alpha1.ProviderOfGroup(group)
}

// unselected returns the options without selectors, which apply to the APIService and not to the Provider.
func unselected(opts *metainternalversion.ListOptions) *metainternalversion.ListOptions {
	if opts == nil {
		return nil
	}
	out := *opts
	out.LabelSelector, out.FieldSelector = nil, nil
	return &out
}

// unnamed removes the name of an APIService from a request. Otherwise the watch cache would look for a Provider of that
// name.
func unnamed(ctx context.Context) context.Context {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.Name == "" {
		return ctx
	}
	copied := *info
	copied.Name = ""
	return request.WithRequestInfo(ctx, &copied)
}

func selected(opts *metainternalversion.ListOptions, s *apiregistration.APIService) bool {
	if opts == nil {
		return true
	}
	return (opts.LabelSelector == nil || opts.LabelSelector.Matches(labels.Set(s.Labels))) &&
		(opts.FieldSelector == nil || opts.FieldSelector.Matches(fields.Set{"metadata.name": s.Name}))
}
