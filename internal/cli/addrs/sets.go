package addrs

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

// IsResource reports whether plans change an object: an object of a provider's kind, or a ResourceSet.
func IsResource(u *unstructured.Unstructured) bool {
	_, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group)
	return ok || IsSet(u) || IsModule(u)
}

// IsSet reports whether an object is a ResourceSet.
func IsSet(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("ResourceSet")
}

// TemplateOf returns the template of a ResourceSet as an object of its kind, and other objects unchanged.
func TemplateOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsSet(u) {
		return u
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if template == nil {
		template = map[string]any{}
	}
	out := &unstructured.Unstructured{Object: template}
	if out.GetName() == "" {
		out.SetName(u.GetName())
	}
	out.SetNamespace(u.GetNamespace())
	return out
}

// IsModule reports whether an object is a Module.
func IsModule(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("Module")
}
