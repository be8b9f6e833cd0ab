package kinds

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Names of the merge schema's types.
const (
	typeObject  = "object"
	typeAny     = "any"
	typeLeaf    = "leaf"
	typeMeta    = "meta"
	typeOwners  = "owners"
	typeOwner   = "owner"
	typeStrings = "strings"
	typeStatus  = "status"
	typeConds   = "conditions"
)

// newParseableType returns the merge schema of server-side apply, which is the same for every kind. It differs from the
// schema that clients see, because a string with an expression may replace any value. Maps are owned by key. Lists,
// including lists of blocks, are atomic. Validation checks the objects.
func newParseableType() typed.ParseableType {
	named := func(name string) smd.TypeRef { return smd.TypeRef{NamedType: &name} }
	untyped := new(smd.Untyped)
	def := func(name string, a smd.Atom) smd.TypeDef { return smd.TypeDef{Name: name, Atom: a} }
	fields := func(m map[string]string) *smd.Map {
		out := &smd.Map{ElementType: named(typeAny), ElementRelationship: smd.Separable}
		for field, typ := range m {
			out.Fields = append(out.Fields, smd.StructField{Name: field, Type: named(typ)})
		}
		return out
	}
	keyed := func(elem string, keys ...string) *smd.List {
		return &smd.List{ElementType: named(elem), ElementRelationship: smd.Associative, Keys: keys}
	}
	s := smd.Schema{Types: []smd.TypeDef{
		def(typeLeaf, smd.Atom{
			Scalar: untyped,
			List:   &smd.List{ElementType: named(typeLeaf), ElementRelationship: smd.Atomic},
			Map:    &smd.Map{ElementType: named(typeLeaf), ElementRelationship: smd.Atomic},
		}),
		def(typeAny, smd.Atom{
			Scalar: untyped,
			List:   &smd.List{ElementType: named(typeLeaf), ElementRelationship: smd.Atomic},
			Map:    &smd.Map{ElementType: named(typeAny), ElementRelationship: smd.Separable},
		}),
		def(typeStrings, smd.Atom{List: keyed(typeLeaf)}),
		def(typeOwner, smd.Atom{Map: &smd.Map{ElementType: named(typeLeaf), ElementRelationship: smd.Atomic}}),
		def(typeOwners, smd.Atom{List: keyed(typeOwner, "uid")}),
		def(typeConds, smd.Atom{Scalar: untyped, List: keyed(typeAny, "type")}),
		def(typeMeta, smd.Atom{Map: fields(map[string]string{"finalizers": typeStrings,
			"ownerReferences": typeOwners})}),
		def(typeStatus, smd.Atom{Scalar: untyped, Map: fields(map[string]string{"conditions": typeConds})}),
		def(typeObject, smd.Atom{Map: fields(map[string]string{"metadata": typeMeta, "status": typeStatus})}),
	}}
	return (&typed.Parser{Schema: smd.Schema{Types: s.Types}}).Type(typeObject)
}

// typeConverter is the managedfields.TypeConverter of all kinds.
type typeConverter struct{ object typed.ParseableType }

func (c typeConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("decode %T: not an object of a provider's kind", obj)
	}
	content := u.UnstructuredContent()
	if spec, ok := content["spec"].(map[string]any); ok {
		content = maps.Clone(content)
		content["spec"] = withoutNulls(spec)
	}
	return c.object.FromUnstructured(content, opts...)
}

// withoutNulls removes null arguments, because these are not set, and a merge would make empty maps of them. Nulls
// within an argument are part of its value.
func withoutNulls(spec map[string]any) map[string]any {
	spec = maps.Clone(spec)
	maps.DeleteFunc(spec, func(_ string, v any) bool { return v == nil })
	return spec
}

func (typeConverter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	m, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("encode object: %T is not an object", v.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: m}, nil
}
