package kinds_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestServerSideApply(t *testing.T) {
	h := newFixture(t, sim())
	const head = "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main}\n"
	apply := func(manager, subresource, body string) answer {
		return h.do(t, admin, http.MethodPatch, networks+"/main"+subresource+"?fieldManager="+manager, head+body, "Content-Type: application/apply-patch+yaml")
	}
	spec := func(a answer) map[string]any { return a.object(t).Object["spec"].(map[string]any) }

	a := apply("one", "", "spec: {name: net, tags: {a: '1'}, mtu: '${sim_network.x.mtu}', rule: [{port: 1}], endpoint: {host: h}}")
	if a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	if u := a.object(t); u.GetGeneration() != 1 || u.Object["status"] == nil {
		t.Errorf("an applied object begins as any other: %s", a.body)
	}
	if a = apply("two", "", "spec: {tags: {b: '2'}, endpoint: {port: 5}}"); a.code != http.StatusOK {
		t.Fatalf("another manager, other fields: %d %s", a.code, a.message())
	}
	if tags := spec(a)["tags"].(map[string]any); len(tags) != 2 {
		t.Errorf("tags of two managers: %v", tags)
	}
	for field, body := range map[string]string{
		".spec.name":   "spec: {name: m}",
		".spec.tags.a": "spec: {tags: {a: x}}",
		".spec.mtu":    "spec: {mtu: 1500}",
		".spec.rule":   "spec: {rule: [{port: 1}, {port: 2}]}",
	} {
		if a := apply("three", "", body); a.code != http.StatusConflict || !strings.Contains(a.message(), field) {
			t.Errorf("conflict in %s: %d %s", field, a.code, a.message())
		}
	}
	if a = apply("three&force=true", "", "spec: {mtu: 1500}"); a.code != http.StatusOK || spec(a)["mtu"] != int64(1500) {
		t.Errorf("force: %d %s", a.code, a.message())
	}
	if a = apply("one", "", "spec: {name: net, rule: [{port: 1}], endpoint: {host: h}}"); a.code != http.StatusOK {
		t.Fatalf("one lets go: %d %s", a.code, a.message())
	}
	if s := spec(a); len(s["tags"].(map[string]any)) != 1 || s["mtu"] == nil {
		t.Errorf("what one alone owned goes, what others own stays: %v", s)
	}

	a = h.do(t, system, http.MethodPatch, networks+"/main/status?fieldManager=controller", head+"spec: {name: z}\nstatus: {observedGeneration: 1, attributes: {id: i}}", "Content-Type: application/apply-patch+yaml")
	if a.code != http.StatusOK || spec(a)["name"] != "net" {
		t.Fatalf("status: %d %s", a.code, a.body)
	}
	if a = apply("four", "", "status: {attributes: {id: j}}"); a.code != http.StatusOK {
		t.Errorf("a status in an apply is ignored and has no owner: %d %s", a.code, a.message())
	}
	for _, m := range a.object(t).GetManagedFields() {
		if m.Manager == "four" && strings.Contains(m.FieldsV1.String(), "status") {
			t.Errorf("four owns the status: %s", m.FieldsV1)
		}
	}
	if id := a.object(t).Object["status"].(map[string]any)["attributes"].(map[string]any)["id"]; id != "i" {
		t.Errorf("id is %v", id)
	}
}

// TestApplyOfNullUnsets expects null to mean, as in Terraform, that the argument is not set, even for a map.
func TestApplyOfNullUnsets(t *testing.T) {
	h := newFixture(t, sim())
	apply := func(body string) answer {
		return h.do(t, admin, http.MethodPatch, networks+"/main?fieldManager=one",
			"apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main}\n"+body, "Content-Type: application/apply-patch+yaml")
	}
	if a := apply("spec: {name: net, tags: {a: '1'}}"); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	a := apply("spec: {name: net, tags: null}")
	if a.code != http.StatusOK {
		t.Fatalf("null over a map: %d %s", a.code, a.message())
	}
	if tags, there := a.object(t).Object["spec"].(map[string]any)["tags"]; there && tags != nil {
		t.Errorf("tags: %v, want none", tags)
	}
}

// TestAnAppliedFinalizerIsDropped applies an object with a finalizer and then without it. The finalizer of the server, which no
// manager owns, stays.
func TestAnAppliedFinalizerIsDropped(t *testing.T) {
	h := newFixture(t, sim())
	apply := func(finalizers string) []string {
		t.Helper()
		a := h.do(t, admin, http.MethodPatch, networks+"/main?fieldManager=one",
			"apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main"+finalizers+"}\nspec: {name: net}", "Content-Type: application/apply-patch+yaml")
		if a.code != http.StatusOK && a.code != http.StatusCreated {
			t.Fatalf("apply: %d %s", a.code, a.message())
		}
		return a.object(t).GetFinalizers()
	}
	apply("")
	if _, err := h.kinds.UpdateStored(t.Context(), networkKind(t, h), "default", "main", nil, func(u *unstructured.Unstructured) error {
		u.SetFinalizers([]string{v1alpha1.FinalizerState})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := apply(", finalizers: [example.com/held]"); !slices.Equal(got, []string{v1alpha1.FinalizerState, "example.com/held"}) {
		t.Errorf("with another finalizer: %v", got)
	}
	if got := apply(""); !slices.Equal(got, []string{v1alpha1.FinalizerState}) {
		t.Errorf("without it: %v", got)
	}
	a := h.do(t, admin, http.MethodPatch, networks+"/main", `{"metadata":{"finalizers":null}}`, "Content-Type: application/merge-patch+json")
	if a.code != http.StatusUnprocessableEntity {
		t.Errorf("a patch removes the finalizer: %d %s", a.code, a.body)
	}
}
