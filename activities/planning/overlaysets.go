package planning

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file shows the ResourceSets of a speculative plan.

// Kinds of documents that determine the instances of ResourceSets.
const (
	kindSet       = "ResourceSet"
	kindModule    = "Module"
	kindConfigMap = "ConfigMap"
)

// expandSets expands the ResourceSets of the documents, and the recorded sets of a namespace whose keys come from a
// ConfigMap of the documents.
func (o *overlay) expandSets(ctx context.Context, x *index.Index, namespace string) error {
	configs := configsOverlay{o}
	if err := o.findModules(ctx, x, namespace); err != nil {
		return err
	}
	for _, doc := range o.order {
		if at := objectKeyOf(doc.object); at.group != v1alpha1.GroupName || at.kind != kindSet {
			continue
		}
		if doc.gone {
			o.sets[doc.object.GetUID()] = nil
			continue
		}
		obj := &v1alpha1.ResourceSet{}
		if err := asType(doc.object, obj); err != nil {
			return err
		}
		var data map[string][]byte
		if from := obj.Spec.ForEachFrom; from != nil {
			var err error
			if data, err = configs.ConfigMap(ctx, obj.Namespace, from.ConfigMap.Name); err != nil {
				return err
			}
		}
		set, err := resourceset.New(obj, 0, data)
		if err != nil {
			return err
		}
		o.sets[obj.UID] = set
	}
	if x == nil || !slices.ContainsFunc(o.order, func(d *document) bool { return objectKeyOf(d.object).kind == kindConfigMap }) {
		return nil
	}
	recorded, err := x.Sets(ctx, namespace, "")
	if err != nil {
		return err
	}
	for _, s := range recorded {
		if _, replaced := o.sets[s.UID]; replaced || s.Source == "" || o.find("", kindConfigMap, namespace, s.Source) == nil {
			continue
		}
		data, err := configs.ConfigMap(ctx, namespace, s.Source)
		if err != nil {
			return err
		}
		o.sets[s.UID] = s.WithKeys(data)
	}
	return nil
}

// findModules notes the Modules that the documents would change. A speculative plan cannot expand them yet.
func (o *overlay) findModules(ctx context.Context, x *index.Index, namespace string) error {
	for _, doc := range o.order {
		if at := objectKeyOf(doc.object); at.group == v1alpha1.GroupName && at.kind == kindModule {
			o.modules = append(o.modules, doc.object.GetName())
		}
	}
	if x == nil {
		return nil
	}
	recorded, err := x.Modules(ctx, namespace, "")
	if err != nil {
		return err
	}
	for _, m := range recorded {
		if o.find("", kindConfigMap, namespace, m.Source) != nil {
			o.modules = append(o.modules, m.Name)
		}
	}
	return nil
}

// refusesModules adds an error for each Module that the documents of a speculative plan would change, and reports whether there is
// one.
func (s *survey) refusesModules(objects store.Objects) bool {
	o, ok := objects.(*overlay)
	if !ok {
		return false
	}
	slices.Sort(o.modules)
	for _, name := range slices.Compact(o.modules) {
		s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Speculative plan of a Module",
			Detail: fmt.Sprintf("The files have the Module %q or its source, and a plan of files cannot have a Module yet. Record them with kubectl apply, and make a plan without files: kubectl hykube plan.", name)})
	}
	return len(s.diags) > 0
}

// Set implements scope.Sets.
func (o *overlay) Set(ctx context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error) {
	for _, s := range o.sets {
		if s != nil && s.Namespace == ref.Namespace && s.APIVersion == ref.APIVersion && s.Kind == ref.Kind && s.Template == ref.Name {
			return s, nil
		}
	}
	if o.recordedSets == nil {
		return nil, nil
	}
	recorded, err := o.recordedSets.Set(ctx, ref)
	if err != nil || recorded == nil {
		return nil, err
	}
	if _, replaced := o.sets[recorded.UID]; replaced {
		return nil, nil
	}
	return recorded, nil
}

// Module implements scope.Sets. The overlay has no Modules.
func (o *overlay) Module(ctx context.Context, namespace, name string) (*resourceset.Module, error) {
	if o.recordedSets == nil {
		return nil, nil
	}
	return o.recordedSets.Module(ctx, namespace, name)
}

// replaces reports whether the overlay has another version of the set of an instance.
func (o *overlay) replaces(u *unstructured.Unstructured) bool {
	_, _, uid, _ := resourceset.InstanceOf(u)
	_, ok := o.sets[uid]
	return ok
}

// instance is Get for an instance of a ResourceSet.
func (o *overlay) instance(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	recorded, err := o.objects.Get(ctx, ref)
	if err != nil && store.IgnoreGone(err) != nil {
		return nil, err
	}
	name, key, keyed := v1alpha1.ParseInstanceName(ref.Name)
	if !keyed { // a block of a Module
		if recorded == nil {
			return nil, store.ErrGone
		}
		return recorded, nil
	}
	of := ref
	of.Name = name
	set, err := o.Set(ctx, of)
	if err != nil {
		return nil, err
	}
	if set != nil && o.sets[set.UID] == set && set.Has(key) {
		u := set.Object(key)
		if ref.UID != "" && ref.UID != u.GetUID() {
			return nil, store.ErrGone
		}
		if recorded != nil && recorded.GetUID() == u.GetUID() {
			u.Object["status"] = recorded.Object["status"]
		}
		return u, nil
	}
	if recorded == nil {
		return nil, store.ErrGone
	}
	if !o.replaces(recorded) {
		return recorded, nil
	}
	return o.leaving(recorded), nil
}

// leaving returns a recorded instance that the overlay's version of its set does not have.
func (o *overlay) leaving(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	_, set, uid, _ := resourceset.InstanceOf(recorded)
	u := resourceset.Leaving(o.sets[uid], v1alpha1.ObjectReference{
		APIVersion: recorded.GetAPIVersion(), Kind: recorded.GetKind(), Namespace: recorded.GetNamespace(), Name: recorded.GetName(),
		UID: recorded.GetUID(), Generation: recorded.GetGeneration(), Set: set, SetUID: uid,
	})
	u.Object["status"] = recorded.Object["status"]
	return u
}

// recordedInstances reads the recorded instances of the overlay's sets. It returns the statuses of those that stay, and by
// the UID of the set those with infrastructure that leave it.
func (o *overlay) recordedInstances(ctx context.Context, namespace string) (status map[types.UID]any, left map[types.UID][]*unstructured.Unstructured, err error) {
	status, left = map[types.UID]any{}, map[types.UID][]*unstructured.Unstructured{}
	for u, err := range o.objects.List(ctx, namespace) {
		if err != nil {
			return nil, nil, err
		}
		_, _, setUID, ok := resourceset.InstanceOf(u)
		set, replaced := o.sets[setUID]
		if !ok || !replaced {
			continue
		}
		addr := lang.Address{Type: v1alpha1.TypeOf(u.GetKind()), Name: u.GetName()}
		if of, key, _ := addr.Set(); set != nil && of == set.Address() && set.Has(key) {
			status[u.GetUID()] = u.Object["status"]
			continue
		}
		rec, err := o.ledger.Instance(ctx, v1alpha1.ObjectReference{Namespace: namespace, UID: u.GetUID(), Kind: u.GetKind(), Name: u.GetName()})
		if err != nil {
			return nil, nil, err
		}
		if rec.Living() || rec.Intent != nil {
			left[setUID] = append(left[setUID], o.leaving(u))
		}
	}
	return status, left, nil
}

// listInstances returns the instances of the overlay's sets, and then those with infrastructure that leave them.
func (o *overlay) listInstances(ctx context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		if len(o.sets) == 0 {
			return
		}
		status, left, err := o.recordedInstances(ctx, namespace)
		if err != nil {
			yield(nil, err)
			return
		}
		sets := slices.SortedFunc(maps.Values(o.sets), func(a, b *resourceset.Set) int {
			if a == nil || b == nil {
				return 0
			}
			return strings.Compare(a.Name, b.Name)
		})
		for _, set := range sets {
			if set == nil || set.Namespace != namespace {
				continue
			}
			if set.Problem != "" {
				yield(nil, &store.SetError{Kind: "ResourceSet", Name: set.Name, Problem: set.Problem})
				return
			}
			for i := range set.Len() {
				u := set.Object(set.Key(i))
				if s, ok := status[u.GetUID()]; ok {
					u.Object["status"] = s
				}
				if !yield(u, nil) {
					return
				}
			}
		}
		for _, uid := range slices.Sorted(maps.Keys(left)) {
			for _, u := range left[uid] {
				if !yield(u, nil) {
					return
				}
			}
		}
	}
}
