package kinds_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

func TestCreateSetsStatusAndGeneration(t *testing.T) {
	h := newFixture(t, sim())
	u := h.create(t, `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"main","generation":7},
		"spec":{"name":"n","mtu":9007199254740993,"point":{"x":1.5,"y":2}},"status":{"attributes":{"id":"forged"}}}`)
	status := u.Object["status"].(map[string]any)
	if status["attributes"] != nil {
		t.Errorf("status of the client was kept: %v", status)
	}
	condition := status["conditions"].([]any)[0].(map[string]any)
	delete(condition, "lastTransitionTime")
	want := map[string]any{"type": "Ready", "status": "False", "reason": "AwaitingPlan", "message": "recorded; make a Plan to apply it"}
	if d := cmp.Diff(want, condition); d != "" {
		t.Errorf("condition: %s", d)
	}
	if u.GetGeneration() != 1 {
		t.Errorf("generation %d, want 1", u.GetGeneration())
	}
	got, err := h.client(t, admin, "sim-networks").Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := got.Object["spec"].(map[string]any)["mtu"]; v != int64(9007199254740993) {
		t.Errorf("mtu is %v (%T), and lost its precision", v, v)
	}
}

func TestGenerationFollowsSpecAndLifecycle(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	c := h.client(t, admin, "sim-networks")
	for _, step := range []struct {
		reason, patch string
		want          int64
	}{
		{"labels say nothing about infrastructure", `{"metadata":{"labels":{"a":"b"}}}`, 1},
		{"status is not for the object's own resource", `{"status":{"observedGeneration":9}}`, 1},
		{"spec", `{"spec":{"mtu":1500}}`, 2},
		{"the same spec again", `{"spec":{"mtu":1500}}`, 2},
		{"lifecycle", `{"lifecycle":{"preventDestroy":true}}`, 3},
	} {
		u, err := c.Patch(t.Context(), "main", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if u.GetGeneration() != step.want {
			t.Errorf("%s: generation %d, want %d", step.reason, u.GetGeneration(), step.want)
		}
		if n := u.Object["status"].(map[string]any)["observedGeneration"]; n != int64(0) {
			t.Errorf("%s: status changed: %v", step.reason, u.Object["status"])
		}
	}
}

func TestPatchTypes(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	for _, test := range []struct {
		typ, body string
		code      int
	}{
		{"application/merge-patch+json", `{"spec":{"mtu":1}}`, http.StatusOK},
		{"application/json-patch+json", `[{"op":"replace","path":"/spec/mtu","value":2}]`, http.StatusOK},
		{"application/json-patch+json", `[{"op":"test","path":"/spec/mtu","value":3}]`, http.StatusUnprocessableEntity},
		{"application/apply-patch+yaml", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nspec: {name: n, tags: {a: b}}", http.StatusOK},
		{"application/strategic-merge-patch+json", `{"spec":{"mtu":1}}`, http.StatusUnsupportedMediaType},
	} {
		a := h.do(t, admin, http.MethodPatch, networks+"/main?fieldManager=t&force=true", test.body, "Content-Type: "+test.typ)
		if test.typ != "application/apply-patch+yaml" {
			a = h.do(t, admin, http.MethodPatch, networks+"/main?fieldManager=t", test.body, "Content-Type: "+test.typ)
		}
		if a.code != test.code {
			t.Errorf("%s: %d %s", test.typ, a.code, a.message())
		}
	}
}

func TestUpdateNeedsTheResourceVersion(t *testing.T) {
	h := newFixture(t, sim())
	old := h.create(t, network("main", `{"name":"n"}`))
	c := h.client(t, admin, "sim-networks")
	next := old.DeepCopy()
	next.Object["spec"].(map[string]any)["mtu"] = int64(1)
	if _, err := c.Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), next, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("second update with the same resource version: %v", err)
	}
	if _, err := c.Create(t.Context(), old, metav1.CreateOptions{}); err == nil {
		t.Error("created an object that bears a resource version")
	}
	old.SetResourceVersion("")
	if _, err := c.Create(t.Context(), old, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	if err := c.Delete(t.Context(), "main", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
		t.Errorf("delete with another UID: %v", err)
	}
	right := old.GetUID()
	if err := c.Delete(t.Context(), "main", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &right}}); err != nil {
		t.Errorf("delete with its UID: %v", err)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	h := newFixture(t, sim())
	if a := h.do(t, admin, http.MethodPost, networks+"?dryRun=All", network("main", `{"name":"n"}`)); a.code != http.StatusCreated {
		t.Fatalf("%d %s", a.code, a.body)
	}
	if a := h.do(t, admin, http.MethodGet, networks+"/main", ""); a.code != http.StatusNotFound {
		t.Errorf("a dry run stored the object: %d", a.code)
	}
	h.create(t, network("main", `{"name":"n"}`))
	if a := h.do(t, admin, http.MethodDelete, networks+"/main?dryRun=All", ""); a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := h.do(t, admin, http.MethodGet, networks+"/main", ""); a.code != http.StatusOK {
		t.Errorf("a dry run deleted the object: %d", a.code)
	}
}

func TestListSelectsAndPages(t *testing.T) {
	h := newFixture(t, sim())
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		u := h.create(t, network(name, `{"name":"n"}`))
		if name < "c" {
			u.SetLabels(map[string]string{"team": "infra"})
			if _, err := h.client(t, admin, "sim-networks").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := h.client(t, admin, "sim-networks")
	names := func(o metav1.ListOptions) (out []string, cont string) {
		l, err := c.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range l.Items {
			if u.GetKind() != "sim-network" || u.GetAPIVersion() != "sim.hykube.io/v1" {
				t.Errorf("item is a %s %s", u.GetAPIVersion(), u.GetKind())
			}
			out = append(out, u.GetName())
		}
		return out, l.GetContinue()
	}
	if got, _ := names(metav1.ListOptions{LabelSelector: "team=infra"}); !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("by label: %v", got)
	}
	if got, _ := names(metav1.ListOptions{FieldSelector: "metadata.name=c"}); !cmp.Equal(got, []string{"c"}) {
		t.Errorf("by name: %v", got)
	}
	if got, _ := names(metav1.ListOptions{FieldSelector: "metadata.namespace!=default"}); len(got) > 0 {
		t.Errorf("by namespace: %v", got)
	}
	if _, err := c.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.name=n"}); !apierrors.IsBadRequest(err) {
		t.Errorf("by a field that cannot be selected by: %v", err)
	}
	var all []string
	for cont := ""; ; {
		page, next := names(metav1.ListOptions{Limit: 2, Continue: cont})
		all = append(all, page...)
		if cont = next; cont == "" {
			break
		}
	}
	if !cmp.Equal(all, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("in pages: %v", all)
	}
	if err := c.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "team=infra"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := names(metav1.ListOptions{}); !cmp.Equal(got, []string{"c", "d", "e"}) {
		t.Errorf("after the collection was deleted: %v", got)
	}
	a := h.do(t, admin, http.MethodGet, "/apis/sim.hykube.io/v1/sim-networks", "")
	var list struct{ Kind string }
	if err := json.Unmarshal(a.body, &list); err != nil || list.Kind != "sim-networkList" {
		t.Errorf("list of all namespaces: %d %s", a.code, a.body)
	}
}

func TestStatusSubresource(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	patch := func(body string) answer {
		return h.do(t, system, http.MethodPatch, networks+"/main/status", body, "Content-Type: application/merge-patch+json")
	}
	if a := h.do(t, admin, http.MethodPatch, networks+"/main/status", `{"status":{"conditions":[]}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "status: Forbidden: only the server writes") {
		t.Errorf("by an administrator: %d %s", a.code, a.message())
	}
	a := patch(`{"metadata":{"labels":{"a":"b"}},"spec":{"mtu":3},"lifecycle":{"destroy":false},"status":{"observedGeneration":1,"attributes":{"id":"net-1"}}}`)
	if a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	u := a.object(t)
	if u.GetGeneration() != 1 || u.GetLabels() != nil || u.Object["lifecycle"] != nil || u.Object["spec"].(map[string]any)["mtu"] != nil {
		t.Errorf("more than the status changed: %s", a.body)
	}
	if id := u.Object["status"].(map[string]any)["attributes"].(map[string]any)["id"]; id != "net-1" {
		t.Errorf("status did not change: %s", a.body)
	}
	for reason, body := range map[string]string{
		"condition without a reason": `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
		"unknown field":              `{"status":{"phase":"Running"}}`,
		"wrong type":                 `{"status":{"observedGeneration":"one"}}`,
		"no status":                  `{"status":null}`,
	} {
		if a := patch(body); a.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", reason, a.code, a.message())
		}
	}
}

func TestStateSubresource(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	if a := h.do(t, admin, http.MethodGet, networks+"/main/state", ""); a.code != http.StatusNotFound {
		t.Errorf("before there is a state: %d %s", a.code, a.body)
	}
	h.state = []byte(`{"password":"secret"}`)
	a := h.do(t, admin, http.MethodGet, networks+"/main/state", "")
	if a.code != http.StatusOK || string(a.body) != string(h.state) {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := h.do(t, alice, http.MethodGet, networks+"/main/state", ""); a.code != http.StatusForbidden {
		t.Errorf("without the permission: %d %s", a.code, a.body)
	}
	if a := h.do(t, admin, http.MethodGet, networks+"/other/state", ""); a.code != http.StatusNotFound {
		t.Errorf("of an object that does not exist: %d %s", a.code, a.body)
	}
	if a := h.do(t, admin, http.MethodPut, networks+"/main/state", "{}"); a.code != http.StatusMethodNotAllowed {
		t.Errorf("put: %d %s", a.code, a.body)
	}
	if a := h.do(t, admin, http.MethodGet, networks+"/main/scale", ""); a.code != http.StatusNotFound {
		t.Errorf("scale: %d %s", a.code, a.body)
	}
}

func TestOnlyTheServerRemovesTheFinalizer(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	c, server := h.client(t, admin, "sim-networks"), h.client(t, system, "sim-networks")
	add := []byte(`{"metadata":{"finalizers":["hykube.io/state"]}}`)
	remove := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := server.Patch(t.Context(), "main", types.MergePatchType, add, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Patch(t.Context(), "main", types.MergePatchType, remove, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an administrator removed the finalizer: %v", err)
	}
	// A manifest that is put in the place of the object names no finalizers.
	u, err := c.Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.SetFinalizers(nil)
	u.SetLabels(map[string]string{"team": "core"})
	if u, err = c.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("replace by a manifest: %v", err)
	}
	if !slices.Equal(u.GetFinalizers(), []string{"hykube.io/state"}) || u.GetLabels()["team"] != "core" {
		t.Errorf("after a replace: %v %v", u.GetFinalizers(), u.GetLabels())
	}
	other := u.DeepCopy()
	other.SetFinalizers([]string{"example.com/other"})
	if _, err := c.Update(t.Context(), other, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a replace with another finalizer alone: %v", err)
	}
	if err := c.Delete(t.Context(), "main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if u, err = c.Get(t.Context(), "main", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if u.GetDeletionTimestamp() == nil {
		t.Error("the object is not marked as deleted")
	}
	condition := u.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	if condition["reason"] != "AwaitingDestroy" {
		t.Errorf("condition: %v", condition)
	}
	u.SetFinalizers(nil)
	if _, err := server.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "main", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the release: %v", err)
	}
}

func TestYAML(t *testing.T) {
	h := newFixture(t, sim())
	const body = "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main}\nspec:\n  name: net\n  mtu: 1500\n"
	if a := h.do(t, admin, http.MethodPost, networks, body, "Content-Type: application/yaml", "Accept: application/yaml"); a.code != http.StatusCreated || !strings.Contains(string(a.body), "mtu: 1500") {
		t.Errorf("%d %s", a.code, a.body)
	}
	a := h.do(t, admin, http.MethodPost, networks+"?fieldValidation=Strict", body+"  name: twice\n", "Content-Type: application/yaml")
	if a.code != http.StatusBadRequest || !strings.Contains(a.message(), `"name" already set`) {
		t.Errorf("duplicate: %d %s", a.code, a.message())
	}
}

// Kubernetes' own controllers, such as the one that empties a namespace, see metadata alone, in protobuf.
func TestMetadataClient(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"net"}`))
	m, err := metadata.NewForConfig(h.config(admin))
	if err != nil {
		t.Fatal(err)
	}
	k := h.kinds.ByType("", "sim_network")[0]
	c := m.Resource(k.GVR).Namespace("default")
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "main" {
		t.Fatalf("%v %v", list, err)
	}
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-w.ResultChan():
		if e.Type != watch.Deleted {
			t.Errorf("event %v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("no event")
	}
	if list, err = c.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

// Requests that meet a provider's replacement get the old kinds or the new ones, and no error.
func TestReplaceUnderLoad(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"net"}`))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a := h.do(t, admin, http.MethodGet, networks+"/main", ""); a.code != http.StatusOK {
					t.Errorf("%d %s", a.code, a.body)
					return
				}
			}
		})
	}
	for range 50 {
		if err := h.kinds.Set(sim()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}
