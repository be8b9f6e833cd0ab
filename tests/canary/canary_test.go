package canary

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// world is a server with secrets, and with markers that show which places the test searches.
type world struct {
	*testing.T
	*harness.Server
	cloud  *harness.Cloud
	traces *collector
	// secrets are the canaries. marker is the name of objects. It is not secret, and it shows that the test searches a
	// place.
	secrets []*secret
	marker  *secret
	// printed is the output of each command of the plugin.
	printed map[string][]byte
	// receiver receives the messages of Notifications.
	receiver *receiver
}

// namespace contains all objects of the test.
const namespace = "canary"

// TestNoSecretLeaks writes secrets to all places that accept them, and uses them: plans, applies, failures, a query and
// an evaluation. Then it searches each place for each secret, plain and encoded.
func TestNoSecretLeaks(t *testing.T) {
	w := start(t)
	w.use()
	for _, p := range w.places() {
		t.Run(p.name, func(t *testing.T) {
			found := p.read(t, w)
			if len(found) == 0 {
				t.Fatal("there is nothing to search")
			}
			marked := false
			for where, data := range found {
				marked = marked || w.marker.in(data)
				for _, s := range w.secrets {
					if s.in(p.without(where, data, s)) {
						t.Errorf("%s has the secret %q", where, s.name)
					}
				}
			}
			if !marked && p.plant != nil {
				p.plant(t, w)
				for _, data := range p.read(t, w) {
					marked = marked || w.marker.in(data)
				}
			}
			if !marked {
				t.Error("the planted marker is not found here, so a leak would not be found either")
			}
		})
	}
}

// hide returns a new canary.
func (w *world) hide(name string) *secret {
	s := newSecret(name)
	w.secrets = append(w.secrets, s)
	return s
}

// note adds a secret that the cloud or a provider generated.
func (w *world) note(name, text string) {
	w.Helper()
	if len(text) < 20 {
		w.Fatalf("%s is %q, which may occur by chance", name, text)
	}
	w.secrets = append(w.secrets, named(name, text))
}

// users are the roles of the readers, by their token.
var users = []string{"view", "edit", "admin", "hykube:plan-approver"}

func token(role string) string { return strings.ReplaceAll(role, ":", "-") }

func start(t *testing.T) *world {
	w := &world{T: t, marker: newSecret("marker"), printed: map[string][]byte{}}
	w.cloud, w.traces = harness.NewCloud(t, simcloud.Config{}), newCollector(t)
	dir := t.TempDir()
	w.Server = &harness.Server{Dir: dir}
	bearer := w.hide("bearer token of a user")
	var tokens strings.Builder
	for _, role := range users {
		fmt.Fprintf(&tokens, "%s%s,%s,%s,%s\n", bearer.text, token(role), token(role), token(role), "readers")
	}
	file := filepath.Join(dir, "tokens.csv")
	temp := filepath.Join(dir, "tmp")
	if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(temp, 0o711); err != nil {
		t.Fatal(err)
	}
	w.Args = []string{"--token-auth-file", file, "--log-level", "debug", "--notification-allow-cidr", "127.0.0.0/8"}
	w.Env = append(w.traces.environment(),
		"SIMCLOUD_ADDRESS="+w.cloud.Address, "TMPDIR="+temp,
		"AWS_SECRET_ACCESS_KEY="+w.hide("environment of the server").text, "SIM_GRANTED="+w.hide("environment of a provider").text)
	w.Serve(t)
	if err := w.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS", "SIM_GRANTED"}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs kubectl in the namespace and keeps its output.
func (w *world) run(stdin string, args ...string) (string, error) {
	cmd := w.Command(context.Background(), "hykube", append([]string{"kubectl", "-n", namespace}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	line := strings.Join(args, " ")
	w.printed[line] = append(w.printed[line], out...)
	return string(out), err
}

// kubectl runs a command that must fail if fails is true, and must succeed otherwise.
func (w *world) kubectl(fails bool, stdin string, args ...string) string {
	w.Helper()
	out, err := w.run(stdin, args...)
	if (err != nil) != fails {
		w.Fatalf("kubectl %q: %v\n%s", args, err, out)
	}
	return out
}

// use writes the secrets and uses each.
func (w *world) use() {
	w.Helper()
	m := w.marker.text
	config, argument := w.hide("argument of a ProviderConfig"), w.hide("argument of a resource")
	config.spec, argument.spec = "providerconfigs/plain", "sim-instances/"+m
	w.kubectl(false, "", "create", "namespace", namespace)
	for _, role := range users {
		w.kubectl(false, "", "create", "rolebinding", token(role), "--clusterrole="+role, "--user="+token(role))
	}
	w.kubectl(false, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData:
  token: %s
  endpoint: "http://user:%s@%s"
  script: %s
  admin: %s
  unused: %s
  action: %s
  import: %s
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: plain}
spec: {provider: sim, config: {token: %s}}
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: default}
spec: {provider: sim, secretRefs: [{argument: token, name: keys, key: token}, {argument: endpoint, name: keys, key: endpoint}]}
`, w.hide("secretRefs").text, w.hide("userinfo of a URL").text, strings.TrimPrefix(w.cloud.Address, "http://"), w.hide("sensitive argument from a Secret").text,
		w.hide("write-only argument").text, w.hide("evaluated").text, w.hide("argument of an action").text, w.hide("ID of an import").text, config.text), "apply", "--server-side", "-f", "-")
	resources := fmt.Sprintf(`
apiVersion: sim.hykube.io/v1
kind: sim-password
metadata: {name: %[1]s}
spec: {length: 32, special: false}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: %[1]s}
spec: {name: "%[1]s", tags: {dsn: "postgres://app:${sim_password.%[1]s.result}@db"}}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: %[1]s}
spec: {name: "%[1]s", network_id: "${sim_network.%[1]s.id}", cidr: 10.0.1.0/24}
---
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: %[1]s}
spec: {name: "%[1]s", subnet_id: "${sim_subnet.%[1]s.id}", image: debian-13, metadata: {startup_script: %[2]s}}
---
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: referring}
spec: {name: referring, subnet_id: "${sim_subnet.%[1]s.id}", image: debian-13, metadata: {startup_script: "${secret.keys.script}"}}
---
apiVersion: sim.hykube.io/v1
kind: ephemeral-sim-token
metadata: {name: %[1]s}
spec: {name: "%[1]s", scopes: [read]}
---
apiVersion: sim.hykube.io/v1
kind: sim-database
metadata: {name: ephemeral}
spec: {name: ephemeral, engine: postgres, engine_version: "17", admin_password_wo: "${ephemeral.sim_token.%[1]s.value}", admin_password_wo_version: 1}
---
apiVersion: sim.hykube.io/v1
kind: sim-database
metadata: {name: writeonly}
spec: {name: writeonly, engine: postgres, engine_version: "17", admin_password_wo: "${secret.keys.admin}", admin_password_wo_version: 1}
---
apiVersion: sim.hykube.io/v1
kind: sim-token
metadata: {name: %[1]s}
spec: {name: "%[1]s"}
`, m, argument.text)
	existing, err := w.cloud.Create(w.Context(), "network", map[string]any{"name": "existing", "cidr": "10.1.0.0/16"})
	if err != nil {
		w.Fatal(err)
	}
	subnet, err := w.cloud.Create(w.Context(), "subnet", map[string]any{"name": "existing", "network_id": existing.ID(), "cidr": "10.1.1.0/24"})
	if err != nil {
		w.Fatal(err)
	}
	script := w.hide("imported attribute").text
	found, err := w.cloud.Create(w.Context(), "instance", map[string]any{
		"name": "existing", "subnet_id": subnet.ID(), "image": "debian-13", "metadata": map[string]any{"startup_script": script},
	})
	if err != nil {
		w.Fatal(err)
	}
	resources += fmt.Sprintf(`
---
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: imported}
spec: {name: existing, subnet_id: %s, image: debian-13}
lifecycle: {import: {id: %s}, ignoreChanges: [metadata]}
`, subnet.ID(), found.ID())
	w.notify()
	w.kubectl(false, resources, "apply", "--server-side", "-f", "-")
	w.kubectl(false, "", "hykube", "apply", "--all", "--auto-approve", "--full")
	w.learn()
	w.fail()
	w.notified()
	w.show()
}

// learn reads the secrets that the cloud made.
func (w *world) learn() {
	w.Helper()
	state := func(plural, attribute string) string {
		out, err := w.Kubectl(w.Context(), "", "get", "--raw", "/apis/sim.hykube.io/v1/namespaces/"+namespace+"/"+plural+"/"+w.marker.text+"/state")
		if err != nil {
			w.Fatal(err)
		}
		_, rest, _ := strings.Cut(out, `"`+attribute+`":"`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	for _, key := range []string{"encryption.key", "audit.key"} {
		data, err := os.ReadFile(filepath.Join(w.Data(), key))
		if err != nil {
			w.Fatal(err)
		}
		w.note(key, strings.TrimSpace(string(data)))
	}
	w.note("computed attribute, also in a tag", state("sim-passwords", "result"))
	w.note("computed attribute that only the create returns", state("sim-tokens", "secret"))
	renewed, err := w.cloud.Find(w.Context(), "token", w.marker.text)
	if err != nil {
		w.Fatal(err)
	}
	w.note("private data", fmt.Sprint(renewed["renewal"]))
	db, err := w.cloud.Find(w.Context(), "database", "ephemeral")
	if err != nil {
		w.Fatal(err)
	}
	w.note("ephemeral value", fmt.Sprint(db["admin_password"]))
}

// fail makes the cloud refuse changes with messages that quote secrets.
func (w *world) fail() {
	w.Helper()
	quote := func(kind, op, text string) {
		if _, err := w.cloud.Fault(w.Context(), simcloud.Fault{Kind: kind, Op: op, Status: 409, Count: 1, Message: w.marker.text + " refuses " + text}); err != nil {
			w.Fatal(err)
		}
	}
	refused := func(object string) {
		message := w.kubectl(false, "", "get", object, "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].message}`)
		if !strings.Contains(message, w.marker.text+" refuses (sensitive value)") {
			w.Errorf("%s does not quote the refusal: %s", object, message)
		}
	}
	quote("network", "update", w.secretOf("computed attribute, also in a tag"))
	w.kubectl(false, "", "patch", "sim-network", w.marker.text, "--type=merge", "-p", `{"spec":{"name":"renamed"}}`)
	w.kubectl(true, "", "hykube", "apply", "--all", "--auto-approve")
	refused("sim-network/" + w.marker.text)
	quote("instance", "create", w.secretOf("sensitive argument from a Secret"))
	w.kubectl(true, `
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: failing}
spec: {name: failing, subnet_id: "${sim_subnet.`+w.marker.text+`.id}", image: debian-13, metadata: {startup_script: "${secret.keys.script}"}}
`, "hykube", "apply", "-f", "-", "--auto-approve")
	refused("sim-instance/failing")
	w.failActionAndImport()
	w.crash()
	quote("bucket", "create", w.secretOf("argument of a ProviderConfig"))
	w.kubectl(false, `
apiVersion: sim.hykube.io/v1
kind: sim-bucket
metadata: {name: plain}
spec: {name: plain}
lifecycle: {providerConfig: plain}
`, "apply", "--server-side", "-f", "-")
	w.kubectl(true, "", "hykube", "apply", "--all", "--auto-approve")
	refused("sim-bucket/plain")
}

// failActionAndImport plans an action and an import whose arguments are secrets. The provider refuses the action and
// quotes its argument, and the ID of the import.
func (w *world) failActionAndImport() {
	w.Helper()
	for object, test := range map[string]struct{ text, want string }{
		"action-sim-reboot/refused": {`{apiVersion: sim.hykube.io/v1, kind: action-sim-reboot, metadata: {name: refused}, spec: {instance_id: "${secret.keys.action}"}}`, "(sensitive value)"},
		"sim-network/refused": {`{apiVersion: sim.hykube.io/v1, kind: sim-network, metadata: {name: refused}, spec: {name: refused}, lifecycle: {import: {id: "${secret.keys.import}"}}}`,
			"No sim_network has the id or the name \"(sensitive value)\""},
	} {
		w.kubectl(false, test.text, "apply", "--server-side", "-f", "-")
		if out := w.kubectl(true, "", "hykube", "apply", "--all", "--auto-approve"); !strings.Contains(out, test.want) {
			w.Errorf("the error of %s lacks %q: %s", object, test.want, out)
		}
		w.kubectl(false, "", "delete", object, "--wait=false")
	}
}

// crash makes the provider write a secret of the cloud to its stderr, and then panic with it. Its output is in the
// server's log alone.
func (w *world) crash() {
	w.Helper()
	said := w.hide(crashed)
	if _, err := w.cloud.Fault(w.Context(), simcloud.Fault{Kind: "network", Op: "update", Status: 418, Count: 1, Message: w.marker.text + " panics with " + said.text}); err != nil {
		w.Fatal(err)
	}
	w.kubectl(false, "", "patch", "sim-network", w.marker.text, "--type=merge", "-p", `{"spec":{"name":"crashing"}}`)
	w.run("", "hykube", "apply", "--all", "--auto-approve", "--full")
	log, err := os.ReadFile(w.LogFile())
	if err != nil {
		w.Fatal(err)
	}
	if !strings.Contains(string(log), "panic: "+w.marker.text+" panics with "+said.text) {
		w.Error("the server's log has no panic of the provider, so the canary of the panic proves nothing")
	}
}

// crashed returns the name of the secret in the output of a provider that panics. Only the server's log has that
// output.
const crashed = "stderr and panic of a provider"

func (w *world) secretOf(name string) string {
	w.Helper()
	for _, s := range w.secrets {
		if s.name == name {
			return s.text
		}
	}
	w.Fatalf("there is no secret %q", name)
	return ""
}

// show runs the verbs that print plans, states and values. It does not matter which of them fail.
func (w *world) show() {
	w.Helper()
	m := w.marker.text
	w.kubectl(false, "apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: "+m+"}\nspec: {replace: [sim-password/"+m+"]}\n", "create", "-f", "-")
	w.kubectl(false, "", "wait", "--for=condition=Planned", "plan/"+m, "--timeout=60s")
	w.kubectl(false, "", "hykube", "discard", m)
	plan, _ := w.run("", "hykube", "plan", "-o", "name", "--replace", "sim-password/"+m)
	plan = strings.TrimSpace(plan)
	plan = plan[strings.LastIndexAny(plan, "/\n")+1:]
	for _, args := range [][]string{
		{"hykube", "show", plan}, {"hykube", "show", plan, "-o", "json"}, {"hykube", "show", plan, "-o", "yaml"}, {"hykube", "show", plan, "-o", "terraform-json"},
		{"hykube", "graph"}, {"hykube", "status"}, {"hykube", "history"}, {"hykube", "state", "list"}, {"hykube", "get", "all"},
		{"hykube", "query", "sim_network"}, {"get", "events"}, {"get", "sim-networks,sim-instances,sim-buckets,plans,providerconfigs,providers", "-o", "jsonpath={.items[*].status}"},
	} {
		w.run("", args...)
	}
	for _, expression := range []string{"secret.keys.unused", "sim_password." + m + ".result", "sim_subnet." + m + ".name"} {
		w.run(expression+"\n", "hykube", "console")
	}
}
