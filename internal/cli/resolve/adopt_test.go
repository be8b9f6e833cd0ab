package resolve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
)

// TestResolveAdoptFrom adopts the resources of a file: all or nothing, and again without effect.
func TestResolveAdoptFrom(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "a", clitest.Lost)
	clitest.Network(f, "b", clitest.Lost)
	clitest.Network(f, "fine", nil)
	clitest.Network(f, "leaving", func(o map[string]any) {
		clitest.Lost(o)
		o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	file := filepath.Join(t.TempDir(), "found.txt")
	adopt := func(text string, args ...string) (string, string, int) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Calls = nil
		return f.Run(append([]string{"resolve", "--adopt-from", file}, args...)...)
	}
	for _, tc := range []struct{ why, text, want string }{
		{"two malformed lines", "# comment\n\nsim_network.a\nnowhere x\n", file + ":3: \"sim_network.a\" is not an address and an ID"},
		{"the second of them", "# comment\n\nsim_network.a\nnowhere x\n", file + ":4: "},
		{"a malformed line, and a healthy one", "nowhere x\nsim_network.fine net-9\n", file + ":2: sim_network.fine: it manages"},
		{"a healthy one", "sim_network.a net-8\nsim_network.fine net-9\n", file + ":2: sim_network.fine: it manages a resource with another ID"},
		{"one that does not exist", "sim_network.gone net-9\n", file + ":1: sim_network.gone: "},
		{"one that is marked", "sim_network.leaving net-9\n", "it is marked for deletion"},
		{"an object twice", "sim_network.a net-8\nsim-network/a,net-9\n", file + ":2: sim_network.a: line 1 has this object, too"},
		{"an ID twice", "sim_network.a net-8\nsim_network.b net-8\n", file + ":2: sim_network.b: line 1 has the ID net-8, too"},
		{"a data source", "data.sim_network.a net-8\n", file + ":1: "},
		{"an empty file", "# nothing\n", "has no line"},
	} {
		_, errOut, code := adopt(tc.text, "--auto-approve")
		if code != exit.Failed || !strings.Contains(errOut, tc.want) || len(f.Writes()) > 0 {
			t.Errorf("%s: code %d, writes %v: %s, want %s", tc.why, code, f.Writes(), errOut, tc.want)
		}
	}
	both := "sim_network.a net-8\nsim-network/b,net-9\n"
	out, errOut, code := adopt(both, "--auto-approve")
	if code != exit.Done || !strings.Contains(out, "Apply complete! 2 imported, 0 added") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	for name, id := range map[string]string{"a": "net-8", "b": "net-9"} {
		if by, _ := f.Object(name)["lifecycle"].(map[string]any)["import"].(map[string]any); by["id"] != id {
			t.Errorf("%s imports %v", name, by)
		}
		clitest.Network(f, name, func(o map[string]any) { o["status"].(map[string]any)["attributes"] = map[string]any{"id": id} })
	}
	if _, errOut, code := adopt(both, "--auto-approve"); code != exit.Done || !strings.Contains(errOut, "2 resources of the file: adopted already.") || len(f.Writes()) > 0 {
		t.Errorf("again: code %d, writes %v: %s", code, f.Writes(), errOut)
	}
	if _, errOut, code := f.Run("resolve", "--adopt-from", "-"); code != exit.Failed || !strings.Contains(errOut, "add --auto-approve") {
		t.Errorf("from standard input: code %d: %s", code, errOut)
	}
	if _, errOut, code := f.Run("resolve", "--adopt-from", file, "--all"); code != exit.Failed || !strings.Contains(errOut, "has the objects in its file") {
		t.Errorf("with --all: code %d: %s", code, errOut)
	}
}

// TestResolveAdoptFromDeclined takes the imports back after the answer no.
func TestResolveAdoptFromDeclined(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "a", clitest.Lost)
	file := filepath.Join(t.TempDir(), "found.txt")
	if err := os.WriteFile(file, []byte("sim_network.a net-8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := f.RunIn(nil, "no\n", "resolve", "--adopt-from", file); code == exit.Done {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	lifecycle, _ := f.Object("a")["lifecycle"].(map[string]any)
	if lifecycle["import"] != nil {
		t.Errorf("the import stays: %v", lifecycle)
	}
}

// TestResolveSearch pairs lost creates with the resources that the provider lists.
func TestResolveSearch(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		clitest.Network(f, name, clitest.Lost)
	}
	f.Querying = func(q *v1alpha1.Query) {
		if got := strings.Join(q.Spec.Objects, " "); got != "a b c d e" {
			t.Errorf("asks for the objects %q", got)
		}
		for _, r := range []struct {
			id      string
			matches []string
		}{
			{"net-1", []string{"a"}}, {"net-2", []string{"b"}}, {"net-3", []string{"b"}}, {"net-4", nil},
			{"net-5\nsim_network.b net-7", []string{"c"}}, {"net-6", []string{"d", "e"}},
		} {
			raw, err := json.Marshal(map[string]any{"id": r.id, "cidr": "10.0.0.0/16"})
			if err != nil {
				t.Error(err)
			}
			q.Status.Results = append(q.Status.Results, v1alpha1.QueryResult{Attributes: &runtime.RawExtension{Raw: raw}, Matches: r.matches})
		}
	}
	out, errOut, code := f.Run("resolve", "--all", "--search", "--auto-approve")
	want := "sim_network.a net-1\n# sim_network.b: 2 resources have the values of its spec: net-2, net-3\n# sim_network.c: no unmanaged resource has the values of its spec\n" +
		"# sim_network.d: net-6 has the values of its spec, and those of other creates\n# sim_network.e: net-6 has"
	if code != exit.Done || !strings.HasPrefix(out, want) || !strings.Contains(out, "1 imported") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
}

// TestResolveSearchInModule prints the import block of a resource of a Module, and adopts the others. A file with such
// a resource changes nothing.
func TestResolveSearchInModule(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	names := []string{"a", "module.shop:main"}
	for _, name := range names {
		clitest.Network(f, name, clitest.Lost)
	}
	f.Querying = func(q *v1alpha1.Query) {
		for i, name := range names {
			raw := fmt.Appendf(nil, `{"id":"net-%d"}`, i)
			q.Status.Results = append(q.Status.Results, v1alpha1.QueryResult{Attributes: &runtime.RawExtension{Raw: raw}, Matches: []string{name}})
		}
	}
	block := "import {\n  to = sim_network.main\n  id = \"net-1\"\n}"
	out, errOut, code := f.Run("resolve", "--all", "--search", "--auto-approve")
	if code != exit.Failed || !strings.Contains(out, "# module.shop.sim_network.main has the ID net-1, and needs an import block") ||
		!strings.Contains(out, "1 imported") || !strings.Contains(errOut, block) {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	file := filepath.Join(t.TempDir(), "found.txt")
	if err := os.WriteFile(file, []byte("module.shop.sim_network.main net-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Calls = nil
	if _, errOut, code := f.Run("resolve", "--adopt-from", file, "--auto-approve"); code != exit.Failed || len(f.Writes()) > 0 || !strings.Contains(errOut, block) {
		t.Errorf("from a file: code %d, writes %v: %s", code, f.Writes(), errOut)
	}
}

// TestAdoptAsksBeforeItWrites writes nothing for a user who says no to a search, who may not approve, or who may not write.
func TestAdoptAsksBeforeItWrites(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "a", func(o map[string]any) {
		delete(o["lifecycle"].(map[string]any), "import")
		o["status"].(map[string]any)["attributes"].(map[string]any)["id"] = "net-a"
	})
	withoutRecord(f, "a")
	file := filepath.Join(t.TempDir(), "found.txt")
	if err := os.WriteFile(file, []byte("sim_network.a net-a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	search := []string{"resolve", "--all", "--search"}
	for why, tc := range map[string]struct {
		args   []string
		denied string
		answer string
		want   string
	}{
		"the answer is no":                   {search, "", "no\n", "Do you want to record 1 import, and plan them?"},
		"the user may not approve":           {search, "approve plans", "yes\n", "Give the lines to someone who may: kubectl hykube resolve --adopt-from FILE"},
		"the user may not write the objects": {[]string{"resolve", "--adopt-from", file}, "patch sim-networks", "yes\n", `you need the verb "patch" on sim-networks.sim.hykube.io in namespace default`},
		"the user may not plan":              {[]string{"resolve", "sim-network/a", "--adopt", "net-a"}, "create plans", "yes\n", `you need the verb "create" on plans in namespace default`},
		"nobody can answer":                  {[]string{"resolve", "--adopt-from", file}, "", "", "resolve --adopt-from asks before it imports the resource"},
	} {
		f.Calls, f.Denied = nil, []string{tc.denied}
		if out, errOut, code := f.RunIn(func(s *session.Session) { s.Empty = tc.answer == "" }, tc.answer, tc.args...); code == exit.Done || len(f.Writes()) > 0 || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d, writes %v: %s %s", why, code, f.Writes(), out, errOut)
		}
	}
}

// withoutRecord makes the server know no record of an object, which its status does not say yet.
func withoutRecord(f *clitest.Server, name string) {
	f.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Resource", "metadata": map[string]any{"name": "sim-network." + name, "namespace": "default", "uid": "u-" + name},
		"record": v1alpha1.RecordLost,
	}}, "resources")
}

// TestResolveLostRecords settles objects whose record is lost before a plan has found that.
func TestResolveLostRecords(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	f.Querying = func(*v1alpha1.Query) { t.Error("the objects show their IDs, and the command lists others") }
	clitest.Network(f, "healthy", nil)
	for _, name := range []string{"a", "b"} {
		clitest.Network(f, name, func(o map[string]any) {
			delete(o["lifecycle"].(map[string]any), "import")
			o["status"].(map[string]any)["attributes"].(map[string]any)["id"] = "net-" + name
		})
		withoutRecord(f, name)
	}
	file := filepath.Join(t.TempDir(), "found.txt")
	if err := os.WriteFile(file, []byte("sim_network.a net-a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := f.RunIn(nil, "no\n", "resolve", "--adopt-from", file); code == exit.Done || f.Object("a")["lifecycle"].(map[string]any)["import"] != nil {
		t.Errorf("declined: code %d, %v: %s %s", code, f.Object("a")["lifecycle"], out, errOut)
	}
	if out, errOut, code := f.RunIn(nil, "no\n", "resolve", "sim-network/a", "--adopt", "net-a"); code == exit.Done || f.Object("a")["lifecycle"].(map[string]any)["import"] != nil {
		t.Errorf("one declined: code %d, %v: %s %s", code, f.Object("a")["lifecycle"], out, errOut)
	}
	out, errOut, code := f.Run("resolve", "--all", "--search", "--auto-approve")
	if code != exit.Done || !strings.HasPrefix(out, "sim_network.a net-a\nsim_network.b net-b\n") || !strings.Contains(out, "2 imported") {
		t.Errorf("search: code %d: %s %s", code, out, errOut)
	}
	if out, errOut, code := f.Run("resolve", "--all", "--forget"); code != exit.Done || strings.Contains(out, "healthy") || !strings.Contains(out, "/a marked to be forgotten") {
		t.Errorf("forget: code %d: %s %s", code, out, errOut)
	}
}

// TestRecordsWithoutAnObject names records whose object does not exist, and forgets one after a question.
func TestRecordsWithoutAnObject(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "healthy", nil)
	f.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Resource", "metadata": map[string]any{"name": "sim-network.old", "namespace": "default", "uid": "u-old"},
		"object": map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "namespace": "default", "name": "old", "uid": "u-old"},
		"status": map[string]any{"ready": "False", "reason": v1alpha1.ReasonWithoutObject, "id": "net-7"},
		"record": v1alpha1.RecordWithoutObject,
	}}, "resources")
	out, errOut, code := f.Run("state", "list")
	if code != exit.Done || out != "sim_network.healthy\nsim_network.old\n" || !strings.Contains(errOut, "1 record") || !strings.Contains(errOut, "kubectl hykube status -n default") {
		t.Errorf("state list: code %d: %s %s", code, out, errOut)
	}
	if out, errOut, code = f.Run("status"); code != exit.Done || !strings.Contains(out, "Records without an object") || !strings.Contains(out, "sim-network/old: the ID net-7") {
		t.Errorf("status: code %d: %s %s", code, out, errOut)
	}
	asked := func(answer string, args ...string) (string, string, int) {
		f.Calls = nil
		return f.RunIn(nil, answer, append([]string{"resolve", "sim-network/old"}, args...)...)
	}
	if _, errOut, code := asked("no\n", "--forget"); code != exit.Failed || len(f.Writes()) > 0 || !strings.Contains(errOut, "sim-network/old with the ID net-7") || !strings.Contains(errOut, "Nothing was changed.") {
		t.Errorf("declined: code %d, writes %v: %s", code, f.Writes(), errOut)
	}
	if _, errOut, code := asked("", "--retry", "--auto-approve"); code != exit.Failed || len(f.Writes()) > 0 || !strings.Contains(errOut, "has a record and no object") {
		t.Errorf("retry: code %d, writes %v: %s", code, f.Writes(), errOut)
	}
	f.Refuse = func(r *http.Request) *metav1.Status {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/sim-networks/old") {
			return clitest.Status(404, metav1.StatusReasonNotFound, "not found")
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sim-networks/old/resolve") {
			var sent metav1.PartialObjectMetadata
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.UID != "u-old" {
				t.Errorf("the request names the UID %q: %v", sent.UID, err)
			}
			return clitest.Status(403, metav1.StatusReasonForbidden, "needs the right to approve plans")
		}
		return nil
	}
	if _, errOut, code := asked("yes\n", "--forget"); code == exit.Done || !strings.Contains(errOut, "needs the right to approve plans") {
		t.Errorf("refused: code %d: %s", code, errOut)
	}
}
