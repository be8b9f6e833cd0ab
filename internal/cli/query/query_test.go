package query_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestQuery(t *testing.T) {
	f := clitest.New(t, cli.Command)
	var asked v1alpha1.QuerySpec
	f.Querying = func(q *v1alpha1.Query) {
		asked = q.Spec
		q.Status = v1alpha1.QueryStatus{Truncated: true, Results: []v1alpha1.QueryResult{
			{DisplayName: "first", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"net-1","region":"eu","zone":null}`)}, ManagedBy: "sim_network.main"},
			{DisplayName: "second", ID: "net-2"},
		}}
		if q.Spec.Manifests {
			q.Status.Results[1].Manifest = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"second"},"spec":{"mtu":1500}}`)}
		}
	}
	out, errOut, code := f.Run("query", "sim-network", "--arg", "tags.team=0012", "--arg", "size=3", "--arg", `zones=["a"]`, "-f", clitest.Write(t, "region: eu\nsize: 1\n"), "--limit", "2", "--provider-config", "other")
	want := "DISPLAY NAME   IDENTITY               MANAGED BY\nfirst          id=net-1,region=eu     sim_network.main\nsecond         net-2                  -\n"
	if code != 0 || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") || !strings.Contains(errOut, "There are more than 2") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if d := cmp.Diff(`{"region":"eu","size":3,"tags":{"team":"0012"},"zones":["a"]}`, string(asked.Config.Raw)); d != "" || asked.Type != "sim_network" || asked.Limit != 2 || asked.ProviderConfig != "other" {
		t.Errorf("asked for %+v %s", asked, d)
	}
	out, errOut, _ = f.Run("query", "sim_network", "--manifests")
	if out != "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata:\n  name: second\nspec:\n  mtu: 1500\n" || !strings.Contains(errOut, "Left out, because objects manage them already: 1.") {
		t.Errorf("%s\n%s", errOut, out)
	}
	if out, _, _ = f.Run("query", "sim_network", "--manifests", "-o", "json"); !strings.Contains(out, `"kind": "List"`) || strings.Count(out, `"sim-network"`) != 1 {
		t.Error(out)
	}
	if out, _, _ = f.Run("query", "sim_network", "-o", "name"); out != "id=net-1,region=eu\nnet-2\n" {
		t.Error(out)
	}
	if out, _, _ = f.Run("query", "sim_network", "-o", "yaml"); !strings.Contains(out, "kind: Query\n") || !strings.Contains(out, "managedBy: sim_network.main") {
		t.Error(out)
	}
	f.Querying = func(q *v1alpha1.Query) {
		q.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "No such region"}}
	}
	if _, errOut, code = f.Run("query", "sim_network"); code != exit.Failed || !strings.Contains(errOut, "No such region") {
		t.Errorf("code %d: %s", code, errOut)
	}
	var objection metav1.StatusCause
	f.Refuse = func(r *http.Request) *metav1.Status {
		if !strings.HasSuffix(r.URL.Path, "/queries") {
			return nil
		}
		st := clitest.Status(422, metav1.StatusReasonInvalid, `Query.hykube.io "" is invalid: spec.type: no provider has it`)
		st.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{objection}}
		return st
	}
	f.Openapi = `{"components":{"schemas":{
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
		if _, errOut, code = f.Run("query", tc.typ); code != exit.Failed || errOut != "Error: query "+tc.typ+": "+tc.want+"\n" {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
	objection = metav1.StatusCause{Field: "spec.import.identity.id", Message: "Required value: what it is found by"}
	if _, errOut, code = f.Run("import", "sim_network.new", "--identity", "x=y", "--generate-only"); code != exit.Failed || errOut != "Error: import sim_network: --identity id: what it is found by\n" {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.Refuse = nil
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a limit has bounds", []string{"--limit", "0"}, "from 1 to 10000"},
		{"an argument has a value", []string{"--arg", "x"}, "write KEY=VALUE"},
		{"what begins like JSON is JSON", []string{"--arg", "x=[1"}, "begins like JSON, but is not valid JSON"},
		{"a file of arguments is a mapping", []string{"-f", clitest.Write(t, "- a\n")}, "one mapping of names to values"},
	} {
		if _, errOut, code := f.Run(append([]string{"query", "sim_network"}, tc.args...)...); code != exit.Failed || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}
