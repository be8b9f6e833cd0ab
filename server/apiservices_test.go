package server_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// TestAPIServicesFollowProviders installs and removes a Provider under a watch of APIServices.
func TestAPIServicesFollowProviders(t *testing.T) {
	client := objects(t, shared.admin())
	services := client.Resource(apiServices)
	list, err := services.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const name = "v1.followed.hykube.io"
	w, err := services.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	sees := func(kind watch.EventType, available string) *unstructured.Unstructured {
		t.Helper()
		select {
		case e := <-w.ResultChan():
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type != kind || o.GetName() != name {
				t.Fatalf("got %s %v, want %s of %s", e.Type, e.Object, kind, name)
			}
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			if len(conditions) != 1 || conditions[0].(map[string]any)["status"] != available {
				t.Errorf("conditions %v, want Available=%s", conditions, available)
			}
			return o
		case <-time.After(10 * time.Second):
			t.Fatalf("no %s within 10 s", kind)
		}
		return nil
	}
	itself := objects(t, shared.itself).Resource(providers)
	providers := client.Resource(providers)
	provider, err := providers.Create(t.Context(), newObject("Provider", "followed", map[string]any{"source": "hykube/followed"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o := sees(watch.Added, "False"); o.GetResourceVersion() != provider.GetResourceVersion() || o.GetUID() == provider.GetUID() {
		t.Errorf("%s has version %s and uid %s, the provider %s and %s", name, o.GetResourceVersion(), o.GetUID(), provider.GetResourceVersion(), provider.GetUID())
	}
	installed := map[string]any{"type": "Installed", "status": "True", "reason": "Installed", "message": "Serves.", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	if err := unstructured.SetNestedSlice(provider.Object, []any{installed}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if _, err := itself.UpdateStatus(t.Context(), provider, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	sees(watch.Modified, "True")
	if _, err := services.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("delete: %v, want that it is not supported", err)
	}
	if err := providers.Delete(t.Context(), "followed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sees(watch.Deleted, "True")
	if _, err := services.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after the provider is gone: %v", err)
	}
}
