package planning

import (
	"cmp"
	"slices"
	"strings"
	"unique"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"

	"k8s.io/apimachinery/pkg/types"
)

// outline is the namespace of a plan as the index knows it. It determines which objects a survey must load: those that
// the plan visits, those whose references may be wrong, and the dependencies of both. About all other objects, it has
// the facts that this survey needs.
type outline struct {
	view    *index.View
	spec    *v1alpha1.PlanSpec
	configs *scope.ProviderConfigs
	catalog *catalog.Catalog
	// broken reports whether a reference to an object that no plan of the namespace changes is broken.
	broken func([]lang.Reference) bool

	// total is the number of objects. unready lists the slots of those whose provider is not ready.
	total   int
	unready []int
	// uses caches the ProviderConfigs, and outside the versions of references to objects that no plan of the namespace
	// changes.
	uses    map[use]*usedConfig
	outside map[*index.Outside]outsideVersion
	// sums caches the sums of the versions of attributes.
	sums map[index.Reference]index.Sum
	// providers caches the sums of the versions of providers.
	providers map[string]index.Sum
	// taken[i] is true if the record of the object with slot i may move to another object. takes[i] is true if another
	// record may move to it.
	taken, takes map[int]bool
	// interrupted maps the slot of an object to that of its former object if the move was interrupted between its two writes.
	interrupted map[int]int
	// member[i] is true if slot i has an object in scope. createsFirst[i] is true if a replace must create first.
	member, createsFirst []bool
	// depends and dependants are the dependencies of the objects in scope, by slot, in both directions.
	depends, dependants *graph.Edges
	// closure[i] is true if the object with slot i is in scope and changed, or depends on a changed one.
	closure []bool
	// root[i] is true if the object with slot i is in scope and changed, or the plan's spec forces its change.
	root []bool
	// visited[i] is true if the survey may visit the object with slot i. survey.changed decides about it.
	visited []bool
	// checked[i] is true if the survey must check the references of the object with slot i.
	checked []bool
}

// use has the facts that determine the ProviderConfig of an object.
type use struct {
	provider, config string
	wanted           bool
	recorded         bool
	recordedConfig   string
}

// usedConfig is a ProviderConfig, which may be nil, with its version and references as the index identifies them.
type usedConfig struct {
	*scope.ProviderConfigRef
	version index.Sum
	// refersTo lists the slots of the addresses that it refers to, and values the attributes.
	refersTo []int32
	values   []index.Reference
}

// outsideVersion is the result of scope.ExternalVersion, and whether a reference is broken.
type outsideVersion struct {
	version       string
	known, broken bool
}

func newOutline(view *index.View, spec *v1alpha1.PlanSpec, configs *scope.ProviderConfigs, c *catalog.Catalog, broken func([]lang.Reference) bool) *outline {
	o := &outline{view: view, spec: spec, configs: configs, catalog: c, broken: broken,
		uses: map[use]*usedConfig{}, sums: map[index.Reference]index.Sum{}, outside: map[*index.Outside]outsideVersion{}, providers: map[string]index.Sum{}, taken: map[int]bool{}, takes: map[int]bool{}, interrupted: map[int]int{}}
	for i, n := range view.Nodes {
		if n.Object == nil {
			continue
		}
		o.total++
		_, known := o.providers[n.Object.Provider]
		if e, ok := c.Get(n.Object.Provider); !ok || n.Object.Has(index.Unready) {
			o.unready = append(o.unready, i)
		} else if !known {
			var version index.Sum
			if e.Package.Version != "" {
				version = index.SumOf(providerVersion(e.Name), e.Package.Version)
			}
			o.providers[n.Object.Provider] = version
		}
	}
	o.findMoves()
	return o
}

// complete reports whether the outline has each object of the namespace, and has parsed it.
func (o *outline) complete() bool { return len(o.unready)+len(o.view.Duplicates) == 0 }

// record returns the record of a slot; an empty one if there is none.
func (o *outline) record(i int) *index.Record {
	if r := o.view.Nodes[i].Record; r != nil {
		return r
	}
	return &noRecord
}

var noRecord index.Record

// wanted reports whether the plan keeps or creates the infrastructure of an object.
func (o *outline) wanted(i int) bool {
	return !o.view.Nodes[i].Object.Has(index.Deleting) && !o.spec.Destroy
}

// parsed reports whether the survey evaluates the expressions of an object.
func (o *outline) parsed(i int) bool {
	return o.wanted(i) && (!o.spec.RefreshOnly || o.view.Nodes[i].Object.Mode != v1alpha1.ModeManaged)
}

// findMoves notes which records may move; see survey.findMoves.
func (o *outline) findMoves() {
	if o.spec.RefreshOnly {
		return
	}
	half := map[types.UID]int{}
	for i, n := range o.view.Nodes {
		if n.Object == nil {
			continue
		}
		if n.Record != nil && n.Record.MovedFrom != "" && n.Record.Living {
			half[n.Record.MovedFrom] = i
		}
		if n.Object.Moved == "" || !o.wanted(i) || n.Object.Mode != v1alpha1.ModeManaged {
			continue
		}
		addr, err := lang.ParseAddress(n.Object.Moved)
		if err != nil {
			o.takes[i] = true // the survey reports it
			continue
		}
		if from, ok := o.view.Slot(addr); ok && from != i && o.record(from).Living {
			o.takes[i], o.taken[from] = true, true
		}
	}
	if len(half) == 0 {
		return
	}
	for from, n := range o.view.Nodes {
		if n.Object == nil || !o.record(from).Living {
			continue
		}
		if i, ok := half[n.Object.UID]; ok && i != from {
			o.takes[i], o.taken[from], o.interrupted[i] = true, true, from
		}
	}
}

// config returns the ProviderConfig of an object.
func (o *outline) config(i int) (*usedConfig, error) {
	n, rec := o.view.Nodes[i], o.record(i)
	key := use{provider: n.Object.Provider, config: n.Object.Config, wanted: o.wanted(i)}
	if !key.wanted {
		key.recorded, key.recordedConfig = rec.Exists, rec.Config
	}
	if known, ok := o.uses[key]; ok {
		return known, nil
	}
	entry, _ := o.catalog.Get(key.provider)
	r := &resource.Resource{Entry: entry}
	r.Lifecycle.ProviderConfig = key.config
	state := &ledger.Instance{State: ledger.State{ProviderConfig: key.recordedConfig}}
	if key.recorded {
		state.Attributes = []byte("{}")
	}
	found, err := o.configs.ForResource(r, state, key.wanted)
	if err != nil {
		return nil, err
	}
	u := &usedConfig{ProviderConfigRef: found}
	if found != nil {
		u.version = index.SumOf(changes.VersionOfConfig(found.Cfg.Name), found.Version)
		for _, ref := range found.References {
			if ref.Namespace != "" || ref.Stored() {
				continue
			}
			slot, ok := o.view.Slot(ref.Address)
			if !ok {
				continue
			}
			if !slices.Contains(u.refersTo, int32(slot)) {
				u.refersTo = append(u.refersTo, int32(slot))
			}
			u.values = append(u.values, index.Reference{Slot: int32(slot), Attribute: unique.Make(ref.Attribute)})
		}
	}
	o.uses[key] = u
	return u, nil
}

// dependencies returns the slots that a wanted object depends on, and requires returns those that its record depends
// on. Both ignore an error of config, because newOutline's caller has already returned it.
func (o *outline) dependencies(i int) []int32 {
	if !o.wanted(i) {
		return nil
	}
	var out []int32
	if o.parsed(i) {
		out = o.view.Nodes[i].Object.DependsOn
	}
	return o.withConfig(i, out)
}

func (o *outline) requires(i int) []int32 {
	if from, ok := o.interrupted[i]; ok {
		i = from
	}
	out := o.record(i).Requires
	if !o.wanted(i) {
		out = o.withConfig(i, out)
	}
	return out
}

// withConfig adds the dependencies of the object's ProviderConfig.
func (o *outline) withConfig(i int, slots []int32) []int32 {
	u, err := o.config(i)
	if err != nil || len(u.refersTo) == 0 {
		return slots
	}
	out := slices.Clone(slots)
	for _, d := range u.refersTo {
		if int(d) != i && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// edges returns the dependencies of all objects for the package graph.
func (o *outline) edges(of func(i int) []int32) []graph.Node {
	out := make([]graph.Node, len(o.view.Nodes))
	flat := make([]int, 0, 2*len(out))
	for i, n := range o.view.Nodes {
		if n.Object == nil {
			continue
		}
		start := len(flat)
		for _, d := range of(i) {
			flat = append(flat, int(d))
		}
		out[i].Deps = flat[start:len(flat):len(flat)]
	}
	return out
}

// versionOutside returns the version of the references of an object to objects that no plan of the namespace changes.
func (o *outline) versionOutside(refs *index.Outside) outsideVersion {
	if refs == nil {
		return outsideVersion{known: true}
	}
	v, ok := o.outside[refs]
	if !ok {
		v.version, v.known = o.configs.ExternalVersion(refs.References)
		v.broken = o.broken(refs.References)
		o.outside[refs] = v
	}
	return v
}

// external reports whether a version that an object depends on cannot be determined.
func (o *outline) external(i int) bool {
	if !o.versionOutside(o.view.Nodes[i].Object.Outside).known {
		return true
	}
	u, err := o.config(i)
	return err != nil || u.ProviderConfigRef != nil && !u.VersionKnown
}

// changed reports whether the plan must visit an object itself. It agrees with survey.changed.
func (o *outline) changed(i int) bool {
	object, rec, wanted := o.view.Nodes[i].Object, o.record(i), o.wanted(i)
	switch object.Mode {
	case v1alpha1.ModeData:
		return wanted
	case v1alpha1.ModeEphemeral:
		return wanted && (object.Has(index.Impure) || o.external(i))
	case v1alpha1.ModeAction:
		return wanted && !object.Has(index.Good) && (!rec.Planned || rec.Intent || rec.Generation != object.Generation)
	}
	switch {
	case !wanted:
		return rec.Living || rec.Intent || object.Has(index.Deleting)
	case o.spec.RefreshOnly:
		return rec.Exists
	case o.spec.Refresh == v1alpha1.RefreshAll:
		return true
	}
	return !rec.Exists || rec.Generation != object.Generation || rec.Tainted || rec.Intent || rec.Deposed || object.Has(index.Impure) || o.takes[i] ||
		!object.Has(index.Good) || object.Has(index.Drifted) || o.external(i) || o.dependencyVersions(i) != rec.DependencyVersions
}

// before compares the positions of two objects in a list of all objects.
func (o *outline) before(i, j int) int {
	first, added := o.view.Added[i]
	second, alsoAdded := o.view.Added[j]
	switch {
	case o.view.Nodes[i].Object.Instance != nil || o.view.Nodes[j].Object.Instance != nil:
	case added && alsoAdded:
		return first - second
	case added:
		return 1
	case alsoAdded:
		return -1
	}
	a, b := o.view.Nodes[i].Object, o.view.Nodes[j].Object
	if a.Instance != nil || b.Instance != nil {
		return compareInstances(a, b)
	}
	if c := strings.Compare(a.Provider, b.Provider); c != 0 {
		return c
	}
	if c := strings.Compare(a.Stored+"/", b.Stored+"/"); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// compareInstances compares the positions of two objects of which one or both are instances of ResourceSets. Instances
// come last, by the names of their sets, and in each set those that leave it.
func compareInstances(a, b *index.Object) int {
	switch {
	case a.Instance == nil:
		return -1
	case b.Instance == nil:
		return 1
	case a.Instance.Leaving != b.Instance.Leaving && a.Instance.Set == b.Instance.Set && a.Instance.Leaving:
		return 1
	case a.Instance.Leaving != b.Instance.Leaving && a.Instance.Set == b.Instance.Set:
		return -1
	}
	return cmp.Or(strings.Compare(a.Instance.Set, b.Instance.Set), strings.Compare(a.Type, b.Type), v1alpha1.CompareNames(a.Name, b.Name))
}
