package kinds

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// Summarize returns the Resource of an object of a provider's kind, or of an instance of a ResourceSet.
func Summarize(u *unstructured.Unstructured) runtime.Object {
	gvk := u.GroupVersionKind()
	provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
	mode, _ := v1alpha1.ParseKind(gvk.Kind)
	status, _ := u.Object["status"].(map[string]any)
	ready := readiness(u, mode)
	applied, _, _ := unstructured.NestedInt64(status, "appliedGeneration")
	config, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig")
	r := &v1alpha1.ResourceSummary{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Resource"},
		ObjectMeta: metav1.ObjectMeta{
			Name: SummaryName(provider, gvk.Kind, u.GetName()), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels(),
			CreationTimestamp: u.GetCreationTimestamp(), DeletionTimestamp: u.GetDeletionTimestamp(),
		},
		Object: v1alpha1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
			UID: u.GetUID(), Generation: u.GetGeneration(),
		},
		Provider:       provider,
		ProviderConfig: config,
		Status: v1alpha1.ResourceSummaryStatus{
			Ready:  metav1.ConditionStatus(cmp.Or(text(ready["status"]), string(metav1.ConditionUnknown))),
			Reason: text(ready["reason"]), Message: text(ready["message"]),
			ID: identity(status), AppliedGeneration: applied,
		},
	}
	if _, set, setUID, ok := resourceset.InstanceOf(u); ok {
		r.Object.Set, r.Object.SetUID = set, setUID
	}
	return r
}

// SummaryName returns the name of the Resource of an object. Two providers may have kinds of the same name. So the name
// has the provider, unless Terraform would use that provider for the type. Names of kinds and providers have no dots
// and colons, so the name is unique.
func SummaryName(provider, kind, name string) string {
	_, terraformType := v1alpha1.ParseKind(kind)
	if implied, _, _ := strings.Cut(terraformType, "_"); implied == provider {
		return kind + "." + name
	}
	return provider + ":" + kind + "." + name
}

// ParseSummaryName returns the object of the Resource with a name. It returns false if no Resource has such a name.
func ParseSummaryName(full string) (gvk kschema.GroupVersionKind, name string, ok bool) {
	kind, name, ok := strings.Cut(full, ".")
	provider, rest, prefixed := strings.Cut(kind, ":")
	if prefixed {
		kind = rest
	} else {
		_, terraformType := v1alpha1.ParseKind(kind)
		provider, _, _ = strings.Cut(terraformType, "_")
	}
	return groupVersion(provider).WithKind(kind), name, ok && name != "" && SummaryName(provider, kind, name) == full
}
