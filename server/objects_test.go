package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// keeper keeps the objects of speculative plans, as the ledger would.
type keeper struct {
	mu   sync.Mutex
	docs map[types.UID][]ledger.Document
}

var kept = &keeper{docs: map[types.UID][]ledger.Document{}}

func (k *keeper) save(_ context.Context, plan types.UID, _ int32, docs []ledger.Document, _ bool) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.docs[plan] = append(k.docs[plan], docs...)
	return len(k.docs[plan]), nil
}

// of are the objects that are kept for a plan.
func (k *keeper) of(t *testing.T, p *v1alpha1.Plan) []*unstructured.Unstructured {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, d := range k.docs[p.UID] {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(d.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// speculate makes a speculative plan as a user.
func speculate(t *testing.T, c *rest.Config, ns string) *v1alpha1.Plan {
	t.Helper()
	obj := newPlan("", map[string]any{"speculative": true})
	obj.SetGenerateName("p-")
	created, err := objects(t, c).Resource(plans).Namespace(ns).Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return planOf(t, created)
}

// upload sends objects, as JSON or YAML flow, to a plan.
func upload(t *testing.T, c *rest.Config, p *v1alpha1.Plan, spec v1alpha1.PlanObjectsSpec, objs ...string) ([]v1alpha1.PlanObjectResult, error) {
	t.Helper()
	for _, o := range objs {
		spec.Objects = append(spec.Objects, runtime.RawExtension{Raw: []byte(o)})
	}
	if spec.FieldManager == "" {
		spec.FieldManager = "kubectl"
	}
	sent := &v1alpha1.PlanObjects{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PlanObjects"}, Spec: spec}
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	answer := core(t, c).Discovery().RESTClient().Post().AbsPath("/apis/hykube.io/v1alpha1/namespaces", p.Namespace, "plans", p.Name, "objects").
		SetHeader("Content-Type", "application/json").Body(body).Do(t.Context())
	if err := answer.Error(); err != nil {
		return nil, err
	}
	raw, err := answer.Raw()
	if err != nil {
		t.Fatal(err)
	}
	out := &v1alpha1.PlanObjects{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	if len(out.Spec.Objects) > 0 {
		t.Errorf("the answer repeats what was sent: %s", raw)
	}
	return out.Status.Results, nil
}

// mayPlan lets the user "viewer" create plans, use the ProviderConfigs and read some kinds in a namespace, and nothing
// else.
func mayPlan(t *testing.T, ns string, read ...rbacv1.PolicyRule) {
	t.Helper()
	rules := append(read,
		rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{"plans"}, Verbs: []string{"create", "get"}},
		rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{"providerconfigs"}, Verbs: []string{"use"}})
	rbac := core(t, shared.admin()).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "planner"}, Rules: rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "planner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "planner"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}}}
	if _, err := rbac.Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the viewer may create plans", func() bool {
		obj := newPlan("", map[string]any{"speculative": true})
		obj.SetGenerateName("p-")
		_, err := objects(t, shared.as("viewer")).Resource(plans).Namespace(ns).Create(t.Context(), obj, metav1.CreateOptions{DryRun: []string{"All"}})
		return err == nil
	})
}

func reads(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get"}}
}

var everything = []schema.GroupVersionResource{
	plans, {Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"},
	{Group: "hykube.io", Version: "v1alpha1", Resource: "providerconfigs"},
}

// versions are the resourceVersions of all that is in a namespace, but of the plans.
func versions(t *testing.T, ns string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, gvr := range everything[1:] {
		list, err := objects(t, shared.admin()).Resource(gvr).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			out[gvr.Resource+"/"+u.GetName()] = u.GetResourceVersion()
		}
	}
	return out
}

// The server checks the uploaded objects as if a user with the right to create plans recorded them. It records nothing.
func TestObjectsAreJudgedAsIfRecorded(t *testing.T) {
	ns := namespace(t, "speculation")
	admin, viewer := shared.admin(), shared.as("viewer")
	mayPlan(t, ns, reads("sim.hykube.io", "sim-networks", "sim-disks"), reads("", "secrets"), reads("hykube.io", "providerconfigs"))
	apply := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		gvr := map[string]schema.GroupVersionResource{"sim-network": everything[1], "Secret": everything[2], "ProviderConfig": everything[4]}[u.GetKind()]
		if _, err := objects(t, admin).Resource(gvr).Namespace(ns).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
	}
	network := func(name, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":%q,"namespace":%q},"spec":%s}`, name, ns, spec)
	}
	secret := func(name, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":%q},"stringData":{"password":%q}}`, name, ns, value)
	}
	config := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"hykube.io/v1alpha1","kind":"ProviderConfig","metadata":{"name":"default","namespace":%q},"spec":{"provider":"sim","config":{"endpoint":%q}}}`, ns, value)
	}
	apply(network("old", `{"name":"old"}`))
	apply(secret("rotated", "fresh"))
	apply(config("https://cloud"))
	before := versions(t, ns)

	p := speculate(t, viewer, ns)
	if c := condition(p, v1alpha1.ConditionReady); c.Reason != v1alpha1.ReasonAwaitingObjects {
		t.Errorf("a new speculative plan is %+v", c)
	}
	results, err := upload(t, viewer, p, v1alpha1.PlanObjectsSpec{},
		network("new", `{"name":"${sim_network.old.name}"}`), network("old", `{"name":"renamed"}`), network("typo", `{"nmae":"x"}`),
		secret("rotated", "stale"), config("https://cloud"), config("https://elsewhere"),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":%q}}`, ns),
		network("strict", `{"name":"x"},"extra":1`), `{"apiVersion":"sim.hykube.io/v1","kind":"sim-nosuch","metadata":{"name":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		line := string(r.Outcome) + " " + strings.Join(r.Keys, ",")
		if r.Error != nil {
			line += string(r.Error.Reason) + ": " + r.Error.Message
		}
		got = append(got, line)
	}
	for i, want := range []string{"Created", "Configured", `unknown field "spec.nmae"`, "Configured password", "Unchanged", `ask for the verb "patch"`, "neither the verb", "unknown field", "serves no kind"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("object %d: %s, want %s", i, got[i], want)
		}
	}
	stored := kept.of(t, p)
	var names []string
	for _, u := range stored {
		names = append(names, u.GetName())
	}
	if d := cmp.Diff([]string{"new", "old", "rotated", "default"}, names); d != "" {
		t.Fatalf("kept (-want +got):\n%s", d)
	}
	if u := stored[0]; u.GetUID() == "" || u.GetGeneration() != 1 {
		t.Errorf("a new object has the UID %q and the generation %d", u.GetUID(), u.GetGeneration())
	}
	if u := stored[1]; u.GetGeneration() != 2 || u.Object["spec"].(map[string]any)["name"] != "renamed" {
		t.Errorf("a changed object is %v", u.Object)
	}
	if d := cmp.Diff(before, versions(t, ns)); d != "" {
		t.Errorf("something was recorded (-before +after):\n%s", d)
	}
	last, err := upload(t, viewer, p, v1alpha1.PlanObjectsSpec{Chunk: 1, Complete: true})
	if err != nil || len(last) != 0 {
		t.Fatalf("%v %v", last, err)
	}
	read, err := objects(t, viewer).Resource(plans).Namespace(ns).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := read.MarshalJSON(); strings.Contains(string(raw), "stale") || strings.Contains(string(raw), "c3RhbGU") {
		t.Errorf("the plan shows what was uploaded: %s", raw)
	}
	if n := planOf(t, read).Status.UploadedObjects; n == nil || *n != 4 {
		t.Errorf("uploaded: %v", n)
	}
	if _, err := upload(t, viewer, p, v1alpha1.PlanObjectsSpec{}); !apierrors.IsConflict(err) {
		t.Errorf("an upload after the last: %v", err)
	}
}

// A field that another manager owns is planned as if it were taken over, and the answer says that recording it needs
// force.
func TestObjectsOfOtherManagers(t *testing.T) {
	ns := namespace(t, "conflicts")
	admin := shared.admin()
	sent := func(password string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db","namespace":%q},"data":{"password":%q,"user":"eA=="}}`, ns, password)
	}
	secrets := core(t, admin).CoreV1().Secrets(ns)
	if _, err := secrets.Patch(t.Context(), "db", types.ApplyPatchType, []byte(sent("b2xk")), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Patch(t.Context(), "db", types.MergePatchType, []byte(`{"stringData":{"password":"rotated"}}`), metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		p := speculate(t, admin, ns)
		results, err := upload(t, admin, p, v1alpha1.PlanObjectsSpec{ForceConflicts: force}, sent("b2xk"))
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		want := v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectConfigured, Keys: []string{"password"}, Version: results[0].Version}
		if !force {
			want.Conflicts = []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-patch" using v1`, Field: ".data.password"}}
		}
		if d := cmp.Diff(want, results[0]); d != "" {
			t.Errorf("force %t (-want +got):\n%s", force, d)
		}
		if data, _, _ := unstructured.NestedString(kept.of(t, p)[0].Object, "data", "password"); data != "b2xk" {
			t.Errorf("planned with %q", data)
		}
	}
	if stored, err := secrets.Get(t.Context(), "db", metav1.GetOptions{}); err != nil || string(stored.Data["password"]) != "rotated" {
		t.Errorf("the Secret is %v, %v", stored.Data, err)
	}
}

// A resource of another namespace than the plan's would have no effect on it, and is refused.
func TestObjectsOfOtherNamespaces(t *testing.T) {
	ns, other := namespace(t, "plan-here"), namespace(t, "plan-there")
	admin := shared.admin()
	p := speculate(t, admin, ns)
	results, err := upload(t, admin, p, v1alpha1.PlanObjectsSpec{},
		fmt.Sprintf(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"far","namespace":%q},"spec":{"name":"far"}}`, other),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":%q}}`, other))
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.Outcome != v1alpha1.ObjectRefused || r.Error.Reason != metav1.StatusReasonBadRequest || !strings.Contains(r.Error.Message, other) || !strings.Contains(r.Error.Message, ns) {
		t.Errorf("a resource: %+v", r)
	}
	if r := results[1]; r.Outcome != v1alpha1.ObjectCreated {
		t.Errorf("what resources of the plan may refer to: %+v", r)
	}
}

func TestOnlyTheAuthorUploadsObjects(t *testing.T) {
	ns := namespace(t, "uploads")
	mayPlan(t, ns)
	admin, viewer := shared.admin(), shared.as("viewer")
	p := speculate(t, viewer, ns)
	if _, err := upload(t, admin, p, v1alpha1.PlanObjectsSpec{}); !apierrors.IsForbidden(err) {
		t.Errorf("the upload of another user: %v", err)
	}
	ordinary, err := objects(t, admin).Resource(plans).Namespace(ns).Create(t.Context(), newPlan("ordinary", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upload(t, admin, planOf(t, ordinary), v1alpha1.PlanObjectsSpec{}); !apierrors.IsConflict(err) {
		t.Errorf("an upload to a plan of what is recorded: %v", err)
	}
	client := core(t, admin).Discovery().RESTClient()
	for _, verb := range []string{"GET", "PUT", "PATCH", "DELETE"} {
		err := client.Verb(verb).AbsPath("/apis/hykube.io/v1alpha1/namespaces", ns, "plans", p.Name, "objects").SetHeader("Content-Type", "application/merge-patch+json").Body([]byte("{}")).Do(t.Context()).Error()
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for _, change := range []map[string]any{{"approval": "Automatic", "speculative": true}} {
		if _, err := objects(t, admin).Resource(plans).Namespace(ns).Create(t.Context(), newPlan("wrong", change), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%v: %v", slices.Collect(maps.Keys(change)), err)
		}
	}
	if _, err := decide(t, objects(t, admin).Resource(plans).Namespace(ns), p, v1alpha1.DecisionApproved, digest); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "never recorded") {
		t.Errorf("approve: %v", err)
	}
	if _, err := upload(t, viewer, p, v1alpha1.PlanObjectsSpec{Discard: true}); err != nil {
		t.Errorf("discard: %v", err)
	}
	if _, err := objects(t, admin).Resource(plans).Namespace(ns).Get(t.Context(), p.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a plan that was discarded while its objects came: %v", err)
	}
}

// TestFilesMayHoldEveryKind uploads an object of each kind that the server lets a user apply.
func TestFilesMayHoldEveryKind(t *testing.T) {
	ns := namespace(t, "files-kinds")
	p := speculate(t, shared.admin(), ns)
	_, lists, err := core(t, shared.admin()).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, list := range lists {
		if strings.HasSuffix(strings.Split(list.GroupVersion, "/")[0], ".hykube.io") {
			continue // the kinds of providers
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "patch") || !slices.Contains(r.Verbs, "create") || r.Name == "events" || r.Name == "planrecords" {
				continue
			}
			seen++
			object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n","namespace":%q}}`, list.GroupVersion, r.Kind, ns)
			results, err := upload(t, shared.admin(), p, v1alpha1.PlanObjectsSpec{}, object)
			if err != nil {
				t.Fatal(err)
			}
			if e := results[0].Error; e != nil && strings.Contains(e.Message, "serves no kind") {
				t.Errorf("%s: %s", r.Kind, e.Message)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d kinds, want at least 10", seen)
	}
	quota := fmt.Sprintf(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"team","namespace":%q},"spec":{"hard":{"secrets":"5"}}}`, ns)
	results, err := upload(t, shared.admin(), p, v1alpha1.PlanObjectsSpec{}, quota)
	if err != nil || results[0].Outcome != v1alpha1.ObjectCreated {
		t.Errorf("a ResourceQuota: %+v, %v", results, err)
	}
}
