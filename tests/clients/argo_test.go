package clients

import (
	"flag"
	"fmt"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var restarts = flag.Int("restarts", 5, "how often TestArgoKeepsKinds restarts the server")

// TestArgoKeepsKinds restarts the server under Argo CD's cache of a cluster, which drops a kind for good when its watch gets 404,
// and then installs a provider, whose kinds the cache has to notice.
func TestArgoKeepsKinds(t *testing.T) {
	h := newHouse(t)
	h.ready(t)
	h.install(t, "sim", "hykube/sim")
	argo := cache.NewClusterCache(h.config(t), cache.SetWatchResyncTimeout(0), cache.SetResyncTimeout(0))
	eventually(t, waitLimit, "Argo CD's cache has synced", argo.EnsureSynced)
	before := argo.GetClusterInfo().APIsCount
	if before < 20 {
		t.Fatalf("the cache watches %d kinds", before)
	}
	for round := range *restarts {
		h.stop(t)
		h.start(t)
		h.ready(t)
		name := fmt.Sprintf("round-%d", round)
		if err := h.kubectl(t, network(name), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		key := kube.NewResourceKey("sim.hykube.io", "sim-network", "default", name)
		eventually(t, waitLimit, "the cache sees what is written after a restart", func() error {
			if len(argo.FindResources("default", func(r *cache.Resource) bool { return r.ResourceKey() == key })) == 0 {
				return fmt.Errorf("no %s", key.String())
			}
			return nil
		})
		if after := argo.GetClusterInfo().APIsCount; after != before {
			t.Fatalf("restart %d: the cache watched %d kinds, and now %d", round+1, before, after)
		}
	}

	h.install(t, "random", "hashicorp/random")
	late := schema.GroupKind{Group: "random.hykube.io", Kind: "random-id"}
	eventually(t, waitLimit, "the cache notices the kinds of a provider that comes later", func() error {
		if namespaced, err := argo.IsNamespaced(late); err != nil || !namespaced {
			return fmt.Errorf("%s: namespaced %t, %w", late, namespaced, err)
		}
		return nil
	})
	if err := h.kubectl(t, "apiVersion: random.hykube.io/v1\nkind: random-id\nmetadata: {name: late}\nspec: {byte_length: 8}\n", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "the cache sees an object of a kind that came later", func() error {
		if len(argo.FindResources("default", cache.ResourceOfGroupKind(late.Group, late.Kind))) == 0 {
			return fmt.Errorf("no %s", late)
		}
		return nil
	})
	if after := argo.GetClusterInfo().APIsCount; after <= before {
		t.Errorf("the cache watches %d kinds, and watched %d before the provider came", after, before)
	}
}

func network(name string) string {
	return fmt.Sprintf("apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %s, namespace: default}\nspec: {name: %s, cidr: 10.0.0.0/16}\n", name, name)
}
