package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/loopback"
)

// estate is a server with the instances of ResourceSets.
type estate struct {
	*instance
	t       *testing.T
	objects *loopback.Objects
}

func startEstate(t *testing.T) *estate {
	t.Helper()
	e := &estate{t: t}
	wire := func(ctx context.Context, c *server.Components) (server.Wiring, error) {
		w, err := testWiring(ctx, c)
		records := ledger.New(c.KV)
		client, clientErr := loopback.NewClient(c.Loopback)
		e.objects = &loopback.Objects{Stored: c.Objects, Kinds: c.Kinds, Ledger: records, Client: client, Index: index.New(c.Objects, records, catalog.New(nil))}
		answers := &loopback.Answers{Ledger: records, Stored: c.Objects, Kinds: c.Kinds}
		w.Infrastructure.Resolve, w.Infrastructure.Forget = answers.Resolve, answers.Forget
		w.Backend.Index, w.Backend.Instance, w.Backend.Instances, w.Backend.Record = e.objects.Index, e.objects.Located, e.objects.Instances, records.Instance
		return w, errors.Join(err, clientErr)
	}
	e.instance = startT(t, server.Config{DataDir: t.TempDir(), TokenAuthFile: sharedTokens, Wire: wire})
	return e
}

var (
	sets    = v1alpha1.SchemeGroupVersion.WithResource("resourcesets")
	modules = v1alpha1.SchemeGroupVersion.WithResource("modules")
)

// set writes a ResourceSet of networks.
func (e *estate) set(ns, name string, count int) {
	e.t.Helper()
	_, err := objects(e.t, e.admin()).Resource(sets).Namespace(ns).Apply(e.t.Context(), name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sets.GroupVersion().String(), "kind": "ResourceSet", "metadata": map[string]any{"name": name, "labels": map[string]any{"set": name}},
		"spec": map[string]any{"count": int64(count), "template": map[string]any{"apiVersion": simNetworks.GroupVersion().String(), "kind": "sim-network", "spec": map[string]any{}}},
	}}, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		e.t.Fatal(err)
	}
}

// record gives an instance a record with an ID.
func (e *estate) record(ns, name, id string) v1alpha1.ObjectReference {
	e.t.Helper()
	ctx := e.t.Context()
	found, ok, err := e.objects.Index.Find(ctx, v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: ns, Name: name})
	if err != nil || !ok {
		e.t.Fatalf("find %s: %v", name, err)
	}
	ref := found.Ref(ns)
	rec, err := e.objects.Ledger.Instance(ctx, ref)
	if err == nil {
		rec.Attributes = fmt.Appendf(nil, `{"id":%q}`, id)
		err = e.objects.Ledger.Save(ctx, rec)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return ref
}

// apply gives an instance the status and the record of an applied one.
func (e *estate) apply(ns, name, reason string, attributes map[string]any) {
	e.t.Helper()
	ref := e.record(ns, name, fmt.Sprint(attributes["id"]))
	err := e.objects.UpdateInstanceStatus(e.t.Context(), ref, func(*unstructured.Unstructured) map[string]any {
		status := map[bool]string{true: "True", false: "False"}[reason == v1alpha1.ReasonApplied]
		return map[string]any{"observedGeneration": ref.Generation, "appliedGeneration": ref.Generation, "attributes": attributes,
			"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": "Done.", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// TestInstancesAreResources lists the instances of ResourceSets with the stored objects, in pages and with selectors.
func TestInstancesAreResources(t *testing.T) {
	e := startEstate(t)
	ns := "default"
	record(t, e.instance, simNetworks, ns, "main")
	e.set(ns, "web", 12)
	e.apply(ns, "web[3]", v1alpha1.ReasonApplied, map[string]any{"id": "net-3", "cidr": "10.0.3.0/24", "tags": map[string]any{"team": "Infra"}, "key": lang.Mask})
	e.apply(ns, "web[11]", v1alpha1.ReasonApplyFailed, map[string]any{"id": lang.Mask})
	e.record(ns, "web[11]", "net-secret")
	var all []string
	for _, name := range append([]string{"main"}, instanceNames("web", 0, 12)...) {
		all = append(all, "sim-network."+name)
	}
	for _, limit := range []int64{0, 1, 5, 100} {
		var got []string
		version := ""
		for opts := (metav1.ListOptions{Limit: limit}); ; {
			list, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 && len(list.Items) > int(limit) || version != "" && list.GetResourceVersion() != version {
				t.Errorf("limit %d: a page of %d at %s, the first at %s", limit, len(list.Items), list.GetResourceVersion(), version)
			}
			version = list.GetResourceVersion()
			for _, u := range list.Items {
				got = append(got, u.GetName())
			}
			if opts.Continue = list.GetContinue(); opts.Continue == "" {
				break
			}
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
	for _, test := range []struct {
		fields, labels string
		want           []string
	}{
		{fields: "ready=True", want: []string{"sim-network.web[3]"}},
		{fields: "reason=ApplyFailed", want: []string{"sim-network.web[11]"}},
		{fields: "reason=AwaitingPlan,ready!=True", want: slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == all[4] || n == all[12] })},
		{fields: "kind=sim-disk"},
		{fields: "id=net-3", want: []string{"sim-network.web[3]"}},
		{fields: "id=net"},
		{fields: "metadata.name=sim-network.web[7]", want: []string{"sim-network.web[7]"}},
		{labels: "set=web", want: all[1:]},
		{labels: "is=main", want: all[:1]},
		{fields: "search=WEB[1", want: []string{"sim-network.web[1]", "sim-network.web[10]", "sim-network.web[11]"}},
		{fields: "search=net-3", want: []string{"sim-network.web[3]"}},
		{fields: "search=main", want: all[:1]},
		{fields: "attribute=10.0.3", want: []string{"sim-network.web[3]"}},
		{fields: "attribute=infra,kind=sim-network", want: []string{"sim-network.web[3]"}},
		{fields: "search=web,attribute=infra", want: []string{"sim-network.web[3]"}},
		{fields: "search=net-secret"}, // its object masks it
		{fields: "id=net-secret"},
		{fields: "attribute=sensitive"}, // the mask is no value
		{fields: "attribute=10.0.3,ready=False"},
	} {
		got := namesOf(t, e.admin(), ns, metav1.ListOptions{FieldSelector: test.fields, LabelSelector: test.labels})
		if diff := cmp.Diff(test.want, got, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Errorf("%s %s: %s", test.fields, test.labels, diff)
		}
	}
	got, err := objects(t, e.admin()).Resource(resources).Namespace(ns).Get(t.Context(), "sim-network.web[3]", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if id, _, _ := unstructured.NestedString(got.Object, "status", "id"); id != "net-3" || got.GetLabels()["set"] != "web" {
		t.Errorf("the instance: %v", got.Object)
	}
	list, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "attribute=infra"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Object["found"] != "tags.team" {
		t.Errorf("the attribute that was found: %v, %v", list, err)
	}
	for _, bad := range []metav1.ListOptions{{Continue: "instances.e"}, {Continue: "search.x", FieldSelector: "search=a"}, {FieldSelector: "search!=a"}, {FieldSelector: "attribute="}} {
		if _, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), bad); !apierrors.IsBadRequest(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func instanceNames(name string, from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("%s[%d]", name, i))
	}
	return names
}

// TestTheIndexKnowsWhatAnInstanceShows compares the condition Ready that selectors use with that of the instance.
func TestTheIndexKnowsWhatAnInstanceShows(t *testing.T) {
	e := startEstate(t)
	e.set("default", "web", 5)
	e.apply("default", "web[1]", v1alpha1.ReasonApplied, map[string]any{"id": "1"})
	e.apply("default", "web[2]", v1alpha1.ReasonApplyFailed, map[string]any{"id": "2"})
	e.apply("default", "web[3]", v1alpha1.ReasonBlocked, map[string]any{"id": "3"})
	e.apply("default", "web[0]", v1alpha1.ReasonDeleting, map[string]any{"id": "0"}) // by a plan before undelete
	e.apply("default", "web[4]", v1alpha1.ReasonApplied, map[string]any{"id": "4"})
	compare := func(when string) {
		t.Helper()
		page, err := e.objects.Index.InstancesAfter(t.Context(), "", index.Place{}, 100, func(string, index.Node) bool { return true })
		if err != nil || len(page.Items) == 0 {
			t.Fatal(err)
		}
		for _, l := range page.Items {
			u, err := e.objects.Located(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			shown := kinds.Summarize(u).(*v1alpha1.ResourceSummary).Status
			if known := (index.Node{Object: l.Object, Record: l.Record}).Readiness(); known.Status != shown.Ready || known.Reason != shown.Reason {
				t.Errorf("%s: %s shows %s %s, and the index has %+v", when, l.Name, shown.Ready, shown.Reason, known)
			}
		}
	}
	compare("applied")
	e.set("default", "web", 4)
	compare("after one left")
	patch := `{"spec":{"template":{"spec":{"name":"other"}}}}`
	if _, err := objects(t, e.admin()).Resource(sets).Namespace("default").Patch(t.Context(), "web", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	compare("after an edit")
}

// TestInstancesAreWatched follows instances with the watch of Resources.
func TestInstancesAreWatched(t *testing.T) {
	e := startEstate(t)
	ns := "default"
	e.set(ns, "web", 2)
	list, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{Limit: 500})
	if err != nil || len(list.Items) != 2 {
		t.Fatal(err)
	}
	w := watchResources(t, e.admin(), ns, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	failed := watchResources(t, e.admin(), ns, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "reason=ApplyFailed"})
	byID := watchResources(t, e.admin(), ns, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "id=net-1"})
	refresh := func() {
		t.Helper()
		if err := e.objects.Index.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.apply(ns, "web[1]", v1alpha1.ReasonApplyFailed, map[string]any{"id": "net-1"})
	refresh()
	expect(t, w, watch.Modified, "sim-network.web[1]")
	expect(t, failed, watch.Added, "sim-network.web[1]")
	expect(t, byID, watch.Added, "sim-network.web[1]")
	e.apply(ns, "web[1]", v1alpha1.ReasonApplied, map[string]any{"id": "net-1"})
	refresh()
	last := expect(t, w, watch.Modified, "sim-network.web[1]")
	expect(t, failed, watch.Deleted, "sim-network.web[1]")
	expect(t, byID, watch.Modified, "sim-network.web[1]")
	e.set(ns, "web", 3)
	refresh()
	expect(t, w, watch.Added, "sim-network.web[2]")
	e.set(ns, "web", 2)
	refresh()
	expect(t, w, watch.Deleted, "sim-network.web[2]")
	record(t, e.instance, simDisks, ns, "data")
	expect(t, w, watch.Added, "sim-disk.data")

	// A client continues from its last event and misses nothing.
	again := watchResources(t, e.admin(), ns, metav1.ListOptions{ResourceVersion: last.GetResourceVersion()})
	seen := map[string]bool{}
	for !seen["ADDED sim-disk.data"] || !seen["DELETED sim-network.web[2]"] {
		ev := next(t, again)
		u, ok := ev.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%s %v", ev.Type, ev.Object)
		}
		seen[fmt.Sprint(ev.Type, " ", u.GetName())] = true
	}
	if !seen["ADDED sim-network.web[2]"] {
		t.Errorf("the events were %v", seen)
	}
	initial := watchResources(t, e.admin(), ns, metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
	var names []string
	for ev := next(t, initial); ev.Type != watch.Bookmark; ev = next(t, initial) {
		names = append(names, ev.Object.(*unstructured.Unstructured).GetName())
	}
	slices.Sort(names)
	if want := []string{"sim-disk.data", "sim-network.web[0]", "sim-network.web[1]"}; !slices.Equal(names, want) {
		t.Errorf("the initial events are of %q", names)
	}
	_, err = objects(t, e.admin()).Resource(resources).Namespace(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "search=web"})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a watch of a search: %v", err)
	}
	_, err = objects(t, e.admin()).Resource(resources).Namespace(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || !apierrors.IsResourceExpired(status) {
		t.Errorf("a watch from before the first refresh: %v", err)
	}
}

// TestInstancesShowWhatTheUserMayRead lists, searches and watches instances without and with the right to their kind.
func TestInstancesShowWhatTheUserMayRead(t *testing.T) {
	e := startEstate(t)
	ns := "default"
	e.set(ns, "web", 2)
	e.apply(ns, "web[1]", v1alpha1.ReasonApplied, map[string]any{"id": "net-1", "cidr": "10.0.0.0/8"})
	viewer := e.as("viewer")
	grant(t, e.instance, ns, "estate-resources", ruleFor("hykube.io", "resources", "get", "list", "watch"), ruleFor("sim.hykube.io", "sim-disks", "list"))
	record(t, e.instance, simDisks, ns, "seen")
	eventually(t, "the rights are known", func() bool {
		list, err := objects(t, viewer).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) > 0
	})
	for _, selector := range []string{"", "search=web", "search=net-1", "id=net-1", "attribute=10.0"} {
		list, err := objects(t, viewer).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{FieldSelector: selector, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			if strings.HasPrefix(u.GetName(), "sim-network") {
				t.Errorf("%q shows %s", selector, u.GetName())
			}
		}
		if list.GetContinue() != "" {
			t.Errorf("%q has another page", selector)
		}
	}
	if _, err := objects(t, viewer).Resource(resources).Namespace(ns).Get(t.Context(), "sim-network.web[1]", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get: %v", err)
	}
	grant(t, e.instance, ns, "estate-networks", ruleFor("sim.hykube.io", "sim-networks", "get", "list"))
	eventually(t, "the right is known", func() bool {
		return len(namesOf(t, viewer, ns, metav1.ListOptions{FieldSelector: "attribute=10.0"})) == 1
	})
	if got := namesOf(t, viewer, ns, metav1.ListOptions{}); !slices.Equal(got, []string{"sim-disk.seen", "sim-network.web[0]", "sim-network.web[1]"}) {
		t.Errorf("with the right: %q", got)
	}
}

// TestResourcesWithoutARecord lists the objects that a plan applied and of which the ledger has no record.
func TestResourcesWithoutARecord(t *testing.T) {
	e := startEstate(t)
	const ns, other = "default", "elsewhere"
	if _, err := core(t, e.admin()).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const applied = `{"observedGeneration":1,"appliedGeneration":1,"attributes":{"id":"net-1"},
		"conditions":[{"type":"Ready","status":"True","reason":"Applied","message":"Done.","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	found := func(name string) {
		t.Helper()
		u, err := objects(t, e.admin()).Resource(simNetworks).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			rec := &ledger.Instance{Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: ns, Name: name, UID: u.GetUID()}}
			rec.Attributes = []byte(`{"id":"net-1"}`)
			err = e.objects.Ledger.Save(t.Context(), rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"lost", "recorded"} {
		record(t, e.instance, simNetworks, ns, name)
		patchStatus(t, e.instance, simNetworks, ns, name, applied)
	}
	found("recorded")
	record(t, e.instance, simNetworks, ns, "never-applied")
	record(t, e.instance, simImages, ns, "data")
	patchStatus(t, e.instance, simImages, ns, "data", applied)
	record(t, e.instance, simNetworks, other, "lost-too")
	patchStatus(t, e.instance, simNetworks, other, "lost-too", applied)
	lost := metav1.ListOptions{FieldSelector: "record=Lost"}
	if diff := cmp.Diff([]string{"sim-network.lost"}, namesOf(t, e.admin(), ns, lost)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{ns + "/sim-network.lost", other + "/sim-network.lost-too"}, namesOf(t, e.admin(), "", lost)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sim-network.lost"}, namesOf(t, e.admin(), ns, metav1.ListOptions{FieldSelector: "record=Lost,reason=RecordLost,id=net-1"})); diff != "" {
		t.Error(diff)
	}
	found("lost")
	if got := namesOf(t, e.admin(), ns, lost); len(got) > 0 {
		t.Errorf("with a record: %q", got)
	}
	for _, wrong := range []string{"record=Found", "record!=Lost", "record=Lost,search=net"} {
		if _, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), metav1.ListOptions{FieldSelector: wrong}); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := objects(t, e.admin()).Resource(resources).Namespace(ns).Watch(t.Context(), lost); !apierrors.IsBadRequest(err) {
		t.Errorf("a watch: %v", err)
	}
}

// TestRecordsWithoutAnObject lists the records whose object does not exist, and forgets one as users with and without the right
// to approve plans.
func TestRecordsWithoutAnObject(t *testing.T) {
	e := startEstate(t)
	const ns = "default"
	save := func(name, uid string, of func(*ledger.Instance)) {
		t.Helper()
		rec := &ledger.Instance{Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: ns, Name: name, UID: types.UID(uid)}}
		rec.Attributes = fmt.Appendf(nil, `{"id":"net-%s"}`, name)
		of(rec)
		if err := e.objects.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*ledger.Instance) {}
	for _, name := range []string{"a", "b", "c"} {
		save(name, "u-"+name, nothing)
	}
	save("gone", "u-gone", func(i *ledger.Instance) { i.Attributes = nil })
	save("read", "u-read", func(i *ledger.Instance) { i.Mode = v1alpha1.ModeData })
	save("secret", "u-secret", func(i *ledger.Instance) { i.Sensitive = []byte(`[[{"attr":"id"}]]`) })
	kept := record(t, e.instance, simNetworks, ns, "kept")
	save("kept", string(kept.GetUID()), nothing)
	record(t, e.instance, simNetworks, ns, "b") // another object with the name of the former one
	selected := metav1.ListOptions{FieldSelector: "record=WithoutObject"}
	want := []string{"sim-network.a", "sim-network.b", "sim-network.c", "sim-network.secret"}
	if diff := cmp.Diff(want, namesOf(t, e.admin(), ns, selected)); diff != "" {
		t.Error(diff)
	}
	var paged []string
	for opts := (metav1.ListOptions{FieldSelector: selected.FieldSelector, Limit: 3}); ; {
		list, err := objects(t, e.admin()).Resource(resources).Namespace(ns).List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			paged = append(paged, u.GetName())
			id, _, _ := unstructured.NestedString(u.Object, "status", "id")
			if secret := u.GetName() == "sim-network.secret"; secret != (id == lang.Mask) || !secret && !strings.HasPrefix(id, "net-") {
				t.Errorf("%s shows the ID %q", u.GetName(), id)
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if diff := cmp.Diff(want, paged); diff != "" {
		t.Errorf("in pages: %s", diff)
	}
	if got := namesOf(t, e.admin(), "kube-public", selected); len(got) > 0 {
		t.Errorf("in another namespace: %q", got)
	}

	forget := func(c *rest.Config, name, uid string) error {
		body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": name, "uid": uid}}}
		_, err := objects(t, c).Resource(simNetworks).Namespace(ns).Create(t.Context(), body, metav1.CreateOptions{}, "resolve")
		return err
	}
	allowOn(t, e.instance, ns, "resolve", "readers", rbacv1.PolicyRule{APIGroups: []string{simNetworks.Group}, Resources: []string{"*/resolve"}, Verbs: []string{"create"}})
	var err error
	eventually(t, "the user may resolve", func() bool {
		err = forget(e.as("viewer"), "a", "u-a")
		return err == nil || strings.Contains(err.Error(), "approve")
	})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without the right to approve plans: %v", err)
	}
	for _, tc := range [][2]string{{"a", "u-b"}, {"none", "u-none"}, {"a", ""}} {
		if err := forget(e.admin(), tc[0], tc[1]); !apierrors.IsNotFound(err) {
			t.Errorf("forget %s %q: %v", tc[0], tc[1], err)
		}
	}
	if err := forget(e.admin(), "kept", string(kept.GetUID())); !apierrors.IsConflict(err) {
		t.Errorf("forget the record of an object: %v", err)
	}
	for _, name := range []string{"a", "b"} {
		if err := forget(e.admin(), name, "u-"+name); err != nil {
			t.Errorf("forget %s: %v", name, err)
		}
	}
	if diff := cmp.Diff(want[2:], namesOf(t, e.admin(), ns, selected)); diff != "" {
		t.Errorf("afterwards: %s", diff)
	}
}
