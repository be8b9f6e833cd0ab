package kinds_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAWriteIsNoted writes the spec of an applied object. A dry run, a label and a status are not noted.
func TestAWriteIsNoted(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"a"}`))
	const merge = "Content-Type: application/merge-patch+json"
	patch := func(token, path, body string) {
		t.Helper()
		if a := h.do(t, token, http.MethodPatch, networks+"/main"+path, body, merge); a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.message())
		}
	}
	patch(system, "/status", `{"status":{"observedGeneration":1}}`)
	patch(admin, "?dryRun=All", `{"spec":{"name":"b"}}`)
	patch(admin, "", `{"metadata":{"labels":{"x":"y"}}}`)
	select {
	case o := <-h.kinds.Written():
		t.Errorf("%+v, and the object is as it was applied", o)
	default:
	}
	patch(admin, "", `{"spec":{"name":"b"}}`)
	select {
	case o := <-h.kinds.Written():
		if o.Namespace != "default" || o.Generation != 2 || o.UID == "" || o.Object != "sim-network/main" {
			t.Errorf("%+v", o)
		}
	default:
		t.Error("the write is not noted")
	}
}

// TestADeletionIsNoted deletes one object, and all of a list. A dry run is not noted.
func TestADeletionIsNoted(t *testing.T) {
	h := newFixture(t, sim())
	const merge = "Content-Type: application/merge-patch+json"
	for name, finalizers := range map[string]string{"plain": "[]", "held": `["` + v1alpha1.FinalizerState + `"]`, "listed": "[]"} {
		h.create(t, network(name, `{"name":"a"}`))
		body := `{"metadata":{"finalizers":` + finalizers + `},"status":{"observedGeneration":1}}`
		for _, path := range []string{"/status", ""} {
			if a := h.do(t, system, http.MethodPatch, networks+"/"+name+path, body, merge); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.message())
			}
		}
	}
	noted := func() string {
		select {
		case o := <-h.kinds.Written():
			return fmt.Sprintf("%d %s", o.Generation, o.Object)
		default:
			return ""
		}
	}
	for _, step := range []struct{ path, want string }{
		{"/plain?dryRun=All", ""},
		{"/plain", "0 sim-network/plain"},
		{"/held", "0 sim-network/held"},
		{"/held", ""}, // it is marked already
		{"", "0 sim-network/listed"},
	} {
		if a := h.do(t, admin, http.MethodDelete, networks+step.path, ""); a.code != http.StatusOK {
			t.Fatalf("delete %s: %d %s", step.path, a.code, a.message())
		}
		if got := noted(); got != step.want {
			t.Errorf("delete %s: %q, want %q", step.path, got, step.want)
		}
	}
	if got := noted(); got != "" {
		t.Errorf("one more: %q", got)
	}
}
