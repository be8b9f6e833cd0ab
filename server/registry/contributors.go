package registry

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/server/rights"
)

// This file records in status.contributors who wrote the fixed kinds that plans depend on.

// addWriter returns contributors with the user of a request, who wrote parts of the object. It returns them unchanged
// for a request of the server itself, and without parts.
func addWriter(ctx context.Context, list []v1alpha1.Contributor, parts ...string) []v1alpha1.Contributor {
	by, ok := rights.Writer(ctx)
	if !ok || len(parts) == 0 {
		return list
	}
	return contributor.Add(list, contributor.Write{By: by, What: parts, At: time.Now()})
}

// replaceWriter is addWriter for parts that have a single value each.
func replaceWriter(ctx context.Context, list []v1alpha1.Contributor, parts ...string) []v1alpha1.Contributor {
	by, ok := rights.Writer(ctx)
	if !ok || len(parts) == 0 {
		return list
	}
	return contributor.Replace(list, contributor.Write{By: by, What: parts, At: time.Now()})
}

// writtenOfSet returns the parts of a ResourceSet that a write changes, and that plans depend on.
func writtenOfSet(s, old *v1alpha1.ResourceSet) (parts []string) {
	rest := old.Spec
	rest.Imports = s.Spec.Imports
	if !sameSpec(s.Spec, rest) {
		parts = append(parts, v1alpha1.WroteSpec)
	}
	if !sameSpec(s.Spec.Imports, old.Spec.Imports) {
		parts = append(parts, contributor.WroteImports)
	}
	if !maps.Equal(s.Labels, old.Labels) {
		parts = append(parts, v1alpha1.WroteLabels)
	}
	return parts
}

// markSet is the strategy of the deletes of ResourceSets and Modules. It records who marks one for deletion.
type markSet struct{ rest.RESTDeleteStrategy }

var _ rest.RESTGracefulDeleteStrategy = markSet{}

// CheckGracefulDelete records the user. It always returns false, because no object has a grace period.
func (markSet) CheckGracefulDelete(ctx context.Context, obj runtime.Object, _ *metav1.DeleteOptions) bool {
	s := instancesStatus(obj)
	s.Contributors = addWriter(ctx, s.Contributors, v1alpha1.WroteDeletion)
	return false
}

// writtenArguments returns the arguments of a ProviderConfig that a write changes. old is nil for a new one.
func writtenArguments(pc, old *v1alpha1.ProviderConfig) (parts []string) {
	if old == nil {
		old = &v1alpha1.ProviderConfig{}
		parts = append(parts, "provider")
	}
	config, _ := configArguments(pc.Spec.Config)
	before, _ := configArguments(old.Spec.Config)
	for _, name := range slices.Sorted(maps.Keys(union(config, before))) {
		value, set := config[name]
		was, wasSet := before[name]
		if set != wasSet || !sameSpec(value, was) {
			parts = append(parts, "config."+name)
		}
	}
	if !sameSpec(pc.Spec.SecretRefs, old.Spec.SecretRefs) {
		parts = append(parts, "secretRefs")
	}
	if !sameSpec(pc.Spec.Meta, old.Spec.Meta) {
		parts = append(parts, "meta")
	}
	return parts
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// keyWriters describes a kind with keys and without a status, whose annotation has the writers of the keys.
type keyWriters struct {
	// keys returns the keys of an object, and a value of each that can be compared.
	keys func(runtime.Object) map[string]string
}

// RecordKeyWriters makes the strategies of a store record who wrote each key of its objects. keys returns the keys of
// an object with their values. Call it before NewHeld.
func RecordKeyWriters(store *genericregistry.Store, keys func(runtime.Object) map[string]string) {
	store.CreateStrategy = keyedCreate{store.CreateStrategy, keyWriters{keys}}
	store.UpdateStrategy = keyedUpdate{store.UpdateStrategy, keyWriters{keys}}
}

// keyedCreate records who creates an object.
type keyedCreate struct {
	rest.RESTCreateStrategy
	keyWriters
}

// PrepareForCreate replaces the annotation of a client. The server itself may write it, for a user.
func (s keyedCreate) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.RESTCreateStrategy.PrepareForCreate(ctx, obj)
	if by, ok := rights.Writer(ctx); ok {
		setWriters(obj, contributor.EncodeKeys(contributor.CreateKeys(contributor.Write{By: by, At: time.Now()})))
	}
}

// keyedUpdate records who changes the keys of an object.
type keyedUpdate struct {
	rest.RESTUpdateStrategy
	keyWriters
}

// PrepareForUpdate replaces the annotation of a client by the stored one, with the user if a key changes.
func (s keyedUpdate) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
	by, ok := rights.Writer(ctx)
	if !ok {
		return
	}
	setWriters(obj, s.written(obj, old, by))
}

// written returns the annotation after a write by a user.
func (s keyWriters) written(obj, old runtime.Object, by v1alpha1.Identity) string {
	now, before := s.keys(obj), s.keys(old)
	stored := writersIn(old)
	if maps.Equal(now, before) {
		return stored
	}
	list, err := contributor.DecodeKeys(stored)
	if err != nil {
		before = nil // the user counts as who wrote all keys
	}
	return contributor.EncodeKeys(writeKeys(list, by, now, before))
}

// writeKeys returns the writers of keys after a write by a user. now and before have the values of the keys.
func writeKeys(list []v1alpha1.Contributor, by v1alpha1.Identity, now,
	before map[string]string) []v1alpha1.Contributor {
	var changed []string
	same := 0
	for key, value := range now {
		if was, ok := before[key]; ok && was == value {
			same++
		} else {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if _, ok := now[key]; !ok {
			changed = append(changed, key)
		}
	}
	w := contributor.Write{By: by, What: slices.Sorted(slices.Values(changed)), At: time.Now()}
	has := func(key string) bool { _, ok := now[key]; return ok }
	switch {
	case len(changed) == 0:
		return list
	case same == 0:
		return contributor.WriteAll(list, w, has)
	}
	return contributor.WriteKeys(list, w, has)
}

// writersIn returns the annotation of an object; "" for none.
func writersIn(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetAnnotations()[v1alpha1.AnnotationWriters]
}

// setWriters sets the annotation of an object, or removes it.
func setWriters(obj runtime.Object, text string) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	annotations := maps.Clone(m.GetAnnotations())
	if text == "" {
		delete(annotations, v1alpha1.AnnotationWriters)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationWriters] = text
	}
	m.SetAnnotations(annotations)
}
