package loopback

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// newObjects returns the objects of a provider with one type, and creates one object.
func newObjects(t *testing.T) (*Objects, v1alpha1.ObjectReference) {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	served, err := kinds.New(kinds.Config{RESTOptions: store.RESTOptions(nil, false)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		served.Close()
		if err := store.Close(); err != nil {
			t.Errorf("close storage: %v", err)
		}
	})
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "name", Type: cty.String, Optional: true}}}
	if err := served.Set(kinds.Provider{Name: "sim", Schema: &schema.Provider{Resources: map[string]*schema.Schema{"sim_network": {Block: block}}}}); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/sim.hykube.io/v1/namespaces/team/sim-networks"
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"main"},"spec":{"name":"a"}}`))
	r.Header.Set("Content-Type", "application/json")
	r = r.WithContext(request.WithUser(request.WithRequestInfo(t.Context(), &request.RequestInfo{
		IsResourceRequest: true, Path: path, Verb: "create", APIPrefix: "apis", APIGroup: "sim.hykube.io", APIVersion: "v1", Namespace: "team", Resource: "sim-networks",
	}), &user.DefaultInfo{Name: "jane"}))
	w := httptest.NewRecorder()
	if served.ServeHTTP(w, r); w.Code != http.StatusCreated {
		t.Fatalf("create: %d %s", w.Code, w.Body)
	}
	o := &Objects{Stored: store.Objects(), Kinds: served}
	ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "main"}
	obj, err := o.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ref.UID = obj.GetUID()
	return o, ref
}

func TestObjects(t *testing.T) {
	o, ref := newObjects(t)
	get := func() *unstructured.Unstructured {
		t.Helper()
		obj, err := o.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	judged := func(obj *unstructured.Unstructured) map[string]any {
		status, _ := obj.Object["status"].(map[string]any)
		status["observedGeneration"] = int64(1)
		return status
	}
	for _, test := range []struct {
		reason  string
		written bool
	}{{"a change", true}, {"no change", false}} {
		before := get().GetResourceVersion()
		if err := o.UpdateStatus(t.Context(), ref, nil, judged); err != nil {
			t.Fatal(err)
		}
		after := get()
		if written := after.GetResourceVersion() != before; written != test.written || after.GetGeneration() != 1 {
			t.Errorf("%s: written %t, generation %d", test.reason, written, after.GetGeneration())
		}
	}

	held := get()
	stale := held.DeepCopy()
	stale.SetGeneration(7)
	stale.SetResourceVersion("1") // it was read before another write
	if _, err := o.AddFinalizer(t.Context(), stale); !errors.Is(err, store.ErrGone) {
		t.Errorf("hold of another generation: %v", err)
	}
	for range 2 {
		if _, err := o.AddFinalizer(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(get().GetFinalizers(), v1alpha1.FinalizerState) {
			t.Error("a held object has no finalizer")
		}
	}
	for range 2 {
		if err := o.RemoveFinalizer(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if list, found, err := unstructured.NestedSlice(get().Object, "metadata", "finalizers"); err != nil || found {
			t.Errorf("a released object has finalizers: %v, %v", list, err)
		}
	}

	other := ref
	other.UID = "another"
	absent := ref
	absent.Name = "absent"
	for reason, ref := range map[string]v1alpha1.ObjectReference{"another object of that name": other, "no object": absent} {
		if err := o.UpdateStatus(t.Context(), ref, nil, judged); !errors.Is(err, store.ErrGone) {
			t.Errorf("%s: %v, want ErrGone", reason, err)
		}
		if err := o.RemoveFinalizer(t.Context(), ref); err != nil {
			t.Errorf("release of %s: %v", reason, err)
		}
	}
}
