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
