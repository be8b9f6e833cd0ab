package clients

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/hykube/hykube/tests/harness"
)

var restarts = flag.Int("restarts", 5, "how often TestArgoKeepsKinds restarts the server")

// TestArgoKeepsKinds restarts the server under Argo CD's cluster cache, which drops a kind permanently if its watch
// gets 404. Then it installs a provider, and the cache must notice its kinds.
func TestArgoKeepsKinds(t *testing.T) {
	s := serve(t)
	install(t, s, "sim", "hykube/sim")
	argo := cache.NewClusterCache(config(t, s), cache.SetWatchResyncTimeout(0), cache.SetResyncTimeout(0))
	harness.Eventually(t, "Argo CD's cache has synced", argo.EnsureSynced)
	before := argo.GetClusterInfo().APIsCount
	if before < 20 {
		t.Fatalf("the cache watches %d kinds", before)
	}
	for round := range *restarts {
		stop(t, s)
		start(t, s)
		name := fmt.Sprintf("round-%d", round)
		kubectl(t, s, network(name), "apply", "-f", "-")
		sees(t, argo, "sim.hykube.io", "sim-network", name)
		if after := argo.GetClusterInfo().APIsCount; after != before {
			t.Fatalf("restart %d: the cache watched %d kinds, and now %d", round+1, before, after)
		}
	}

	install(t, s, "random", "hashicorp/random")
	late := schema.GroupKind{Group: "random.hykube.io", Kind: "random-id"}
	harness.Eventually(t, "the cache notices the kinds of a provider that comes later", func() error {
		if namespaced, err := argo.IsNamespaced(late); err != nil || !namespaced {
			return fmt.Errorf("%s: namespaced %t, %w", late, namespaced, err)
		}
		return nil
	})
	kubectl(t, s, "apiVersion: random.hykube.io/v1\nkind: random-id\nmetadata: {name: late}\nspec: {byte_length: 8}\n", "apply", "-f", "-")
	harness.Eventually(t, "the cache sees an object of a kind that came later", func() error {
		if len(argo.FindResources("default", cache.ResourceOfGroupKind(late.Group, late.Kind))) == 0 {
			return fmt.Errorf("no %s", late)
		}
		return nil
	})
	if after := argo.GetClusterInfo().APIsCount; after <= before {
		t.Errorf("the cache watches %d kinds, and watched %d before the provider came", after, before)
	}
}

// TestArgoKeepsKindsOfFailedProvider restarts the server under Argo CD's cache with a provider whose files were
// changed, so that the server does not start it again. The server serves its kinds from their record. Without a record
// it says that they are stale.
func TestArgoKeepsKindsOfFailedProvider(t *testing.T) {
	s := serve(t)
	install(t, s, "sim", "hykube/sim")
	argo := cache.NewClusterCache(config(t, s), cache.SetWatchResyncTimeout(0), cache.SetResyncTimeout(0))
	harness.Eventually(t, "Argo CD's cache has synced", argo.EnsureSynced)
	before := argo.GetClusterInfo().APIsCount
	restart := func(installed, kind, object string) {
		start(t, s)
		kubectl(t, s, "", "wait", "--for=condition=Installed="+installed, "--timeout=30s", "provider/sim")
		kubectl(t, s, object, "apply", "-f", "-")
		group := ""
		if kind == "sim-network" {
			group = "sim.hykube.io"
		}
		sees(t, argo, group, kind, "installed-"+installed)
		// A plan reports the missing provider. It does not treat resources that it cannot plan as absent.
		_, err := s.Kubectl(t.Context(), "", "hykube", "plan")
		if notReady := err != nil && strings.Contains(err.Error(), `the provider "sim" is not ready`); notReady != (installed == "false") {
			t.Errorf("installed %s: a plan ends with %v", installed, err)
		}
		if after := argo.GetClusterInfo().APIsCount; after != before {
			t.Fatalf("installed %s: the cache watched %d kinds, and now %d", installed, before, after)
		}
	}

	spoil(t, s, "terraform-provider-sim")
	stop(t, s)
	restart("false", "sim-network", network("installed-false"))
	fresh := cache.NewClusterCache(config(t, s), cache.SetWatchResyncTimeout(0), cache.SetResyncTimeout(0))
	harness.Eventually(t, "a cache that is new has synced", fresh.EnsureSynced)
	if got := fresh.GetClusterInfo().APIsCount; got != before {
		t.Errorf("a new cache watches %d kinds, want %d", got, before)
	}

	stop(t, s)
	if err := os.RemoveAll(filepath.Join(s.Data(), "schemas")); err != nil {
		t.Fatal(err)
	}
	restart("false", "ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed-false, namespace: default}\n")
	stale, err := discovery.NewDiscoveryClientForConfigOrDie(config(t, s)).ServerPreferredResources()
	if failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); !ok || len(failed.Groups) != 1 || len(stale) == 0 {
		t.Errorf("discovery without a record: %d groups, %v; want one group that is stale", len(stale), err)
	}

	stop(t, s)
	if err := os.RemoveAll(filepath.Join(s.Data(), "providers")); err != nil {
		t.Fatal(err)
	}
	restart("true", "sim-network", network("installed-true"))
}

// sees waits until a cache has an object of the namespace "default".
func sees(t *testing.T, argo cache.ClusterCache, group, kind, name string) {
	t.Helper()
	key := kube.NewResourceKey(group, kind, "default", name)
	harness.Eventually(t, "the cache sees what is written after a restart", func() error {
		if len(argo.FindResources("default", func(r *cache.Resource) bool { return r.ResourceKey() == key })) == 0 {
			return fmt.Errorf("no %s", key.String())
		}
		return nil
	})
}

func network(name string) string {
	return fmt.Sprintf("apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %s, namespace: default}\nspec: {name: %s, cidr: 10.0.0.0/16}\n", name, name)
}
