package kinds_test

import (
	"net/http"
	"testing"
)

// TestAWriteOutdatesTheWaitingPlan writes an object that a waiting plan is bound to. A dry run, a label and a status outdate nothing.
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
