package planning

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file shows the ResourceSets and the Modules of a speculative plan.

// Kinds of documents that determine virtual objects.
const (
	kindSet       = "ResourceSet"
	kindModule    = "Module"
	kindConfigMap = "ConfigMap"
)

// expand expands the ResourceSets and the Modules of the documents, and those of a namespace that read a ConfigMap of
// the documents.
func (o *overlay) expand(ctx context.Context, x *index.Index, namespace string) error {
	for _, doc := range o.order {
		at := objectKeyOf(doc.object)
		if at.group != v1alpha1.GroupName || at.kind != kindSet && at.kind != kindModule {
			continue
		}
		o.foreignResources = o.foreignResources || doc.foreign
		var err error
		if at.kind == kindSet {
			err = o.expandSet(ctx, doc)
		} else {
			err = o.expandDocument(ctx, x, doc)
		}
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(o.order, func(d *document) bool { return objectKeyOf(d.object).kind == kindConfigMap }) {
		return nil
	}
	return errors.Join(o.expandRecordedSets(ctx, x, namespace), o.expandRecordedModules(ctx, x, namespace))
}

// expandSet expands a ResourceSet of the documents.
func (o *overlay) expandSet(ctx context.Context, doc *document) error {
	if doc.gone {
		o.sets[doc.object.GetUID()] = nil
		return nil
	}
	obj := &v1alpha1.ResourceSet{}
	if err := asType(doc.object, obj); err != nil {
		return err
	}
	var data map[string][]byte
	if from := obj.Spec.ForEachFrom; from != nil {
		var err error
		if data, err = o.source(ctx, obj.Namespace, from.ConfigMap.Name); err != nil {
			return err
		}
	}
	set, err := resourceset.New(obj, 0, data)
	o.sets[obj.UID] = set
	return err
}

// source returns the content of a ConfigMap that determines virtual objects.
func (o *overlay) source(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	doc := o.find("", kindConfigMap, namespace, name)
	o.foreignResources = o.foreignResources || doc != nil && doc.foreign
	return configsOverlay{o}.ConfigMap(ctx, namespace, name)
}

// expandDocument expands a Module of the documents.
func (o *overlay) expandDocument(ctx context.Context, x *index.Index, doc *document) error {
	if doc.gone {
		uid := doc.object.GetUID()
		o.modules[uid] = &overlaidModule{nil, uid, doc.object.GetNamespace(), doc.object.GetName()}
		return nil
	}
	obj := &v1alpha1.Module{}
	if err := asType(doc.object, obj); err != nil {
		return err
	}
	return o.expandModule(ctx, x, obj)
}

func (o *overlay) expandModule(ctx context.Context, x *index.Index, obj *v1alpha1.Module) error {
	data, err := o.source(ctx, obj.Namespace, obj.Spec.Source.ConfigMap)
	if err != nil {
		return err
	}
	m, err := x.ExpandModule(ctx, obj, data)
	o.modules[obj.UID] = &overlaidModule{m, obj.UID, obj.Namespace, obj.Name}
	return err
}

// overlaidModule is a Module of an overlay.
type overlaidModule struct {
	// Module is nil if it would not exist.
	*resourceset.Module
	uid             types.UID
	namespace, name string
}

// expandRecordedSets expands the recorded ResourceSets whose keys come from a ConfigMap of the documents.
func (o *overlay) expandRecordedSets(ctx context.Context, x *index.Index, namespace string) error {
	recorded, err := x.Sets(ctx, namespace, "")
	if err != nil {
		return err
	}
	for _, s := range recorded {
		if _, replaced := o.sets[s.UID]; replaced || s.Source == "" ||
			o.find("", kindConfigMap, namespace, s.Source) == nil {
			continue
		}
		data, err := o.source(ctx, namespace, s.Source)
		if err != nil {
			return err
		}
		o.sets[s.UID] = s.WithKeys(data)
	}
	return nil
}

// expandRecordedModules expands the recorded Modules whose files are in a ConfigMap of the documents.
func (o *overlay) expandRecordedModules(ctx context.Context, x *index.Index, namespace string) error {
	recorded, err := x.Modules(ctx, namespace, "")
	if err != nil {
		return err
	}
	for _, m := range recorded {
		if o.modules[m.UID] != nil || o.find("", kindConfigMap, namespace, m.Source) == nil {
			continue
		}
		if err := o.expandModule(ctx, x, m.Object); err != nil {
			return err
		}
	}
	return nil
}

// Set implements scope.Sets.
func (o *overlay) Set(ctx context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error) {
	if s := o.own(ref); s != nil && s.Repeats != "" {
		return s, nil
	}
	if o.recordedSets == nil {
		return nil, nil
	}
	recorded, err := o.recordedSets.Set(ctx, ref)
	if err != nil || recorded == nil || o.has(recorded.UID) {
		return nil, err
	}
	return recorded, nil
}

// own returns the ResourceSet or the block of the overlay whose template has a kind and a name; nil without one.
func (o *overlay) own(ref v1alpha1.ObjectReference) *resourceset.Set {
	is := func(s *resourceset.Set) bool {
		return s != nil && s.Namespace == ref.Namespace && s.APIVersion == ref.APIVersion && s.Kind == ref.Kind &&
			s.Template == ref.Name
	}
	for _, s := range o.sets {
		if is(s) {
			return s
		}
	}
	path, _ := v1alpha1.SplitModuleObjectName(ref.Name)
	if m := o.module(ref.Namespace, v1alpha1.RootModule(path)); m != nil && m.Module != nil {
		if s := m.BlockSet(ref); is(s) {
			return s
		}
	}
	return nil
}

// module returns the overlay's Module with a name; nil without one.
func (o *overlay) module(namespace, name string) *overlaidModule {
	for _, m := range o.modules {
		if m.name == name && m.namespace == namespace {
			return m
		}
	}
	return nil
}

// Module implements scope.Sets.
func (o *overlay) Module(ctx context.Context, namespace, name string) (*resourceset.Module, error) {
	if m := o.module(namespace, name); m != nil {
		return m.Module, nil
	}
	if o.recordedSets == nil {
		return nil, nil
	}
	return o.recordedSets.Module(ctx, namespace, name)
}

// has reports whether the overlay has another version of the ResourceSet or Module with a UID.
func (o *overlay) has(uid types.UID) bool {
	_, set := o.sets[uid]
	return set || o.modules[uid] != nil
}

// replaces reports whether the overlay has another version of the set of an instance.
func (o *overlay) replaces(u *unstructured.Unstructured) bool {
	_, _, uid, _ := resourceset.InstanceOf(u)
	return o.has(uid)
}

// ownObject returns the object with the name of an instance in the overlay's sets; nil without one.
func (o *overlay) ownObject(ref v1alpha1.ObjectReference) *unstructured.Unstructured {
	name, key, keyed := v1alpha1.ParseInstanceName(ref.Name)
	if keyed {
		ref.Name = name
	}
	if s := o.own(ref); s != nil && keyed == (s.Repeats != "") && s.Has(key) {
		return s.Object(key)
	}
	return nil
}

// instance is Get for an instance of a ResourceSet or a Module.
func (o *overlay) instance(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	recorded, err := o.objects.Get(ctx, ref)
	if err != nil && store.IgnoreGone(err) != nil {
		return nil, err
	}
	if u := o.ownObject(ref); u != nil {
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
	ref := v1alpha1.ObjectReference{
		APIVersion: recorded.GetAPIVersion(), Kind: recorded.GetKind(), Namespace: recorded.GetNamespace(),
		Name: recorded.GetName(),
		UID:  recorded.GetUID(), Generation: recorded.GetGeneration(), Set: set, SetUID: uid,
	}
	of := o.sets[uid]
	if m := o.modules[uid]; m != nil && m.Module != nil {
		of = m.BlockSet(ref)
	}
	u := resourceset.Leaving(of, ref)
	u.Object["status"] = recorded.Object["status"]
	return u
}

// modulesOf returns the overlay's Modules of a namespace, sorted.
func (o *overlay) modulesOf(namespace string) (out []*overlaidModule) {
	for _, m := range o.modules {
		if m.namespace == namespace {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *overlaidModule) int { return strings.Compare(a.name, b.name) })
	return out
}
