package server

import (
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	eventstore "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
)

// eventLifetime is how long an event is kept, as in Kubernetes.
const eventLifetime = time.Hour

// groupProvider is how Kubernetes' registries offer an API group.
type groupProvider interface {
	GroupName() string
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// installAPIs installs the fixed kinds.
func (s *Server) installAPIs() error {
	g := s.config.generic
	core, events, err := coreGroups(g.RESTOptionsGetter, s.inUse)
	if err != nil {
		return fmt.Errorf("make core kinds: %w", err)
	}
	if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, core); err != nil {
		return fmt.Errorf("install core kinds: %w", err)
	}
	enabled := serverstorage.NewResourceConfig()
	enabled.EnableVersions(rbacv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion)

	hykube, err := registry.NewGroup(registry.Config{
		Codecs:      s.config.codecs,
		RESTOptions: g.RESTOptionsGetter,
		// A watch cache would hold every record in memory, and nothing watches them.
		RecordOptions: s.config.store.RESTOptions(s.config.codecs.ForStorage, false),
		Authorizer:    g.Authorization.Authorizer,
		InUse:         s.inUse,
		Borrow:        s.borrow,
		Changes:       s.changes,
		Verify:        s.verify,
		Objects:       s.objects,
		Types:         func(terraformType string) []kinds.Kind { return s.kinds.ByType(v1alpha1.ModeManaged, terraformType) },
		Query:         s.query,
		Check:         func(objects []*unstructured.Unstructured) []v1alpha1.ValidationProblem { return s.kinds.Check(objects) },
		ConfigBlock:   func(provider string) *schema.Block { return s.kinds.ProviderConfigBlock(provider) },
		Evaluate:      s.evaluate,
	})
	if err != nil {
		return fmt.Errorf("make kinds of hykube.io: %w", err)
	}
	apiServices, err := registry.NewAPIServices(hykube)
	if err != nil {
		return err
	}
	// kubectl prefers groups in this order where names collide.
	groups := []*genericapiserver.APIGroupInfo{hykube, events, apiServices}
	for _, p := range []groupProvider{
		rbacrest.RESTStorageProvider{Authorizer: g.Authorization.Authorizer},
		authenticationrest.RESTStorageProvider{Authenticator: g.Authentication.Authenticator, APIAudiences: g.Authentication.APIAudiences},
		authorizationrest.RESTStorageProvider{Authorizer: g.Authorization.Authorizer, RuleResolver: g.RuleResolver},
	} {
		info, err := p.NewRESTStorage(enabled, g.RESTOptionsGetter)
		if err != nil {
			return fmt.Errorf("make kinds of %q: %w", p.GroupName(), err)
		}
		groups = append(groups, &info)
	}
	if err := s.generic.InstallAPIGroups(groups...); err != nil {
		return fmt.Errorf("install kinds: %w", err)
	}
	return nil
}

// coreGroups are namespaces, secrets, config maps and events: of the core, what is of use without machines. Kubernetes'
// own assembly of the group would make, and keep caches for, all the rest.
func coreGroups(opts generic.RESTOptionsGetter, inUse registry.InUseFunc) (core, events *genericapiserver.APIGroupInfo, err error) {
	namespaces, namespaceStatus, namespaceFinalize, err := namespacestore.NewREST(opts)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := secretstore.NewREST(opts)
	if err != nil {
		return nil, nil, err
	}
	configMaps, err := configmapstore.NewREST(opts)
	if err != nil {
		return nil, nil, err
	}
	event, err := eventstore.NewREST(opts, uint64(eventLifetime.Seconds()))
	if err != nil {
		return nil, nil, err
	}
	coreInfo := genericapiserver.NewDefaultAPIGroupInfo("", legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	coreInfo.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"namespaces":          &namespaceREST{REST: namespaces, inUse: inUse},
		"namespaces/status":   namespaceStatus,
		"namespaces/finalize": namespaceFinalize,
		"secrets":             adoptingSecrets{secrets},
		"configmaps":          adoptingConfigMaps{configMaps},
		"events":              event,
	}
	// One store, and one cache, for both of the faces that events have.
	eventsInfo := genericapiserver.NewDefaultAPIGroupInfo("events.k8s.io", legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	eventsInfo.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"events": event}
	return &coreInfo, &eventsInfo, nil
}
