package server_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestNotificationsOfANamespaceAreLimited makes as many Notifications as a namespace may have, and one more. Each change of
// a plan concerns all of them.
func TestNotificationsOfANamespaceAreLimited(t *testing.T) {
	ns := namespace(t, "many-notifications")
	client := objects(t, shared.admin()).Resource(v1alpha1.SchemeGroupVersion.WithResource("notifications")).Namespace(ns)
	create := func(name string) error {
		_, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Notification", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"suspend": true, "webhook": map[string]any{"url": "https://example.com/hook"}},
		}}, metav1.CreateOptions{})
		return err
	}
	for i := range 20 {
		if err := create(fmt.Sprint("n", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := create("last"); !apierrors.IsForbidden(err) {
		t.Errorf("one Notification more: %v", err)
	}
	if err := client.Delete(t.Context(), "n0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := create("last"); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}
