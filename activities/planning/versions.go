package planning

import (
	"slices"
	"unique"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/scope"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// versions determines, with the index, whether the objects and the versions of their dependencies have changed since
// the objects were last up to date; see dependencyversions.go.
type versions struct {
	*outline
	// sums caches the sums of the versions of attributes, and providers has those of the versions of providers.
	sums      map[index.Reference]index.Sum
	providers map[string]index.Sum
}

func newVersions(o *outline) *versions {
	v := &versions{outline: o, sums: map[index.Reference]index.Sum{}, providers: map[string]index.Sum{}}
	for _, n := range o.Nodes {
		if n.Object == nil {
			continue
		}
		if _, known := v.providers[n.Object.Provider]; known {
			continue
		}
		var version index.Sum
		if e, ok := o.catalog.Get(n.Object.Provider); ok && e.Package.Version != "" {
			version = index.SumOf(providerVersion(e.Name), e.Package.Version)
		}
		v.providers[n.Object.Provider] = version
	}
	return v
}

// changed reports whether the plan must visit an object itself, and not only because of a dependency.
func (v *versions) changed(i int) bool { return v.changedAs(i, v.Nodes[i].Object) }

// changedAs is changed for an object with another status than the entry in its slot.
func (v *versions) changedAs(i int, object *index.Object) bool {
	rec, wanted := v.record(i), v.wanted(i)
	_, moved := v.moves.from[i]
	switch object.Mode {
	case v1alpha1.ModeData:
		return wanted // its data may have changed since the last read
	case v1alpha1.ModeEphemeral:
		return wanted && (object.Has(index.Impure) || v.external(i))
	case v1alpha1.ModeAction:
		return wanted && !object.Has(index.Good) && (!rec.Planned || rec.Intent || rec.Generation != object.Generation)
	}
	switch {
	case !wanted:
		return rec.Living || rec.Intent || object.Has(index.Deleting)
	case v.spec.RefreshOnly:
		return rec.Exists
	case v.spec.Refresh == v1alpha1.RefreshAll:
		return true
	}
	return !rec.Exists || rec.Generation != object.Generation || rec.Tainted || rec.Intent || rec.Deposed || moved ||
		object.Has(index.Impure) || !object.Has(index.Good) || object.Has(index.Drifted) ||
		v.external(i) || v.dependencyVersions(i) != rec.DependencyVersions
}

// current reports whether the record of an object has the current versions of the values that the object refers to.
func (v *versions) current(i int) bool {
	object := v.Nodes[i].Object
	return object.Has(index.Impure) || v.external(i) || v.dependencyVersions(i) == v.record(i).DependencyVersions
}

// dependencyVersions returns the sum of page.dependencyVersions.
func (v *versions) dependencyVersions(i int) index.Sum {
	seen := v.externalVersions(i)
	for _, d := range v.dependencies(i) {
		if n := v.Nodes[d]; n.Object != nil && (n.Object.Mode == v1alpha1.ModeEphemeral ||
			n.Object.Mode == v1alpha1.ModeData) {
			return v.versionsThrough(i)
		}
	}
	for _, ref := range v.values(i) {
		seen.Add(v.valueVersion(ref))
	}
	return seen
}

// values returns the references of a wanted object and of its ProviderConfig; see node.values.
func (v *versions) values(i int) []index.Reference {
	var out []index.Reference
	if v.parsed(i) {
		out = v.Nodes[i].Object.References
	}
	u, err := v.config(i)
	if err != nil || len(u.values) == 0 {
		return out
	}
	out = slices.Clone(out)
	for _, ref := range u.values {
		if int(ref.Slot) != i && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// valueVersion returns the version of a recorded value; zero if there is none.
func (v *versions) valueVersion(ref index.Reference) index.Sum {
	n := v.Nodes[ref.Slot]
	attribute := ref.Attribute.Value()
	switch {
	case n.Object == nil || n.Record == nil || n.Record.Version == "" || !hasRecordedValue(n.Object.Mode):
		return index.Sum{}
	case attribute == "":
		return n.Version
	}
	sum, ok := v.sums[ref]
	if !ok {
		sum = index.SumOf(valueVersion(n.Object.Address(), attribute), n.Record.VersionOf(attribute))
		v.sums[ref] = sum
	}
	return sum
}

// versionsThrough is dependencyVersions for an object that depends on ephemeral resources or data sources. It counts a
// version once, even if several of them depend on it.
func (v *versions) versionsThrough(i int) index.Sum {
	counted := map[string]bool{}
	var sum index.Sum
	add := func(name string, version index.Sum) {
		if !counted[name] {
			counted[name] = true
			sum.Add(version)
		}
	}
	value := func(ref index.Reference) {
		if n := v.Nodes[ref.Slot]; n.Object != nil {
			add(valueVersion(n.Object.Address(), ref.Attribute.Value()), v.valueVersion(ref))
		}
	}
	external := func(i int) {
		object := v.Nodes[i].Object
		add(providerVersion(object.Provider), v.providers[object.Provider])
		if u, err := v.config(i); err == nil && u.ProviderConfigRef != nil {
			add(changes.VersionOfConfig(u.Cfg.Name), u.version)
		}
		name, own := v.ownVersion(i)
		add(name, own)
	}
	external(i)
	for _, ref := range v.values(i) {
		value(ref)
	}
	v.forEachThrough(i, func(d int) {
		if v.wanted(d) {
			external(d)
		}
		for _, dep := range v.dependencies(d) {
			value(index.Reference{Slot: dep, Attribute: whole})
		}
	}, v1alpha1.ModeEphemeral)
	v.forEachThrough(i, func(d int) {
		if object := v.Nodes[d].Object; object.Mode == v1alpha1.ModeData {
			name := objectVersion(object.Address())
			add(name, index.SumOf(name, v.versionOf(d)))
			if u, err := v.config(d); err == nil && u.ProviderConfigRef != nil {
				add(changes.VersionOfConfig(u.Cfg.Name), u.version)
			}
		}
	}, v1alpha1.ModeEphemeral, v1alpha1.ModeData)
	return sum
}

// whole is the attribute of a reference to a whole object.
var whole = unique.Make("")

// forEachThrough calls each for the objects of some modes that an object depends on directly, or through objects of
// these modes.
func (v *versions) forEachThrough(i int, each func(d int), modes ...v1alpha1.Mode) {
	seen := map[int32]bool{}
	for queue := slices.Clone(v.dependencies(i)); len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		if object := v.Nodes[d].Object; seen[d] || object == nil || !slices.Contains(modes, object.Mode) {
			continue
		}
		seen[d] = true
		queue = append(queue, v.dependencies(int(d))...)
		each(int(d))
	}
}

// externalVersions returns the sum of the versions of the dependencies that are not resources; see
// node.findExternalVersions.
func (v *versions) externalVersions(i int) index.Sum {
	sum := v.providers[v.Nodes[i].Object.Provider]
	if u, err := v.config(i); err == nil && u.ProviderConfigRef != nil {
		sum.Add(u.version)
	}
	_, own := v.ownVersion(i)
	sum.Add(own)
	return sum
}

// ownVersion returns the version of an object's references to objects that no plan of the namespace changes, with its
// name.
func (v *versions) ownVersion(i int) (name string, version index.Sum) {
	object := v.Nodes[i].Object
	if object.Mode == v1alpha1.ModeEphemeral {
		name = object.Address().String()
		return name, index.SumOf(name, v.versionOf(i))
	}
	if outside := v.versionOutside(object.Outside); outside.known && outside.version != "" {
		version = index.SumOf(changes.VersionOutside, outside.version)
	}
	return changes.VersionOutside, version
}

// versionOf returns the version of the arguments of an ephemeral resource or data source.
func (v *versions) versionOf(i int) string {
	object := v.Nodes[i].Object
	outside := v.versionOutside(object.Outside)
	if !outside.known || !v.wanted(i) {
		outside.version = ""
	}
	return scope.VersionOf(&metav1.ObjectMeta{UID: object.UID, Generation: object.Generation}, outside.version)
}
