package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// TestAHangingNamespaceLeavesRoomForOthers occupies all provider processes that one namespace can get, with 66
// ProviderConfigs whose calls hang. Meanwhile another namespace plans and applies.
func TestAHangingNamespaceLeavesRoomForOthers(t *testing.T) {
	const configs, plans = 66, 3
	fault, err := cloud.Fault(t.Context(), simcloud.Fault{Kind: "network", Name: "fairness-hangs", Action: simcloud.ActionHang})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.RemoveFault(context.Background(), fault.ID); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "create", "namespace", "fairness-hog")
	newNamespace(t, "fairness-quiet")

	var hog strings.Builder
	for i := range configs {
		fmt.Fprintf(&hog, hanging, i)
	}
	for i := range plans {
		fmt.Fprintf(&hog, "---\napiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: p%d}\nspec:\n  targets:\n", i)
		for n := i; n < configs; n += plans {
			fmt.Fprintf(&hog, "  - data.sim_network.n%d\n", n)
		}
	}
	kubectlWith(t, hog.String(), "create", "-n", "fairness-hog", "-f", "-")
	harness.Eventually(t, "the hanging calls of 48 processes", func() error {
		n, err := cloud.CountCalls(t.Context(), simcloud.Filter{Name: "fairness-hangs"})
		if err == nil && n < 48 {
			err = fmt.Errorf("%d calls hang", n)
		}
		return err
	})

	began := time.Now()
	kubectlWith(t, quietBucket, "apply", "-n", "fairness-quiet", "-f", "-")
	out, err := shared.Command(t.Context(), "kubectl-hykube", "apply", "--all", "--auto-approve", "-n", "fairness-quiet").CombinedOutput()
	if took := time.Since(began); err != nil || took > 20*time.Second {
		t.Errorf("the other namespace: %v after %s\n%s", err, took, out)
	}

	harness.Eventually(t, "the names of the resources in the status", func() error {
		out := kubectl(t, "get", "plan", "p0", "-n", "fairness-hog", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		if !strings.Contains(out, "AwaitingProvider") || !strings.Contains(out, "data.sim_network.n") {
			return fmt.Errorf("condition %s", out)
		}
		return nil
	})
	began = time.Now()
	kubectl(t, "hykube", "cancel", "p0", "-n", "fairness-hog")
	kubectl(t, "wait", "plan/p0", "-n", "fairness-hog", "--for=jsonpath={.status.finishedAt}", "--timeout=20s")
	t.Logf("the cancel of a hanging plan took %s", time.Since(began))
}

// hanging is a data source with its own ProviderConfig. The ProviderConfigs differ in max_retries, so they share no
// process.
const hanging = `---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: c%[1]d}
spec: {provider: sim, config: {max_retries: %[1]d}}
---
apiVersion: sim.hykube.io/v1
kind: data-sim-network
metadata: {name: n%[1]d}
spec: {name: fairness-hangs}
lifecycle: {providerConfig: c%[1]d}
`

const quietBucket = `apiVersion: sim.hykube.io/v1
kind: sim-bucket
metadata: {name: notes}
spec: {name: fairness-notes}
`
