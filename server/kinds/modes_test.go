package kinds_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// ready is the Ready condition of an object, and the generation that its status speaks of.
func ready(t *testing.T, a answer) (status, reason string, observed int64) {
	t.Helper()
	m, _ := a.object(t).Object["status"].(map[string]any)
	list, _ := m["conditions"].([]any)
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Ready" {
			observed, _ := m["observedGeneration"].(int64)
			return c["status"].(string), c["reason"].(string), observed
		}
	}
	t.Fatalf("no condition Ready: %s", a.body)
	return "", "", 0
}

func TestModes(t *testing.T) {
	h := newFixture(t, sim())
	for kind, test := range map[string]struct {
		path, body, change string
		status, reason     string
		// after is the same once the spec was changed.
		observed, after int64
		columns         string
	}{
		"managed":   {networks, network("x", `{"name":"n"}`), `{"spec":{"mtu":2}}`, "False", "AwaitingPlan", 0, 0, "ID"},
		"data":      {images, image, `{"spec":{"family":"g"}}`, "False", "AwaitingPlan", 0, 0, "ID"},
		"ephemeral": {tokens, token, `{"spec":{"role":"s"}}`, "True", "Declared", 1, 2, ""},
		"action":    {reboots, reboot, `{"spec":{"instance_id":"i"}}`, "False", "AwaitingPlan", 0, 0, ""},
	} {
		t.Run(kind, func(t *testing.T) {
			a := h.do(t, admin, http.MethodPost, test.path, test.body)
			if a.code != http.StatusCreated {
				t.Fatalf("create: %d %s", a.code, a.message())
			}
			if status, reason, observed := ready(t, a); status != test.status || reason != test.reason || observed != test.observed {
				t.Errorf("at creation: Ready=%s %s, observed %d", status, reason, observed)
			}
			a = h.do(t, admin, http.MethodPatch, test.path+"/x", test.change, "Content-Type: application/merge-patch+json")
			if status, _, observed := ready(t, a); a.object(t).GetGeneration() != 2 || status != test.status || observed != test.after {
				t.Errorf("after a change: %s", a.body)
			}
			a = h.do(t, admin, http.MethodGet, test.path, "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
			if strings.Contains(string(a.body), `"name":"ID"`) != (test.columns == "ID") {
				t.Errorf("columns: %s", a.body)
			}
			hold := h.do(t, admin, http.MethodPatch, test.path+"/x", `{"metadata":{"finalizers":["hykube.io/state"]}}`, "Content-Type: application/merge-patch+json")
			if kind == "managed" {
				return
			}
			if hold.code != http.StatusUnprocessableEntity || !strings.Contains(hold.message(), "managed resources") {
				t.Errorf("finalizer: %d %s", hold.code, hold.message())
			}
			if a := h.do(t, admin, http.MethodDelete, test.path+"/x", ""); a.code != http.StatusOK {
				t.Errorf("delete: %d %s", a.code, a.message())
			}
			if a := h.do(t, admin, http.MethodGet, test.path+"/x", ""); a.code != http.StatusNotFound {
				t.Errorf("it is still there: %d %s", a.code, a.body)
			}
		})
	}
	// The types of two modes have the same name, and their objects do not meet.
	both := sim()
	both.Schema.DataSources["sim_network"] = both.Schema.DataSources["sim_image"]
	if err := h.kinds.Set(both); err != nil {
		t.Fatal(err)
	}
	if a := h.do(t, admin, http.MethodPost, strings.Replace(images, "image", "network", 1), strings.Replace(image, "data-sim-image", "data-sim-network", 1)); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.message())
	}
	for _, path := range []string{networks, strings.Replace(images, "image", "network", 1)} {
		if a := h.do(t, admin, http.MethodGet, path, ""); strings.Count(string(a.body), `"uid"`) != 1 {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// Only other ephemeral resources and write-only arguments may use the values of an ephemeral resource.
func TestEphemeralReferences(t *testing.T) {
	h := newFixture(t, sim())
	const value = `${ephemeral.sim_token.other.value}`
	for reason, test := range map[string]struct {
		path, body string
		fails      bool
	}{
		"in an ephemeral resource": {tokens, strings.Replace(token, `"r"`, `"`+value+`"`, 1), false},
		"in a write-only argument": {networks, network("x", `{"name":"n","token":"`+value+`"}`), false},
		"in any other argument":    {networks, network("x", `{"name":"`+value+`"}`), true},
		"in a data source":         {images, strings.Replace(image, `"f"`, `"`+value+`"`, 1), true},
	} {
		if a := h.do(t, admin, http.MethodPost, test.path+"?dryRun=All", test.body); (a.code != http.StatusCreated) != test.fails {
			t.Errorf("%s: %d %s", reason, a.code, a.message())
		}
	}
}

func TestReferencesNeedTheRightToRead(t *testing.T) {
	h := newFixture(t, sim())
	patch := func(token, name, spec string) answer {
		return h.do(t, token, http.MethodPatch, networks+"/"+name, `{"spec":`+spec+`}`, "Content-Type: application/merge-patch+json")
	}
	for reason, test := range map[string]struct {
		user, body string
		want       []string
	}{
		"own namespace":              {alice, network("x", `{"name":"${sim_network.a.id}"}`), nil},
		"own namespace, named":       {alice, network("x", `{"name":"${namespace.default.sim_network.a.id}"}`), nil},
		"ConfigMap that she may get": {alice, network("x", `{"name":"${configmap.app.name}"}`), nil},
		"namespace that she may see": {alice, network("x", `{"name":"${namespace.open.sim_network.a.id}"}`), nil},
		"administrator":              {admin, network("x", `{"name":"${secret.db.password}","cidr":"${namespace.closed.sim_network.a.id}"}`), nil},
		"the server itself":          {system, network("x", `{"name":"${secret.db.password}"}`), nil},
		"Secret":                     {alice, network("x", `{"name":"n","tags":{"a":"x-${secret.db.password}"}}`), []string{"spec.tags.a", `user "alice" cannot get secrets "db" in the namespace "default"`}},
		"other namespace":            {alice, network("x", `{"name":"${namespace.closed.sim_network.a.id}"}`), []string{`cannot get sim-networks.sim.hykube.io "a" in the namespace "closed"`}},
		"data source elsewhere":      {alice, network("x", `{"name":"${namespace.closed.data.sim_image.a.id}"}`), []string{`cannot get data-sim-images.sim.hykube.io "a"`}},
		"ConfigMap elsewhere":        {alice, network("x", `{"name":"${namespace.closed.configmap.a.b}"}`), []string{`cannot get configmaps "a" in the namespace "closed"`}},
		"two at once":                {alice, network("x", `{"name":"${secret.a.b}","cidr":"${secret.c.d}"}`), []string{`secrets "a"`, `secrets "c"`}},
		"type without a provider":    {alice, network("x", `{"name":"${namespace.closed.other_thing.a.id}"}`), []string{`no installed provider has the type "other_thing"`}},
		"in a condition": {alice, strings.Replace(network("x", `{"name":"n"}`), `"spec"`, `"lifecycle":{"preconditions":[{"condition":"${secret.db.ok == \"1\"}","errorMessage":"e"}]},"spec"`, 1),
			[]string{"lifecycle.preconditions[0].condition", `secrets "db"`}},
		"condition that is a secret": {alice, strings.Replace(network("x", `{"name":"n"}`), `"spec"`, `"lifecycle":{"preconditions":[{"condition":"${sim_network.a.password}","errorMessage":"e"}]},"spec"`, 1),
			[]string{"lifecycle.preconditions[0].condition", "would reveal something about a sensitive value of sim_network.a"}},
		"message with a secret": {alice, strings.Replace(network("x", `{"name":"n"}`), `"spec"`, `"lifecycle":{"preconditions":[{"condition":"${sim_network.a.mtu > 1}","errorMessage":"${sim_network.a.password}"}]},"spec"`, 1), nil},
		"in an import": {alice, strings.Replace(network("x", `{"name":"n"}`), `"spec"`, `"lifecycle":{"import":{"id":"${namespace.closed.sim_network.a.id}"}},"spec"`, 1),
			[]string{"lifecycle.import.id", `"closed"`}},
	} {
		t.Run(reason, func(t *testing.T) {
			a := h.do(t, test.user, http.MethodPost, networks+"?dryRun=All", test.body)
			if test.want == nil {
				if a.code != http.StatusCreated {
					t.Errorf("%d %s", a.code, a.message())
				}
				return
			}
			if a.code != http.StatusForbidden {
				t.Errorf("%d %s", a.code, a.message())
			}
			for _, want := range test.want {
				if !strings.Contains(a.message(), want) {
					t.Errorf("%q is not in %q", want, a.message())
				}
			}
		})
	}
	// An update may change the argument to which an existing reference passes the secret.
	h.create(t, network("main", `{"name":"${secret.db.password}"}`))
	for _, change := range []string{`{"mtu":1}`, `{"name":"${secret.db.other}"}`, `{"cidr":"${secret.other.x}"}`} {
		if a := patch(alice, "main", change); a.code != http.StatusForbidden || !strings.Contains(a.message(), `secrets "db"`) && !strings.Contains(a.message(), `secrets "other"`) {
			t.Errorf("%s: %d %s", change, a.code, a.message())
		}
	}
	if a := h.do(t, alice, http.MethodPatch, networks+"/main", `{"metadata":{"labels":{"team":"a"}}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
		t.Errorf("a label: %d %s", a.code, a.message())
	}
	if a := h.do(t, alice, http.MethodPatch, networks+"/fresh?fieldManager=t", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: fresh}\nspec: {name: '${secret.db.x}'}", "Content-Type: application/apply-patch+yaml"); a.code != http.StatusForbidden {
		t.Errorf("a create by apply: %d %s", a.code, a.message())
	}
}

func TestTaint(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	const path = networks + "/main/taint"
	if a := h.do(t, system, http.MethodPatch, networks+"/main/status", `{"status":{"observedGeneration":1,"conditions":[
		{"type":"Ready","status":"True","reason":"Applied","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"Stalled","status":"True","reason":"ApplyFailed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
		t.Fatalf("status: %d %s", a.code, a.message())
	}
	if a := h.do(t, alice, http.MethodPost, path+"?dryRun=All", ""); a.code != http.StatusOK || len(h.taints) > 0 {
		t.Errorf("dry run: %d %s %v", a.code, a.message(), h.taints)
	}
	a := h.do(t, alice, http.MethodPost, path, `{"anything":1}`)
	if a.code != http.StatusOK {
		t.Fatalf("taint: %d %s", a.code, a.message())
	}
	if status, reason, _ := ready(t, a); status != "False" || reason != "Tainted" || !strings.Contains(string(a.body), "tainted by alice") || strings.Contains(string(a.body), `"type":"Stalled"`) {
		t.Errorf("after the taint: %s", a.body)
	}
	if a.object(t).GetGeneration() != 1 {
		t.Errorf("the spec was not changed, and the generation was: %s", a.body)
	}
	wantWriter(t, a, "alice", v1alpha1.WroteTaint)
	if a := h.do(t, admin, http.MethodDelete, path, `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`); a.code != http.StatusOK || len(h.taints) != 1 {
		t.Errorf("dry run in the body: %d %s %v", a.code, a.message(), h.taints)
	}
	if a := h.do(t, admin, http.MethodDelete, path, `{"preconditions":{"uid":"other"}}`); a.code != http.StatusConflict {
		t.Errorf("another UID: %d %s", a.code, a.message())
	}
	a = h.do(t, admin, http.MethodDelete, path, "")
	if status, reason, _ := ready(t, a); a.code != http.StatusOK || status != "False" || reason != "AwaitingPlan" {
		t.Errorf("untaint: %d %s", a.code, a.body)
	}
	h.applied = true
	a = h.do(t, admin, http.MethodDelete, path, "")
	if status, reason, _ := ready(t, a); a.code != http.StatusOK || status != "True" || reason != "Applied" {
		t.Errorf("untaint of what is as it was applied: %d %s", a.code, a.body)
	}
	if got := strings.Join(h.taints, ", "); got != "sim_network/main true, sim_network/main false, sim_network/main false" {
		t.Errorf("asked for %s", got)
	}
	gr := kschema.GroupResource{Group: "sim.hykube.io", Resource: "sim-networks"}
	h.taint = apierrors.NewConflict(gr, "main", errors.New("a change is under way"))
	if a := h.do(t, admin, http.MethodPost, path, ""); a.code != http.StatusConflict || !strings.Contains(a.message(), "under way") {
		t.Errorf("conflict: %d %s", a.code, a.message())
	}
	for reason, test := range map[string]struct {
		method, path, body string
		code               int
	}{
		"of nothing":      {http.MethodPost, networks + "/other/taint", "", http.StatusNotFound},
		"to read it":      {http.MethodGet, path, "", http.StatusMethodNotAllowed},
		"of data":         {http.MethodPost, images + "/x/taint", "", http.StatusNotFound},
		"nonsense":        {http.MethodDelete, path, "{", http.StatusBadRequest},
		"unknown dry run": {http.MethodPost, path + "?dryRun=Some", "", http.StatusBadRequest},
	} {
		if a := h.do(t, admin, test.method, test.path, test.body); a.code != test.code {
			t.Errorf("%s: %d %s", reason, a.code, a.body)
		}
	}
}
