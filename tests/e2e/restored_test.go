package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// networksFile returns a ProviderConfig and networks of the simulated cloud.
func networksFile(prefix string, n int) string {
	var text strings.Builder
	text.WriteString("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim, limits: {concurrency: 2}}\n")
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {name: %s-%d, cidr: 10.0.%d.0/24}\n", i, prefix, i, i)
	}
	return text.String()
}

const automaticPlan = "---\napiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: %s}\nspec: {approval: Automatic}\n"

// startSim starts a server with the provider of a simulated cloud, whose creates take a while.
func startSim(t *testing.T, cloud *harness.Cloud, create time.Duration) *harness.Server {
	t.Helper()
	err := cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(create)})
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &harness.Server{Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func runOn(t *testing.T, s *harness.Server, stdin string, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// copyServer returns a server on a copy of a directory, as a backup of a running server is.
func copyServer(t *testing.T, s *harness.Server) *harness.Server {
	t.Helper()
	c := &harness.Server{Dir: t.TempDir(), Env: s.Env}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", s.Data(), filepath.Join(c.Dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// TestAPlanOnACopyWaits kills a server in the middle of an apply, and starts another one on a copy of its directory. The plan
// waits there, with Temporal's files and after a restart, too. It goes on when the administrator accepts the copy.
func TestAPlanOnACopyWaits(t *testing.T) {
	const networks = 12
	cloud := harness.NewCloud(t, simcloud.Config{})
	s := startSim(t, cloud, 500*time.Millisecond)
	runOn(t, s, "", "create", "namespace", "copies")
	runOn(t, s, networksFile("copies", networks)+fmt.Sprintf(automaticPlan, "all"), "create", "-n", "copies", "-f", "-")
	created := simcloud.Filter{Kind: "network", Op: "create", Name: "copies-*"}
	if err := cloud.WaitCalls(t.Context(), created, 3); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	before, err := cloud.CountCalls(t.Context(), created)
	if err != nil {
		t.Fatal(err)
	}
	c := copyServer(t, s)
	c.Serve(t)
	waits := func(why string) {
		t.Helper()
		harness.Eventually(t, "the plan waits "+why, func() error {
			_, err := c.Kubectl(t.Context(), "", "wait", "plan/all", "-n", "copies", "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=ServerCopied", "--timeout=1s")
			return err
		})
		// A later plan that approves itself waits, too. It is planned, so the workers run.
		name := strings.ReplaceAll(why, " ", "-")
		runOn(t, c, fmt.Sprintf(automaticPlan, name), "create", "-n", "copies", "-f", "-")
		harness.Eventually(t, "the plan "+name+" waits", func() error {
			out, err := c.Kubectl(t.Context(), "", "get", "plan", name, "-n", "copies", "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}")
			if err == nil && out != "ServerCopied" && out != "NoChanges" && out != "Deferred" {
				err = fmt.Errorf("its reason is %q", out)
			}
			return err
		})
		if now, err := cloud.CountCalls(t.Context(), created); err != nil || now != before {
			t.Fatalf("the copy made %d creates %s: %v", now-before, why, err)
		}
	}
	waits("on the copy")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits("after a restart")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	c.Args = []string{"--accept-restored"}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the accepted plan has ended", func() error {
		_, err := c.Kubectl(t.Context(), "", "wait", "plan/all", "-n", "copies", "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
		return err
	})
	if made, err := cloud.CountCalls(t.Context(), created); err != nil || made > networks {
		t.Errorf("%d creates of %d networks: %v", made, networks, err)
	}
}

// TestARestoredLedgerMakesNoDuplicate puts a ledger from before 6 creates beside the objects. The server does not start. After
// the administrator accepted it, no plan creates the resources again, until a user says which of them exist.
func TestARestoredLedgerMakesNoDuplicate(t *testing.T) {
	const networks = 6
	cloud := harness.NewCloud(t, simcloud.Config{})
	s := startSim(t, cloud, 0)
	runOn(t, s, "", "create", "namespace", "restored")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	older := copyServer(t, s)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runOn(t, s, networksFile("restored", networks)+fmt.Sprintf(automaticPlan, "all"), "create", "-n", "restored", "-f", "-")
	finished := func(plan string) {
		t.Helper()
		harness.Eventually(t, "the plan "+plan+" has ended", func() error {
			_, err := s.Kubectl(t.Context(), "", "wait", "plan/"+plan, "-n", "restored", "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
			return err
		})
	}
	finished("all")
	id := runOn(t, s, "", "get", "sim-network", "n0", "-n", "restored", "-o", "jsonpath={.status.attributes.id}")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		name := filepath.Join("data", "db", "ledger.db"+suffix)
		_ = os.Remove(filepath.Join(s.Dir, name))
		_ = os.Rename(filepath.Join(older.Dir, name), filepath.Join(s.Dir, name))
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the store of the ledger is older than the objects") {
		t.Fatalf("the start says %v", err)
	}
	s.Args = []string{"--accept-restored"}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The command finds them before a plan does.
	out, err := s.Kubectl(t.Context(), "", "hykube", "resolve", "--all", "--search", "-n", "restored")
	if err == nil || strings.Count(out, "\nsim_network.") != networks-1 || !strings.HasPrefix(out, "sim_network.n0 "+id+"\n") {
		t.Errorf("resolve --all --search: %v\n%s", err, out)
	}
	runOn(t, s, fmt.Sprintf(automaticPlan, "again"), "create", "-n", "restored", "-f", "-")
	finished("again")
	if out := runOn(t, s, "", "get", "plan", "again", "-n", "restored", "-o", "jsonpath={.status.diagnostics[*].detail}"); !strings.Contains(out, "the ledger has no record of it") || !strings.Contains(out, id) {
		t.Errorf("the plan does not say what is lost:\n%s", out)
	}
	runOn(t, s, "", "hykube", "resolve", "sim-network/n0", "-n", "restored", "--adopt", id, "--auto-approve")
	runOn(t, s, "", "hykube", "resolve", "sim-network/n1", "-n", "restored", "--retry", "--auto-approve")
	if out := runOn(t, s, "", "hykube", "resolve", "--all", "--search", "-n", "restored", "--auto-approve"); !strings.Contains(out, fmt.Sprintf("%d imported, 0 added", networks-2)) {
		t.Errorf("the others are not adopted:\n%s", out)
	}
	if made, err := cloud.CountCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: "restored-*"}); err != nil || made != networks {
		t.Errorf("%d creates of %d networks: %v", made, networks, err)
	}
	if out := runOn(t, s, "", "get", "sim-network", "n0", "-n", "restored", "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}"); out != "Applied" {
		t.Errorf("the adopted network is %s", out)
	}
}

// TestRecordsWithoutAnObjectAreNamed puts objects from before 3 creates beside the ledger. After the administrator accepted them,
// the commands name the records without an object, forget one, and import its resource again.
func TestRecordsWithoutAnObjectAreNamed(t *testing.T) {
	const networks = 3
	cloud := harness.NewCloud(t, simcloud.Config{})
	s := startSim(t, cloud, 0)
	runOn(t, s, "", "create", "namespace", "orphans")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	older := copyServer(t, s)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runOn(t, s, networksFile("orphans", networks)+fmt.Sprintf(automaticPlan, "all"), "create", "-n", "orphans", "-f", "-")
	finished := func(plan string) {
		t.Helper()
		harness.Eventually(t, "the plan "+plan+" has ended", func() error {
			_, err := s.Kubectl(t.Context(), "", "wait", "plan/"+plan, "-n", "orphans", "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
			return err
		})
	}
	finished("all")
	id := runOn(t, s, "", "get", "sim-network", "n0", "-n", "orphans", "-o", "jsonpath={.status.attributes.id}")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		name := filepath.Join("data", "db", "state.db"+suffix)
		_ = os.Remove(filepath.Join(s.Dir, name))
		_ = os.Rename(filepath.Join(older.Dir, name), filepath.Join(s.Dir, name))
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the store of the objects is older than the ledger") {
		t.Fatalf("the start says %v", err)
	}
	s.Args = []string{"--accept-restored"}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := runOn(t, s, "", "hykube", "state", "list", "-n", "orphans", "-o", "json"); strings.Count(out, `"reason": "WithoutObject"`) != networks || !strings.Contains(out, id) {
		t.Errorf("the list of the states:\n%s", out)
	}
	if out := runOn(t, s, "", "hykube", "status", "-n", "orphans"); !strings.Contains(out, "Records without an object") || !strings.Contains(out, "sim-network/n0: the ID "+id) {
		t.Errorf("the status:\n%s", out)
	}
	if _, err := s.Kubectl(t.Context(), "", "hykube", "resolve", "sim-network/n0", "-n", "orphans", "--retry", "--auto-approve"); err == nil || !strings.Contains(err.Error(), "has a record and no object") {
		t.Errorf("a retry: %v", err)
	}
	runOn(t, s, "", "hykube", "resolve", "sim-network/n0", "-n", "orphans", "--forget", "--auto-approve")
	if out := runOn(t, s, "", "hykube", "state", "list", "-n", "orphans", "-o", "json"); strings.Count(out, `"reason": "WithoutObject"`) != networks-1 || strings.Contains(out, id) {
		t.Errorf("after the record was forgotten:\n%s", out)
	}
	runOn(t, s, "apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim}\n", "create", "-n", "orphans", "-f", "-")
	runOn(t, s, "", "hykube", "import", "sim-network/n0", id, "-n", "orphans", "--auto-approve")
	if out := runOn(t, s, "", "get", "sim-network", "n0", "-n", "orphans", "-o", "jsonpath={.status.attributes.id}"); out != id {
		t.Errorf("the imported network has the ID %q, want %q", out, id)
	}
	if made, err := cloud.CountCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: "orphans-*"}); err != nil || made != networks {
		t.Errorf("%d creates of %d networks: %v", made, networks, err)
	}
}
