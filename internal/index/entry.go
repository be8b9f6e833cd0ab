package index

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Kind has the facts that all objects of a kind share.
type Kind struct {
	// Provider is the name of the provider, and Stored is the name of the type in the store.
	Provider, Stored string
	APIVersion, Kind string
	Mode             v1alpha1.Mode
	// Type is the Terraform type.
	Type string
}

// storedAs returns the name of a type in the store.
func storedAs(mode v1alpha1.Mode, terraformType string) string {
	if mode == "" || mode == v1alpha1.ModeManaged {
		return terraformType
	}
	return string(mode) + "." + terraformType
}

// modeOf returns the mode and the Terraform type of a type's name in the store.
func modeOf(stored string) (v1alpha1.Mode, string) {
	if mode, name, ok := strings.Cut(stored, "."); ok {
		return v1alpha1.Mode(mode), name
	}
	return v1alpha1.ModeManaged, stored
}

// Flags are facts about an object.
type Flags uint16

const (
	// Unready means that the object cannot be decoded, because its provider is not ready or lacks its type.
	Unready Flags = 1 << iota
	// Suspicious means that the expressions have errors or warnings, or call functions of providers, which may be
	// removed.
	Suspicious
	// Impure means that an expression may give another value in each evaluation.
	Impure
	// Deleting means that the object is marked for deletion.
	Deleting
	// Good and Drifted are those of the object's status.
	Good
	Drifted
	// CreatesFirst means that lifecycle.createBeforeDestroy is set.
	CreatesFirst
	// Overlaid means that the object is a document of a speculative plan.
	Overlaid
	// Stalled is that of the object's status: nothing happens until a user acts.
	Stalled
	// Failed means that the object is stalled for another reason than drift.
	Failed
	// KeysUnknown means that the keys of the object's ResourceSet are not known. The object is marked for deletion,
	// too, so that no change of it is applied meanwhile.
	KeysUnknown
)

// Object is the entry of an object. It is immutable.
type Object struct {
	*Kind
	Name       string
	UID        types.UID
	Generation int64
	// Revision is the revision of the object's last write.
	Revision int64
	Flags    Flags
	Labels   labels.Set
	// Config is the name in lifecycle.providerConfig, and Moved the address in lifecycle.moved.
	Config, Moved string
	// DependsOn lists the slots of the addresses in the expressions and in lifecycle.dependsOn. References lists the
	// attributes of the addresses in the expressions.
	DependsOn  []int32
	References []Reference
	// Outside lists the references to objects that no plan of the namespace changes; nil without one.
	Outside *Outside
	// Instance says which instance of a ResourceSet the object is; nil for a stored object.
	Instance *Instance
}

// Reference is a reference to an attribute of the address with a slot. The attribute is empty for the whole object.
type Reference struct {
	Slot      int32
	Attribute unique.Handle[string]
}

// Outside is a list of references to objects that no plan of the namespace changes. Objects with equal lists share it.
type Outside struct{ References []lang.Reference }

// Has reports whether the object has all the flags.
func (o *Object) Has(f Flags) bool { return o.Flags&f == f }

// Ref returns the reference of the object.
func (o *Object) Ref(namespace string) v1alpha1.ObjectReference {
	ref := v1alpha1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind.Kind, Namespace: namespace, Name: o.Name,
		UID: o.UID, Generation: o.Generation}
	if o.Instance != nil {
		ref.Set, ref.SetUID = o.Instance.Set, o.Instance.SetUID
	}
	return ref
}

// Address returns the object's address in its namespace.
func (o *Object) Address() lang.Address { return addressOf(o.Mode, o.Type, o.Name) }

func addressOf(mode v1alpha1.Mode, terraformType, name string) lang.Address {
	return lang.AddressOf(mode, terraformType, name)
}

// objectOf returns the entry of an object. It parses the object's expressions, unless old has the same ones.
func (x *Index) objectOf(ns slotter, kind *Kind, c Change, old *Object) *Object {
	u := c.Object
	o := &Object{Kind: kind, Name: strings.Clone(c.Name), UID: u.GetUID(), Generation: u.GetGeneration(),
		Revision: c.Revision}
	if set := u.GetLabels(); len(set) > 0 {
		o.Labels = set
		if old != nil && maps.Equal(old.Labels, o.Labels) {
			o.Labels = old.Labels
		}
	}
	if old != nil && old.UID == o.UID && old.Generation == o.Generation && old.Flags&Unready == 0 {
		o.Name, o.UID = old.Name, old.UID
		o.inherit(old)
	} else {
		x.parse(ns, o, u)
	}
	if u.GetDeletionTimestamp() != nil {
		o.Flags |= Deleting
	}
	o.setFacts(resource.FactsOf(u))
	return o
}

// setFacts sets the flags that depend on the status of an object.
func (o *Object) setFacts(f resource.Facts) {
	if f.Good {
		o.Flags |= Good
	}
	if f.Stalled {
		o.Flags |= Stalled
	}
	if f.Failed {
		o.Flags |= Failed
	}
	if f.Drifted != 0 && f.Drifted == o.Generation {
		o.Flags |= Drifted
	}
}

// inherit takes over the parts of an entry that come from the object's spec and lifecycle.
func (o *Object) inherit(old *Object) {
	o.Flags = old.Flags & (Unready | Suspicious | Impure | CreatesFirst)
	o.Config, o.Moved, o.DependsOn, o.References, o.Outside = old.Config, old.Moved, old.DependsOn, old.References,
		old.Outside
}

// parse fills in the parts of an entry that come from the object's spec and lifecycle.
func (x *Index) parse(ns slotter, o *Object, u *unstructured.Unstructured) {
	r, err := resource.Of(u, x.catalog)
	if err != nil || r.Address != o.Address() {
		o.Flags |= Unready
		return
	}
	o.Config = unique.Make(r.Lifecycle.ProviderConfig).Value()
	if r.Lifecycle.Moved != nil {
		o.Moved = r.Lifecycle.Moved.From
	}
	if r.Lifecycle.CreateBeforeDestroy {
		o.Flags |= CreatesFirst
	}
	n := r.Parse()
	if n.Impure {
		o.Flags |= Impure
	}
	if len(n.Invalid) > 0 || callsProvider(u.Object["spec"]) || callsProvider(u.Object["lifecycle"]) {
		o.Flags |= Suspicious
	}
	for _, addr := range n.DependsOn {
		o.DependsOn = append(o.DependsOn, ns.slot(addr.Mode, addr.Type, addr.ObjectName()))
	}
	var outside []lang.Reference
	for _, ref := range n.References {
		if ref.Namespace != "" || ref.Stored() || ref.IsModuleOutput() {
			outside = append(outside, lang.Reference{Address: ref.Address, Attribute: ref.Attribute})
		}
		if ref.Namespace != "" || ref.Stored() {
			continue
		}
		found := Reference{ns.slot(ref.Mode, ref.Type, ref.ObjectName()), unique.Make(ref.Attribute)}
		if !slices.Contains(o.References, found) {
			o.References = append(o.References, found)
		}
	}
	o.DependsOn, o.References = slices.Clip(o.DependsOn), slices.Clip(o.References)
	o.Outside = x.shared(outside)
}

// shared returns the shared list of references.
func (x *Index) shared(refs []lang.Reference) *Outside {
	if len(refs) == 0 {
		return nil
	}
	key := fmt.Sprintf("%q", refs)
	x.sharing.Lock()
	defer x.sharing.Unlock()
	if x.outside[key] == nil {
		x.outside[key] = &Outside{refs}
	}
	return x.outside[key]
}

// callsProvider reports whether a text in a value may call a function of a provider.
func callsProvider(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "provider::")
	case []any:
		return slices.ContainsFunc(v, callsProvider)
	case map[string]any:
		for _, member := range v {
			if callsProvider(member) {
				return true
			}
		}
	}
	return false
}

// Record is the entry of a record. It is immutable.
type Record struct {
	// Revision is the revision of the record's last write.
	Revision   int64
	Generation int64
	// Exists, Living, Tainted and CreatesFirst are those of the ledger's record. Planned is true if a plan wrote it,
	// and Unapplied if it has contributors.
	Exists, Living, Tainted, Intent, Deposed, Planned, Unapplied bool
	Mode                                                         v1alpha1.Mode
	// Config is the name of the ProviderConfig.
	Config    string
	MovedFrom types.UID
	ledger.Versions
	// Requires lists the slots of the recorded dependencies.
	Requires []int32
	// DependencyVersions is the sum of the recorded versions of the dependencies.
	DependencyVersions Sum
	// owned holds the record's hashes in owners.
	owned []uint64
	// of is the set of the object, if that is an instance of a ResourceSet, and name is its name. Else both are zero.
	of   unique.Handle[instancesOf]
	name string
}

// instancesOf identifies the instances of a ResourceSet. Their records share it.
type instancesOf struct {
	APIVersion, Kind, Namespace, Set string
	SetUID                           types.UID
}

// instance reports whether the record is that of an instance of a ResourceSet.
func (r *Record) instance() bool { return r.of != unique.Handle[instancesOf]{} }

// keepsOwner reports whether the ResourceSet or the Module of an instance stays as long as the record.
func (r *Record) keepsOwner() bool { return r.instance() && r.Mode.HasInfrastructure() }

// leaves reports whether an instance without a set stays until a plan destroys its infrastructure.
func (r *Record) leaves() bool { return r.keepsOwner() && (r.Living || r.Intent) }

// ref returns the reference of an instance with a UID.
func (r *Record) ref(uid types.UID) v1alpha1.ObjectReference {
	of := r.of.Value()
	return v1alpha1.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: r.name,
		UID: uid, Generation: r.Generation,
		Set: of.Set, SetUID: of.SetUID}
}

// setInstance notes the instance whose record it is. o is the entry of the object, which has the same texts; nil
// without one.
func (r *Record) setInstance(of instancesOf, name string, o *Object) {
	if r.of, r.name = unique.Make(of), name; o != nil && o.Name == name {
		r.name = o.Name
	}
}

// recordOf returns the entry of a record, or nil for nil. o is the entry of its object; nil without one.
func recordOf(ns slotter, i *ledger.Instance, o *Object) *Record {
	if i == nil {
		return nil
	}
	r := &Record{
		Revision: i.Revision(), Generation: i.Object.Generation, Exists: i.Exists(), Living: i.Living(),
		Tainted: i.Tainted, Intent: i.Intent != nil,
		Deposed: len(i.Deposed) > 0, Planned: i.Plan != "", Unapplied: len(i.Contributors) > 0,
		Mode:   v1alpha1.Mode(unique.Make(string(i.Mode)).Value()),
		Config: unique.Make(i.ProviderConfig).Value(), MovedFrom: i.MovedFrom,
		Versions: ledger.Versions{Version: unique.Make(i.Version).Value(), Base: unique.Make(i.Base).Value()},
	}
	if ref := &i.Object; ref.SetUID != "" {
		r.setInstance(instancesOf{ref.APIVersion, ref.Kind, ref.Namespace, ref.Set, ref.SetUID}, ref.Name, o)
	}
	for name, version := range i.Since {
		if r.Since == nil {
			r.Since = make(map[string]string, len(i.Since))
		}
		r.Since[unique.Make(name).Value()] = unique.Make(version).Value()
	}
	for _, text := range i.Dependencies {
		if addr, err := lang.ParseAddress(text); err == nil && addr.Namespace == "" {
			r.Requires = append(r.Requires, ns.slot(addr.Mode, addr.Type, addr.ObjectName()))
		}
	}
	for key, version := range i.DependencyVersions {
		r.DependencyVersions.Add(SumOf(key, version))
	}
	return r
}

// Sum is the sum of the hashes of a set of versions. Equal sets have equal sums in any order, and different sets have
// different ones but for a chance of one in 2^128.
type Sum [2]uint64

// SumOf returns the sum of one version.
func SumOf(key, version string) Sum {
	h := sha256.Sum256([]byte(key + "\x00" + version))
	return Sum{binary.LittleEndian.Uint64(h[:8]), binary.LittleEndian.Uint64(h[8:16])}
}

// Add adds the versions of another set, which has none of the same keys.
func (s *Sum) Add(other Sum) {
	s[0] += other[0]
	s[1] += other[1]
}
