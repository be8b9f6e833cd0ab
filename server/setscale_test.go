package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// scale patches the subresource "scale" of a set, as `kubectl scale` does.
func scale(t *testing.T, c *rest.Config, name, replicas string) (*unstructured.Unstructured, error) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%s}}`, replicas)
	return objects(t, c).Resource(sets).Namespace("default").Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "scaler"}, "scale")
}

// TestScaleAResourceSet scales a set by its subresource.
func TestScaleAResourceSet(t *testing.T) {
	e := startEstate(t)
	e.set("default", "web", 3)
	e.apply("default", "web[0]", v1alpha1.ReasonApplied, map[string]any{"id": "net-0"})
	of := objects(t, e.admin()).Resource(sets).Namespace("default")
	got, err := of.Get(t.Context(), "web", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); got.GetKind() != "Scale" || got.GetAPIVersion() != "autoscaling/v1" || replicas != 3 {
		t.Errorf("the scale: %v", got.Object)
	}
	if got, err = scale(t, e.admin(), "web", "5"); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); replicas != 5 {
		t.Errorf("after the patch: %v", got.Object)
	}
	set, err := of.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if count, _, _ := unstructured.NestedInt64(set.Object, "spec", "count"); count != 5 || set.GetGeneration() != 2 || set.GetLabels()["set"] != "web" {
		t.Errorf("the set: %v", set.Object)
	}
	owns := func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "scaler" && f.APIVersion == "hykube.io/v1alpha1" && f.Subresource == "scale" && strings.Contains(string(f.FieldsV1.GetRawBytes()), `"f:count"`)
	}
	if !slices.ContainsFunc(set.GetManagedFields(), owns) {
		t.Errorf("no field of the set belongs to the scaler: %v", set.GetManagedFields())
	}
	// An update with an old version, and one by an HPA, which sends the whole Scale.
	got.SetResourceVersion(set.GetResourceVersion() + "0")
	if _, err := of.Update(t.Context(), got, metav1.UpdateOptions{}, "scale"); !apierrors.IsConflict(err) {
		t.Errorf("with another version: %v", err)
	}
	got.SetResourceVersion(set.GetResourceVersion())
	_ = unstructured.SetNestedField(got.Object, int64(2), "spec", "replicas")
	if got, err = of.Update(t.Context(), got, metav1.UpdateOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("after the update: %v", got.Object)
	}
	for replicas, want := range map[string]string{"-1": "spec.count", "2000000000": "spec.count", `"x"`: "spec.replicas"} {
		if _, err := scale(t, e.admin(), "web", replicas); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s replicas: %v", replicas, err)
		}
	}
	keyed := newSet("keyed")
	_ = unstructured.SetNestedStringSlice(keyed.Object, []string{"a", "b"}, "spec", "forEach")
	unstructured.RemoveNestedField(keyed.Object, "spec", "count")
	if _, err := of.Create(t.Context(), keyed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := scale(t, e.admin(), "keyed", "1"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "add or remove keys instead") {
		t.Errorf("a set with keys: %v", err)
	}
	if _, err := scale(t, e.admin(), "none", "1"); !apierrors.IsNotFound(err) {
		t.Errorf("no set: %v", err)
	}
}

// TestAScaleIsAWriteOfTheSet scales as a user who may scale sets, and then may create the kind of the template. The user becomes
// a contributor of the set.
func TestAScaleIsAWriteOfTheSet(t *testing.T) {
	e := startEstate(t)
	e.set("default", "web", 3)
	allowOn(t, e.instance, "default", "scale-sets", "readers", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"resourcesets/scale"}, Verbs: []string{"get", "patch"}})
	var err error
	eventually(t, "the user may scale sets", func() bool {
		_, err = scale(t, e.as("viewer"), "web", "5")
		return err == nil || strings.Contains(err.Error(), "sim-networks")
	})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without the rights on networks: %v", err)
	}
	allowOn(t, e.instance, "default", "create-networks", "readers", rbacv1.PolicyRule{APIGroups: []string{simNetworks.Group}, Resources: []string{"sim-networks"}, Verbs: []string{"create", "update"}})
	eventually(t, "the user may create and update networks", func() bool {
		_, err = scale(t, e.as("viewer"), "web", "5")
		return !apierrors.IsForbidden(err)
	})
	if err != nil {
		t.Fatalf("with both rights: %v", err)
	}
	if _, err := scale(t, e.as("viewer"), "web", "1"); !apierrors.IsForbidden(err) {
		t.Errorf("to fewer, without the right to delete networks: %v", err)
	}
	set, err := objects(t, e.admin()).Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	by, _, _ := unstructured.NestedSlice(set.Object, "status", "contributors")
	if !slices.ContainsFunc(by, func(c any) bool { return c.(map[string]any)["username"] == "viewer" }) {
		t.Errorf("the user who scaled is no contributor: %v", by)
	}
}

// TestADestroyRemovesTheAppliedImport releases instances that left their set, as the apply of their destroy does. An import that a plan
// applied is removed from the set, and each other one stays.
func TestADestroyRemovesTheAppliedImport(t *testing.T) {
	e := startEstate(t)
	of := objects(t, e.admin()).Resource(sets).Namespace("default")
	const imports = `{"spec":{"imports":[{"key":"0","id":"net-0"},{"key":"1","id":"net-1"},{"key":"2","id":"net-2"},{"key":"3","id":"net-3"}]}}`
	for name, tc := range map[string]struct {
		patch string
		left  []string
	}{
		"web":  {imports, []string{"0", "1", "3"}},
		"kept": {strings.Replace(imports, `{"spec":{`, `{"spec":{"template":{"lifecycle":{"destroy":false}},`, 1), []string{"0", "1", "2", "3"}},
	} {
		e.set("default", name, 4)
		if _, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		var refs []v1alpha1.ObjectReference
		for i, imported := range []string{`{"id":"net-0"}`, `{"id":"net-9"}`, `{"id":"net-2"}`, ""} {
			ref := e.record("default", fmt.Sprintf("%s[%d]", name, i), "net")
			err := e.objects.UpdateInstanceStatus(t.Context(), ref, func(*unstructured.Unstructured) map[string]any {
				return map[string]any{"observedGeneration": ref.Generation, "imported": imported}
			})
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		if _, err := scale(t, e.admin(), name, "1"); err != nil {
			t.Fatal(err)
		}
		before, err := of.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs { // the set still has the first one
			rec, err := e.objects.Ledger.Instance(t.Context(), ref)
			if err == nil {
				err = e.objects.Ledger.Forget(t.Context(), rec)
			}
			if err == nil {
				err = e.objects.RemoveFinalizer(t.Context(), ref)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		set, err := of.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		entries, _, _ := unstructured.NestedSlice(set.Object, "spec", "imports")
		for _, entry := range entries {
			left = append(left, entry.(map[string]any)["key"].(string))
		}
		if !slices.Equal(left, tc.left) {
			t.Errorf("%s: the imports %q are left, want %q", name, left, tc.left)
		}
		was, _, _ := unstructured.NestedSlice(before.Object, "status", "contributors")
		by, _, _ := unstructured.NestedSlice(set.Object, "status", "contributors")
		if len(was) == 0 || !slices.EqualFunc(was, by, func(a, b any) bool { return a.(map[string]any)["username"] == b.(map[string]any)["username"] }) {
			t.Errorf("%s: the contributors are %v, and were %v", name, by, was)
		}
	}
}
