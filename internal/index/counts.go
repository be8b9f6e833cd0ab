package index

import (
	"context"
	"maps"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/metrics"
)

// Counts returns how many resources of each namespace drifted or failed, as of the last refresh. It counts only the
// namespaces that changed since the last call, and does not wait for a refresh: it then returns the numbers of the last
// call. A namespace without resources is left out.
func (x *Index) Counts() map[string]metrics.Resources {
	x.counting.Lock()
	defer x.counting.Unlock()
	if x.mu.TryLock() {
		for name := range x.uncounted {
			ns := x.namespaces[name]
			if ns == nil || ns.objects == 0 {
				delete(x.counts, name)
				continue
			}
			x.counts[name] = ns.count()
		}
		clear(x.uncounted)
		x.mu.Unlock()
	}
	return maps.Clone(x.counts)
}

// OfProvider refreshes the index and counts the objects and instances of a provider in each namespace that has any.
func (x *Index) OfProvider(ctx context.Context, provider string) (map[string]int, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	counts := map[string]int{}
	for name, ns := range x.namespaces {
		for i := range ns.nodes {
			if o := ns.nodes[i].Object; o != nil && o.Provider == provider {
				counts[name]++
			}
		}
	}
	return counts, err
}

// count counts the resources of a namespace.
func (ns *namespace) count() (n metrics.Resources) {
	for i := range ns.nodes {
		o := ns.nodes[i].Object
		switch {
		case o == nil || o.Mode != v1alpha1.ModeManaged && o.Mode != "":
		case o.Has(Failed):
			n.Failed++
		case o.Has(Drifted) || o.Has(Stalled):
			n.Drifted++
		}
	}
	return n
}
