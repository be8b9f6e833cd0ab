package e2e

import (
	"fmt"
	"strings"
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
	s := &harness.Server{Args: []string{"--datastore-endpoint", dsn}, Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
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
