// Package kinds serves an API kind for each resource type, data source, ephemeral resource and action of each
// installed Terraform provider, without CustomResourceDefinition objects. It answers requests, discovery and OpenAPI.
// A kind costs a few hundred bytes until its first request.
//
// It may import internal/schema, internal/lang, internal/diag, internal/condition, internal/instance for the
// signatures of functions, and api. It uses the handlers and the registry of k8s.io/apiserver. It does not know
// provider processes, plans or the rest of the server: Config has the functions that it needs from there.
package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/rights"
)

// MaxRequestBodyBytes is the maximum size of a request body and of an encoded object. The server holds kine's rows and
// watch events in memory.
const MaxRequestBodyBytes = 2 << 20

// minRequestTimeout is the minimum time after which the server ends a watch.
const minRequestTimeout = 30 * time.Minute

// Config configures Kinds and supplies functions of the server.
type Config struct {
	// RESTOptions returns the storage options of each kind. It must accept any group and resource. It should not use a
	// watch cache, which cannot hold a million objects.
	RESTOptions generic.RESTOptionsGetter
	// Authorizer also authorizes an apply that turns out to be a create, and the references of an object. A nil
	// Authorizer allows both.
	Authorizer authorizer.Authorizer
	// Admission checks every write; nil admits everything.
	Admission admission.Interface
	// Discovery lists groups under /apis; nil omits them.
	Discovery discovery.GroupManager
	// AggregatedDiscovery lists groups and kinds for clients of aggregated discovery; nil omits them.
	AggregatedDiscovery aggregated.ResourceManager
	// Infrastructure has the functions that concern infrastructure; nil has none.
	Infrastructure *Infrastructure
	// ProviderConfigs returns the providers of a namespace's ProviderConfigs by name. If there is one with the given
	// name, it returns only that one. It may be nil.
	ProviderConfigs func(ctx context.Context, namespace, name string) (map[string]string, error)
	// ProviderConfig returns the provider of one ProviderConfig; "" if the ProviderConfig does not exist. If
	// ProviderConfig is nil, the server treats each ProviderConfig as missing.
	ProviderConfig func(ctx context.Context, namespace, name string) (provider string, err error)
	// Changed is called after an object was changed or removed, unless it is nil. It must not block.
	Changed func()
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
}

// Infrastructure holds functions of the server that concern recorded infrastructure and the instances of ResourceSets.
// The server may set them after New, before the first request.
type Infrastructure struct {
	// State returns the raw provider state of an object, for the subresource "state". If State is nil, or returns nil
	// without an error, the response is 404.
	State func(ctx context.Context, obj metav1.Object, kind Kind) ([]byte, error)
	// Taint marks an object's infrastructure for replacement by the next plan, or removes the mark, for the subresource
	// "taint". applied is true if the current generation is applied, so that no plan has to visit the object. An
	// *apierrors.StatusError becomes the response.
	Taint func(ctx context.Context, obj metav1.Object, kind Kind, tainted bool) (applied bool, err error)
	// Resolve drops the intent of an object's create whose outcome is unknown, for the subresource "resolve". An
	// *apierrors.StatusError becomes the response.
	Resolve func(ctx context.Context, obj metav1.Object, kind Kind) error
	// Forget removes the record of an object that does not exist, for the subresource "resolve". A dry run removes
	// nothing. An *apierrors.StatusError becomes the response. If Forget is nil, there is no such record.
	Forget func(ctx context.Context, ref v1alpha1.ObjectReference, kind Kind, dry bool) error
	// Undelete reverts the deletion of an object, for the subresource "undelete". clear removes the deletion mark, and
	// mark sets it again. An *apierrors.StatusError becomes the response.
	Undelete func(ctx context.Context, obj metav1.Object, kind Kind, clear func(Undeleted) error,
		mark func() error) error
	// Deletion returns the consequences of deleting an object with infrastructure; nil returns none.
	Deletion func(ctx context.Context, obj metav1.Object, kind Kind) (Deletion, error)
	// Instance returns an instance of a ResourceSet by the name of its kind, or nil if there is none. If Instance is
	// nil, there are no instances.
	Instance func(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error)
	// SetAt returns the name of the ResourceSet whose instances have the address of a reference; "" if there is none.
	// If SetAt is nil, there are no ResourceSets.
	SetAt func(ref v1alpha1.ObjectReference) string
	// SetOf reports whether a ResourceSet has instances of the kind of a reference, in its namespace or, without one,
	// in any namespace. If SetOf is nil, there are no ResourceSets.
	SetOf func(ref v1alpha1.ObjectReference) bool
	// InstanceStatus changes the status of an instance.
	InstanceStatus func(ctx context.Context, ref v1alpha1.ObjectReference,
		change func(*unstructured.Unstructured) map[string]any) error
}

// Provider is an installed provider, whose types become kinds.
type Provider struct {
	// Name is the name of the Provider object and the first label of the API group.
	Name string
	// Source and Version describe the origin of a kind to users.
	Source, Version string
	// Schema is the provider's schema. It must not change.
	Schema *schema.Provider
}

// Kind is a served kind.
type Kind struct {
	// Provider is the name of the Provider object.
	Provider string
	// Mode is the mode of the type; it is never empty.
	Mode v1alpha1.Mode
	// Type is the Terraform type, such as "sim_network".
	Type string
	GVK  kschema.GroupVersionKind
	GVR  kschema.GroupVersionResource
	// ShortNames are the short names for kubectl.
	ShortNames []string
	// Schema is the schema of the type.
	Schema *schema.Schema
	// Identity is the identity schema of a managed type; nil for types without one.
	Identity *schema.Identity
	// List is the schema of the list configuration of a managed type; nil if the provider cannot list it.
	List *schema.Schema
}

// Stored returns the group and resource under which the store keeps the objects of the kind.
func (k Kind) Stored() kschema.GroupResource {
	return kschema.GroupResource{Group: k.GVR.Group, Resource: storedAs(k.Mode, k.Type)}
}

// typeKey is a mode and a Terraform type. Types of two modes may have the same name.
type typeKey struct {
	mode v1alpha1.Mode
	name string
}

// Kinds serves the kinds of all installed providers. Create it with New.
type Kinds struct {
	config Config
	access rights.Access
	log    *slog.Logger
	codecs codecs
	merge  typeConverter
	// swagger is the OpenAPI v2 document.
	swagger swagger

	// expected is the set of names of providers whose kinds should be served but are not.
	expected sync.Map
	// mu serializes changes of the providers. Readers use snapshot without it.
	mu       sync.Mutex
	snapshot atomic.Pointer[snapshot]
	// written holds objects that were written; see Written.
	written chan Written
}

// snapshot is an immutable set of installed providers.
type snapshot struct {
	groups map[string]*group
	// byType maps a Terraform type to its kinds, sorted by provider name.
	byType map[typeKey][]Kind
	// functions are the signatures of the functions of all providers.
	functions lang.Functions
}

// sorted returns the groups sorted by name.
func (s *snapshot) sorted() []*group {
	out := make([]*group, 0, len(s.groups))
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, s.groups[name])
	}
	return out
}

// group is the API group of one provider.
type group struct {
	provider Provider
	version  kschema.GroupVersion
	// kinds is sorted by name.
	kinds      []*served
	byResource map[string]*served
	byKind     map[string]*served
	// document has the models and the operations of all kinds, and operations has only the operations.
	document, operations document
	hashOnce             sync.Once
	hash                 string
	functions            lang.Functions
	// ctx ends when the group is no longer served, and ends all its watches.
	ctx    context.Context
	cancel context.CancelFunc
}

// New returns a Kinds without providers.
func New(c Config) (*Kinds, error) {
	if c.RESTOptions == nil {
		return nil, errors.New("new kinds: no storage")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Infrastructure == nil {
		c.Infrastructure = new(Infrastructure)
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Authorizer == nil {
		c.Authorizer = authorizer.AuthorizerFunc(func(context.Context,
			authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		})
	}
	k := &Kinds{config: c, access: rights.Access{Authorizer: c.Authorizer}, log: c.Logger, codecs: newCodecs(),
		merge:   typeConverter{newParseableType()},
		written: make(chan Written, maxWritten)}
	k.snapshot.Store(&snapshot{})
	return k, nil
}

// Set serves the kinds of a provider. If the provider's schema changes, Set replaces the kinds and ends their watches;
// clients that watch again get the new kinds.
func (k *Kinds) Set(p Provider) error {
	if errs := validation.IsDNS1123Label(p.Name); len(errs) > 0 {
		return fmt.Errorf("serve kinds of provider %q: invalid name: %s", p.Name, errs[0])
	}
	if p.Schema == nil {
		return fmt.Errorf("serve kinds of provider %q: no schema", p.Name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := v1alpha1.ProviderGroup(p.Name)
	old := k.snapshot.Load().groups[name]
	if old != nil && old.provider == p {
		return nil
	}
	g, err := k.newGroup(p)
	if err != nil {
		return fmt.Errorf("serve kinds of provider %q: %w", p.Name, err)
	}
	k.replace(name, g)
	k.expected.Delete(p.Name)
	k.list(g.version, g.aggregated())
	if old != nil {
		old.end()
	}
	k.log.Info("kinds are served", "provider", p.Name, "source", p.Source, "version", p.Version, "kinds", len(g.kinds))
	return nil
}

// Expect makes requests for the kinds of a provider fail with 503 instead of 404, and lists its group as stale, until
// Set or Remove. Objects of the kinds may exist, and clients take a 404 or a missing group as the removal of a kind.
func (k *Kinds) Expect(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.snapshot.Load().groups[v1alpha1.ProviderGroup(name)] == nil {
		k.expected.Store(name, true)
		k.announceStale(groupVersion(name))
	}
}

// Providers returns the names of the providers whose kinds are served or expected, sorted.
func (k *Kinds) Providers() []string {
	var out []string
	for _, g := range k.snapshot.Load().groups {
		out = append(out, g.provider.Name)
	}
	k.expected.Range(func(name, _ any) bool {
		out = append(out, name.(string))
		return true
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Remove stops serving the kinds of a provider and ends their watches. Stored objects remain. It does nothing if the
// provider does not exist.
func (k *Kinds) Remove(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expected.Delete(name)
	groupName := v1alpha1.ProviderGroup(name)
	old := k.snapshot.Load().groups[groupName]
	k.retract(groupVersion(name))
	if old == nil {
		return
	}
	k.replace(groupName, nil)
	old.end()
	k.log.Info("kinds are no longer served", "provider", name)
}

// Close ends all watches and releases the storage.
func (k *Kinds) Close() {
	for _, g := range k.snapshot.Load().groups {
		k.Remove(g.provider.Name)
	}
}

// replace sets a group in the snapshot, or removes it if g is nil.
func (k *Kinds) replace(name string, g *group) {
	groups := maps.Clone(k.snapshot.Load().groups)
	if groups == nil {
		groups = map[string]*group{}
	}
	delete(groups, name)
	if g != nil {
		groups[name] = g
	}
	next := &snapshot{groups: groups, byType: map[typeKey][]Kind{}, functions: lang.Functions{}}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for _, s := range groups[name].kinds {
			key := typeKey{s.Mode, s.Type}
			next.byType[key] = append(next.byType[key], s.Kind)
		}
		maps.Copy(next.functions, groups[name].functions)
	}
	k.snapshot.Store(next)
}

// groupVersion returns the group of a provider with its only version.
func groupVersion(provider string) kschema.GroupVersion {
	return kschema.GroupVersion{Group: v1alpha1.ProviderGroup(provider), Version: v1alpha1.ResourceVersion}
}

func (k *Kinds) newGroup(p Provider) (*group, error) {
	schemas := map[v1alpha1.Mode]map[string]*schema.Schema{
		v1alpha1.ModeManaged: p.Schema.Resources, v1alpha1.ModeData: p.Schema.DataSources,
		v1alpha1.ModeEphemeral: p.Schema.Ephemerals, v1alpha1.ModeAction: p.Schema.Actions,
	}
	types := make(map[v1alpha1.Mode][]string, len(schemas))
	for mode, of := range schemas {
		types[mode] = slices.Collect(maps.Keys(of))
	}
	names, err := nameKinds(types)
	if err != nil {
		return nil, err
	}
	g := &group{
		provider:   p,
		version:    groupVersion(p.Name),
		byResource: make(map[string]*served, len(names)),
		byKind:     make(map[string]*served, len(names)),
		functions:  instance.Functions(p.Name, p.Schema, nil),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	for _, n := range names {
		s := &served{
			Kind: Kind{
				Provider: p.Name, Mode: n.mode, Type: n.terraformType,
				GVK: g.version.WithKind(n.kind), GVR: g.version.WithResource(n.plural),
				Schema: schemas[n.mode][n.terraformType],
			},
			kinds: k,
			ctx:   g.ctx,
		}
		if n.alias != "" {
			s.ShortNames = []string{n.alias}
		}
		if n.mode == v1alpha1.ModeManaged {
			s.Identity, s.List = p.Schema.Identities[n.terraformType], p.Schema.ListResources[n.terraformType]
		}
		g.kinds = append(g.kinds, s)
		g.byResource[n.plural] = s
		g.byKind[n.kind] = s
	}
	slices.SortFunc(g.kinds, func(a, b *served) int { return cmp.Compare(a.GVK.Kind, b.GVK.Kind) })
	return g, nil
}

// end ends the watches of a group at once. It releases the storage when no request uses it.
func (g *group) end() {
	g.cancel()
	go func() {
		for _, s := range g.kinds {
			s.release()
		}
	}()
}

// Kind returns a kind by group and kind. A non-empty version must be the served one.
func (k *Kinds) Kind(gvk kschema.GroupVersionKind) (Kind, bool) {
	g := k.snapshot.Load().groups[gvk.Group]
	if g == nil || gvk.Version != "" && gvk.Version != g.version.Version {
		return Kind{}, false
	}
	s := g.byKind[gvk.Kind]
	if s == nil {
		return Kind{}, false
	}
	return s.Kind, true
}

// Served returns a kind like Kind. If the kind is not served, the error is that of a request for its objects.
func (k *Kinds) Served(gvk kschema.GroupVersionKind) (Kind, error) {
	if kind, ok := k.Kind(gvk); ok {
		return kind, nil
	}
	provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
	if k.snapshot.Load().groups[gvk.Group] == nil {
		return Kind{}, k.notInstalled(provider)
	}
	return Kind{}, notFound(gvk.Group, gvk.Kind,
		fmt.Sprintf("the provider %q has no kind %q; see `kubectl api-resources --api-group=%s`", provider, gvk.Kind,
			gvk.Group))
}

// Stored returns the kind whose objects are stored as a resource. It returns false if it is not served.
func (k *Kinds) Stored(resource kschema.GroupResource) (Kind, bool) {
	mode, terraformType := parseStored(resource.Resource)
	for _, kind := range k.snapshot.Load().byType[typeKey{mode, terraformType}] {
		if kind.GVK.Group == resource.Group {
			return kind, true
		}
	}
	return Kind{}, false
}

// StoredAs returns the resource under which the objects of a resource are stored. It returns false for a provider's
// resource that is not served.
func (k *Kinds) StoredAs(resource kschema.GroupResource) (kschema.GroupResource, bool) {
	if _, provided := v1alpha1.ProviderOfGroup(resource.Group); !provided {
		return resource, true
	}
	g := k.snapshot.Load().groups[resource.Group]
	if g == nil || g.byResource[resource.Resource] == nil {
		return resource, false
	}
	return g.byResource[resource.Resource].Stored(), true
}

// ByType returns the kinds of a Terraform type: several if several installed providers have it. An empty mode means
// managed.
func (k *Kinds) ByType(mode v1alpha1.Mode, terraformType string) []Kind {
	return slices.Clone(k.snapshot.Load().byType[typeKey{cmp.Or(mode, v1alpha1.ModeManaged), terraformType}])
}

// managedTypes returns the Terraform types of all managed resources, sorted.
func (k *Kinds) managedTypes() []string {
	var out []string
	for key := range k.snapshot.Load().byType {
		if key.mode == v1alpha1.ModeManaged {
			out = append(out, key.name)
		}
	}
	slices.Sort(out)
	return out
}

// Kinds returns the kinds of a provider, sorted by name. An empty name means all providers.
func (k *Kinds) Kinds(provider string) []Kind {
	var out []Kind
	groups := k.snapshot.Load().groups
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		if provider != "" && g.provider.Name != provider {
			continue
		}
		for _, s := range g.kinds {
			out = append(out, s.Kind)
		}
	}
	return out
}
