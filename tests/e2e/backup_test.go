package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/database"
	"github.com/hykube/hykube/tests/simcloud"
)

// hykube runs a command of hykube and returns what it printed.
func hykube(t *testing.T, s *harness.Server, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := s.Command(t.Context(), "hykube", args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// onRestored returns a server, not started, for the data of a backup.
func onRestored(t *testing.T, from *harness.Server, file string, database ...string) *harness.Server {
	t.Helper()
	r := &harness.Server{Binaries: from.Binaries, Dir: t.TempDir(), Env: from.Env, Args: database}
	key, err := os.ReadFile(filepath.Join(from.Data(), "encryption.key"))
	if err == nil {
		err = os.MkdirAll(r.Data(), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Data(), "encryption.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := hykube(t, from, append([]string{"restore", file, "--data-dir", r.Data()}, database...)...); err != nil || !strings.Contains(out, "Start the server. It is frozen") {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	return r
}

// TestABackupIsRestoredElsewhere backs a server up in the middle of an apply, and kills the server. A server on the restored data, in
// SQLite and in PostgreSQL, knows all and applies nothing. After the thaw, new plans are applied; the plan that had begun waits until an
// administrator lets it go on. No network is created twice.
func TestABackupIsRestoredElsewhere(t *testing.T) {
	const first, second = 5, 6
	cloud := harness.NewCloud(t, simcloud.Config{})
	s := startSim(t, cloud, 0)
	runOn(t, s, "", "create", "namespace", "saved")
	runOn(t, s, "", "create", "namespace", "other")
	runOn(t, s, networksFile("saved", first)+fmt.Sprintf(automaticPlan, "first"), "create", "-n", "saved", "-f", "-")
	runOn(t, s, "", "wait", "plan/first", "-n", "saved", "--for=jsonpath={.status.finishedAt}", "--timeout=60s")
	id := runOn(t, s, "", "get", "sim-network", "n0", "-n", "saved", "-o", "jsonpath={.status.attributes.id}")
	err := cloud.Change(t.Context(), func(c *simcloud.Settings) {
		c.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(5 * time.Minute)})
	})
	if err != nil {
		t.Fatal(err)
	}
	runOn(t, s, networksFile("saved", first+second)+fmt.Sprintf(automaticPlan, "second"), "apply", "-n", "saved", "-f", "-")
	created := simcloud.Filter{Kind: "network", Op: "create", Name: "saved-*"}
	if err := cloud.WaitCalls(t.Context(), created, first+1); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := hykube(t, s, "backup", "--output", dir, "--data-dir", s.Data())
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 || !strings.Contains(out, "A restore needs the root key ") {
		t.Fatalf("%v: %s\n%v", err, out, files)
	}
	if out, err := hykube(t, s, "restore", files[0], "--verify", "--data-dir", s.Data()); err != nil || !strings.Contains(out, "complete and unchanged") {
		t.Errorf("%v: %s", err, out)
	}
	s.Kill()
	err = cloud.Change(t.Context(), func(c *simcloud.Settings) {
		c.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: 0})
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := hykube(t, s, "audit", "calls", "--data-dir", s.Data(), "--after-backup", files[0])
	if err != nil || strings.Contains(after, "sim_network.n0 ") {
		t.Errorf("the calls after the backup: %v\n%s", err, after)
	}
	dsn := database.PostgreSQL(t)
	for name, args := range map[string][]string{"SQLite": nil, "PostgreSQL": {"--datastore-endpoint", dsn, "--create-database"}} {
		t.Run(name, func(t *testing.T) {
			r := onRestored(t, s, files[0], args...)
			r.Serve(t)
			before, err := cloud.CountCalls(t.Context(), created)
			if err != nil {
				t.Fatal(err)
			}
			if again := runOn(t, r, "", "get", "sim-network", "n0", "-n", "saved", "-o", "jsonpath={.status.attributes.id}"); again != id {
				t.Errorf("the network has the ID %q, and had %q", again, id)
			}
			namespace := "saved"
			reasonOf := func(plan string) string {
				out, _ := r.Kubectl(t.Context(), "", "get", "plan", plan, "-n", namespace, "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}")
				return out
			}
			becomes := func(plan, reason string) {
				t.Helper()
				harness.Eventually(t, "the plan "+plan+" is "+reason, func() error {
					if is := reasonOf(plan); is != reason {
						return fmt.Errorf("it is %q", is)
					}
					return nil
				})
			}
			becomes("second", "ServerFrozen")
			runOn(t, r, "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: new}\nspec: {name: new-"+strings.ToLower(name)+", cidr: 10.1.0.0/24}\n", "create", "-n", "saved", "-f", "-")
			runOn(t, r, "apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: new}\nspec: {targets: [sim_network.new]}\n", "create", "-n", "saved", "-f", "-")
			becomes("new", "AwaitingApproval")
			digest := runOn(t, r, "", "get", "plan", "new", "-n", "saved", "-o", "jsonpath={.status.digest}")
			if _, err := r.Kubectl(t.Context(), "", "hykube", "approve", "new", "-n", "saved", "--digest", digest); err == nil || !strings.Contains(err.Error(), "The approval is refused. This server is frozen") {
				t.Errorf("the approval says %v", err)
			}
			more := networksFile("more-"+strings.ToLower(name), 1)
			_, err = r.Kubectl(t.Context(), more, "hykube", "apply", "-n", "saved", "-f", "-", "--auto-approve")
			if err == nil || !strings.Contains(err.Error(), "The server applies no plan in namespace saved") ||
				!strings.Contains(err.Error(), "Nothing was changed.") {
				t.Errorf("the apply of files says %v", err)
			}
			status := r.Command(t.Context(), "hykube", "kubectl", "hykube", "status", "-n", "saved")
			if said, err := status.CombinedOutput(); err != nil || !strings.Contains(string(said), "This server is frozen") {
				t.Errorf("the status says %v\n%s", err, said)
			}
			if now, err := cloud.CountCalls(t.Context(), created); err != nil || now != before {
				t.Errorf("the frozen server made %d creates: %v", now-before, err)
			}
			if out := runOn(t, r, "", "hykube", "verify", "-n", "saved"); !strings.Contains(out, "NOT READ") || strings.Contains(out, "changed:") || strings.Contains(out, "gone\n") {
				t.Errorf("the verification:\n%s", out)
			}
			if out := runOn(t, r, "", "hykube", "status", "second", "-n", "saved"); !strings.Contains(out, "approved, and held") || !strings.Contains(out, "kubectl hykube thaw NAMESPACE") {
				t.Errorf("the status of the plan that had begun:\n%s", out)
			}
			// One namespace is thawed: its plans are applied, and those of others are not.
			if _, err := r.Kubectl(t.Context(), "", "hykube", "thaw", "othr", "--auto-approve"); err == nil || !strings.Contains(err.Error(), `namespaces "othr" not found`) {
				t.Errorf("a thaw of a namespace that does not exist says %v", err)
			}
			runOn(t, r, "", "hykube", "thaw", "other", "--auto-approve")
			runOn(t, r, networksFile("other-"+strings.ToLower(name), 1)+fmt.Sprintf(automaticPlan, "one"), "create", "-n", "other", "-f", "-")
			namespace = "other"
			becomes("one", "Applied")
			namespace = "saved"
			if _, err := r.Kubectl(t.Context(), "", "hykube", "approve", "new", "-n", "saved", "--digest", digest); err == nil || !strings.Contains(err.Error(), "The approval is refused. This server is frozen") {
				t.Errorf("after the thaw of another namespace, the approval says %v", err)
			}
			if is := reasonOf("second"); is != "ServerFrozen" {
				t.Errorf("after the thaw of another namespace, the plan that had begun is %s", is)
			}
			if _, err := r.Kubectl(t.Context(), "no\n", "hykube", "thaw", "--all"); err == nil || !strings.Contains(err.Error(), "nothing was thawed") {
				t.Errorf("a thaw without a yes says %v", err)
			}
			runOn(t, r, "yes\n", "hykube", "thaw", "--all")
			runOn(t, r, "", "hykube", "approve", "new", "-n", "saved", "--digest", digest)
			becomes("new", "Applied")
			if is := reasonOf("second"); is != "ServerFrozen" {
				t.Errorf("the plan that had begun is %s", is)
			}
			if name == "SQLite" {
				return // both restored servers know the same cloud, so only one goes on
			}
			if err := r.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			becomes("second", "ServerFrozen")
			runOn(t, r, "", "hykube", "thaw", "saved", "--plans", "--auto-approve")
			runOn(t, r, "", "wait", "plan/second", "-n", "saved", "--for=jsonpath={.status.finishedAt}", "--timeout=60s")
			calls, err := cloud.Calls(t.Context(), created)
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]int{}
			for _, c := range calls {
				made[c.Name]++
			}
			for n, times := range made {
				if times > 1 {
					t.Errorf("network %s was created %d times", n, times)
				}
			}
			if len(made) < first+second-2 {
				t.Errorf("only %d networks were created: %v", len(made), made)
			}
		})
	}
}

// TestABackupNeedsItsRight asks as a user without rights, and looks for the record of the administrator's backup.
func TestABackupNeedsItsRight(t *testing.T) {
	s := &harness.Server{}
	s.Serve(t)
	for _, path := range []string{"/backup", "/thaw"} {
		out, err := s.Kubectl(t.Context(), "", "auth", "can-i", "post", path, "--as", "someone")
		if err == nil || !strings.HasPrefix(strings.TrimSpace(out), "no") {
			t.Errorf("someone may post %s: %v, %s", path, err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "b.tar")
	if out, err := hykube(t, s, "backup", "-o", file, "--data-dir", s.Data()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log, err := os.ReadFile(filepath.Join(s.Data(), "audit", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]bool{}
	for line := range strings.Lines(string(log)) {
		var e struct {
			RequestURI, Stage, Verb string
		}
		if err := json.Unmarshal([]byte(line), &e); err == nil && e.RequestURI == "/backup" {
			stages[e.Stage] = true
		}
	}
	if !stages["RequestReceived"] || !stages["ResponseComplete"] {
		t.Errorf("the audit log has the stages %v", stages)
	}
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "age.key")
	if err := os.WriteFile(identity, []byte(own.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(t.TempDir(), "b.tar.age")
	if out, err := hykube(t, s, "backup", "-o", sealed, "--age-recipient", own.Recipient().String(), "--data-dir", s.Data()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := hykube(t, s, "restore", sealed, "--verify", "--data-dir", s.Data()); err == nil || !strings.Contains(out, "--age-identity") {
		t.Errorf("without the identity: %v: %s", err, out)
	}
	if out, err := hykube(t, s, "restore", sealed, "--verify", "--age-identity", identity, "--data-dir", s.Data()); err != nil {
		t.Errorf("with the identity: %v: %s", err, out)
	}
	data, err := os.ReadFile(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sealed, data[:len(data)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := hykube(t, s, "restore", sealed, "--verify", "--age-identity", identity, "--data-dir", s.Data()); err == nil {
		t.Errorf("a truncated one: %s", out)
	}
}
