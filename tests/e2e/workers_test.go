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
	"github.com/hykube/hykube/tests/temporal"
)

// TestWorkersShareAPlan has a server and two workers on one PostgreSQL and one Temporal. They share the steps of a plan. Then one
// worker is killed in the middle of a plan, and the other one stands still for longer than its lease, and ends when it runs
// again. No network is made twice, and each plan ends.
func TestWorkersShareAPlan(t *testing.T) {
	const networks, parallel = 48, 9
	cloud := harness.NewCloud(t, simcloud.Config{})
	err := cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(500 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "root.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := append([]string{"--datastore-endpoint", database.PostgreSQL(t), "--encryption-key-file", key}, temporal.Serve(t)...)
	newProcess := func(worker bool, args ...string) *harness.Server {
		return &harness.Server{Dir: t.TempDir(), Worker: worker, Args: append(args, flags...), Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	}
	s := newProcess(false, "--create-database")
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	workers := []*harness.Server{newProcess(true), newProcess(true)}
	for _, w := range workers {
		w.Serve(t)
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		out, err := s.Kubectl(t.Context(), stdin, args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	if out, err := workers[0].Kubectl(t.Context(), "", "get", "namespaces"); err == nil || !strings.Contains(err.Error(), "unable to handle the request") {
		t.Errorf("a worker serves: %s %v", out, err)
	}
	// plan makes a plan of new networks in a namespace, and waits until some of them are made.
	plan := func(namespace string, made int) {
		t.Helper()
		objects := fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim, limits: {concurrency: %d}}\n", parallel)
		for i := range networks {
			objects += fmt.Sprintf("---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {name: %s-%d, cidr: 10.0.%d.0/24}\n", i, namespace, i, i)
		}
		objects += "---\napiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: all}\nspec: {approval: Automatic}\n"
		run("", "create", "namespace", namespace)
		run(objects, "create", "-n", namespace, "-f", "-")
		if err := cloud.WaitCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: namespace + "-*"}, made); err != nil {
			t.Fatal(err)
		}
	}
	// check waits until the plan has ended. Each network is made at most once; of at most a number of them, whose create was running,
	// nobody knows whether they exist.
	check := func(namespace string, unknown int) {
		t.Helper()
		harness.Eventually(t, "the plan of "+namespace+" has ended", func() error {
			_, err := s.Kubectl(t.Context(), "", "wait", "plan/all", "-n", namespace, "--for=jsonpath={.status.finishedAt}", "--timeout=1s")
			return err
		})
		reasons := strings.Fields(run("", "get", "sim-networks", "-n", namespace, "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`))
		n := len(reasons) - strings.Count(strings.Join(reasons, " "), "Applied")
		if len(reasons) != networks || n > unknown {
			t.Errorf("%d of %d are not applied: %s", n, len(reasons), reasons)
		}
		progress := run("", "get", "plan", "all", "-n", namespace, "-o", "jsonpath={.status.progress}")
		if want := fmt.Sprintf(`"done":%d`, networks-n); !strings.Contains(progress, want) {
			t.Errorf("the progress %s lacks %s", progress, want)
		}
		for i := range networks {
			calls, err := cloud.CountCalls(t.Context(), simcloud.Filter{Kind: "network", Op: "create", Name: fmt.Sprintf("%s-%d", namespace, i)})
			if err != nil || calls > 1 || calls == 0 && n == 0 {
				t.Errorf("%d creates of network %s-%d: %v", calls, namespace, i, err)
			}
		}
	}

	plan("shared", 1)
	check("shared", 0)
	for _, p := range append(workers, s) {
		if len(creates(t, p, "shared")) == 0 {
			t.Errorf("%s made none of %d creates", p.Dir, networks)
		}
	}

	plan("killed", networks/4)
	workers[0].Kill()
	check("killed", parallel/3)

	plan("paused", networks/4)
	if err := workers[1].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = workers[1].Signal(syscall.SIGCONT) }()
	check("paused", parallel/2) // the server and this worker share the limit
	if err := workers[1].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := workers[1].Ended(time.Minute); err == nil || !strings.Contains(workers[1].Log(), "the lease of this worker has ended") {
		t.Errorf("the worker ended with %v\n%s", err, workers[1].Log())
	}
}

// creates returns the lines of the audit log of a process about its calls that create networks of a namespace.
func creates(t *testing.T, p *harness.Server, namespace string) (lines []string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(p.Data(), "audit", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"stage":"RequestReceived","requestURI":"/apis/sim.hykube.io/v1/namespaces/`+namespace+`/sim-networks/`) && strings.Contains(line, `/provider","verb":"create"`) {
			lines = append(lines, line)
		}
	}
	return lines
}
