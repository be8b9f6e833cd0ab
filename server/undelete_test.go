package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/kinds"
)

// undeleted is a namespace with resources, whose deletion is taken back. The test wiring takes a namespace of the name
// "used" for one in which there is infrastructure.
type undeleted struct {
	t    *testing.T
	core kubernetes.Interface
	nets dynamic.ResourceInterface
	dyn  dynamic.Interface
}

const undeletedNamespace, undeletedResources = "used", 6

func newUndeleted(t *testing.T, c *rest.Config) *undeleted {
	u := &undeleted{t: t, core: core(t, c), dyn: objects(t, c)}
	u.nets = u.dyn.Resource(kschema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}).Namespace(undeletedNamespace)
	return u
}

func (u *undeleted) create() {
	u.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: undeletedNamespace}}
	if _, err := u.core.CoreV1().Namespaces().Create(u.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		u.t.Fatal(err)
	}
	for i := range undeletedResources {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "spec": map[string]any{},
			"metadata": map[string]any{"name": fmt.Sprintf("net-%d", i), "finalizers": []any{"example.com/keep"}},
		}}
		if _, err := u.nets.Create(u.t.Context(), obj, metav1.CreateOptions{}); err != nil {
			u.t.Fatal(err)
		}
	}
}

// delete deletes the namespace, and waits until all of its resources are marked.
func (u *undeleted) delete() {
	u.t.Helper()
	if err := u.core.CoreV1().Namespaces().Delete(u.t.Context(), undeletedNamespace, metav1.DeleteOptions{}); err != nil {
		u.t.Fatal(err)
	}
	eventually(u.t, "all resources are marked", func() bool { return u.marked() == undeletedResources })
}

func (u *undeleted) undelete(ctx context.Context) error {
	return u.core.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces", undeletedNamespace, "undelete").
		Body([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"used"}}`)).SetHeader("Content-Type", "application/json").Do(ctx).Error()
}

func (u *undeleted) marked() (marked int) {
	u.t.Helper()
	list, err := u.nets.List(u.t.Context(), metav1.ListOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	for _, item := range list.Items {
		if item.GetDeletionTimestamp() != nil {
			marked++
		}
	}
	return marked
}

func (u *undeleted) active() bool {
	u.t.Helper()
	ns, err := u.core.CoreV1().Namespaces().Get(u.t.Context(), undeletedNamespace, metav1.GetOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	if ns.DeletionTimestamp == nil && (ns.Status.Phase != corev1.NamespaceActive || len(ns.Status.Conditions) > 0) {
		u.t.Fatalf("the namespace is not as it was: %v", ns.Status)
	}
	return ns.DeletionTimestamp == nil
}

// unfinished expects an incomplete undelete to prevent plans.
func (u *undeleted) unfinished(marked int) {
	u.t.Helper()
	if got := u.marked(); got != marked || u.active() {
		u.t.Errorf("%d resources are marked, want %d; the namespace is active: %t", got, marked, u.active())
	}
	if _, err := u.dyn.Resource(plans).Namespace(undeletedNamespace).Create(u.t.Context(), newPlan("p", nil), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		u.t.Errorf("a plan during the undelete: %v", err)
	}
}

func (u *undeleted) finished() {
	u.t.Helper()
	eventually(u.t, "the namespace is active", u.active)
	if got := u.marked(); got != 0 {
		u.t.Errorf("the namespace is active, and %d resources are marked", got)
	}
}

// undeleteWiring serves the kinds of testWiring, and calls between before each deletion of a resource is taken back.
func undeleteWiring(between func(ctx context.Context) error) func(context.Context, *server.Components) (server.Wiring, error) {
	return func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		w, err := testWiring(ctx, h)
		w.Undelete = func(ctx context.Context, _ metav1.Object, _ kinds.Kind, clear func(kinds.Undeleted) error, _ func() error) error {
			if err := between(ctx); err != nil {
				return err
			}
			return clear(kinds.UndeletedUnplanned)
		}
		return w, err
	}
}

// TestUndeleteNamespaceInterrupted interrupts the undelete of a namespace after each of its resources, with a store
// that fails, and restarts the server. The undelete continues, and the namespace becomes active last.
func TestUndeleteNamespaceInterrupted(t *testing.T) {
	dir := t.TempDir()
	var left atomic.Int64
	failing := undeleteWiring(func(context.Context) error {
		if left.Add(-1) < 0 {
			return errors.New("the store is gone")
		}
		return nil
	})
	first := startT(t, server.Config{DataDir: dir, Wire: failing})
	u := newUndeleted(t, first.admin())
	u.create()
	u.delete()
	for i := range 3 { // each call continues after the last one
		left.Store(1)
		if err := u.undelete(t.Context()); !apierrors.IsServiceUnavailable(err) {
			t.Fatalf("undelete with a store that fails: %v", err)
		}
		eventually(t, "a resource is unmarked", func() bool { return u.marked() == undeletedResources-1-i })
		u.unfinished(undeletedResources - 1 - i)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := startT(t, server.Config{DataDir: dir, Wire: undeleteWiring(func(context.Context) error { return nil })})
	u = newUndeleted(t, second.admin())
	u.finished()
	if err := u.undelete(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("undelete of an active namespace: %v", err)
	}
}

// TestUndeleteNamespaceLostClient disconnects the client of an undelete, repeats the request, and deletes the namespace
// again, all concurrently.
func TestUndeleteNamespaceLostClient(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	i := startT(t, server.Config{DataDir: t.TempDir(), Wire: undeleteWiring(func(ctx context.Context) error {
		select {
		case entered <- struct{}{}:
		case <-release:
			return nil
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})})
	u := newUndeleted(t, i.admin())
	u.create()
	u.delete()

	ctx, hangUp := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() { lost <- u.undelete(ctx) }()
	<-entered
	u.unfinished(undeletedResources)
	hangUp()
	if err := <-lost; err == nil {
		t.Error("the client got an answer")
	}
	again := make(chan error, 1)
	go func() { again <- u.undelete(t.Context()) }()
	close(release)
	if err := <-again; err != nil && !apierrors.IsConflict(err) {
		t.Errorf("the second undelete: %v", err)
	}
	u.finished()
}

// TestUndeleteNamespaceDeletedAgain deletes a namespace again during its undelete: the last request counts.
func TestUndeleteNamespaceDeletedAgain(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	i := startT(t, server.Config{DataDir: t.TempDir(), Wire: undeleteWiring(func(context.Context) error {
		select {
		case entered <- struct{}{}:
			<-release
		case <-release:
		}
		return nil
	})})
	u := newUndeleted(t, i.admin())
	u.create()
	u.delete()
	back := make(chan error, 1)
	go func() { back <- u.undelete(t.Context()) }()
	<-entered
	if err := u.core.CoreV1().Namespaces().Delete(t.Context(), undeletedNamespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := <-back; !apierrors.IsConflict(err) {
		t.Errorf("undelete of what was deleted again: %v", err)
	}
	eventually(t, "all resources are marked again", func() bool { return u.marked() == undeletedResources && !u.active() })
	if err := u.undelete(t.Context()); err != nil {
		t.Errorf("undelete anew: %v", err)
	}
	u.finished()
}

// TestFinalizeNamespace removes the finalizers of namespaces that are being deleted, as people do with one that stays.
func TestFinalizeNamespace(t *testing.T) {
	i := startT(t, server.Config{DataDir: t.TempDir(), Wire: testWiring})
	u := newUndeleted(t, i.admin())
	u.create()
	u.delete()
	client := u.core.CoreV1().Namespaces()
	finalize := func(name string) error {
		ns, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ns.Spec.Finalizers = nil
		_, err = client.Finalize(t.Context(), ns, metav1.UpdateOptions{})
		return err
	}
	err := finalize(undeletedNamespace)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("finalize a namespace with infrastructure: %v", err)
	}
	for _, want := range []string{"3 resources in it have infrastructure", "kubectl hykube destroy --all -n used", "kubectl hykube undelete namespace/used"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal does not say %q: %v", want, err)
		}
	}
	if u.active() {
		t.Error("the namespace is active")
	}
	if _, err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := finalize("empty"); err != nil {
		t.Errorf("finalize a namespace without infrastructure: %v", err)
	}
}
