package planning

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
)

// visits are the members of a plan that it visits, and those that its survey checks.
type visits struct {
	*members
	// depends and dependants are the dependencies of the members, by slot, in both directions.
	depends, dependants *graph.Edges
	// root[i] is true if the object with slot i is a member and changed, or if the plan's spec forces its change.
	// closure[i] is true if it is a root, or depends on one.
	root, closure []bool
	// visited[i] is true if the survey stores a change for the object with slot i, or if it is an ephemeral resource.
	// checked[i] is true if the survey checks its references.
	visited, checked []bool
}

// newVisits determines the objects that a plan visits.
func newVisits(m *members) *visits {
	v := &visits{members: m}
	v.selectVisited()
	v.selectChecked()
	return v
}

// selectVisited sets closure and visited. The plan visits the changed objects. It visits their dependants during
// planning if a value changes; see worklist.
func (v *visits) selectVisited() {
	forced := map[int]bool{}
	for addr := range v.targets.forced {
		if i, ok := v.Slot(addr); ok {
			forced[i] = true
		}
	}
	v.root = make([]bool, len(v.Nodes))
	var roots []int
	for i := range v.Nodes {
		if v.root[i] = v.member[i] && (forced[i] || v.changed(i)); v.root[i] {
			roots = append(roots, i)
		}
	}
	v.linkMembers()
	v.selectClosure(roots)
	v.visited = make([]bool, len(v.Nodes))
	for _, i := range v.throughEphemerals(roots) {
		v.visited[i] = v.canVisit(i)
	}
	if len(roots) == 0 {
		return
	}
	order, _ := graph.Order(len(v.Nodes), func(i int) []int {
		if !v.closure[i] {
			return nil
		}
		return v.depends.Of(i)
	})
	if order == nil { // the survey reports the cycle
		for i := range v.closure {
			v.visited[i] = v.closure[i] && v.canVisit(i)
		}
	}
}

// linkMembers sets depends and dependants.
func (v *visits) linkMembers() {
	edges := v.edges(func(i int) []int32 {
		if !v.member[i] {
			return nil
		}
		return v.dependencies(i)
	})
	v.depends = graph.Collect(len(edges), func(i int) []int { return edges[i].Deps })
	v.dependants = v.depends.Reverse()
}

// selectClosure sets closure: the objects in scope that are roots, or depend on one.
func (v *visits) selectClosure(roots []int) {
	v.closure = make([]bool, len(v.Nodes))
	for _, i := range v.dependants.Reach(roots) {
		v.closure[i] = v.member[i] && v.Nodes[i].Object != nil
	}
}

// throughEphemerals returns the roots, and the objects that refer to an ephemeral resource among them. The plan stores
// nothing about an ephemeral resource, so its dependants count as changed with it.
func (v *visits) throughEphemerals(roots []int) []int {
	out := slices.Clone(roots)
	seen := map[int]bool{}
	for _, i := range roots {
		seen[i] = true
	}
	for k := 0; k < len(out); k++ {
		if object := v.Nodes[out[k]].Object; object == nil || object.Mode != v1alpha1.ModeEphemeral {
			continue
		}
		for _, d := range v.dependants.Of(out[k]) {
			if !seen[d] && v.member[d] {
				seen[d] = true
				out = append(out, d)
			}
		}
	}
	return out
}

// selectChecked sets checked. The survey checks the visited objects, those with references or a lifecycle.moved that
// may be wrong, and the first user of each ProviderConfig. The check of that user reports the errors of the
// ProviderConfig.
func (v *visits) selectChecked() {
	users := map[use]int{}
	v.checked = slices.Clone(v.visited)
	for i, n := range v.Nodes {
		if !v.member[i] {
			continue
		}
		u, _ := v.config(i)
		if slices.Contains(u.refersTo, int32(i)) {
			v.checked[i] = true
		}
		if !v.parsed(i) {
			continue
		}
		absent := u.ProviderConfigRef == nil && n.Object.Config != ""
		if absent || v.moves.failed[i] != nil || n.Object.Has(index.Suspicious) ||
			v.versionOutside(n.Object.Outside).broken || slices.ContainsFunc(n.Object.DependsOn, v.unreliable) {
			v.checked[i] = true
		}
		key := use{provider: n.Object.Provider, config: n.Object.Config}
		if first, ok := users[key]; !ok || v.before(i, first) < 0 {
			users[key] = i
		}
	}
	for _, i := range users {
		v.checked[i] = true
	}
}

// unreliable reports whether a reference to a slot may be an error: no object has its address, or the object goes away.
func (v *visits) unreliable(d int32) bool {
	n := v.Nodes[d]
	_, moved := v.moves.to[int(d)]
	return n.Object == nil || n.Object.Has(index.Deleting) || moved
}

// leavesDeposed returns a predicate: must the replace of the resource with an address leave its old instance to a later
// plan? As in Terraform, a target includes its dependencies but not their deposed instances. Without targets, the old
// instance must stay while a dependant outside of the plan refers to it by its record.
func (v *visits) leavesDeposed(changes func(lang.Address) bool) func(lang.Address) bool {
	if len(v.targets.named) > 0 {
		return func(addr lang.Address) bool { return !v.targets.named[addr] }
	}
	held := map[int32]bool{}
	if !v.leavesOut() {
		return func(lang.Address) bool { return false }
	}
	for i, n := range v.Nodes {
		_, moved := v.moves.to[i]
		if n.Object == nil || !v.record(i).Living || changes(n.Object.Address()) || v.closure[i] && !moved {
			continue
		}
		for _, d := range v.requires(i) {
			held[d] = true
		}
	}
	return func(addr lang.Address) bool {
		i, ok := v.Slot(addr)
		return ok && held[int32(i)]
	}
}

// destroysRecorded reports whether the plan visits a recorded resource that is marked for deletion.
func (v *visits) destroysRecorded() bool {
	for i, n := range v.Nodes {
		if v.visited[i] && n.Object.Has(index.Deleting) && v.record(i).Exists {
			return true
		}
	}
	return false
}

// orderOf sorts slots so that each object follows those that it depends on. If there is a cycle, order is nil.
func (v *visits) orderOf(slots []int) (order, cycle []int) {
	local := make(map[int32]int, len(slots))
	for k, i := range slots {
		local[int32(i)] = k
	}
	order, cycle = graph.Order(len(slots), func(k int) []int {
		var deps []int
		for _, d := range v.dependencies(slots[k]) {
			if l, ok := local[d]; ok {
				deps = append(deps, l)
			}
		}
		return deps
	})
	for k := range order {
		order[k] = slots[order[k]]
	}
	for k := range cycle {
		cycle[k] = slots[cycle[k]]
	}
	return order, cycle
}

// isWhole reports whether the plan visits each object that depends on a changed one.
func (v *visits) isWhole() bool {
	for i, in := range v.closure {
		if in && !v.visited[i] && v.canVisit(i) {
			return false
		}
	}
	return true
}
