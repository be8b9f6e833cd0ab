package planning

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// page holds loaded nodes with their dependencies.
type page struct {
	nodes  []*node
	byAddr map[lang.Address]int
}

func newPage(nodes []*node) page {
	p := page{nodes: nodes, byAddr: make(map[lang.Address]int, len(nodes))}
	for i, n := range nodes {
		p.byAddr[n.Address] = i
	}
	return p
}

// nodesAt returns the positions of the nodes with some addresses.
func (s *page) nodesAt(addrs []lang.Address) []int {
	out := make([]int, 0, len(addrs))
	for _, a := range addrs {
		if i, ok := s.byAddr[a]; ok {
			out = append(out, i)
		}
	}
	return out
}

// leaves reports whether the plan removes the resource with an address. A data source depends on the instances that
// leave a set.
func (s *page) leaves(addr lang.Address) bool {
	i, ok := s.byAddr[addr]
	return ok && !s.nodes[i].wanted
}

// dependenciesWithChanges is transitiveDependencies without ephemeral resources, which have no changes.
func (s *page) dependenciesWithChanges(addrs []lang.Address, modes ...v1alpha1.Mode) []lang.Address {
	ephemeral := func(addr lang.Address) bool { return addr.Mode == v1alpha1.ModeEphemeral }
	return slices.DeleteFunc(s.transitiveDependencies(addrs, modes...), ephemeral)
}

// transitiveDependencies returns the addresses with the dependencies of those that have one of the modes, recursively.
func (s *page) transitiveDependencies(addrs []lang.Address, modes ...v1alpha1.Mode) []lang.Address {
	var out []lang.Address
	seen := map[lang.Address]bool{}
	for queue := slices.Clone(addrs); len(queue) > 0; queue = queue[1:] {
		addr := queue[0]
		if seen[addr] {
			continue
		}
		seen[addr] = true
		if i, ok := s.byAddr[addr]; ok && slices.Contains(modes, s.nodes[i].Mode) {
			queue = append(queue, s.nodes[i].DependsOn...)
		}
		out = append(out, addr)
	}
	return out
}

// texts returns addresses as strings; nil if there are none.
func texts(addresses []lang.Address) []string {
	var out []string
	for _, addr := range addresses {
		out = append(out, addr.String())
	}
	return out
}
