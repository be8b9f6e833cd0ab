package server

import (
	"context"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	coreinternal "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	eventstore "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	quotastore "k8s.io/kubernetes/pkg/registry/core/resourcequota/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
)

// eventLifetime is the time after which the store removes an event, as in Kubernetes.
const eventLifetime = time.Hour

// groupProvider is the interface through which Kubernetes' registries provide an API group.
type groupProvider interface {
	GroupName() string
	NewRESTStorage(serverstorage.APIResourceConfigSource,
		generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// installAPIs installs the fixed kinds.
func (s *Server) installAPIs() error {
	g := s.config.generic
	core, events, err := s.coreGroups(g.RESTOptionsGetter)
	if err != nil {
		return fmt.Errorf("make core kinds: %w", err)
	}
	if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, core); err != nil {
		return fmt.Errorf("install core kinds: %w", err)
	}
	enabled := serverstorage.NewResourceConfig()
	enabled.EnableVersions(rbacv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion,
		authorizationv1.SchemeGroupVersion, flowcontrolv1.SchemeGroupVersion)

	hykube, held, err := registry.NewGroup(s.registryConfig())
	if err != nil {
		return fmt.Errorf("make kinds of hykube.io: %w", err)
	}
	for resource, h := range held {
		s.deletions.hold(resource, h)
	}
	apiServices, err := registry.NewAPIServices(hykube)
	if err != nil {
		return err
	}
	// A watch cache would cost more than the few objects, which only the server itself watches.
	priorities, err := flowcontrolrest.RESTStorageProvider{InformerFactory: s.config.informers}.NewRESTStorage(enabled,
		s.config.store.RESTOptions(s.config.codecs.ForStorage, false))
	if err != nil {
		return fmt.Errorf("make kinds of priority and fairness: %w", err)
	}
	// If names collide, kubectl prefers groups in this order.
	groups := []*genericapiserver.APIGroupInfo{hykube, events, apiServices}
	for _, p := range []groupProvider{
		rbacrest.RESTStorageProvider{Authorizer: g.Authorization.Authorizer},
		authenticationrest.RESTStorageProvider{Authenticator: g.Authentication.Authenticator,
			APIAudiences: g.Authentication.APIAudiences},
		authorizationrest.RESTStorageProvider{Authorizer: g.Authorization.Authorizer, RuleResolver: g.RuleResolver},
	} {
		info, err := p.NewRESTStorage(enabled, g.RESTOptionsGetter)
		if err != nil {
			return fmt.Errorf("make kinds of %q: %w", p.GroupName(), err)
		}
		groups = append(groups, &info)
	}
	if err := s.generic.InstallAPIGroups(append(groups, &priorities)...); err != nil {
		return fmt.Errorf("install kinds: %w", err)
	}
	if s.plans, err = registry.NewStoredPlans(hykube, s.config.codecs, s.config.generic.AdmissionControl); err != nil {
		return err
	}
	return nil
}

// registryConfig returns the configuration of the kinds of hykube.io.
func (s *Server) registryConfig() registry.Config {
	g := s.config.generic
	return registry.Config{
		Codecs:      s.config.codecs,
		RESTOptions: g.RESTOptionsGetter,
		// A watch cache would hold every record in memory, and no client watches them.
		UncachedOptions:     s.config.store.RESTOptions(s.config.codecs.ForStorage, false),
		Authorizer:          g.Authorization.Authorizer,
		Backend:             &s.wiring.Backend,
		Deleting:            s.deletions.add,
		Changed:             s.deletions.changed,
		AuthorizeReferences: s.authorizeReferences,
		Changes:             s.changes,
		Verify:              s.verify,
		ExternalTemporal:    s.config.TemporalAddress != "",
		MayRead:             s.mayRead,
		Objects:             s.objects,
		Collection:          s.config.store.Collection(kinds.Summarize, registry.NewResource),
		StoredObjects:       s.config.store.Objects(),
		Kinds:               s.kinds,
		Types: func(terraformType string) []kinds.Kind {
			return s.kinds.ByType(v1alpha1.ModeManaged, terraformType)
		},
		Check: func(ctx context.Context, objects []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error) {
			return s.kinds.Check(ctx, objects)
		},
		ConfigBlock: func(provider string) *schema.Block { return s.kinds.ProviderConfigBlock(provider) },
		Protected:   []string{s.config.DataDir},
		Trust:       s.config.ProviderTrust,
	}
}

// coreGroups returns the kinds of the core group that are useful without nodes: namespaces, secrets, config maps and
// events. Kubernetes' own function would also create the other kinds and their caches.
func (s *Server) coreGroups(opts generic.RESTOptionsGetter) (core, events *genericapiserver.APIGroupInfo, err error) {
	namespaces, namespaceStatus, namespaceFinalize, err := namespacestore.NewREST(opts)
	if err != nil {
		return nil, nil, err
	}
	namespaceUndelete, err := newUndeleteNamespace(s.config.store.RESTOptions(s.config.codecs.ForStorage, false), s)
	if err != nil {
		return nil, nil, err
	}
	s.namespaceUndelete = namespaceUndelete
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
	quotas, quotaStatus, err := quotastore.NewREST(s.config.store.RESTOptions(s.config.codecs.ForStorage, false))
	if err != nil {
		return nil, nil, err
	}
	registry.RecordKeyWriters(secrets.Store,
		func(obj runtime.Object) map[string]string { return texts(obj.(*coreinternal.Secret).Data) })
	registry.RecordKeyWriters(configMaps.Store, func(obj runtime.Object) map[string]string {
		cm := obj.(*coreinternal.ConfigMap)
		all := texts(cm.BinaryData)
		maps.Copy(all, cm.Data)
		return all
	})
	heldSecrets := registry.NewHeld(secrets.Store,
		s.heldCore(func(m metav1.ObjectMeta) metav1.Object { return &corev1.Secret{ObjectMeta: m} }))
	heldConfigMaps := registry.NewHeld(configMaps.Store,
		s.heldCore(func(m metav1.ObjectMeta) metav1.Object { return &corev1.ConfigMap{ObjectMeta: m} }))
	s.deletions.hold("secrets", heldSecrets)
	s.deletions.hold("configmaps", heldConfigMaps)
	coreInfo := genericapiserver.NewDefaultAPIGroupInfo("", legacyscheme.Scheme, legacyscheme.ParameterCodec,
		legacyscheme.Codecs)
	coreInfo.NegotiatedSerializer = registry.WithHints(legacyscheme.Codecs, legacyscheme.Scheme)
	coreInfo.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"namespaces":            &namespaceREST{REST: namespaces, server: s},
		"namespaces/undelete":   namespaceUndelete,
		"namespaces/status":     namespaceStatus,
		"namespaces/finalize":   &finalizeNamespaceREST{namespaceFinalize, s},
		"secrets":               adopting{heldSecrets},
		"secrets/undelete":      registry.NewUndelete(heldSecrets),
		"configmaps":            adoptingConfigMaps{adopting{heldConfigMaps}},
		"configmaps/undelete":   registry.NewUndelete(heldConfigMaps),
		"events":                event,
		"resourcequotas":        quotas,
		"resourcequotas/status": quotaStatus,
	}
	// Both versions of events share one store and one cache.
	eventsInfo := genericapiserver.NewDefaultAPIGroupInfo("events.k8s.io", legacyscheme.Scheme,
		legacyscheme.ParameterCodec, legacyscheme.Codecs)
	eventsInfo.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"events": event}
	return &coreInfo, &eventsInfo, nil
}

// texts returns the values of a map as strings.
func texts(data map[string][]byte) map[string]string {
	out := make(map[string]string, len(data))
	for key, value := range data {
		out[key] = string(value)
	}
	return out
}

// heldCore configures the deletion of a core kind that resources may need. These kinds have no conditions, so an
// annotation holds the reason why a deleted object still exists.
func (s *Server) heldCore(as func(metav1.ObjectMeta) metav1.Object) registry.HeldConfig {
	return registry.HeldConfig{
		As: func(obj runtime.Object) metav1.Object {
			m := obj.(metav1.Object)
			return as(metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName()})
		},
		Backend: &s.wiring.Backend, Deleting: s.deletions.add,
		Note: func(obj runtime.Object, message string) {
			metav1.SetMetaDataAnnotation(objectMeta(obj), v1alpha1.AnnotationInUseBy, message)
		},
		Clear: func(obj runtime.Object) { delete(objectMeta(obj).Annotations, v1alpha1.AnnotationInUseBy) },
	}
}

// objectMeta returns the metadata of a Kubernetes object.
func objectMeta(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}
