package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/tests/simcloud"
)

// TestAppliesAtOnce starts two commands at the same time, as two pipelines may. Both succeed, and nothing is created
// twice.
func TestAppliesAtOnce(t *testing.T) {
	const rounds = 2
	for _, tt := range []struct {
		reason string
		name   string
		// first and second are the commands; FILE is replaced by the file.
		first, second []string
		// recorded is true if the file is recorded before.
		recorded bool
		creates  int
	}{
		{"the same namespace", "all", []string{"--all"}, []string{"--all"}, true, 4},
		{"the same files", "files", []string{"-f", "FILE"}, []string{"-f", "FILE"}, false, 4},
		{"files and their namespace", "mixed", []string{"--all"}, []string{"-f", "FILE"}, true, 4},
		{"targets that overlap", "targets", []string{"--target", "sim_network.a", "--target", "sim_network.b"},
			[]string{"--target", "sim_network.b", "--target", "sim_subnet.front"}, true, 3},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				name := fmt.Sprintf("race-%s-%d", tt.name, round)
				newNamespace(t, name)
				file := filepath.Join(t.TempDir(), "race.yaml")
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(raced, "NAME", name)), 0o600); err != nil {
					t.Fatal(err)
				}
				if tt.recorded {
					kubectl(t, "apply", "-n", name, "-f", file)
				}
				var both sync.WaitGroup
				for _, args := range [][]string{tt.first, tt.second} {
					cmd := shared.Command(t.Context(), "kubectl-hykube", "apply", "--auto-approve", "-n", name)
					for _, a := range args {
						cmd.Args = append(cmd.Args, strings.ReplaceAll(a, "FILE", file))
					}
					var out bytes.Buffer
					cmd.Stdout, cmd.Stderr = &out, &out
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					both.Go(func() {
						if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "No change can be applied now") {
							t.Errorf("%s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out.String())
						}
					})
				}
				both.Wait()
				n, err := cloud.CountCalls(t.Context(), simcloud.Filter{Name: name + "-*", Op: "create"})
				if err != nil || n != tt.creates {
					t.Errorf("round %d: %d creates, %v; want %d", round, n, err, tt.creates)
				}
			}
		})
	}
}

// raced has resources that depend on each other, and another object that both commands record.
const raced = `apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {cidr: 10.0.0.0/16}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: a}
spec: {name: NAME-a, cidr: "${configmap.app.cidr}"}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: b}
spec: {name: NAME-b, cidr: 10.1.0.0/16}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: c}
spec: {name: NAME-c, cidr: 10.2.0.0/16}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: front}
spec: {name: NAME-front, network_id: "${sim_network.a.id}", cidr: 10.0.1.0/24}
`
