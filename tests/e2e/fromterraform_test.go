package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFromTerraform applies the object that docs/from-terraform.md shows, and types each command of that page. A
// command of the page that is not in the list below is an error.
func TestFromTerraform(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/from-terraform.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	web, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page shows no object")
	}
	const namespace = "from-terraform"
	newNamespace(t, namespace)
	dir := t.TempDir()
	for name, text := range map[string]string{"web.yaml": web, "others.yaml": fromTerraform} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "namespace: prod", "namespace: "+namespace)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unmanaged, err := cloud.Create(t.Context(), "network", map[string]any{"name": "tf-byhand", "cidr": "10.91.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	plan := func() string {
		return filepath.Base(strings.TrimSpace(kubectl(t, "hykube", "plan", "-n", namespace, "-o", "name")))
	}
	retag := func(value string) {
		kubectl(t, "patch", "sim-instance", "web", "-n", namespace, "--type=merge", "-p", `{"spec":{"tags":{"team":"`+value+`"}}}`)
	}
	const yes = "--auto-approve" // a test has no terminal for the confirmation
	typed := map[string]bool{}
	for _, step := range []struct {
		// text is the command as on the page, and args is what the test runs.
		text string
		args func() []string
		want string
	}{
		{"kubectl hykube validate -f DIR", words("hykube validate -f", dir), "Valid."},
		{"kubectl hykube plan -f DIR", words("hykube plan -f", dir), "4 to add"},
		{"kubectl hykube apply -f DIR", words("hykube apply -f", dir, yes), "4 added"},
		{"kubectl hykube apply -f DIR --auto-approve", words("hykube apply -f", dir, "--auto-approve"), "No changes."},
		{"kubectl hykube plan --detailed-exitcode", words("hykube plan --detailed-exitcode"), "No changes."},
		{"kubectl hykube plan --refresh=All", words("hykube plan --refresh=All"), "No changes."},
		{"kubectl hykube plan", func() []string { retag("one"); return words("hykube plan")() }, "1 to change"},
		{"kubectl hykube approve PLAN --digest DIGEST", func() []string {
			name := plan()
			return []string{"hykube", "approve", name, "--digest", digestOf(t, name, namespace)}
		}, "1 changed"},
		{"kubectl hykube show PLAN", func() []string { retag("two"); return []string{"hykube", "show", plan()} }, "sim_instance.web will be updated"},
		{"kubectl hykube show PLAN -o terraform-json", func() []string { return []string{"hykube", "show", plan(), "-o", "terraform-json"} }, `"resource_changes"`},
		{"kubectl hykube apply --target A", words("hykube apply --target sim_instance.web", yes), "1 changed"},
		{"kubectl hykube apply --replace A", words("hykube apply --replace sim_instance.web", yes), "1 added, 0 changed, 1 destroyed"},
		{"kubectl hykube refresh", words("hykube refresh", yes), "No changes."},
		{"kubectl get KIND NAME -o jsonpath=...", words("get sim-network main -o jsonpath={.status.attributes.cidr}"), "10.90.0.0/16"},
		{"kubectl hykube state list", words("hykube state list"), "sim_instance.web"},
		{"kubectl hykube state show A", words("hykube state show sim_instance.web"), "web"},
		{"kubectl hykube state pull", func() []string {
			pulled := kubectl(t, "hykube", "state", "pull", "-n", namespace)
			if err := os.WriteFile(filepath.Join(dir, "pulled"), []byte(pulled), 0o600); err != nil {
				t.Fatal(err)
			}
			return words("hykube state pull")()
		}, `"version": 4`},
		{"kubectl hykube state push", words("hykube state push", filepath.Join(dir, "pulled"), "--force"), "pushed into the namespace"},
		{"kubectl hykube taint A", words("hykube taint sim_instance.web"), "web"},
		{"kubectl hykube untaint A", words("hykube untaint sim_instance.web"), "web"},
		{"kubectl hykube graph", words("hykube graph"), "sim_network.main"},
		{"kubectl hykube console", words("hykube console"), ""},
		{"kubectl hykube provider schema NAME", words("hykube provider schema sim"), "sim-network"},
		{"kubectl explain KIND.spec", words("explain sim-network.spec"), "cidr"},
		{"kubectl hykube import KIND/NAME ID", words("hykube import sim-network/byhand", unmanaged.ID(), yes), "1 imported"},
		{"kubectl hykube state mv KIND/OLD KIND/NEW", words("hykube state mv sim-network/byhand sim-network/renamed"), "renamed"},
		{"kubectl hykube state rm KIND/NAME", func() []string {
			kubectl(t, "hykube", "apply", "--target", "sim_network.renamed", yes, "-n", namespace) // moves the record
			return words("hykube state rm sim-network/renamed")()
		}, "renamed"},
		{"kubectl hykube apply -f DIR --prune --applyset NAME", words("hykube apply -f", dir, "--prune --applyset all --force-conflicts", yes), "1 changed"},
		{"kubectl delete KIND NAME", words("delete sim-instance web --wait=false"), "deleted"},
		{"kubectl hykube destroy --all", words("hykube destroy --all", yes), "destroyed"},
	} {
		typed[step.text] = true
		t.Run(step.text, func(t *testing.T) {
			out := kubectl(t, append(step.args(), "-n", namespace)...)
			if !strings.Contains(out, step.want) {
				t.Errorf("missing %q in:\n%s", step.want, out)
			}
		})
	}
	for _, m := range regexp.MustCompile("`(kubectl [^`]*)`").FindAllStringSubmatch(string(page), -1) {
		if !typed[m[1]] && !slices.Contains([]string{"kubectl get"}, m[1]) {
			t.Errorf("nothing types %q of the page", m[1])
		}
	}
}

// words splits texts with several arguments.
func words(parts ...string) func() []string {
	return func() []string { return strings.Fields(strings.Join(parts, " ")) }
}

// fromTerraform has the objects to which the object of the page refers.
const fromTerraform = `apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main, namespace: prod}
spec: {name: tf-main, cidr: 10.90.0.0/16}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: front, namespace: prod}
spec: {name: tf-front, network_id: "${sim_network.main.id}", cidr: 10.90.1.0/24}
---
apiVersion: sim.hykube.io/v1
kind: data-sim-image
metadata: {name: base, namespace: prod}
spec: {family: debian}
---
apiVersion: sim.hykube.io/v1
kind: sim-dns-record
metadata: {name: www, namespace: prod}
spec: {name: www-tf, type: A, values: [192.0.2.1]}
`
