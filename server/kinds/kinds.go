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
)

// MaxRequestBodyBytes bounds a request, and an object once it is encoded: kine's rows and watch events are held in memory whole.
const MaxRequestBodyBytes = 2 << 20

// minRequestTimeout is the shortest time after which the server ends a watch of its own accord.
const minRequestTimeout = 30 * time.Minute

// Config is what the kinds need from the server around them.
type Config struct {
	// RESTOptions gives the storage of each kind. It must accept any group and resource, and should come
	// without a watch cache: a million objects do not fit in one.
	RESTOptions generic.RESTOptionsGetter
	// Authorizer is asked again when an apply turns out to be a create, and when an object refers to what its author may
	// not be allowed to read; nil allows both.
	Authorizer authorizer.Authorizer
	// Admission runs on every write; nil admits everything.
	Admission admission.Interface
	// Discovery lists groups under /apis; nil leaves them out.
	Discovery discovery.GroupManager
	// AggregatedDiscovery lists groups and kinds for clients that ask for everything at once; nil leaves them out.
	AggregatedDiscovery aggregated.ResourceManager
	// State reads the raw provider state behind an object for the subresource "state". A nil answer without
	// an error means that there is none, which is a 404; so is a nil State.
	State func(ctx context.Context, obj metav1.Object, kind Kind) ([]byte, error)
	// Taint marks what stands behind an object to be replaced by the next plan, or takes the mark away, for the
	// subresource "taint". It returns whether the object is as it was applied, so that no plan has to look at it.
	// An *apierrors.StatusError is answered as it is.
	Taint func(ctx context.Context, obj metav1.Object, kind Kind, tainted bool) (applied bool, err error)
	// Undelete takes the deletion of an object back for the subresource "undelete": clear clears the mark, and mark sets it again. An
	// *apierrors.StatusError is answered as it is.
	Undelete func(ctx context.Context, obj metav1.Object, kind Kind, clear func(Undeleted) error, mark func() error) error
	// Deletion says what there is to know for whoever deleted an object that infrastructure stands behind; nil knows nothing.
	Deletion func(ctx context.Context, obj metav1.Object, kind Kind) (Deletion, error)
	// ProviderConfigs returns the provider of the named ProviderConfig of a namespace, by its name. Where there is none of the name, it returns
	// all of the namespace. Nil means that nobody knows them.
	ProviderConfigs func(ctx context.Context, namespace, name string) (map[string]string, error)
	// Changed is called after an object was changed or removed; nil calls nothing. It must return at once.
	Changed func()
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
}

// Provider is an installed provider whose types become kinds.
type Provider struct {
	// Name of the Provider object; the first label of the API group.
	Name string
	// Source and Version tell people where a kind comes from.
	Source, Version string
	// Schema is what the provider said about itself. It is read, never changed.
	Schema *schema.Provider
}

// Kind is one served kind.
type Kind struct {
	// Provider is the name of the Provider object.
	Provider string
	// Mode is what the type stands for; it is never empty.
	Mode v1alpha1.Mode
	// Type is the Terraform type, such as "sim_network".
	Type string
	GVK  kschema.GroupVersionKind
	GVR  kschema.GroupVersionResource
	// ShortNames are other names by which kubectl finds the kind.
	ShortNames []string
	// Schema of the type.
	Schema *schema.Schema
	// Identity is what instances of a managed type are told apart by; nil for types without one.
	Identity *schema.Identity
	// List is the schema of the arguments with which a provider lists what exists of a managed type; nil when it cannot.
	List *schema.Schema
}

// Stored is where the store keeps the objects of the kind.
func (k Kind) Stored() kschema.GroupResource {
	return kschema.GroupResource{Group: k.GVR.Group, Resource: storedAs(k.Mode, k.Type)}
}

// typeKey names a Terraform type; two modes may have types of the same name.
type typeKey struct {
	mode v1alpha1.Mode
	name string
}

// Kinds serves the kinds of all installed providers. The zero value is of no use; see New.
type Kinds struct {
	config Config
	log    *slog.Logger
	codecs codecs
	merge  typeConverter
	// swagger is the document /openapi/v2.
	swagger swagger

	// expected holds the names of providers whose kinds should be served and are not.
	expected sync.Map
	// mu is held while providers come and go; readers use the snapshot.
	mu       sync.Mutex
	snapshot atomic.Pointer[snapshot]
}

// snapshot is the set of installed providers at one time. It is never changed, only replaced.
type snapshot struct {
	groups map[string]*group
	// byType has the kinds of a Terraform type, in the order of provider names.
	byType map[typeKey][]Kind
	// functions are the signatures of all functions that providers bring, for expressions.
	functions lang.Functions
}

// sorted are the groups in the order of their names.
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
	// kinds, in the order of their names.
	kinds      []*served
	byResource map[string]*served
	byKind     map[string]*served
	document   document
	functions  lang.Functions
	// ctx ends when the group is no longer served, and with it every watch.
	ctx    context.Context
	cancel context.CancelFunc
}

// New returns an empty set of kinds.
func New(c Config) (*Kinds, error) {
	if c.RESTOptions == nil {
		return nil, errors.New("new kinds: no storage")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Authorizer == nil {
		c.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		})
	}
	k := &Kinds{config: c, log: c.Logger, codecs: newCodecs(), merge: typeConverter{newParseableType()}}
	k.snapshot.Store(&snapshot{})
	return k, nil
}

// Set serves the kinds of a provider, or replaces them when another schema of it was served. Watches of kinds that
// were replaced end, and clients that ask again get the new ones.
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
	k.announce(g)
	if old != nil {
		old.end()
	}
	k.log.Info("kinds are served", "provider", p.Name, "source", p.Source, "version", p.Version, "kinds", len(g.kinds))
	return nil
}

// Expect makes requests for the kinds of a provider fail with 503 instead of 404 while they are not served, and lists its group as
// stale: objects of the kinds may exist, and clients take 404 or a missing group to mean that a kind is gone for good. Set and
// Remove end it.
func (k *Kinds) Expect(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.snapshot.Load().groups[v1alpha1.ProviderGroup(name)] == nil {
		k.expected.Store(name, true)
		k.announceStale(groupVersion(name))
	}
}

// Providers are the names of the providers whose kinds are served or expected, sorted.
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

// Remove stops serving the kinds of a provider and ends their watches. Stored objects stay where they are. It is
// no error when the provider is not there.
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

// Close ends every watch and lets go of all storage.
func (k *Kinds) Close() {
	for _, g := range k.snapshot.Load().groups {
		k.Remove(g.provider.Name)
	}
}

// replace puts a group into the snapshot, or takes it out when g is nil.
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

// groupVersion is the group of a provider in its one version.
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

// end ends the watches of a group at once, and lets go of its storage when no request uses it.
func (g *group) end() {
	g.cancel()
	go func() {
		for _, s := range g.kinds {
			s.release()
		}
	}()
}

// Kind finds a kind by group and kind; the version, when there is one, must be the served one.
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

// ByType finds the kinds of a Terraform type: more than one when two installed providers have it. No mode means managed.
func (k *Kinds) ByType(mode v1alpha1.Mode, terraformType string) []Kind {
	return slices.Clone(k.snapshot.Load().byType[typeKey{cmp.Or(mode, v1alpha1.ModeManaged), terraformType}])
}

// managedTypes are the Terraform types of all managed resources, sorted.
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

// Kinds lists the kinds of a provider in the order of their names; of all providers when the name is empty.
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
