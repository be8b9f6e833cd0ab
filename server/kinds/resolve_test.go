package kinds_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
)

func TestResolve(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n"}`))
	const path = networks + "/main/resolve"
	if a := h.do(t, system, http.MethodPatch, networks+"/main/status", `{"status":{"observedGeneration":1,"appliedGeneration":1,"attributes":{"id":"old"},"conditions":[
		{"type":"Ready","status":"False","reason":"CreateUnknown","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"Stalled","status":"True","reason":"CreateUnknown","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
		t.Fatalf("status: %d %s", a.code, a.message())
	}
	h.resolve = apierrors.NewConflict(kschema.GroupResource{Group: "sim.hykube.io", Resource: "sim-networks"}, "main", errors.New("a plan is creating it"))
	if a := h.do(t, alice, http.MethodPost, path, ""); a.code != http.StatusConflict || !strings.Contains(a.message(), "a plan is creating it") {
		t.Errorf("refused: %d %s", a.code, a.message())
	}
	if _, reason, _ := ready(t, h.do(t, alice, http.MethodGet, networks+"/main", "")); reason != "CreateUnknown" {
		t.Errorf("after a refusal the reason is %s", reason)
	}
	h.resolve, h.resolves = nil, nil
	for reason, test := range map[string]struct {
		method, path, body string
		code               int
	}{
		"a dry run":            {http.MethodPost, path + "?dryRun=All", "", http.StatusOK},
		"another object":       {http.MethodPost, path, `{"metadata":{"name":"main","uid":"other"}}`, http.StatusConflict},
		"another precondition": {http.MethodPost, path, `{"preconditions":{"uid":"other"}}`, http.StatusConflict},
		"nonsense":             {http.MethodPost, path, "{", http.StatusBadRequest},
		"an unknown dry run":   {http.MethodPost, path + "?dryRun=Some", "", http.StatusBadRequest},
		"of nothing":           {http.MethodPost, networks + "/other/resolve", "", http.StatusNotFound},
		"of data":              {http.MethodPost, images + "/x/resolve", "", http.StatusNotFound},
		"a delete":             {http.MethodDelete, path, "", http.StatusMethodNotAllowed},
	} {
		if a := h.do(t, admin, test.method, test.path, test.body); a.code != test.code || len(h.resolves) > 0 {
			t.Errorf("%s: %d %s %v", reason, a.code, a.message(), h.resolves)
		}
	}
	uid := string(h.do(t, alice, http.MethodGet, networks+"/main", "").object(t).GetUID())
	a := h.do(t, alice, http.MethodPost, path, `{"metadata":{"name":"main","uid":"`+uid+`"}}`)
	status, reason, _ := ready(t, a)
	if a.code != http.StatusOK || status != "False" || reason != "AwaitingPlan" || !strings.Contains(string(a.body), "alice decided that the create with the unknown outcome made nothing: the next plan creates the resource") {
		t.Errorf("resolve: %d %s", a.code, a.body)
	}
	if body := string(a.body); strings.Contains(body, `"Stalled"`) || strings.Contains(body, `"old"`) || !strings.Contains(body, `"appliedGeneration":0`) || a.object(t).GetGeneration() != 1 {
		t.Errorf("after the resolve: %s", body)
	}
	wantWriter(t, a, "alice", v1alpha1.WroteResolve)
	if got := strings.Join(h.resolves, ", "); got != "sim_network/main" {
		t.Errorf("asked for %s", got)
	}
	if a := h.do(t, alice, http.MethodPatch, networks+"/main", `{"lifecycle":{"import":{"id":"net-1"}}}`, "Content-Type: application/merge-patch+json"); a.code != http.StatusOK {
		t.Fatalf("lifecycle: %d %s", a.code, a.message())
	}
	if a := h.do(t, alice, http.MethodPost, path, ""); !strings.Contains(string(a.body), "to create one instead, remove lifecycle.import") {
		t.Errorf("with lifecycle.import: %d %s", a.code, a.body)
	}
}

// wantWriter checks that an object in an answer names a user as the contributor of a part.
func wantWriter(t *testing.T, a answer, user, part string) {
	t.Helper()
	for _, c := range contributor.Of(a.object(t).Object["status"]) {
		if c.Username == user && slices.Contains(c.Wrote, part) {
			return
		}
	}
	t.Errorf("the contributors do not have %s, who wrote %s: %s", user, part, a.body)
}
