package kinds_test

import (
	"net/http"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAWriteOutdatesTheWaitingPlan writes an object that a waiting plan is bound to. A dry run, a label and a status
// outdate nothing.
func TestAWriteOutdatesTheWaitingPlan(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"a"}`))
	const merge = "Content-Type: application/merge-patch+json"
	patch := func(token, path, body string) {
		t.Helper()
		if a := h.do(t, token, http.MethodPatch, networks+"/main"+path, body, merge); a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.message())
		}
	}
	patch(system, "/status", `{"status":{"observedGeneration":1,"pendingPlan":"p"}}`)
	patch(admin, "?dryRun=All", `{"spec":{"name":"b"}}`)
	patch(admin, "", `{"metadata":{"labels":{"x":"y"}}}`)
	select {
	case o := <-h.kinds.Outdated():
		t.Errorf("%+v, and the object is as it was planned", o)
	default:
	}
	patch(admin, "", `{"spec":{"name":"b"}}`)
	select {
	case o := <-h.kinds.Outdated():
		if o.Namespace != "default" || o.Plan != "p" || o.Object != "sim-network/main" {
			t.Errorf("%+v", o)
		}
	default:
		t.Error("the plan is not outdated")
	}
}

// TestADeletionOutdatesTheWaitingPlan deletes objects that a waiting plan is bound to: one alone, and all of a list. A
// dry run outdates nothing.
func TestADeletionOutdatesTheWaitingPlan(t *testing.T) {
	h := newFixture(t, sim())
	const merge = "Content-Type: application/merge-patch+json"
	for name, finalizers := range map[string]string{"plain": "[]", "held": `["` + v1alpha1.FinalizerState + `"]`, "listed": "[]"} {
		h.create(t, network(name, `{"name":"a"}`))
		body := `{"metadata":{"finalizers":` + finalizers + `},"status":{"observedGeneration":1,"pendingPlan":"p"}}`
		for _, path := range []string{"", "/status"} {
			if a := h.do(t, system, http.MethodPatch, networks+"/"+name+path, body, merge); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.message())
			}
		}
	}
	outdated := func() string {
		select {
		case o := <-h.kinds.Outdated():
			return o.Plan + " " + o.Object
		default:
			return ""
		}
	}
	for _, step := range []struct{ path, want string }{
		{"/plain?dryRun=All", ""},
		{"/plain", "p sim-network/plain"},
		{"/held", "p sim-network/held"},
		{"/held", ""}, // it is marked already
		{"", "p sim-network/listed"},
	} {
		if a := h.do(t, admin, http.MethodDelete, networks+step.path, ""); a.code != http.StatusOK {
			t.Fatalf("delete %s: %d %s", step.path, a.code, a.message())
		}
		if got := outdated(); got != step.want {
			t.Errorf("delete %s: %q, want %q", step.path, got, step.want)
		}
	}
	if got := outdated(); got != "" {
		t.Errorf("one more: %q", got)
	}
}
