package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

var (
	resources = v1alpha1.SchemeGroupVersion.WithResource("resources")
	simDisks  = schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-disks"}
	simImages = schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "data-sim-images"}
)

// record creates an object of a kind with a label that is its name.
func record(t *testing.T, s *instance, gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	t.Helper()
	kind := strings.TrimSuffix(gvr.Resource, "s")
	u, err := objects(t, s.admin()).Resource(gvr).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name, "labels": map[string]any{"is": name}}, "spec": map[string]any{},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// patchStatus sets the status of an object as the server's workers do.
func patchStatus(t *testing.T, s *instance, gvr schema.GroupVersionResource, ns, name, status string) {
	t.Helper()
	_, err := objects(t, s.itself).Resource(gvr).Namespace(ns).Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, status), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// namesOf lists Resources and returns their names, each with its namespace for all namespaces.
func namesOf(t *testing.T, c *rest.Config, ns string, opts metav1.ListOptions) []string {
	t.Helper()
	list, err := objects(t, c).Resource(resources).Namespace(ns).List(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, u := range list.Items {
		if ns == "" {
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		} else {
			names = append(names, u.GetName())
		}
	}
	return names
}

func TestResourcesListObjectsOfAllKinds(t *testing.T) {
	ns, other := namespace(t, "resources"), namespace(t, "resources-other")
	main := record(t, shared, simNetworks, ns, "main")
	record(t, shared, simNetworks, ns, "a.b")
	record(t, shared, simDisks, ns, "main")
	record(t, shared, simImages, ns, "base")
	record(t, shared, simDisks, other, "elsewhere")
	patchStatus(t, shared, simNetworks, ns, "main", `{"observedGeneration":1,"appliedGeneration":1,"attributes":{"id":"net-1"},
		"conditions":[{"type":"Ready","status":"True","reason":"Applied","message":"Done.","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
	admin := shared.admin()
	all := []string{"data-sim-image.base", "sim-disk.main", "sim-network.a.b", "sim-network.main"}
	for _, test := range []struct {
		name string
		opts metav1.ListOptions
		want []string
	}{
		{"all", metav1.ListOptions{}, all},
		{"label", metav1.ListOptions{LabelSelector: "is=main"}, []string{"sim-disk.main", "sim-network.main"}},
		{"kind", metav1.ListOptions{FieldSelector: "kind=sim-network"}, []string{"sim-network.a.b", "sim-network.main"}},
		{"another kind", metav1.ListOptions{FieldSelector: "kind!=sim-network"}, []string{"data-sim-image.base", "sim-disk.main"}},
		{"provider", metav1.ListOptions{FieldSelector: "provider=sim"}, all},
		{"unknown provider", metav1.ListOptions{FieldSelector: "provider=no"}, []string{}},
		{"ready", metav1.ListOptions{FieldSelector: "ready=True"}, []string{"sim-network.main"}},
		{"reason", metav1.ListOptions{FieldSelector: "reason=AwaitingPlan"}, []string{"data-sim-image.base", "sim-disk.main", "sim-network.a.b"}},
		{"name", metav1.ListOptions{FieldSelector: "metadata.name=sim-disk.main"}, []string{"sim-disk.main"}},
		{"first page", metav1.ListOptions{Limit: 1}, all[:1]},
		{"from a cache", metav1.ListOptions{ResourceVersion: "0"}, all},
	} {
		if diff := cmp.Diff(test.want, namesOf(t, admin, ns, test.opts)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	everywhere := namesOf(t, admin, "", metav1.ListOptions{})
	for _, want := range []string{"resources/sim-disk.main", "resources-other/sim-disk.elsewhere"} {
		if !slices.Contains(everywhere, want) {
			t.Errorf("%q is not in %q", want, everywhere)
		}
	}
	if _, err := objects(t, admin).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a selector by an unknown field: %v", err)
	}

	got, err := objects(t, admin).Resource(resources).Namespace(ns).Get(t.Context(), "sim-network.main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetUID() != main.GetUID() || got.GetLabels()["is"] != "main" || got.GetCreationTimestamp() != main.GetCreationTimestamp() || got.GetResourceVersion() <= main.GetResourceVersion() {
		t.Errorf("metadata differs from the object's: %v", got.Object["metadata"])
	}
	want := map[string]any{
		"object": map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "name": "main", "namespace": ns, "uid": string(main.GetUID()), "generation": int64(1)},
		"status": map[string]any{"ready": "True", "reason": "Applied", "message": "Done.", "id": "net-1", "appliedGeneration": int64(1)},
	}
	if diff := cmp.Diff(want, map[string]any{"object": got.Object["object"], "status": got.Object["status"]}); diff != "" {
		t.Error(diff)
	}
	if _, err := objects(t, admin).Resource(resources).Namespace(ns).Get(t.Context(), "sim-network.a.b", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"sim-network.no", "sim-network", "sim:sim-network.main", "no-kind.main", "sim-nothing.main", "x:sim-network.main"} {
		if _, err := objects(t, admin).Resource(resources).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %q: %v", name, err)
		}
	}
}

// TestResourcePagesAreOfOneRevision changes objects between two pages.
func TestResourcePagesAreOfOneRevision(t *testing.T) {
	ns := namespace(t, "resource-pages")
	var want []string
	for i := range 3 {
		record(t, shared, simDisks, ns, fmt.Sprint("d", i))
		want = append(want, fmt.Sprint("sim-disk.d", i))
	}
	for i := range 4 {
		record(t, shared, simNetworks, ns, fmt.Sprint("n", i))
		want = append(want, fmt.Sprint("sim-network.n", i))
	}
	client := objects(t, shared.admin())
	var got []string
	version := ""
	for opts := (metav1.ListOptions{Limit: 2}); ; {
		list, err := client.Resource(resources).Namespace(ns).List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 2 || version != "" && list.GetResourceVersion() != version {
			t.Errorf("a page of %d objects at revision %s; the first was of %s", len(list.Items), list.GetResourceVersion(), version)
		}
		version = list.GetResourceVersion()
		for _, u := range list.Items {
			got = append(got, u.GetName())
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			break
		}
		record(t, shared, simNetworks, ns, fmt.Sprint("later", len(got)))
		_ = client.Resource(simNetworks).Namespace(ns).Delete(t.Context(), "n3", metav1.DeleteOptions{})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	exact := namesOf(t, shared.admin(), ns, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if diff := cmp.Diff(want, exact); diff != "" {
		t.Error(diff)
	}
	if _, err := client.Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{ResourceVersion: "99999999999"}); !apierrors.IsTimeout(err) {
		t.Errorf("a list of a future revision: %v", err)
	}
	if _, err := client.Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{Limit: 1, Continue: "e30"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a forged token: %v", err)
	}
}

func TestResourcesAreReadOnly(t *testing.T) {
	ns := namespace(t, "resources-read-only")
	record(t, shared, simNetworks, ns, "main")
	client := objects(t, shared.admin()).Resource(resources).Namespace(ns)
	for command, write := range map[string]func() error{
		"kubectl delete -n resources-read-only sim-network.sim.hykube.io main": func() error {
			return client.Delete(t.Context(), "sim-network.main", metav1.DeleteOptions{})
		},
		"kubectl edit -n resources-read-only sim-network.sim.hykube.io main": func() error {
			_, err := client.Patch(t.Context(), "sim-network.main", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		"kubectl api-resources": func() error {
			_, err := client.Create(t.Context(), newObject("Resource", "sim-network.x", nil), metav1.CreateOptions{})
			return err
		},
	} {
		if err := write(); !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), command) {
			t.Errorf("want an error with %q: %v", command, err)
		}
	}
	if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Error(err)
	}
}

// grant gives rules in a namespace, or everywhere, to the user viewer, until the returned function takes them back.
func grant(t *testing.T, s *instance, ns, name string, rules ...rbacv1.PolicyRule) (revoke func()) {
	t.Helper()
	client := core(t, s.admin()).RbacV1()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}}
	var err error
	if ns == "" {
		_, err = client.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
		if err == nil {
			_, err = client.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects}, metav1.CreateOptions{})
		}
		revoke = func() {
			_ = client.ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
			_ = client.ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	} else {
		_, err = client.Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
		if err == nil {
			_, err = client.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects}, metav1.CreateOptions{})
		}
		revoke = func() { _ = client.RoleBindings(ns).Delete(context.Background(), name, metav1.DeleteOptions{}) }
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(revoke)
	return revoke
}

func ruleFor(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// TestResourcesShowWhatTheUserMayRead gives a user the right to all Resources, and to few of the kinds.
func TestResourcesShowWhatTheUserMayRead(t *testing.T) {
	ns, other := namespace(t, "resources-rights"), namespace(t, "resources-rights-other")
	for _, in := range []string{ns, other} {
		record(t, shared, simNetworks, in, "main")
		record(t, shared, simDisks, in, "main")
	}
	viewer := shared.as("viewer")
	grant(t, shared, "", "resources-rights", ruleFor("hykube.io", "resources", "get", "list", "watch"))
	grant(t, shared, ns, "resources-disks", ruleFor("sim.hykube.io", "sim-disks", "list"))
	grant(t, shared, other, "resources-networks", ruleFor("sim.hykube.io", "sim-networks", "get"))
	eventually(t, "the rights are known", func() bool {
		list, err := objects(t, viewer).Resource(resources).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) > 0
	})
	for in, want := range map[string][]string{ns: {"sim-disk.main"}, other: {}} {
		if diff := cmp.Diff(want, namesOf(t, viewer, in, metav1.ListOptions{})); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	if diff := cmp.Diff([]string{ns + "/sim-disk.main"}, namesOf(t, viewer, "", metav1.ListOptions{})); diff != "" {
		t.Error(diff)
	}
	// Another user's continue token shows no more objects.
	list, err := objects(t, shared.admin()).Resource(resources).Namespace(other).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(t, viewer, "", metav1.ListOptions{Continue: list.GetContinue()}); len(got) != 0 {
		t.Errorf("the token of an administrator shows %q", got)
	}
	for in, may := range map[string]map[string]bool{
		ns:    {"sim-disk.main": false, "sim-network.main": false}, // the right to list is not the right to get
		other: {"sim-disk.main": false, "sim-disk.no": false, "sim-network.main": true},
	} {
		for name, may := range may {
			_, err := objects(t, viewer).Resource(resources).Namespace(in).Get(t.Context(), name, metav1.GetOptions{})
			if may && err != nil || !may && !apierrors.IsForbidden(err) {
				t.Errorf("get %s in %s: %v", name, in, err)
			}
		}
	}
	if _, err := objects(t, shared.as("editor")).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without the right to resources: %v", err)
	}
}

// TestResourcesOfAProviderThatIsNotServed removes the kinds of a provider with objects, and adds another provider with
// the same kinds.
func TestResourcesOfAProviderThatIsNotServed(t *testing.T) {
	var served *kinds.Kinds
	wire := func(_ context.Context, h *server.Components) (server.Wiring, error) {
		served = h.Kinds
		second := sim()
		second.Name = "second"
		if err := h.Kinds.Set(second); err != nil {
			return server.Wiring{}, err
		}
		return server.Wiring{}, h.Kinds.Set(sim())
	}
	s := startT(t, server.Config{DataDir: t.TempDir(), TokenAuthFile: sharedTokens, Wire: wire})
	secondNetworks := schema.GroupVersionResource{Group: "second.hykube.io", Version: "v1", Resource: "sim-networks"}
	record(t, s, simNetworks, "default", "main")
	record(t, s, secondNetworks, "default", "main")
	want := []string{"second:sim-network.main", "sim-network.main"}
	if diff := cmp.Diff(want, namesOf(t, s.admin(), "default", metav1.ListOptions{})); diff != "" {
		t.Error(diff)
	}
	get := func(name string) error {
		_, err := objects(t, s.admin()).Resource(resources).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	if err := get("second:sim-network.main"); err != nil {
		t.Error(err)
	}
	viewer := s.as("viewer")
	grant(t, s, "default", "unserved", ruleFor("hykube.io", "resources", "list"), ruleFor("second.hykube.io", "sim-networks", "list"), ruleFor("sim.hykube.io", "sim-networks", "list"))
	eventually(t, "the rights are known", func() bool {
		list, err := objects(t, viewer).Resource(resources).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 2
	})
	served.Remove("second")
	served.Expect("second")
	if diff := cmp.Diff(want, namesOf(t, s.admin(), "default", metav1.ListOptions{})); diff != "" {
		t.Errorf("administrator: %s", diff)
	}
	if diff := cmp.Diff(want[1:], namesOf(t, viewer, "default", metav1.ListOptions{})); diff != "" {
		t.Errorf("viewer: %s", diff)
	}
	if err := get("second:sim-network.main"); !apierrors.IsServiceUnavailable(err) {
		t.Error(err)
	}
}

// TestResourcesTable reads the table as kubectl does.
func TestResourcesTable(t *testing.T) {
	ns := namespace(t, "resources-table")
	record(t, shared, simNetworks, ns, "main")
	raw, err := core(t, shared.admin()).CoreV1().RESTClient().Get().AbsPath("/apis/hykube.io/v1alpha1/namespaces/"+ns+"/resources").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if diff := cmp.Diff([]string{"Kind", "Name", "Ready", "Reason", "ID", "Age", "Message", "Provider", "ProviderConfig"}, columns); diff != "" {
		t.Error(diff)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != "sim-network" || table.Rows[0].Cells[1] != "main" {
		t.Errorf("%v", table.Rows)
	}
}

// TestCompactedResourcesAreExpired continues a list, and watches, after the database forgot its revision.
func TestCompactedResourcesAreExpired(t *testing.T) {
	s := startT(t, server.Config{DataDir: t.TempDir(), Wire: testWiring, Compaction: storage.Compaction{Interval: 100 * time.Millisecond, Retain: 1}})
	for _, name := range []string{"a", "b", "c"} {
		record(t, s, simDisks, "default", name)
	}
	client := objects(t, s.admin()).Resource(resources).Namespace("default")
	first, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	eventually(t, "the revision is compacted", func() bool {
		writes++
		if _, err := objects(t, s.admin()).Resource(simDisks).Namespace("default").Patch(t.Context(), "c", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, writes), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err = client.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: first.GetContinue()})
		return err != nil
	})
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		t.Fatalf("the rest of the list: %v, want an expired version", err)
	}
	if got := namesOf(t, s.admin(), "default", metav1.ListOptions{Limit: 10, Continue: status.ErrStatus.Continue}); !slices.Equal(got, []string{"sim-disk.b", "sim-disk.c"}) {
		t.Errorf("the rest at the current revision: %q", got)
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: first.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list at the revision: %v", err)
	}
	e := next(t, watchResources(t, s.admin(), "default", metav1.ListOptions{ResourceVersion: first.GetResourceVersion()}))
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from the revision: %s %v", e.Type, e.Object)
	}
}
