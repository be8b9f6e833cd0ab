package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/database"
	"github.com/hykube/hykube/tests/simcloud"
)

// TestAnInstallationMovesToAnotherDatabase kills a server in the middle of an apply, and moves its database from SQLite to PostgreSQL. The
// server continues the apply there, and each network is created once. It does not start with the old database again.
func TestAnInstallationMovesToAnotherDatabase(t *testing.T) {
	const count = 12
	cloud := harness.NewCloud(t, simcloud.Config{})
	s := startSim(t, cloud, 0)
	runOn(t, s, "", "create", "namespace", "moving")
	err := cloud.Change(t.Context(), func(c *simcloud.Settings) {
		c.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: simcloud.Duration(300 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := hykube(t, s, "migrate", "--to", database.PostgreSQL(t), "--create-database", "--data-dir", s.Data()); err == nil || !strings.Contains(out, "another server uses it") {
		t.Errorf("beside the server, the migration says %v: %s", err, out)
	}
	runOn(t, s, networksFile("moving", count)+fmt.Sprintf(automaticPlan, "first"), "create", "-n", "moving", "-f", "-")
	created := simcloud.Filter{Kind: "network", Op: "create", Name: "moving-*"}
	if err := cloud.WaitCalls(t.Context(), created, 2); err != nil {
		t.Fatal(err)
	}
	uid := runOn(t, s, "", "get", "sim-network", "n0", "-n", "moving", "-o", "jsonpath={.metadata.uid}")
	s.Kill()
	dsn := database.PostgreSQL(t)
	out, err := hykube(t, s, "migrate", "--to", dsn, "--create-database", "--data-dir", s.Data())
	if err != nil || !strings.Contains(out, "Start the server with the new database") {
		t.Fatalf("%v: %s", err, out)
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("a server starts with the old database")
	}
	s.Args = append(s.Args, "--datastore-endpoint", dsn)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runOn(t, s, "", "wait", "plan/first", "-n", "moving", "--for=jsonpath={.status.finishedAt}", "--timeout=120s")
	if again := runOn(t, s, "", "get", "sim-network", "n0", "-n", "moving", "-o", "jsonpath={.metadata.uid}"); again != uid {
		t.Errorf("the object has the UID %q, and had %q", again, uid)
	}
	calls, err := cloud.Calls(t.Context(), created)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, c := range calls {
		if made[c.Name]++; made[c.Name] > 1 {
			t.Errorf("network %s was created %d times", c.Name, made[c.Name])
		}
	}
	said, err := hykube(t, s, "audit", "calls", "--file", filepath.Join(s.Data(), "audit", "audit.log"))
	if err != nil || strings.Count(said, " create ") < len(made) || !strings.Contains(said, "sim_network.n0") {
		t.Errorf("the audit log has the calls %v\n%s", err, said)
	}
}
