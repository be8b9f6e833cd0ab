package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-time.After(deadline):
		t.Fatal("no event in time")
		return watch.Event{}
	}
}

func expect(t *testing.T, w watch.Interface, typ watch.EventType, name string) *unstructured.Unstructured {
	t.Helper()
	e := next(t, w)
	u, _ := e.Object.(*unstructured.Unstructured)
	if e.Type != typ || u.GetName() != name {
		t.Fatalf("%s %v, want %s %s", e.Type, e.Object, typ, name)
	}
	return u
}

func watchResources(t *testing.T, c *rest.Config, ns string, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := objects(t, c).Resource(resources).Namespace(ns).Watch(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestResourcesWatch(t *testing.T) {
	ns, other := namespace(t, "resources-watch"), namespace(t, "resources-watch-other")
	admin := shared.admin()
	record(t, shared, simNetworks, ns, "old")
	list, err := objects(t, admin).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	w := watchResources(t, admin, ns, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	ready := watchResources(t, admin, "", metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "ready=True,kind=sim-disk"})
	record(t, shared, simNetworks, other, "elsewhere")
	record(t, shared, simDisks, ns, "main")
	expect(t, w, watch.Added, "sim-disk.main")
	status := func(ready string) {
		patchStatus(t, shared, simDisks, ns, "main", fmt.Sprintf(`{"observedGeneration":1,"conditions":[{"type":"Ready","status":%q,"reason":"Applied","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, ready))
	}
	status("True")
	expect(t, w, watch.Modified, "sim-disk.main")
	expect(t, ready, watch.Added, "sim-disk.main")
	status("False")
	expect(t, ready, watch.Deleted, "sim-disk.main")
	expect(t, w, watch.Modified, "sim-disk.main")
	if err := objects(t, admin).Resource(simNetworks).Namespace(ns).Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := next(t, w); e.Type != watch.Deleted; e = next(t, w) {
		if e.Type != watch.Modified {
			t.Fatalf("%s %v, want the deletion", e.Type, e.Object)
		}
	}
	initial := watchResources(t, admin, ns, metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
	expect(t, initial, watch.Added, "sim-disk.main")
	if e := next(t, initial); e.Type != watch.Bookmark {
		t.Errorf("%s %v, want a bookmark", e.Type, e.Object)
	}
}

// TestResourcesWatchShowsWhatTheUserMayWatch takes a right back while a watch is open.
func TestResourcesWatchShowsWhatTheUserMayWatch(t *testing.T) {
	ns := namespace(t, "resources-watch-rights")
	viewer := shared.as("viewer")
	grant(t, shared, ns, "watch-resources", ruleFor("hykube.io", "resources", "list", "watch"), ruleFor("sim.hykube.io", "sim-networks", "list", "get"))
	revoke := grant(t, shared, ns, "watch-disks", ruleFor("sim.hykube.io", "sim-disks", "list", "watch"))
	grant(t, shared, ns, "watch-images", ruleFor("sim.hykube.io", "data-sim-images", "list", "watch"))
	var version string
	record(t, shared, simImages, ns, "first")
	eventually(t, "the rights are known", func() bool {
		list, err := objects(t, viewer).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		if err == nil {
			version = list.GetResourceVersion()
		}
		return err == nil && len(list.Items) == 1
	})
	w := watchResources(t, viewer, ns, metav1.ListOptions{ResourceVersion: version})
	record(t, shared, simNetworks, ns, "hidden")
	record(t, shared, simDisks, ns, "seen")
	expect(t, w, watch.Added, "sim-disk.seen")
	revoke()
	eventually(t, "the right is gone", func() bool {
		_, err := objects(t, viewer).Resource(simDisks).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
	record(t, shared, simDisks, ns, "revoked")
	record(t, shared, simImages, ns, "last")
	expect(t, w, watch.Added, "data-sim-image.last")
}

// TestResourcesWatchNeedsTheRight watches the table of resources as a user who may list it, and watch the kind of its objects, but
// not watch the table.
func TestResourcesWatchNeedsTheRight(t *testing.T) {
	ns := namespace(t, "resources-watch-forbidden")
	viewer := shared.as("viewer")
	watching := func(in string) error {
		w, err := objects(t, viewer).Resource(resources).Namespace(in).Watch(t.Context(), metav1.ListOptions{})
		if err == nil {
			w.Stop()
		}
		return err
	}
	grant(t, shared, ns, "list-resources", ruleFor("hykube.io", "resources", "list"), ruleFor("sim.hykube.io", "sim-networks", "list", "watch"))
	eventually(t, "the user may list", func() bool {
		_, err := objects(t, viewer).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	for _, in := range []string{ns, ""} {
		if err := watching(in); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot watch resource "resources" in API group "hykube.io"`) {
			t.Errorf("namespace %q: %v, want forbidden", in, err)
		}
	}
	grant(t, shared, ns, "watch-resources", ruleFor("hykube.io", "resources", "watch"))
	eventually(t, "the user may watch", func() bool { return watching(ns) == nil })
	if err := watching(""); !apierrors.IsForbidden(err) {
		t.Errorf("all namespaces: %v, want forbidden", err)
	}
}
