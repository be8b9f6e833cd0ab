package kinds_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/direct"
	"github.com/hykube/hykube/server/kinds"
)

// networkKind returns the kind of the fixture's networks.
func networkKind(t *testing.T, h *fixture) kinds.Kind {
	t.Helper()
	for _, k := range h.kinds.ByType(v1alpha1.ModeManaged, "sim_network") {
		return k
	}
	t.Fatal("there is no kind of sim_network")
	return kinds.Kind{}
}

// TestDirectWritesEqualRequests makes the same writes by requests of the server and without requests, and compares the
// stored objects and the watch events. Writes without requests do not change managedFields.
func TestDirectWritesEqualRequests(t *testing.T) {
	h := newFixture(t, sim())
	kind, client := networkKind(t, h), h.client(t, system, "sim-networks")
	const merge, agent = "Content-Type: application/merge-patch+json", "User-Agent: hykube/1"
	status := func() map[string]any {
		return map[string]any{"observedGeneration": int64(1), "appliedGeneration": int64(1), "attributes": map[string]any{"id": "1"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Applied", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	}
	encoded, err := json.Marshal(status())
	if err != nil {
		t.Fatal(err)
	}
	writes := []struct {
		what    string
		request func(name string) answer
		direct  func(ctx context.Context, name string) error
	}{
		{"finalizer", func(name string) answer {
			return h.do(t, system, http.MethodPatch, networks+"/"+name, `{"metadata":{"finalizers":["`+v1alpha1.FinalizerState+`"]}}`, merge, agent)
		}, func(ctx context.Context, name string) error {
			_, err := h.kinds.UpdateStored(ctx, kind, "default", name, nil, func(u *unstructured.Unstructured) error {
				u.SetFinalizers([]string{v1alpha1.FinalizerState})
				return nil
			})
			return err
		}},
		{"status", func(name string) answer {
			return h.do(t, system, http.MethodPatch, networks+"/"+name+"/status", `[{"op":"add","path":"/status","value":`+string(encoded)+`}]`,
				"Content-Type: application/json-patch+json", agent)
		}, func(ctx context.Context, name string) error {
			_, err := h.kinds.UpdateStored(ctx, kind, "default", name, nil, func(u *unstructured.Unstructured) error {
				u.Object["status"] = status()
				return nil
			})
			return err
		}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed := func(name string, write func() error) *unstructured.Unstructured {
		t.Helper()
		before, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: before.GetResourceVersion()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := write(); err != nil {
			t.Fatal(err)
		}
		e := <-w.ResultChan()
		if e.Type != watch.Modified {
			t.Fatalf("watch event %v", e)
		}
		u := e.Object.(*unstructured.Unstructured)
		if u.GetResourceVersion() == before.GetResourceVersion() {
			t.Error("the resource version is unchanged")
		}
		u.SetName("")
		u.SetUID("")
		u.SetResourceVersion("")
		u.SetCreationTimestamp(metav1.Time{})
		if strings.HasPrefix(name, "direct") {
			if diff := cmp.Diff(before.GetManagedFields(), u.GetManagedFields()); diff != "" {
				t.Errorf("managedFields (-before +after):\n%s", diff)
			}
		}
		u.SetManagedFields(nil)
		unstructured.RemoveNestedField(u.Object, "status", "contributors") // with the time of the create
		return u
	}
	h.create(t, network("request", `{"name":"a"}`))
	h.create(t, network("direct", `{"name":"a"}`))
	for _, write := range writes {
		want := changed("request", func() error {
			if a := write.request("request"); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.message())
			}
			return nil
		})
		got := changed("direct", func() error { return write.direct(ctx, "direct") })
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s (-request +direct):\n%s", write.what, diff)
		}
	}
}

// TestDirectUpdatesOwnTheirFields changes an object by the rules of its kind, as the server does when it releases one.
func TestDirectUpdatesOwnTheirFields(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"a"}`))
	err := h.kinds.UpdateObject(t.Context(), networkKind(t, h), "default", "main", func(u *unstructured.Unstructured) error {
		u.SetFinalizers([]string{v1alpha1.FinalizerState})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := h.client(t, admin, "sim-networks").Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == "hykube" && strings.Contains(entry.FieldsV1.String(), "f:finalizers") {
			return
		}
	}
	t.Errorf("no entry of the server in %v", u.GetManagedFields())
}

func TestDirectWrites(t *testing.T) {
	h := newFixture(t, sim())
	kind, client := networkKind(t, h), h.client(t, admin, "sim-networks")
	h.create(t, network("main", `{"name":"a"}`))
	ctx := t.Context()
	setPending := func(u *unstructured.Unstructured) error {
		return unstructured.SetNestedField(u.Object, "p", "status", "movedFrom")
	}
	get := func() *unstructured.Unstructured {
		t.Helper()
		u, err := client.Get(ctx, "main", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}

	// A write of another author in between.
	calls := 0
	_, err := h.kinds.UpdateStored(ctx, kind, "default", "main", nil, func(u *unstructured.Unstructured) error {
		if calls++; calls == 1 {
			if a := h.do(t, admin, http.MethodPatch, networks+"/main", `{"metadata":{"labels":{"x":"y"}}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.message())
			}
		}
		return setPending(u)
	})
	if u := get(); err != nil || calls != 2 || u.GetLabels()["x"] != "y" || u.Object["status"].(map[string]any)["movedFrom"] != "p" {
		t.Errorf("after a conflict: %d calls, %v, %v", calls, err, u.Object)
	}

	// The object that the writer knows is outdated.
	known := get()
	if a := h.do(t, admin, http.MethodPatch, networks+"/main", `{"metadata":{"labels":{"x":"z"}}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.message())
	}
	setMoved := func(from string) func(u *unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			calls++
			return unstructured.SetNestedField(u.Object, from, "status", "movedFrom")
		}
	}
	calls = 0
	stored, err := h.kinds.UpdateStored(ctx, kind, "default", "main", known, setMoved("q"))
	if u := get(); err != nil || calls != 2 || u.GetLabels()["x"] != "z" || u.Object["status"].(map[string]any)["movedFrom"] != "q" {
		t.Errorf("with an outdated object: %d calls, %v, %v", calls, err, u.Object)
	}

	// The object that the writer knows is the stored one.
	calls = 0
	if now := get(); now.GetResourceVersion() != stored.GetResourceVersion() {
		t.Errorf("the stored object has the version %s, and not %s", now.GetResourceVersion(), stored.GetResourceVersion())
	}
	_, err = h.kinds.UpdateStored(ctx, kind, "default", "main", stored, setMoved("p"))
	if u := get(); err != nil || calls != 1 || u.GetLabels()["x"] != "z" || u.Object["status"].(map[string]any)["movedFrom"] != "p" {
		t.Errorf("with the stored object: %d calls, %v, %v", calls, err, u.Object)
	}

	// Nothing changes.
	before := get().GetResourceVersion()
	if _, err := h.kinds.UpdateStored(ctx, kind, "default", "main", nil, func(*unstructured.Unstructured) error { return direct.ErrUnchanged }); err != nil || get().GetResourceVersion() != before {
		t.Errorf("an unchanged object was written (%v)", err)
	}
	other := errors.New("other")
	if _, err := h.kinds.UpdateStored(ctx, kind, "default", "main", nil, func(*unstructured.Unstructured) error { return other }); !errors.Is(err, other) || get().GetResourceVersion() != before {
		t.Errorf("a refused change: %v", err)
	}

	// The last finalizer of an object that is marked for deletion removes it.
	finalizers := func(f ...string) error {
		return h.kinds.UpdateObject(ctx, kind, "default", "main", func(u *unstructured.Unstructured) error { u.SetFinalizers(f); return nil })
	}
	if err := finalizers(v1alpha1.FinalizerState); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(ctx, "main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := finalizers(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(ctx, "main", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the release: %v", err)
	}
	if _, err := h.kinds.UpdateStored(ctx, kind, "default", "main", nil, setPending); !apierrors.IsNotFound(err) {
		t.Errorf("write of an object that is gone: %v", err)
	}
	h.kinds.Remove("sim")
	if _, err := h.kinds.UpdateStored(ctx, kind, "default", "main", nil, setPending); err == nil {
		t.Error("a write of a kind that is no longer served")
	}
}
