package kinds_test

import (
	"net/http"
	"strings"
	"testing"
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
