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

// This file determines, with the index, the versions of the dependencies of an object; see dependencyversions.go.

// dependencyVersions returns the sum of survey.dependencyVersions.
func (o *outline) dependencyVersions(i int) index.Sum {
	seen := o.externalVersions(i)
	for _, d := range o.dependencies(i) {
		if n := o.view.Nodes[d]; n.Object != nil && (n.Object.Mode == v1alpha1.ModeEphemeral || n.Object.Mode == v1alpha1.ModeData) {
			return o.versionsThrough(i)
		}
	}
	for _, ref := range o.values(i) {
		seen.Add(o.valueVersion(ref))
	}
	return seen
}

// values returns the references of a wanted object and of its ProviderConfig; see node.values.
func (o *outline) values(i int) []index.Reference {
	var out []index.Reference
	if o.parsed(i) {
		out = o.view.Nodes[i].Object.References
	}
	u, err := o.config(i)
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
func (o *outline) valueVersion(ref index.Reference) index.Sum {
	n := o.view.Nodes[ref.Slot]
	attribute := ref.Attribute.Value()
	switch {
	case n.Object == nil || n.Record == nil || n.Record.Version == "" || !hasRecordedValue(n.Object.Mode):
		return index.Sum{}
	case attribute == "":
		return n.Version
	}
	sum, ok := o.sums[ref]
	if !ok {
		sum = index.SumOf(valueVersion(n.Object.Address(), attribute), n.Record.VersionOf(attribute))
		o.sums[ref] = sum
	}
	return sum
}

// versionsThrough is dependencyVersions for an object that depends on ephemeral resources or data sources. It counts a
// version once, even if several of them depend on it.
func (o *outline) versionsThrough(i int) index.Sum {
	counted := map[string]bool{}
	var sum index.Sum
	add := func(name string, version index.Sum) {
		if !counted[name] {
			counted[name] = true
			sum.Add(version)
		}
	}
	value := func(ref index.Reference) {
		if n := o.view.Nodes[ref.Slot]; n.Object != nil {
			add(valueVersion(n.Object.Address(), ref.Attribute.Value()), o.valueVersion(ref))
		}
	}
	external := func(i int) {
		object := o.view.Nodes[i].Object
		add(providerVersion(object.Provider), o.providers[object.Provider])
		if u, err := o.config(i); err == nil && u.ProviderConfigRef != nil {
			add(changes.VersionOfConfig(u.Cfg.Name), u.version)
		}
		name, own := o.ownVersion(i)
		add(name, own)
	}
	external(i)
	for _, ref := range o.values(i) {
		value(ref)
	}
	o.forEachThrough(i, func(d int) {
		if o.wanted(d) {
			external(d)
		}
		for _, dep := range o.dependencies(d) {
			value(index.Reference{Slot: dep, Attribute: whole})
		}
	}, v1alpha1.ModeEphemeral)
	o.forEachThrough(i, func(d int) {
		if object := o.view.Nodes[d].Object; object.Mode == v1alpha1.ModeData {
			name := objectVersion(object.Address())
			add(name, index.SumOf(name, o.versionOf(d)))
			if u, err := o.config(d); err == nil && u.ProviderConfigRef != nil {
				add(changes.VersionOfConfig(u.Cfg.Name), u.version)
			}
		}
	}, v1alpha1.ModeEphemeral, v1alpha1.ModeData)
	return sum
}

// whole is the attribute of a reference to a whole object.
var whole = unique.Make("")

// forEachThrough calls each for the objects of some modes that an object depends on directly, or through objects of these modes.
func (o *outline) forEachThrough(i int, each func(d int), modes ...v1alpha1.Mode) {
	seen := map[int32]bool{}
	for queue := slices.Clone(o.dependencies(i)); len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		if object := o.view.Nodes[d].Object; seen[d] || object == nil || !slices.Contains(modes, object.Mode) {
			continue
		}
		seen[d] = true
		queue = append(queue, o.dependencies(int(d))...)
		each(int(d))
	}
}

// externalVersions returns the sum of the versions of the dependencies that are not resources; see
// node.findExternalVersions.
func (o *outline) externalVersions(i int) index.Sum {
	sum := o.providers[o.view.Nodes[i].Object.Provider]
	if u, err := o.config(i); err == nil && u.ProviderConfigRef != nil {
		sum.Add(u.version)
	}
	_, own := o.ownVersion(i)
	sum.Add(own)
	return sum
}

// ownVersion returns the version of an object's references to objects that no plan of the namespace changes, with its
// name.
func (o *outline) ownVersion(i int) (name string, version index.Sum) {
	object := o.view.Nodes[i].Object
	if object.Mode == v1alpha1.ModeEphemeral {
		name = object.Address().String()
		return name, index.SumOf(name, o.versionOf(i))
	}
	if outside := o.versionOutside(object.Outside); outside.known && outside.version != "" {
		version = index.SumOf(changes.VersionOutside, outside.version)
	}
	return changes.VersionOutside, version
}

// versionOf returns the version of the arguments of an ephemeral resource or data source.
func (o *outline) versionOf(i int) string {
	object := o.view.Nodes[i].Object
	outside := o.versionOutside(object.Outside)
	if !outside.known || !o.wanted(i) {
		outside.version = ""
	}
	return scope.VersionOf(&metav1.ObjectMeta{UID: object.UID, Generation: object.Generation}, outside.version)
}
