// Package resource decodes the objects of dynamic kinds: their lifecycle, their expressions, and the status that plans
// write.
package resource

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/schema"
)

// Lifecycle is the lifecycle field of an object: its counterpart of Terraform's meta-arguments.
type Lifecycle struct {
	ProviderConfig      string     `json:"providerConfig"`
	DependsOn           []string   `json:"dependsOn"`
	PreventDestroy      bool       `json:"preventDestroy"`
	CreateBeforeDestroy bool       `json:"createBeforeDestroy"`
	IgnoreChanges       []string   `json:"ignoreChanges"`
	ReplaceTriggeredBy  []string   `json:"replaceTriggeredBy"`
	Destroy             *bool      `json:"destroy"`
	Preconditions       []Check    `json:"preconditions"`
	Postconditions      []Check    `json:"postconditions"`
	Import              *importBy  `json:"import"`
	Moved               *MovedFrom `json:"moved"`
}

// Check is a precondition or postcondition before it is parsed.
type Check struct {
	Condition    any    `json:"condition"`
	ErrorMessage string `json:"errorMessage"`
}

// importBy is the ID or identity of an import before it is evaluated.
type importBy struct {
	ID       string `json:"id"`
	Identity any    `json:"identity"`
}

// MovedFrom names the object whose record moves to this one.
type MovedFrom struct {
	From string `json:"from"`
}

// Forgets reports whether the infrastructure remains after the object is deleted.
func (l *Lifecycle) Forgets() bool { return l.Destroy != nil && !*l.Destroy }

// Resource is a decoded object of a dynamic kind.
type Resource struct {
	Object    *unstructured.Unstructured
	Ref       v1alpha1.ObjectReference
	Mode      v1alpha1.Mode
	Address   lang.Address
	Entry     catalog.Entry
	Schema    *schema.Schema
	Lifecycle Lifecycle
	Deleting  bool
	// Instance has the values of count.index, each.key and each.value; nil if the object is no instance of a
	// ResourceSet.
	Instance *lang.Instance

	catalog     *catalog.Catalog
	expressions *parseOnce
}

// Of decodes an object. It fails if the object's provider is not installed.
func Of(obj *unstructured.Unstructured, c *catalog.Catalog) (*Resource, error) {
	gvk := obj.GroupVersionKind()
	r := &Resource{
		Object: obj,
		Ref: v1alpha1.ObjectReference{
			APIVersion: obj.GetAPIVersion(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			UID: obj.GetUID(), Generation: obj.GetGeneration(),
		},
		Deleting: obj.GetDeletionTimestamp() != nil,
		catalog:  c, expressions: new(parseOnce),
	}
	var instance bool
	if r.Instance, r.Ref.Set, r.Ref.SetUID, instance = resourceset.InstanceOf(obj); !instance {
		r.Instance = nil
	}
	name, ok := v1alpha1.ProviderOfGroup(gvk.Group)
	if !ok {
		return nil, fmt.Errorf("%s %q: %s is not the API group of a provider", gvk.Kind, r.Ref.Name, gvk.Group)
	}
	if r.Entry, ok = c.Get(name); !ok {
		return nil, fmt.Errorf("%s %q: the provider %q is not ready; see kubectl describe provider %s", gvk.Kind,
			r.Ref.Name, name, name)
	}
	r.Mode, r.Address, r.Schema = typeOf(r.Entry.Schema, gvk.Kind)
	r.Address = lang.AddressOf(r.Address.Mode, r.Address.Type, obj.GetName())
	if r.Schema == nil {
		return nil, fmt.Errorf("%s %q: version %s of the provider %q has no type %q", gvk.Kind, r.Ref.Name,
			r.Entry.Package.Version, name, r.Address.Type)
	}
	if lc, ok := obj.Object["lifecycle"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(lc, &r.Lifecycle); err != nil {
			return nil, fmt.Errorf("%s %q: lifecycle: %w", gvk.Kind, r.Ref.Name, err)
		}
	}
	return r, nil
}

// typeOf returns the mode, address and schema of a kind. The schema is nil if the provider has no such type.
func typeOf(p *schema.Provider, kind string) (v1alpha1.Mode, lang.Address, *schema.Schema) {
	managed := v1alpha1.TypeOf(kind)
	if s := p.Resources[managed]; s != nil {
		return v1alpha1.ModeManaged, lang.Address{Type: managed}, s
	}
	mode, name := v1alpha1.ParseKind(kind)
	addr := lang.Address{Mode: mode, Type: name}
	switch mode {
	case v1alpha1.ModeData:
		return mode, addr, p.DataSources[name]
	case v1alpha1.ModeEphemeral:
		return mode, addr, p.Ephemerals[name]
	case v1alpha1.ModeAction:
		return mode, addr, p.Actions[name]
	default:
		return mode, lang.Address{Type: managed}, nil
	}
}

// Spec returns the object's spec.
func (r *Resource) Spec() map[string]any {
	spec, _ := r.Object.Object["spec"].(map[string]any)
	return spec
}

// Decoder decodes the objects of one plan. It parses the expressions of known resources and of ephemeral resources only
// once.
type Decoder struct {
	catalog *catalog.Catalog

	mu    sync.Mutex
	known map[types.UID]*Resource
}

// NewDecoder returns a decoder with some known resources.
func NewDecoder(c *catalog.Catalog, known ...*Resource) *Decoder {
	d := &Decoder{catalog: c, known: make(map[types.UID]*Resource, len(known))}
	for _, r := range known {
		d.known[r.Ref.UID] = r
	}
	return d
}

// Decode decodes an object, as Of does. For an unchanged known resource, it reuses the parsed expressions.
func (d *Decoder) Decode(obj *unstructured.Unstructured) (*Resource, error) {
	r, err := Of(obj, d.catalog)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.known[r.Ref.UID]; r.Instance == nil && r.Address.Module == "" && known.writtenAs(r) {
		r.expressions = known.expressions
	} else if r.Mode == v1alpha1.ModeEphemeral { // otherwise each expression that refers to it would decode it again
		d.known[r.Ref.UID] = r
	}
	return r, nil
}

// writtenAs reports whether two resources have the same expressions and the same schema. r may be nil.
func (r *Resource) writtenAs(other *Resource) bool {
	return r != nil && r.Ref.Namespace == other.Ref.Namespace && r.Address == other.Address &&
		r.Schema == other.Schema &&
		reflect.DeepEqual(r.Object.Object["spec"], other.Object.Object["spec"]) &&
		reflect.DeepEqual(r.Object.Object["lifecycle"], other.Object.Object["lifecycle"])
}
