package planning

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// withOverlay returns the planner for a plan. For a speculative plan, the planner sees the plan's documents as if they
// were recorded, and writes only the plan's own changes.
func (a *Planner) withOverlay(ctx context.Context, po *v1alpha1.Plan) (*Planner, error) {
	if !po.Spec.Speculative {
		return a, nil
	}
	o := &overlay{
		objects: a.Objects, configs: a.Configs, documents: map[objectKey]*document{}, recordedSets: a.Sets,
		sets: map[types.UID]*resourceset.Set{}, modules: map[types.UID]*overlaidModule{},
	}
	for d, err := range a.Ledger.Documents(ctx, po.UID) {
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(d.Object); err != nil {
			return nil, fmt.Errorf("decode document of plan: %w", err)
		}
		doc := &document{object: u, foreign: d.Foreign}
		if d.Pruned {
			if doc.leftFiles = u.GetDeletionTimestamp() == nil; doc.leftFiles {
				u.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
			}
			doc.gone = len(u.GetFinalizers()) == 0
		}
		_, resource := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group)
		o.foreignResources = o.foreignResources || d.Foreign && resource
		o.documents[objectKeyOf(u)] = doc
		o.order = append(o.order, doc)
	}
	if err := o.expand(ctx, a.Index, po.Namespace); err != nil {
		return nil, err
	}
	view := *a
	sources := *a.Sources
	sources.Objects, sources.Sets, sources.Configs, sources.Ledger = o, o, configsOverlay{o},
		a.Ledger.Speculative(po.UID)
	view.Sources = &sources
	return &view, nil
}

// overlay shows the documents of a speculative plan on top of the recorded objects.
type overlay struct {
	objects   store.Objects
	configs   store.Configs
	documents map[objectKey]*document
	order     []*document
	// foreignResources is true if there are resources that the plan's creator has no right to record.
	foreignResources bool
	// sets holds the ResourceSets of the documents, and those whose keys the documents change, by UID; nil for one that
	// would not exist.
	sets map[types.UID]*resourceset.Set
	// modules holds the Modules of the documents, and those whose files the documents change, by UID.
	modules map[types.UID]*overlaidModule
	// recordedSets finds the recorded ResourceSets; nil finds none.
	recordedSets scope.Sets
}

// objectKey identifies an object.
type objectKey struct{ group, kind, namespace, name string }

func objectKeyOf(u *unstructured.Unstructured) objectKey {
	gvk := u.GroupVersionKind()
	return objectKey{gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName()}
}

// document is an object of the overlay.
type document struct {
	object *unstructured.Unstructured
	// gone is true if the object would not exist.
	gone bool
	// leftFiles is true if the object is no longer in the files and is not yet marked for deletion.
	leftFiles bool
	// foreign is true if the plan's creator has no right to record the object.
	foreign bool
}

// applyTo puts the documents of a namespace onto its entries in the index. New objects come after the recorded ones. It
// returns an error for each document whose provider is not ready.
func (o *overlay) applyTo(view *index.View, namespace string) (unready diag.Diagnostics) {
	for _, doc := range o.order {
		at := objectKeyOf(doc.object)
		if _, resource := v1alpha1.ProviderOfGroup(at.group); !resource || at.namespace != namespace {
			continue
		}
		if doc.gone {
			view.Remove(doc.object)
		} else if err := view.Overlay(doc.object); err != nil {
			unready = append(unready, notReady(doc.object, err))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(o.sets)) {
		if set := o.sets[uid]; set == nil {
			view.RemoveSet(uid, nil)
		} else if set.Namespace == namespace {
			view.OverlaySet(set)
		}
	}
	for _, m := range o.modulesOf(namespace) {
		if m.Module != nil {
			view.OverlayModule(m.Module)
		} else {
			view.RemoveModule(m.name, m.uid, nil)
		}
	}
	return unready
}

// Get implements store.Objects.
func (o *overlay) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if v1alpha1.IsVirtualName(ref.Name) {
		return o.instance(ctx, ref)
	}
	doc := o.documents[objectKey{kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, ref.Kind, ref.Namespace,
		ref.Name}]
	switch {
	case doc == nil:
		return o.objects.Get(ctx, ref)
	case doc.gone || ref.UID != "" && ref.UID != doc.object.GetUID():
		return nil, store.ErrGone
	}
	return doc.object.DeepCopy(), nil
}

func (o *overlay) GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	return o.Get(ctx, ref)
}

// leftFiles reports whether an object is no longer in the files of a speculative plan and is not yet marked for
// deletion.
func (a *Planner) leftFiles(ref v1alpha1.ObjectReference) bool {
	o, ok := a.Objects.(*overlay)
	if !ok {
		return false
	}
	doc := o.documents[objectKey{kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, ref.Kind, ref.Namespace,
		ref.Name}]
	if ref.Set != "" {
		doc = o.find(v1alpha1.GroupName, v1alpha1.OwnerKind(ref.Name), ref.Namespace, ref.Set)
	}
	return doc != nil && doc.leftFiles
}

// Plural implements store.Objects.
func (o *overlay) Plural(ref v1alpha1.ObjectReference) (string, error) { return o.objects.Plural(ref) }

// UpdateStatus implements store.Objects. It writes nothing.
func (*overlay) UpdateStatus(context.Context, v1alpha1.ObjectReference, *unstructured.Unstructured,
	func(*unstructured.Unstructured) map[string]any) error {
	return nil
}

// NewInstanceStatus implements store.Objects. No speculative plan is applied.
func (*overlay) NewInstanceStatus(context.Context, *unstructured.Unstructured,
	func(*unstructured.Unstructured) map[string]any) (*store.InstanceStatus, error) {
	return nil, nil
}

// AddFinalizer implements store.Objects. It writes nothing.
func (*overlay) AddFinalizer(_ context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return obj, nil
}

// RemoveFinalizer implements store.Objects. It writes nothing.
func (*overlay) RemoveFinalizer(context.Context, v1alpha1.ObjectReference) error { return nil }

// find returns the document of an object of the core group or of hykube.io, or nil.
func (o *overlay) find(group, kind, namespace, name string) *document {
	return o.documents[objectKey{group, kind, namespace, name}]
}

// configsOverlay is the overlay for ProviderConfigs, ConfigMaps and Secrets.
type configsOverlay struct{ *overlay }

// Get implements store.Configs. It rejects a ProviderConfig that depends on documents which the plan's creator has no
// right to record; see authorizeConfig.
func (o configsOverlay) Get(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	var cfg *v1alpha1.ProviderConfig
	if doc := o.find(v1alpha1.GroupName, "ProviderConfig", namespace, name); doc == nil {
		found, err := o.configs.Get(ctx, namespace, name)
		if found == nil || err != nil {
			return nil, err
		}
		cfg = found
	} else if !doc.gone {
		cfg = &v1alpha1.ProviderConfig{}
		if err := asType(doc.object, cfg); err != nil {
			return nil, err
		}
	} else {
		return nil, nil
	}
	return cfg, o.authorizeConfig(cfg)
}

// authorizeConfig rejects a ProviderConfig that depends on documents which the plan's creator has no right to record.
// The provider would send credentials to the hosts in them.
func (o configsOverlay) authorizeConfig(cfg *v1alpha1.ProviderConfig) error {
	refuse := func(what string) error {
		return workflows.Final(&scope.ForbiddenError{Text: fmt.Sprintf(
			"the ProviderConfig %q refers to %s, which the files change, but the requester of the plan may not write it; record that change first, or ask for the verb \"patch\" on it", cfg.Name, what)})
	}
	for _, ref := range cfg.Spec.SecretRefs {
		if doc := o.find("", "Secret", cfg.Namespace, ref.Name); doc != nil && doc.foreign {
			return refuse(fmt.Sprintf("the Secret %q", ref.Name))
		}
	}
	for _, ref := range catalog.References(cfg) {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = cfg.Namespace
		}
		switch {
		case ref.Stored():
			kind := "ConfigMap"
			if ref.Stored() && ref.Type == lang.TypeSecret {
				kind = "Secret"
			}
			if doc := o.find("", kind, namespace, ref.Name); doc != nil && doc.foreign {
				return refuse(ref.Address.String())
			}
		case o.foreignResources:
			return refuse("resources such as " + ref.Address.String())
		}
	}
	return nil
}

// Leaving implements store.Configs. Only an apply calls it, which a speculative plan never has.
func (o configsOverlay) Leaving(ctx context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	return o.configs.Leaving(ctx, cfg)
}

// Terminating implements store.Configs.
func (o configsOverlay) Terminating(ctx context.Context, namespace string) (bool, error) {
	return o.configs.Terminating(ctx, namespace)
}

// Writers implements store.Configs. A speculative plan asks for none.
func (o configsOverlay) Writers(ctx context.Context, of store.Written) (store.Writers, bool, error) {
	return o.configs.Writers(ctx, of)
}

// Secret implements store.Configs.
func (o configsOverlay) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	if o.find("", "Secret", namespace, name) == nil {
		return o.configs.Secret(ctx, namespace, name, key)
	}
	data, err := o.SecretData(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	switch {
	case data == nil:
		return nil, &store.SecretError{Namespace: namespace, Name: name}
	case !ok:
		return nil, &store.SecretError{Namespace: namespace, Name: name, Key: key}
	}
	return value, nil
}

// SecretData implements store.Configs.
func (o configsOverlay) SecretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	doc := o.find("", "Secret", namespace, name)
	switch {
	case doc == nil:
		return o.configs.SecretData(ctx, namespace, name)
	case doc.gone:
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := asType(doc.object, secret); err != nil {
		return nil, err
	}
	if secret.Data == nil {
		return map[string][]byte{}, nil // it exists and is empty
	}
	return secret.Data, nil
}

// ConfigMap implements store.Configs.
func (o configsOverlay) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	doc := o.find("", "ConfigMap", namespace, name)
	switch {
	case doc == nil:
		return o.configs.ConfigMap(ctx, namespace, name)
	case doc.gone:
		return nil, nil
	}
	cm := &corev1.ConfigMap{}
	if err := asType(doc.object, cm); err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, cm.BinaryData)
	return data, nil
}

// ConfigMapNames implements store.Configs.
func (o configsOverlay) ConfigMapNames(ctx context.Context, namespace string) ([]string, error) {
	names, err := o.configs.ConfigMapNames(ctx, namespace)
	for at, doc := range o.documents {
		if at.group == "" && at.kind == "ConfigMap" && at.namespace == namespace && !doc.gone && !slices.Contains(names,
			at.name) {
			names = append(names, at.name)
		}
	}
	slices.Sort(names)
	return names, err
}

// asType converts an object to a Go type.
func asType(u *unstructured.Unstructured, into runtime.Object) error {
	raw, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("decode %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// dropDocuments removes the documents of a speculative plan after planning has ended.
func (a *Planner) dropDocuments(ctx context.Context, po *v1alpha1.Plan) error {
	if !po.Spec.Speculative {
		return nil
	}
	return a.Ledger.DropDocuments(ctx, po.UID)
}
