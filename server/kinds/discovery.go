package kinds

import (
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Priorities of the groups: those of custom resources, after the built-in kinds.
const (
	groupPriority   = 1000
	versionPriority = 100
)

// Subresources of an object.
const (
	// resolveSubresource drops the intent of a create with an unknown outcome.
	resolveSubresource = "resolve"
	// stateSubresource returns the raw provider state.
	stateSubresource  = "state"
	statusSubresource = "status"
	// taintSubresource marks the object's infrastructure for replacement.
	taintSubresource = "taint"
	// undeleteSubresource reverts a deletion.
	undeleteSubresource = "undelete"
)

// subresources returns the subresources of the kinds of a mode, sorted by name. Ephemeral resources and actions have no
// state. Only managed resources can be created, replaced and undeleted.
func subresources(mode v1alpha1.Mode) []string {
	switch mode {
	case v1alpha1.ModeManaged:
		return []string{resolveSubresource, stateSubresource, statusSubresource, taintSubresource, undeleteSubresource}
	case v1alpha1.ModeData:
		return []string{stateSubresource, statusSubresource}
	default:
		return []string{statusSubresource}
	}
}

// announceStale adds a group whose kinds are not served now to discovery. Kubernetes marks the group of an unavailable
// aggregated server in the same way, so that clients keep their cached data.
func (k *Kinds) announceStale(gv kschema.GroupVersion) {
	k.list(gv, apidiscoveryv2.APIVersionDiscovery{Version: gv.Version,
		Freshness: apidiscoveryv2.DiscoveryFreshnessStale})
}

// list adds a version of a group to discovery.
func (k *Kinds) list(gv kschema.GroupVersion, version apidiscoveryv2.APIVersionDiscovery) {
	if d := k.config.Discovery; d != nil {
		d.AddGroup(apiGroup(gv))
	}
	if d := k.config.AggregatedDiscovery; d != nil {
		d.AddGroupVersion(gv.Group, version)
		d.SetGroupVersionPriority(metav1.GroupVersion(gv), groupPriority, versionPriority)
	}
}

// retract removes a group from discovery.
func (k *Kinds) retract(gv kschema.GroupVersion) {
	if d := k.config.Discovery; d != nil {
		d.RemoveGroup(gv.Group)
	}
	if d := k.config.AggregatedDiscovery; d != nil {
		d.RemoveGroupVersion(metav1.GroupVersion(gv))
	}
}

func apiGroup(gv kschema.GroupVersion) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	return metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func verbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// subresourceVerbs returns the verbs of all subresources.
func subresourceVerbs() map[string][]string {
	return map[string][]string{
		resolveSubresource: {"create"}, stateSubresource: {"get"}, statusSubresource: {"get", "patch", "update"},
		taintSubresource: {"create", "delete"}, undeleteSubresource: {"create"},
	}
}

// fixedCategory is the category of the fixed kinds, for `kubectl get hykube`. kubectl lists the kinds of a category one
// by one, so the kinds of providers are not in it: the fixed kind Resource lists their objects at once.
const fixedCategory = "hykube"

// categories returns the category of the provider's kinds of all modes: the provider's name, unless a kind has that
// name.
func (g *group) categories() []string {
	name := g.provider.Name
	if g.byKind[name] != nil || g.byResource[name] != nil || name == fixedCategory {
		return nil
	}
	return []string{name}
}

// aggregated returns the group version for aggregated discovery. All kinds share equal parts, since the server keeps
// the document while the provider is installed. It omits the subresources, which legacy discovery has: kubectl keeps
// one entry for each subresource, decodes all entries several times for each command, and uses none of these.
func (g *group) aggregated() apidiscoveryv2.APIVersionDiscovery {
	all, categories := verbs(), g.categories()
	out := apidiscoveryv2.APIVersionDiscovery{
		Version: g.version.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		Resources: make([]apidiscoveryv2.APIResourceDiscovery, 0, len(g.kinds)),
	}
	for _, s := range g.kinds {
		out.Resources = append(out.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: s.GVR.Resource, SingularResource: s.GVK.Kind,
			ResponseKind: &metav1.GroupVersionKind{Group: s.GVK.Group, Version: s.GVK.Version, Kind: s.GVK.Kind},
			Scope:        apidiscoveryv2.ScopeNamespace, Verbs: all, Categories: categories, ShortNames: s.ShortNames,
		})
	}
	return out
}

// resources returns the group version for legacy discovery, with all subresources.
func (g *group) resources() []metav1.APIResource {
	all, sub, categories := verbs(), subresourceVerbs(), g.categories()
	out := make([]metav1.APIResource, 0, 4*len(g.kinds))
	for _, s := range g.kinds {
		out = append(out, metav1.APIResource{
			Name: s.GVR.Resource, SingularName: s.GVK.Kind, Namespaced: true, Kind: s.GVK.Kind, Verbs: all,
			Categories: categories, ShortNames: s.ShortNames,
		})
		for _, name := range subresources(s.Mode) {
			out = append(out, metav1.APIResource{Name: s.GVR.Resource + "/" + name, Namespaced: true, Kind: s.GVK.Kind,
				Verbs: sub[name]})
		}
	}
	return out
}

// serveDiscovery serves /apis/GROUP and /apis/GROUP/VERSION.
func (k *Kinds) serveDiscovery(w http.ResponseWriter, r *http.Request, parts []string) {
	g := k.snapshot.Load().groups[parts[1]]
	switch {
	case g == nil:
		provider, _ := v1alpha1.ProviderOfGroup(parts[1])
		k.fail(w, r, k.notInstalled(provider))
	case len(parts) == 2:
		discovery.NewAPIGroupHandler(k.codecs.meta, apiGroup(g.version)).ServeHTTP(w, r)
	case len(parts) == 3 && parts[2] == g.version.Version:
		discovery.NewAPIVersionHandler(k.codecs.meta, g.version,
			discovery.APIResourceListerFunc(g.resources)).ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}
