package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
)

// SetsResource is the resource of ResourceSets.
const SetsResource = "resourcesets"

// IndexOfKind returns the index of the kind with a name and a version; negative if there is none.
func IndexOfKind(kinds []Kind, apiVersion, name string) int {
	return slices.IndexFunc(kinds,
		func(k Kind) bool { return k.Kind == name && k.GVR.GroupVersion().String() == apiVersion })
}

// ModulesResource is the resource of Modules.
const ModulesResource = "modules"

// ModuleKind is the kind of Modules.
var ModuleKind = Kind{v1alpha1.SchemeGroupVersion.WithResource(ModulesResource), "Module"}

// Namespaces is the resource of namespaces.
var Namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// fixedKind is a kind that every server has.
type fixedKind struct {
	Kind
	Namespaced bool
	// short is the short name of the kind; empty if it has none.
	short string
}

// fixedKinds lists kinds that need no discovery.
var fixedKinds = []fixedKind{
	{Kind{Namespaces, "Namespace"}, false, "ns"},
	{Kind{corev1.SchemeGroupVersion.WithResource("secrets"), "Secret"}, true, ""},
	{Kind{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap"}, true, "cm"},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource("providers"), "Provider"}, false, "prov"},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"), "ProviderConfig"}, true, "pc"},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource(SetsResource), "ResourceSet"}, true, "rset"},
	{ModuleKind, true, "mod"},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource("plans"), "Plan"}, true, ""},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource("planpolicies"), "PlanPolicy"}, true, "pp"},
	{Kind{v1alpha1.SchemeGroupVersion.WithResource("clusterplanpolicies"), "ClusterPlanPolicy"}, false, "cpp"},
}

// Mapping returns the resource of a kind. Errors are those of the mapper; meta.IsNoMatchError identifies an unknown
// kind.
func (s *Session) Mapping(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	for _, f := range fixedKinds {
		if f.GVR.Group == gvk.Group && f.Kind.Kind == gvk.Kind {
			return gvk.GroupVersion().WithResource(f.GVR.Resource), f.Namespaced, nil
		}
	}
	m, err := s.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Resource returns the client of a resource in a namespace; "" means cluster scope.
func (s *Session) Resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.Objects.Resource(gvr)
	}
	return s.Objects.Resource(gvr).Namespace(namespace)
}

// ResourceKinds returns the served kinds of all providers.
func (s *Session) ResourceKinds(ctx context.Context) ([]Kind, error) {
	s.Discovery.Invalidate() // kinds change with the installed providers
	lists, err := discovery.ServerPreferredNamespacedResources(s.Discovery)
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list kinds: %w", s.Explain(err))
	}
	var out []Kind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		if _, ok := v1alpha1.ProviderOfGroup(gv.Group); !ok {
			continue
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") {
				continue
			}
			out = append(out, Kind{GVR: gv.WithResource(r.Name), Kind: r.Kind})
		}
	}
	return out, ctx.Err()
}

// Kind is a kind of objects that the server has, with its resource.
type Kind struct {
	GVR  schema.GroupVersionResource
	Kind string
}

// FixedTarget is an object of a kind that every server has.
type FixedTarget struct {
	fixedKind
	Name string
}

// ParseFixed parses KIND/NAME of a fixed kind, with any of kubectl's names for the kind.
func ParseFixed(s string) (FixedTarget, bool) {
	word, name, _ := strings.Cut(strings.ToLower(s), "/")
	word, group, _ := strings.Cut(word, ".")
	for _, k := range fixedKinds {
		named := slices.Contains([]string{strings.ToLower(k.Kind.Kind), k.GVR.Resource, k.short}, word)
		if named && k.Kind.Kind != "Plan" && name != "" && (group == "" || group == k.GVR.Group) {
			return FixedTarget{k, name}, true
		}
	}
	return FixedTarget{}, false
}
