package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/database"
	"github.com/hykube/hykube/tests/simcloud"
)

// TestADatabaseThatRestartsLosesNoAnswer restarts PostgreSQL in the middle of an apply, each time when more calls are
// running. The plan makes each resource once, and knows each of them.
func TestADatabaseThatRestartsLosesNoAnswer(t *testing.T) {
	const networks, restarts = 48, 4
	dsn, restart := database.RestartablePostgreSQL(t)
	cloud := harness.NewCloud(t, simcloud.Config{})
	err := cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(500 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &harness.Server{Args: []string{"--datastore-endpoint", dsn, "--create-database"}, Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		out, err := s.Kubectl(t.Context(), stdin, args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	objects := "apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim, limits: {concurrency: 8}}\n"
	for i := range networks {
		objects += fmt.Sprintf("---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {name: restarts-%d, cidr: 10.0.%d.0/24}\n", i, i, i)
	}
	objects += "---\napiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: all}\nspec: {approval: Automatic}\n"
	run("", "create", "namespace", "restarts")
	run(objects, "create", "-n", "restarts", "-f", "-")
	created := simcloud.Filter{Kind: "network", Op: "create", Name: "restarts-*"}
	for i := range restarts {
		if err := cloud.WaitCalls(t.Context(), created, 1+i*networks/(restarts+1)); err != nil {
			t.Fatal(err)
		}
		if err := restart(); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, "the plan has ended", func() error {
		_, err := s.Kubectl(t.Context(), "", "wait", "plan/all", "-n", "restarts", "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
		return err
	})
	if out := run("", "get", "plan", "all", "-n", "restarts", "--no-headers"); !strings.Contains(out, "Applied") {
		t.Errorf("%s%s", out, run("", "get", "sim-networks", "-n", "restarts", "-o", `jsonpath={range .items[*].status.conditions[?(@.status=="False")]}{.message}{"\n"}{end}`))
	}
	reasons := run("", "get", "sim-networks", "-n", "restarts", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`)
	if n := strings.Count(reasons, "Applied"); n != networks {
		t.Errorf("%d of %d are Applied: %s", n, networks, reasons)
	}
	if n, err := cloud.CountCalls(t.Context(), created); err != nil || n != networks {
		t.Errorf("%d creates, %v; want %d", n, err, networks)
	}
}

// TestAStandbyTakesOver has two servers on one PostgreSQL. The first one is killed in the middle of an apply, and the second
// one goes on. Then the second one is stopped by SIGSTOP in the middle of another apply, and the first one goes on, which a
// supervisor has started again. The second one ends when it may run again. No resource is made twice, and one kubeconfig is
// valid for both.
func TestAStandbyTakesOver(t *testing.T) {
	const networks, parallel = 40, 4
	dsn := database.PostgreSQL(t)
	cloud := harness.NewCloud(t, simcloud.Config{})
	err := cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(300 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "root.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := func() *harness.Server {
		return &harness.Server{Dir: t.TempDir(), Args: []string{"--datastore-endpoint", dsn, "--create-database", "--encryption-key-file", key}, Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	}
	first, second := both(), both()
	first.Serve(t)
	if err := first.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	second.Standby(t)
	run := func(s *harness.Server, stdin string, args ...string) string {
		t.Helper()
		out, err := s.Kubectl(t.Context(), stdin, args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	if out, err := second.Kubectl(t.Context(), "", "get", "namespaces"); err == nil || !strings.Contains(err.Error(), "ServiceUnavailable") {
		t.Errorf("the standby answers %s %v", out, err)
	}
	// plan makes a plan of new networks in a namespace, and waits until some of them are made.
	plan := func(s *harness.Server, namespace string) {
		t.Helper()
		objects := fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim, limits: {concurrency: %d}}\n", parallel)
		for i := range networks {
			objects += fmt.Sprintf("---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {name: %s-%d, cidr: 10.0.%d.0/24}\n", i, namespace, i, i)
		}
		objects += "---\napiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: all}\nspec: {approval: Automatic}\n"
		run(s, "", "create", "namespace", namespace)
		run(s, objects, "create", "-n", namespace, "-f", "-")
		if err := cloud.WaitCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: namespace + "-*"}, networks/4); err != nil {
			t.Fatal(err)
		}
	}
	// check waits until the plan has ended. Each network is made at most once; of those whose create was running, the server
	// may not know whether they exist.
	check := func(s *harness.Server, namespace string) {
		t.Helper()
		harness.Eventually(t, "the plan of "+namespace+" has ended", func() error {
			_, err := s.Kubectl(t.Context(), "", "wait", "plan/all", "-n", namespace, "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
			return err
		})
		reasons := strings.Fields(run(s, "", "get", "sim-networks", "-n", namespace, "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`))
		unknown := len(reasons) - strings.Count(strings.Join(reasons, " "), "Applied")
		if len(reasons) != networks || unknown > parallel {
			t.Errorf("%d of %d are not applied: %s", unknown, len(reasons), reasons)
		}
		for i := range networks {
			n, err := cloud.CountCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: fmt.Sprintf("%s-%d", namespace, i)})
			if err != nil || n > 1 || n == 0 && unknown == 0 {
				t.Errorf("%d creates of network %s-%d: %v", n, namespace, i, err)
			}
		}
	}

	plan(first, "killed")
	first.Kill()
	if err := second.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Standby(t)
	check(second, "killed")
	config, err := second.Config()
	if err != nil {
		t.Fatal(err)
	}
	run(first, "", "get", "namespaces", "--server", config.Host) // with the kubeconfig of the first one

	plan(second, "paused")
	if err := second.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Signal(syscall.SIGCONT) }()
	if err := first.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(first, "paused")
	if err := second.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := second.Ended(time.Minute); err == nil || !strings.Contains(second.Log(), "another server has taken over the database") {
		t.Errorf("the second server ended with %v\n%s", err, second.Log())
	}
	check(first, "paused")
	check(first, "killed")
}
