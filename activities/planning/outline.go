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
)

// outline is the namespace of a plan as the index knows it. Each object has a slot. outline knows what the objects, and
// their records, depend on.
type outline struct {
	entries
	namespace string
	spec      *v1alpha1.PlanSpec
	configs   *scope.ProviderConfigs
	catalog   *catalog.Catalog
	// broken reports whether a reference to an object that no plan of the namespace changes is broken.
	broken func([]lang.Reference) bool

	// total is the number of objects. unready lists the slots of those whose provider is not ready.
	total   int
	unready []int
	// uses caches the ProviderConfigs, and outside the versions of references to objects that no plan of the namespace
	// changes.
	uses    map[use]*usedConfig
	outside map[*index.Outside]outsideVersion
	moves   moves
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

func newOutline(view *index.View, po *v1alpha1.Plan, configs *scope.ProviderConfigs, c *catalog.Catalog,
	broken func([]lang.Reference) bool) *outline {
	o := &outline{
		entries: entries{view}, namespace: po.Namespace, spec: &po.Spec, configs: configs, catalog: c, broken: broken,
		uses: map[use]*usedConfig{}, outside: map[*index.Outside]outsideVersion{},
	}
	for i, n := range view.Nodes {
		if n.Object == nil {
			continue
		}
		o.total++
		if _, ok := c.Get(n.Object.Provider); !ok || n.Object.Has(index.Unready) {
			o.unready = append(o.unready, i)
		}
	}
	o.findMoves()
	return o
}

// complete reports whether the outline has each object of the namespace, and has parsed it.
func (o *outline) complete() bool { return len(o.unready)+len(o.Duplicates) == 0 }

// record returns the record of a slot; an empty one if there is none.
func (o *outline) record(i int) *index.Record {
	if r := o.Nodes[i].Record; r != nil {
		return r
	}
	return &noRecord
}

var noRecord index.Record

// wanted reports whether the plan keeps or creates the infrastructure of an object.
func (o *outline) wanted(i int) bool {
	return !o.Nodes[i].Object.Has(index.Deleting) && !o.spec.Destroy
}

// parsed reports whether the survey evaluates the expressions of an object.
func (o *outline) parsed(i int) bool {
	return o.wanted(i) && (!o.spec.RefreshOnly || o.Nodes[i].Object.Mode != v1alpha1.ModeManaged)
}

// config returns the ProviderConfig of an object.
func (o *outline) config(i int) (*usedConfig, error) {
	n, rec := o.Nodes[i], o.record(i)
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
			slot, ok := o.Slot(ref.Address)
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

// readConfigs reads the ProviderConfigs of all objects. The methods below ignore its error.
func (o *outline) readConfigs() error {
	for i, n := range o.Nodes {
		if n.Object == nil {
			continue
		}
		if _, err := o.config(i); err != nil {
			return err
		}
	}
	return nil
}

// dependencies returns the slots that a wanted object depends on, and requires returns those that its record depends
// on. Both ignore an error of config, which readConfigs has returned.
func (o *outline) dependencies(i int) []int32 {
	if !o.wanted(i) {
		return nil
	}
	var out []int32
	if o.parsed(i) {
		out = o.Nodes[i].Object.DependsOn
	}
	return o.withConfig(i, out)
}

func (o *outline) requires(i int) []int32 {
	if from, moved := o.moves.from[i]; moved {
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

// withDependencies returns the slots of objects followed by those of their former objects, of their dependencies, of
// those that their records depend on, and of the dependencies of ephemeral resources and data sources among these.
func (o *outline) withDependencies(slots []int) []int {
	queue := slices.Clone(slots)
	load := make(map[int]bool, 2*len(slots))
	for _, i := range slots {
		load[i] = true
	}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		if mode := o.Nodes[i].Object.Mode; k >= len(slots) && mode != v1alpha1.ModeEphemeral &&
			mode != v1alpha1.ModeData {
			continue
		}
		needs := slices.Concat(o.dependencies(i), o.requires(i))
		if from, moved := o.moves.from[i]; moved {
			needs = append(needs, int32(from))
		}
		for _, d := range needs {
			if o.Nodes[d].Object != nil && !load[int(d)] {
				load[int(d)] = true
				queue = append(queue, int(d))
			}
		}
	}
	return queue
}

// edges returns the dependencies of all objects for the package graph.
func (o *outline) edges(of func(i int) []int32) []graph.Node {
	out := make([]graph.Node, len(o.Nodes))
	flat := make([]int, 0, 2*len(out))
	for i, n := range o.Nodes {
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
	if !o.versionOutside(o.Nodes[i].Object.Outside).known {
		return true
	}
	u, err := o.config(i)
	return err != nil || u.ProviderConfigRef != nil && !u.VersionKnown
}

// before compares the positions of two objects in a list of all objects.
func (o *outline) before(i, j int) int {
	first, added := o.Added[i]
	second, alsoAdded := o.Added[j]
	switch {
	case o.Nodes[i].Object.Instance != nil || o.Nodes[j].Object.Instance != nil:
	case added && alsoAdded:
		return first - second
	case added:
		return 1
	case alsoAdded:
		return -1
	}
	a, b := o.Nodes[i].Object, o.Nodes[j].Object
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
	return cmp.Or(strings.Compare(a.Instance.Set, b.Instance.Set), strings.Compare(a.Type, b.Type),
		v1alpha1.CompareNames(a.Name, b.Name))
}
