package server_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestTakingAStackOver makes another user the author of an automatic stack. That needs each right that writing the stack needs. An
// approval of what the former author wrote does not count for the new one.
func TestTakingAStackOver(t *testing.T) {
	ns := namespace(t, "takeover")
	resource := v1alpha1.SchemeGroupVersion.WithResource("stacks")
	of := objects(t, shared.admin()).Resource(resource).Namespace(ns)
	if _, err := of.Create(t.Context(), newObject("Stack", "web", map[string]any{"approval": "Automatic"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	takeOver := func(o metav1.CreateOptions) error {
		_, err := objects(t, shared.as("viewer")).Resource(resource).Namespace(ns).Create(t.Context(), newObject("Stack", "web", map[string]any{}), o, "takeover")
		return err
	}
	author := func() (name string, generation, written int64) {
		s, err := of.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ = unstructured.NestedString(s.Object, "status", "author", "username")
		written, _, _ = unstructured.NestedInt64(s.Object, "status", "authorGeneration")
		return name, s.GetGeneration(), written
	}
	for _, right := range []struct{ resource, verb, missing string }{
		{"stacks/takeover", "create", `cannot create resource "stacks/takeover"`},
		{"stacks", "update", "no right to update stacks.hykube.io"},
		{"plans", "approve", "no right to approve plans.hykube.io"},
		{"plans", "create", "no right to create plans.hykube.io"},
	} {
		eventually(t, "the next missing right is "+right.missing, func() bool {
			err := takeOver(metav1.CreateOptions{})
			if err == nil {
				t.Fatalf("the user took the stack over without the right to %s %s", right.verb, right.resource)
			}
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), right.missing)
		})
		name := strings.ReplaceAll(right.verb+"-"+right.resource, "/", "-")
		allowOn(t, shared, ns, name, "readers", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{right.resource}, Verbs: []string{right.verb}})
	}
	eventually(t, "a dry run with all rights", func() bool { return takeOver(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}) == nil })
	if name, generation, _ := author(); name != "hykube:admin" || generation != 1 {
		t.Errorf("after a dry run, the author is %q, and the generation %d", name, generation)
	}
	if err := takeOver(metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if name, generation, written := author(); name != "viewer" || generation != 2 || written != 2 {
		t.Errorf("the author is %q of the generation %d, and the generation is %d", name, written, generation)
	}
}
