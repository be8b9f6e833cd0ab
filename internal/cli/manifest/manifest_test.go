package manifest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"malformed YAML names the line of the file", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: [\nmetadata: x\n", "first.yaml:7: malformed YAML"},
		{"a tab names its line", "apiVersion: v1\nkind: Namespace\nmetadata:\n\tname: a\n", "first.yaml:4: malformed YAML"},
		{"a key twice", "apiVersion: v1\nkind: A\nkind: B\n", `first.yaml:3: malformed YAML: key "kind" already set in map`},
		{"no kind and no name", "apiVersion: v1\n", "first.yaml:1: kind and metadata.name must be set"},
		{"not an object", "# c\n\n- a\n", "first.yaml:3: the document is not a Kubernetes object"},
		{"nothing at all", "# only a comment\n---\n", "no objects in"},
		{"a name that no object can have", "apiVersion: sim.hykube.io/v1\nkind: sim-bucket\nmetadata:\n  name: Z_z\n", `first.yaml:4:3: sim-bucket "Z_z": metadata.name: Invalid value: a lowercase RFC 1123 subdomain`},
		{"the same object twice", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", `first.yaml:5: Namespace "a" is already in`},
		{"a kind of a provider that isn't there", "apiVersion: aws.hykube.io/v1\nkind: aws-vpc\nmetadata: {name: a}\n", `no provider is named "aws" (installed are sim)`},
		{"a kind that the provider hasn't", "apiVersion: sim.hykube.io/v1\nkind: sim-netwrk\nmetadata: {name: a}\n", `did you mean "sim-network"?`},
		{"a wrong version", "apiVersion: sim.hykube.io/v2\nkind: sim-network\nmetadata: {name: a}\n", "write apiVersion: sim.hykube.io/v1"},
		{"a kind that the server lacks", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "this server serves no such kind"},
		{"a row of the table of resources", "apiVersion: hykube.io/v1alpha1\nkind: Resource\nmetadata: {name: sim-network.a}\n", `first.yaml:2:1: Resource "sim-network.a": Resources are a read-only table`},
		{"another namespace than -n", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: a, namespace: b}\n", `has namespace "b", and -n is "default"`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = clitest.Creates
			f.Objects["hykube.io/v1alpha1/providers//sim"] = map[string]any{"metadata": map[string]any{"name": "sim"}}
			_, errOut, code := f.Run("apply", "-n", "default", "-f", clitest.Write(t, tc.text), "--auto-approve")
			if code != exit.Failed || !strings.Contains(errOut, tc.want) {
				t.Errorf("code %d, want %q in:\n%s", code, tc.want, errOut)
			}
			for _, c := range f.Calls {
				if strings.HasPrefix(c, http.MethodPatch) || strings.HasPrefix(c, http.MethodPost) {
					t.Errorf("something was written: %s", c)
				}
			}
		})
	}
}

// A kustomization is read as kubectl reads it. Its mistakes have the lines of what "kubectl kustomize" prints.
func TestKustomization(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml": "namePrefix: prod-\nresources: [network.yaml]\n",
		"network.yaml":       "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main}\nspec: {cidr: 10.0.0.0/8}\n",
		"bad.yaml":           "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: Z_z}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := clitest.New(t, cli.Command)
	if out, errOut, code := f.Run("graph", "-k", dir); code != 0 || !strings.Contains(out, `"sim_network.prod-main"`) {
		t.Errorf("code %d: %s%s", code, out, errOut)
	}
	if _, errOut, code := f.Run("graph", "-k", dir, "-f", dir); code != exit.Failed || !strings.Contains(errOut, "only one of -f or -k can be specified") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [network.yaml, bad.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := f.Run("graph", "-k", dir); code != exit.Failed || !strings.Contains(errOut, dir+":4:3: sim-network \"Z_z\": metadata.name: Invalid value") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestRefusedObjects(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Refusing["main"] = clitest.Status(409, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.cidr`)
	f.Refusing["a"] = clitest.Status(422, metav1.StatusReasonInvalid, `spec.netwrk_id: unknown field`)
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	for _, want := range []string{"first.yaml:1: record sim-subnet \"a\": spec.netwrk_id: unknown field", "first.yaml:7: record sim-network \"main\"", "--force-conflicts", "Nothing was recorded"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if code != exit.Failed || !strings.Contains(out, "provider.hykube.io/sim created") || len(f.Objects) != 2 || len(f.Plans) != 0 {
		t.Errorf("code %d: %s", code, out)
	}
}

func TestUnreachable(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Url = "https://127.0.0.1:1"
	_, errOut, code := f.Run("plan")
	if code != exit.Failed || !strings.Contains(errOut, "can't be reached: connection refused") || strings.Count(errOut, "127.0.0.1") != 1 {
		t.Errorf("code %d: %s", code, errOut)
	}
}
