package state_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestStateListAndShow(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	clitest.Network(f, "planned", clitest.Unplanned)
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "data-sim-image", "metadata": map[string]any{"name": "base", "namespace": "default"},
		"status": map[string]any{"attributes": map[string]any{"id": "img-1"}}}}, "data-sim-images")
	if out, errOut, code := f.Run("state", "list"); code != 0 || out != "data.sim_image.base\nsim_network.main\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if out, _, _ := f.Run("state", "list", "sim_network", "-o", "name"); out != "sim-network.sim.hykube.io/main\n" {
		t.Error(out)
	}
	if out, _, _ := f.Run("state", "list", "data.sim_image", "-o", "table"); !strings.Contains(out, "data.sim_image.base   img-1") {
		t.Error(out)
	}
	if _, errOut, code := f.Run("state", "list", "sim_x"); code != exit.Failed || !strings.Contains(errOut, "no provider has resources of the type") {
		t.Errorf("code %d: %s", code, errOut)
	}
	out, errOut, code := f.Run("state", "show", "sim-network/main")
	want := "# sim_network.main:\nresource \"sim_network\" \"main\" {\n    id     = \"net-1\"\n    mtu    = 1500\n    name   = \"main\"\n    secret = (sensitive value)\n}\n"
	if d := cmp.Diff(want, out); d != "" || code != 0 {
		t.Errorf("code %d: %s\n%s", code, errOut, d)
	}
	f.State = map[string]any{"attributes": map[string]any{"secret": "s3cret", "n": 12345678901234567}}
	if out, _, _ = f.Run("state", "show", "sim-network/main", "-o", "json"); !strings.Contains(out, `"secret": "s3cret"`) || !strings.Contains(out, "12345678901234567") {
		t.Error(out)
	}
	if _, errOut, code = f.Run("state", "show", "sim-network/planned"); code != exit.Failed || !strings.Contains(errOut, "sim_network.planned has no state") {
		t.Errorf("code %d: %s", code, errOut)
	}
	clitest.Network(f, "old", func(o map[string]any) { delete(o["status"].(map[string]any), "attributes") })
	if out, errOut, code := f.Run("state", "list", "sim_network"); code != 0 || out != "sim_network.main\nsim_network.old\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if _, errOut, code = f.Run("state", "show", "sim_network.old"); code != exit.Failed || !strings.Contains(errOut, "sim_network.old has no current instance") || !strings.Contains(errOut, "-o json` shows the record") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestStateRm(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	clitest.Network(f, "planned", func(o map[string]any) { delete(o["metadata"].(map[string]any), "finalizers") })
	out, errOut, code := f.Run("state", "rm", "sim_network.main", "sim_network.planned")
	if code != 0 || out != "sim-network.sim.hykube.io/main marked to be forgotten\nsim-network.sim.hykube.io/planned deleted\n" || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.main -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	u := &unstructured.Unstructured{Object: f.Object("main")}
	if destroy, found, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); !found || destroy || u.GetDeletionTimestamp() == nil {
		t.Errorf("object: %v", u.Object)
	}
	if f.Object("planned") != nil {
		t.Error("what has no infrastructure stays")
	}
}

// After a destroy that forgets, the output names the remaining infrastructure, and the command to import it if the provider
// imports the same resource by the recorded ID.
func TestEndAfterForget(t *testing.T) {
	for why, tc := range map[string]struct {
		before, sensitive string
		found             v1alpha1.QueryStatus
		want              string
	}{
		"the same resource": {`{"id":"net-1","name":"a","secret":"(sensitive value)","keep":true}`, "",
			v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{{Attributes: &runtime.RawExtension{Raw: []byte(`{"id":"net-1","name":"a","secret":"x","keep":null}`)}}}},
			"To import it instead:\n  kubectl hykube import sim-network/main net-1 -n default\nThe objects stay: kubectl delete removes them.\n"},
		"another resource with this ID": {`{"id":"none","length":8}`, "",
			v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{{Attributes: &runtime.RawExtension{Raw: []byte(`{"id":"none","length":4}`)}}}},
			"\n  sim-network/main, with the ID none: the provider imports a resource with other values\n"},
		"one that another object manages": {`{"id":"net-1"}`, "",
			v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{{ManagedBy: "sim_network.b", Attributes: &runtime.RawExtension{Raw: []byte(`{"id":"net-1"}`)}}}},
			"\n  sim-network/main, with the ID net-1: the provider imports a resource that another object manages already: sim_network.b\n"},
		"no import": {`{"id":"net-1"}`, "",
			v1alpha1.QueryStatus{Diagnostics: []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Error", Detail: "sim_network doesn't\nsupport import"}}},
			"\n  sim-network/main, with the ID net-1: the provider refuses the import: sim_network doesn't support import\n"},
		"a secret ID": {`{"id":"net-1"}`, `{"id":true}`, v1alpha1.QueryStatus{}, "\n  sim-network/main: its ID is not recorded, or is a secret\n"},
	} {
		f := clitest.New(t, cli.Command)
		clitest.Network(f, "main", nil)
		clitest.Network(f, "gone", nil)
		f.Objects["v1/namespaces//default"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
		f.Querying = func(q *v1alpha1.Query) { q.Status = tc.found }
		f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			changes := clitest.Creates(p)
			for i := range changes {
				changes[i].Action = v1alpha1.ActionForget
				changes[i].Before = &runtime.RawExtension{Raw: []byte(tc.before)}
				if tc.sensitive != "" {
					changes[i].BeforeSensitive = &runtime.RawExtension{Raw: []byte(tc.sensitive)}
				}
			}
			changes[1].ActionReason = "forget_because_gone"
			return changes
		}
		out, _, code := f.Run("destroy", "sim_network.main", "sim_network.gone", "--auto-approve")
		if !strings.Contains(out, "still exists and is no longer managed") || !strings.Contains(out, tc.want) || code != 0 {
			t.Errorf("%s: code %d, %q is missing:\n%s", why, code, tc.want, out)
		}
		if strings.Contains(out, "sim-network/gone") || strings.Count(out, "kubectl hykube import") != strings.Count(tc.want, "kubectl hykube import") {
			t.Errorf("%s: it says to import what it cannot:\n%s", why, out)
		}
	}
}

// The end of a destroy speaks of the objects that stay: those that were marked for deletion before go with their infrastructure.
func TestEndAfterDestroyOfMarkedObjects(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		stay, marked []string
		want         string
	}{
		{"all stay", []string{"a", "b"}, nil, "\nThe objects stay, without infrastructure: kubectl hykube apply --all creates it again"},
		{"one was marked and is still there", []string{"a"}, []string{"b"}, "\nThe objects that were not marked for deletion stay, without infrastructure: "},
		{"one was marked and is gone", []string{"a"}, nil, "\nThe objects that were not marked for deletion stay, without infrastructure: "},
		{"both were marked", nil, []string{"a"}, ""},
	} {
		f := clitest.New(t, cli.Command)
		f.Objects["v1/namespaces//default"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
		for _, name := range tc.stay {
			clitest.Network(f, name, nil)
		}
		for _, name := range tc.marked {
			clitest.Network(f, name, func(o map[string]any) { o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
		}
		f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			changes := clitest.Creates(p)
			for i := range changes {
				changes[i].Action = v1alpha1.ActionDelete
			}
			return changes
		}
		out, errOut, code := f.Run("destroy", "sim_network.a", "sim_network.b", "--auto-approve")
		if code != exit.Done || !strings.Contains(out, tc.want) || tc.want == "" && strings.Contains(out, "without infrastructure") {
			t.Errorf("%s: code %d: %s\n%s", tc.reason, code, errOut, out)
		}
	}
}

// TestStateOfPlurals checks that state mv and state rm write the address for any of kubectl's names of a kind.
func TestStateOfPlurals(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "old", nil)
	clitest.Network(f, "gone", nil)
	if out, errOut, code := f.Run("state", "mv", "sim-networks/old", "sim-networks.sim.hykube.io/new"); code != 0 || !strings.Contains(errOut, "--target sim_network.new -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if from, _, _ := unstructured.NestedString(f.Object("new"), "lifecycle", "moved", "from"); from != "sim_network.old" {
		t.Errorf("the new object takes over from %q, which is no address", from)
	}
	if _, errOut, code := f.Run("state", "mv", "sim-networks/gone", "sim_network.gone"); code != exit.Failed || !strings.Contains(errOut, "sim_network.gone is both the old and the new name") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if _, errOut, code := f.Run("state", "rm", "sim-networks/gone"); code != 0 || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.gone -n default\n") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestStateMv(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "old", nil)
	out, errOut, code := f.Run("state", "mv", "sim_network.old", "sim_network.new")
	if code != 0 || out != "sim-network.sim.hykube.io/new created\nsim-network.sim.hykube.io/old marked to be moved\n" || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.new -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	want := map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata":  map[string]any{"name": "new", "namespace": "default", "labels": map[string]any{"team": "infra"}, "annotations": map[string]any{"keep": "me"}},
		"spec":      map[string]any{"name": "old"},
		"lifecycle": map[string]any{"preventDestroy": true, "moved": map[string]any{"from": "sim_network.old"}},
	}
	if d := cmp.Diff(want, f.Object("new")); d != "" {
		t.Errorf("new object (-want +got):\n%s", d)
	}
	u := &unstructured.Unstructured{Object: f.Object("old")}
	if destroy, found, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); u.GetDeletionTimestamp() == nil || !found || destroy {
		t.Errorf("the old object is not marked, or may be destroyed: %v", u.Object)
	}
	// The second run finds everything done, and reports no object as recorded.
	if out, errOut, code = f.Run("state", "mv", "sim_network.old", "sim_network.new"); code != 0 || out != "sim-network.sim.hykube.io/old marked to be moved\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	clitest.Network(f, "bare", func(o map[string]any) {
		delete(o, "status")
		delete(o["metadata"].(map[string]any), "finalizers")
	})
	clitest.Network(f, "full", nil)
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"the same", []string{"sim_network.old", "sim-network/old"}, "is both the old and the new name"},
		{"twice", []string{"sim_network.old", "sim_network.other"}, "is marked for deletion already"},
		{"onto infrastructure", []string{"sim_network.old", "sim_network.full"}, "sim_network.full already has infrastructure"},
		{"onto what takes another one over", []string{"sim_network.full", "sim_network.new"}, "lifecycle.moved of sim_network.new already names sim_network.old"},
		{"without infrastructure", []string{"sim_network.bare", "sim_network.other"}, "sim_network.bare has no infrastructure"},
		{"no such object", []string{"sim_network.x", "sim_network.y"}, `get sim-network "x" in namespace "default"`},
	} {
		before := len(f.Calls)
		if _, errOut, code := f.Run(append([]string{"state", "mv"}, tc.args...)...); code != exit.Failed || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
		for _, c := range f.Calls[before:] {
			if !strings.HasPrefix(c, "GET ") {
				t.Errorf("%s: %s", tc.reason, c)
			}
		}
	}

	// An object that waits for its infrastructure gets the record, and keeps its spec.
	out, errOut, code = f.Run("state", "mv", "sim_network.full", "sim_network.bare")
	if code != 0 || !strings.HasPrefix(out, "sim-network.sim.hykube.io/bare configured\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if d := cmp.Diff(map[string]any{"preventDestroy": true, "moved": map[string]any{"from": "sim_network.full"}}, f.Object("bare")["lifecycle"]); d != "" {
		t.Errorf("lifecycle (-want +got):\n%s", d)
	}
}

// The command deletes the old object only after it recorded the new one. After an interruption, it names what remains.
func TestStateMvInterrupted(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "old", nil)
	for _, tc := range []struct {
		reason, method string
		want           []string
		created        bool
	}{
		{"the new object is refused", http.MethodPost, []string{"Nothing was changed"}, false},
		{"the old one cannot be changed", http.MethodPatch, []string{"new is recorded, but", "run the same command again", "kubectl delete sim-network.sim.hykube.io/new -n default"}, true},
		{"the old one cannot be deleted", http.MethodDelete, []string{"run the same command again"}, true},
	} {
		f.Refuse = func(r *http.Request) *metav1.Status {
			if r.Method == tc.method {
				return clitest.Status(403, metav1.StatusReasonForbidden, "you may not")
			}
			return nil
		}
		_, errOut, code := f.Run("state", "mv", "sim_network.old", "sim_network.new")
		for _, want := range tc.want {
			if code != exit.Refused || !strings.Contains(errOut, want) {
				t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
			}
		}
		u := &unstructured.Unstructured{Object: f.Object("old")}
		if u.GetDeletionTimestamp() != nil || (f.Object("new") != nil) != tc.created {
			t.Errorf("%s: old %v, new %v", tc.reason, u.Object, f.Object("new"))
		}
	}
	f.Refuse = nil
	if out, errOut, code := f.Run("state", "mv", "sim_network.old", "sim_network.new"); code != 0 || out != "sim-network.sim.hykube.io/old marked to be moved\n" {
		t.Errorf("going on: code %d: %s\n%s", code, errOut, out)
	}
}

func TestRawStateNeedsARight(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/state") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "no")
		}
		return nil
	}
	_, errOut, code := f.Run("state", "show", "sim-network/main", "-o", "json")
	if code != exit.Refused || !strings.Contains(errOut, "read state of sim_network.main: you need get on sim-networks/state in the group sim.hykube.io") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
