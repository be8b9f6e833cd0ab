package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// network is a recorded object with infrastructure behind it.
func network(f *fakeServer, name string, change func(map[string]any)) {
	o := map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name, "generation": int64(1), "finalizers": []any{v1alpha1.FinalizerState},
			"labels": map[string]any{"team": "infra"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"}},
		"spec":      map[string]any{"name": name},
		"lifecycle": map[string]any{"preventDestroy": true, "import": map[string]any{"id": "net-0"}},
		"status": map[string]any{"observedGeneration": int64(1), "attributes": map[string]any{"id": "net-1", "name": name, "mtu": int64(1500), "secret": "(sensitive value)"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Applied"}}},
	}
	if change != nil {
		change(o)
	}
	f.put(&unstructured.Unstructured{Object: o}, "sim-networks")
}

// unplanned makes an object one that no plan has made.
func unplanned(o map[string]any) {
	delete(o, "status")
	delete(o["metadata"].(map[string]any), "finalizers")
}

func (f *fakeServer) object(name string) map[string]any {
	return f.objects["sim.hykube.io/v1/sim-networks/default/"+name]
}

func TestTaint(t *testing.T) {
	f := newFakeServer(t)
	network(f, "main", nil)
	out, errOut, code := f.run("taint", "sim_network.main")
	if code != 0 || out != "sim-network.sim.hykube.io/main tainted\n" || !strings.Contains(errOut, "kubectl hykube plan -n default") || f.object("main")["tainted"] != true {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	out, errOut, code = f.run("untaint", "sim-networks/main", "-o", "name")
	if code != 0 || out != "sim-network.sim.hykube.io/main\n" || f.object("main")["tainted"] != false {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"nothing is named", []string{"taint"}, "no resources are named to taint"},
		{"a data source is never broken", []string{"taint", "data.sim_image.base"}, "only resources can be named here"},
		{"no such kind", []string{"taint", "sim-netwrk/main"}, `did you mean "sim-network"?`},
		{"no such object", []string{"taint", "sim-network/other"}, "taint sim_network.other"},
		{"another namespace than -n", []string{"taint", "namespace.a.sim_network.main", "-n", "default"}, `is in namespace "a", and -n is "default"`},
	} {
		if _, errOut, code := f.run(tc.args...); code != ExitError || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/taint") {
			return status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	if _, _, code := f.run("taint", "sim_network.main"); code != ExitRefused {
		t.Errorf("a taint that is refused exits with %d", code)
	}
}

func TestQuery(t *testing.T) {
	f := newFakeServer(t)
	var asked v1alpha1.QuerySpec
	f.querying = func(q *v1alpha1.Query) {
		asked = q.Spec
		q.Status = v1alpha1.QueryStatus{Truncated: true, Results: []v1alpha1.QueryResult{
			{DisplayName: "first", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"net-1","region":"eu","zone":null}`)}, ManagedBy: "sim_network.main"},
			{DisplayName: "second", ID: "net-2"},
		}}
		if q.Spec.Manifests {
			q.Status.Results[1].Manifest = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"second"},"spec":{"mtu":1500}}`)}
		}
	}
	out, errOut, code := f.run("query", "sim-network", "--arg", "tags.team=0012", "--arg", "size=3", "--arg", `zones=["a"]`, "-f", write(t, "region: eu\nsize: 1\n"), "--limit", "2", "--provider-config", "other")
	want := "DISPLAY NAME   IDENTITY               MANAGED BY\nfirst          id=net-1,region=eu     sim_network.main\nsecond         net-2                  -\n"
	if code != 0 || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") || !strings.Contains(errOut, "There are more than 2") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if d := cmp.Diff(`{"region":"eu","size":3,"tags":{"team":"0012"},"zones":["a"]}`, string(asked.Config.Raw)); d != "" || asked.Type != "sim_network" || asked.Limit != 2 || asked.ProviderConfig != "other" {
		t.Errorf("asked for %+v %s", asked, d)
	}
	out, errOut, _ = f.run("query", "sim_network", "--manifests")
	if out != "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata:\n  name: second\nspec:\n  mtu: 1500\n" || !strings.Contains(errOut, "Left out, because objects manage them already: 1.") {
		t.Errorf("%s\n%s", errOut, out)
	}
	if out, _, _ = f.run("query", "sim_network", "--manifests", "-o", "json"); !strings.Contains(out, `"kind": "List"`) || strings.Count(out, `"sim-network"`) != 1 {
		t.Error(out)
	}
	if out, _, _ = f.run("query", "sim_network", "-o", "name"); out != "id=net-1,region=eu\nnet-2\n" {
		t.Error(out)
	}
	if out, _, _ = f.run("query", "sim_network", "-o", "yaml"); !strings.Contains(out, "kind: Query\n") || !strings.Contains(out, "managedBy: sim_network.main") {
		t.Error(out)
	}
	f.querying = func(q *v1alpha1.Query) {
		q.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "No such region"}}
	}
	if _, errOut, code = f.run("query", "sim_network"); code != ExitError || !strings.Contains(errOut, "No such region") {
		t.Errorf("code %d: %s", code, errOut)
	}
	var objection metav1.StatusCause
	f.refuse = func(r *http.Request) *metav1.Status {
		if !strings.HasSuffix(r.URL.Path, "/queries") {
			return nil
		}
		st := status(422, metav1.StatusReasonInvalid, `Query.hykube.io "" is invalid: spec.type: no provider has it`)
		st.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{objection}}
		return st
	}
	f.openapi = `{"components":{"schemas":{
		"n":{"x-kubernetes-group-version-kind":[{"group":"sim.hykube.io","version":"v1","kind":"sim-network"}],"x-hykube-listed":true,"properties":{"spec":{"type":"object"}}},
		"s":{"x-kubernetes-group-version-kind":[{"group":"sim.hykube.io","version":"v1","kind":"sim-subnet"}],"properties":{"spec":{"type":"object"}}}}}}`
	for _, tc := range []struct {
		reason, typ    string
		field, message string
		want           string
	}{
		{"a typo", "sim_netwrk", "spec.type", `Invalid value: "sim_netwrk": no provider has it`, `no provider has it; did you mean "sim_network"?`},
		{"a part of names", "net", "spec.type", `Invalid value: "net": no provider has it`, `no provider has it; did you mean one of sim_network, sim_subnet?`},
		{"nothing like it", "foo_bar", "spec.type", `Invalid value: "foo_bar": no provider has it`, `no provider has it`},
		{"it can't be listed", "sim_subnet", "spec.type", `Invalid value: "sim_subnet": the provider "sim" cannot list it; use spec.import`,
			`its provider cannot list what exists of this type, only of sim_network. Take over a single one by its ID: kubectl hykube import sim-subnet/NAME ID`},
		{"an argument that is none", "sim_network", "spec.config.regon", `Forbidden: unknown field "regon"`, `--arg regon: unknown field "regon"`},
		{"a configuration that is none", "sim_network", "spec.providerConfig", `Invalid value: "x": there is none`, `--provider-config: there is none`},
	} {
		objection = metav1.StatusCause{Field: tc.field, Message: tc.message}
		if _, errOut, code = f.run("query", tc.typ); code != ExitError || errOut != "Error: query "+tc.typ+": "+tc.want+"\n" {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
	objection = metav1.StatusCause{Field: "spec.import.identity.id", Message: "Required value: what it is found by"}
	if _, errOut, code = f.run("import", "sim_network.new", "--identity", "x=y", "--generate-only"); code != ExitError || errOut != "Error: import sim_network: --identity id: what it is found by\n" {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.refuse = nil
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a limit has bounds", []string{"--limit", "0"}, "from 1 to 10000"},
		{"an argument has a value", []string{"--arg", "x"}, "write KEY=VALUE"},
		{"what begins like JSON is JSON", []string{"--arg", "x=[1"}, "begins like JSON, but is not valid JSON"},
		{"a file of arguments is a mapping", []string{"-f", write(t, "- a\n")}, "one mapping of names to values"},
	} {
		if _, errOut, code := f.run(append([]string{"query", "sim_network"}, tc.args...)...); code != ExitError || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

// imports plans an import of each target.
func imports(p *v1alpha1.Plan) []v1alpha1.PlanChange {
	out := creates(p)
	for i := range out {
		out[i].Action, out[i].Before, out[i].AfterUnknown = v1alpha1.ActionNoOp, out[i].After, nil
		out[i].Importing = &v1alpha1.PlanImport{ID: "net-9"}
	}
	return out
}

func TestImportOfARecordedObject(t *testing.T) {
	f := newFakeServer(t)
	f.planning = imports
	network(f, "main", func(o map[string]any) { delete(o, "status") })
	out, errOut, code := f.run("import", "sim-network/main", "--identity", "id=net-9", "--auto-approve")
	for _, want := range []string{"sim-network.sim.hykube.io/main configured", "# sim_network.main will be imported", "Plan: 1 to import, 0 to add", "sim_network.main: Importing...", "Apply complete! 1 imported, 0 added"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	want := map[string]any{"preventDestroy": true, "import": map[string]any{"identity": map[string]any{"id": "net-9"}}}
	if d := cmp.Diff(want, f.object("main")["lifecycle"]); d != "" {
		t.Errorf("lifecycle (-want +got):\n%s", d)
	}
	if p := f.plans["default/import-x7k2d"]; p == nil || !cmp.Equal(p.Spec.Targets, []string{"sim_network.main"}) {
		t.Errorf("plan %+v", p)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		change func(map[string]any)
		want   string
	}{
		{"two ways", []string{"net-1", "--identity", "id=net-1"}, nil, "use exactly one of"},
		{"no way", nil, nil, "use exactly one of"},
		{"it has infrastructure", []string{"net-1", "--auto-approve"}, nil, "already has infrastructure"},
		{"no object is made of one that is there", []string{"net-1", "--generate-only"}, nil, "generates no object"},
		{"no terminal for the question", []string{"net-1"}, nil, "add --auto-approve"},
	} {
		network(f, "main", tc.change)
		before := len(f.plans)
		if _, errOut, code := f.runIn(unanswered, "", append([]string{"import", "sim-network/main"}, tc.args...)...); code != ExitError || !strings.Contains(errOut, tc.want) || len(f.plans) != before {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

// The object of a replacement whose create was lost shows the old instance. The new one can be imported all the same.
func TestImportOfALostCreate(t *testing.T) {
	f := newFakeServer(t)
	f.planning = imports
	network(f, "main", func(o map[string]any) {
		o["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "reason": v1alpha1.ReasonCreateUnknown}}
	})
	out, errOut, code := f.run("import", "sim-network/main", "net-9", "--auto-approve")
	if code != ExitDone || !strings.Contains(out, "Apply complete! 1 imported, 0 added") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
}

func TestImportOfAnUnknownObject(t *testing.T) {
	f := newFakeServer(t)
	f.planning = imports
	var asked v1alpha1.QuerySpec
	f.querying = func(q *v1alpha1.Query) {
		asked = q.Spec
		q.Status.Results = []v1alpha1.QueryResult{{ID: "net-9", Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"net-9"},"spec":{"mtu":1500}}`)}}}
	}
	out, errOut, code := f.run("import", "sim_network.main", "net-9", "--generate-only")
	want := "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nlifecycle:\n  import:\n    id: net-9\nmetadata:\n  name: main\n  namespace: default\nspec:\n  mtu: 1500\n"
	if out != want || code != 0 || len(f.plans) != 0 || f.object("main") != nil {
		t.Errorf("code %d %s:\n%s", code, errOut, cmp.Diff(want, out))
	}
	if asked.Type != "sim_network" || asked.Provider != "sim" || !asked.Manifests || asked.Import == nil || asked.Import.ID != "net-9" {
		t.Errorf("asked for %+v", asked)
	}
	file := filepath.Join(t.TempDir(), "main.yaml")
	out, errOut, code = f.run("import", "sim_network.main", "net-9", "--out", file, "--auto-approve")
	if code != 0 || !strings.Contains(out, file+" written\n") || !strings.Contains(out, "sim-network.sim.hykube.io/main created") || !strings.Contains(out, "1 imported") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if text, err := os.ReadFile(file); err != nil || "---\n"+string(text) != want {
		t.Errorf("%v: %s", err, text)
	}
	if _, errOut, code = f.run("import", "sim_network.other", "net-9", "--out", file, "--auto-approve"); code != ExitError || !strings.Contains(errOut, "does not overwrite files") {
		t.Errorf("code %d: %s", code, errOut)
	}
	for _, tc := range []struct {
		reason string
		status v1alpha1.QueryStatus
		want   string
	}{
		{"nothing there", v1alpha1.QueryStatus{}, `provider "sim" finds no sim_network with this ID or identity`},
		{"another object manages it", v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{{ManagedBy: "sim_network.x", Manifest: &runtime.RawExtension{Raw: []byte("{}")}}}}, "sim_network.x already manages the resource"},
		{"the provider refuses", v1alpha1.QueryStatus{Diagnostics: []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Bad ID"}}}, "could not read the resource"},
	} {
		f.querying = func(q *v1alpha1.Query) { q.Status = tc.status }
		if _, errOut, code := f.run("import", "sim_network.other", "net-9", "--auto-approve"); code != ExitError || !strings.Contains(errOut, tc.want) || f.object("other") != nil {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

func TestStateListAndShow(t *testing.T) {
	f := newFakeServer(t)
	network(f, "main", nil)
	network(f, "planned", unplanned)
	f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "data-sim-image", "metadata": map[string]any{"name": "base", "namespace": "default"},
		"status": map[string]any{"attributes": map[string]any{"id": "img-1"}}}}, "data-sim-images")
	if out, errOut, code := f.run("state", "list"); code != 0 || out != "data.sim_image.base\nsim_network.main\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if out, _, _ := f.run("state", "list", "sim_network", "-o", "name"); out != "sim-network.sim.hykube.io/main\n" {
		t.Error(out)
	}
	if out, _, _ := f.run("state", "list", "data.sim_image", "-o", "table"); !strings.Contains(out, "data.sim_image.base   img-1") {
		t.Error(out)
	}
	if _, errOut, code := f.run("state", "list", "sim_x"); code != ExitError || !strings.Contains(errOut, "no provider has resources of the type") {
		t.Errorf("code %d: %s", code, errOut)
	}
	out, errOut, code := f.run("state", "show", "sim-network/main")
	want := "# sim_network.main:\nresource \"sim_network\" \"main\" {\n    id     = \"net-1\"\n    mtu    = 1500\n    name   = \"main\"\n    secret = (sensitive value)\n}\n"
	if d := cmp.Diff(want, out); d != "" || code != 0 {
		t.Errorf("code %d: %s\n%s", code, errOut, d)
	}
	f.state = map[string]any{"attributes": map[string]any{"secret": "s3cret", "n": 12345678901234567}}
	if out, _, _ = f.run("state", "show", "sim-network/main", "-o", "json"); !strings.Contains(out, `"secret": "s3cret"`) || !strings.Contains(out, "12345678901234567") {
		t.Error(out)
	}
	if _, errOut, code = f.run("state", "show", "sim-network/planned"); code != ExitError || !strings.Contains(errOut, "sim_network.planned has no state") {
		t.Errorf("code %d: %s", code, errOut)
	}
	network(f, "old", func(o map[string]any) { delete(o["status"].(map[string]any), "attributes") })
	if out, errOut, code := f.run("state", "list", "sim_network"); code != 0 || out != "sim_network.main\nsim_network.old\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if _, errOut, code = f.run("state", "show", "sim_network.old"); code != ExitError || !strings.Contains(errOut, "sim_network.old has no current instance") || !strings.Contains(errOut, "-o json` shows the record") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestStateRm(t *testing.T) {
	f := newFakeServer(t)
	network(f, "main", nil)
	network(f, "planned", func(o map[string]any) { delete(o["metadata"].(map[string]any), "finalizers") })
	out, errOut, code := f.run("state", "rm", "sim_network.main", "sim_network.planned")
	if code != 0 || out != "sim-network.sim.hykube.io/main marked to be forgotten\nsim-network.sim.hykube.io/planned deleted\n" || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.main -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	u := &unstructured.Unstructured{Object: f.object("main")}
	if destroy, found, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); !found || destroy || u.GetDeletionTimestamp() == nil {
		t.Errorf("object: %v", u.Object)
	}
	if f.object("planned") != nil {
		t.Error("what has no infrastructure stays")
	}
}

// After a destroy that forgets, the output names the remaining infrastructure and the command to import it.
func TestEndAfterForget(t *testing.T) {
	f := newFakeServer(t)
	network(f, "main", nil)
	network(f, "gone", nil)
	f.objects["v1/namespaces//default"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		changes := creates(p)
		for i := range changes {
			changes[i].Action = v1alpha1.ActionForget
			changes[i].Before = &runtime.RawExtension{Raw: []byte(`{"id":"net-1"}`)}
		}
		changes[1].ActionReason = "forget_because_gone"
		return changes
	}
	out, _, code := f.run("destroy", "sim_network.main", "sim_network.gone", "--auto-approve")
	for _, want := range []string{"still exists and is no longer managed", "\n  kubectl hykube import sim-network/main net-1 -n default\nThe objects stay: kubectl delete removes them.\n"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("code %d, %q is missing:\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "import sim-network/gone") || strings.Contains(out, "makes it again") {
		t.Errorf("it says to take over what is gone, or to make a duplicate:\n%s", out)
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
		f := newFakeServer(t)
		f.objects["v1/namespaces//default"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
		for _, name := range tc.stay {
			network(f, name, nil)
		}
		for _, name := range tc.marked {
			network(f, name, func(o map[string]any) { o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
		}
		f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			changes := creates(p)
			for i := range changes {
				changes[i].Action = v1alpha1.ActionDelete
			}
			return changes
		}
		out, errOut, code := f.run("destroy", "sim_network.a", "sim_network.b", "--auto-approve")
		if code != ExitDone || !strings.Contains(out, tc.want) || tc.want == "" && strings.Contains(out, "without infrastructure") {
			t.Errorf("%s: code %d: %s\n%s", tc.reason, code, errOut, out)
		}
	}
}

// TestStateOfPlurals checks that state mv and state rm write the address for any of kubectl's names of a kind.
func TestStateOfPlurals(t *testing.T) {
	f := newFakeServer(t)
	network(f, "old", nil)
	network(f, "gone", nil)
	if out, errOut, code := f.run("state", "mv", "sim-networks/old", "sim-networks.sim.hykube.io/new"); code != 0 || !strings.Contains(errOut, "--target sim_network.new -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if from, _, _ := unstructured.NestedString(f.object("new"), "lifecycle", "moved", "from"); from != "sim_network.old" {
		t.Errorf("the new object takes over from %q, which is no address", from)
	}
	if _, errOut, code := f.run("state", "mv", "sim-networks/gone", "sim_network.gone"); code != ExitError || !strings.Contains(errOut, "sim_network.gone is both the old and the new name") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if _, errOut, code := f.run("state", "rm", "sim-networks/gone"); code != 0 || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.gone -n default\n") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestStateMv(t *testing.T) {
	f := newFakeServer(t)
	network(f, "old", nil)
	out, errOut, code := f.run("state", "mv", "sim_network.old", "sim_network.new")
	if code != 0 || out != "sim-network.sim.hykube.io/new created\nsim-network.sim.hykube.io/old marked to be moved\n" || !strings.Contains(errOut, "kubectl hykube apply --target sim_network.new -n default\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	want := map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata":  map[string]any{"name": "new", "namespace": "default", "labels": map[string]any{"team": "infra"}, "annotations": map[string]any{"keep": "me"}},
		"spec":      map[string]any{"name": "old"},
		"lifecycle": map[string]any{"preventDestroy": true, "moved": map[string]any{"from": "sim_network.old"}},
	}
	if d := cmp.Diff(want, f.object("new")); d != "" {
		t.Errorf("new object (-want +got):\n%s", d)
	}
	u := &unstructured.Unstructured{Object: f.object("old")}
	if destroy, found, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); u.GetDeletionTimestamp() == nil || !found || destroy {
		t.Errorf("the old object is not marked, or may be destroyed: %v", u.Object)
	}
	// The second run finds everything done, and reports no object as recorded.
	if out, errOut, code = f.run("state", "mv", "sim_network.old", "sim_network.new"); code != 0 || out != "sim-network.sim.hykube.io/old marked to be moved\n" {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	network(f, "bare", func(o map[string]any) {
		delete(o, "status")
		delete(o["metadata"].(map[string]any), "finalizers")
	})
	network(f, "full", nil)
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
		before := len(f.calls)
		if _, errOut, code := f.run(append([]string{"state", "mv"}, tc.args...)...); code != ExitError || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
		for _, c := range f.calls[before:] {
			if !strings.HasPrefix(c, "GET ") {
				t.Errorf("%s: %s", tc.reason, c)
			}
		}
	}

	// An object that waits for its infrastructure gets the record, and keeps its spec.
	out, errOut, code = f.run("state", "mv", "sim_network.full", "sim_network.bare")
	if code != 0 || !strings.HasPrefix(out, "sim-network.sim.hykube.io/bare configured\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if d := cmp.Diff(map[string]any{"preventDestroy": true, "moved": map[string]any{"from": "sim_network.full"}}, f.object("bare")["lifecycle"]); d != "" {
		t.Errorf("lifecycle (-want +got):\n%s", d)
	}
}

// The command deletes the old object only after it recorded the new one. After an interruption, it names what remains.
func TestStateMvInterrupted(t *testing.T) {
	f := newFakeServer(t)
	network(f, "old", nil)
	for _, tc := range []struct {
		reason, method string
		want           []string
		created        bool
	}{
		{"the new object is refused", http.MethodPost, []string{"Nothing was changed"}, false},
		{"the old one cannot be changed", http.MethodPatch, []string{"new is recorded, but", "run the same command again", "kubectl delete sim-network.sim.hykube.io/new -n default"}, true},
		{"the old one cannot be deleted", http.MethodDelete, []string{"run the same command again"}, true},
	} {
		f.refuse = func(r *http.Request) *metav1.Status {
			if r.Method == tc.method {
				return status(403, metav1.StatusReasonForbidden, "you may not")
			}
			return nil
		}
		_, errOut, code := f.run("state", "mv", "sim_network.old", "sim_network.new")
		for _, want := range tc.want {
			if code != ExitRefused || !strings.Contains(errOut, want) {
				t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
			}
		}
		u := &unstructured.Unstructured{Object: f.object("old")}
		if u.GetDeletionTimestamp() != nil || (f.object("new") != nil) != tc.created {
			t.Errorf("%s: old %v, new %v", tc.reason, u.Object, f.object("new"))
		}
	}
	f.refuse = nil
	if out, errOut, code := f.run("state", "mv", "sim_network.old", "sim_network.new"); code != 0 || out != "sim-network.sim.hykube.io/old marked to be moved\n" {
		t.Errorf("going on: code %d: %s\n%s", code, errOut, out)
	}
}
