package activities

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// lifecycle is the object's own share of Terraform's meta-arguments.
type lifecycle struct {
	ProviderConfig      string    `json:"providerConfig"`
	DependsOn           []string  `json:"dependsOn"`
	PreventDestroy      bool      `json:"preventDestroy"`
	CreateBeforeDestroy bool      `json:"createBeforeDestroy"`
	IgnoreChanges       []string  `json:"ignoreChanges"`
	ReplaceTriggeredBy  []string  `json:"replaceTriggeredBy"`
	Destroy             *bool     `json:"destroy"`
	Preconditions       []check   `json:"preconditions"`
	Postconditions      []check   `json:"postconditions"`
	Import              *importBy `json:"import"`
	Moved               *moved    `json:"moved"`
}

// check is a condition as it is written.
type check struct {
	Condition    any    `json:"condition"`
	ErrorMessage string `json:"errorMessage"`
}

// importBy is what an existing instance is found by, as it is written.
type importBy struct {
	ID       string `json:"id"`
	Identity any    `json:"identity"`
}

// moved says where an instance's record is to be taken from.
type moved struct {
	From string `json:"from"`
}

// forgets says whether the infrastructure is left alone when its object goes.
func (l *lifecycle) forgets() bool { return l.Destroy != nil && !*l.Destroy }

// resource is an object of a dynamic kind, read.
type resource struct {
	obj       *unstructured.Unstructured
	ref       v1alpha1.ObjectReference
	mode      v1alpha1.Mode
	addr      lang.Address
	entry     catalog.Entry
	schema    *schema.Schema
	lifecycle lifecycle
	deleting  bool
}

// resourceOf reads an object. It fails when the object's provider is not installed.
func resourceOf(obj *unstructured.Unstructured, c *catalog.Catalog) (*resource, error) {
	gvk := obj.GroupVersionKind()
	r := &resource{
		obj: obj,
		ref: v1alpha1.ObjectReference{
			APIVersion: obj.GetAPIVersion(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			UID: obj.GetUID(), Generation: obj.GetGeneration(),
		},
		deleting: obj.GetDeletionTimestamp() != nil,
	}
	name, ok := v1alpha1.ProviderOfGroup(gvk.Group)
	if !ok {
		return nil, fmt.Errorf("%s %q: %s is no provider's API group", gvk.Kind, r.ref.Name, gvk.Group)
	}
	if r.entry, ok = c.Get(name); !ok {
		return nil, fmt.Errorf("%s %q: the provider %q is not ready; see kubectl describe provider %s", gvk.Kind, r.ref.Name, name, name)
	}
	r.mode, r.addr, r.schema = typeOf(r.entry.Schema, gvk.Kind)
	r.addr.Name = obj.GetName()
	if r.schema == nil {
		return nil, fmt.Errorf("%s %q: version %s of the provider %q has no type %q", gvk.Kind, r.ref.Name, r.entry.Package.Version, name, r.addr.Type)
	}
	if lc, ok := obj.Object["lifecycle"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(lc, &r.lifecycle); err != nil {
			return nil, fmt.Errorf("%s %q: lifecycle: %w", gvk.Kind, r.ref.Name, err)
		}
	}
	return r, nil
}

// typeOf finds what a kind stands for; the schema is nil when the provider has no such type.
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

// spec is what the user wrote.
func (r *resource) spec() map[string]any {
	spec, _ := r.obj.Object["spec"].(map[string]any)
	return spec
}
