package planning

import (
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// members is the scope of a plan or of a stack: the objects that it may change.
type members struct {
	*versions
	targets *targets
	// member[i] is true if slot i has an object in scope. createsFirst[i] is true if a replace must create first.
	member, createsFirst []bool
	// inScope is the number of members, and recorded is the number of those resources with recorded infrastructure.
	inScope, recorded int
	// readTo is the last resource of a plan with a read budget, if others follow.
	readTo string
}

// newMembers determines the scope of a plan. Without a selector and targets, it has all objects. Otherwise, it has the
// selected objects with their dependencies or, for a destroy, their dependants. The error is one of reading a
// ProviderConfig.
func newMembers(v *versions, t *targets) (*members, error) {
	m := &members{versions: v, targets: t, member: make([]bool, len(v.Nodes))}
	if err := v.readConfigs(); err != nil {
		return nil, err
	}
	var roots []int
	for i, n := range m.Nodes {
		if n.Object != nil && t.selects(n.Object.Address(), n.Object.Labels) {
			roots = append(roots, i)
		}
	}
	t.checkSelector(len(roots))
	selected := roots
	if m.spec.ReadBudget == nil {
		selected = m.expand(roots)
	}
	for _, i := range m.limitReads(selected) {
		n := m.Nodes[i]
		if n.Object == nil || n.Object.Has(index.KeysUnknown) { // no plan changes what waits for values to be known
			continue
		}
		m.member[i] = true
		m.inScope++
		if n.Object.Mode == v1alpha1.ModeManaged && m.record(i).Exists {
			m.recorded++
		}
	}
	m.propagateCreatesFirst()
	return m, nil
}

// leavesOut reports whether the scope may lack objects because of the spec, or because they wait.
func (m *members) leavesOut() bool {
	return len(m.spec.Targets) > 0 || m.spec.Selector != nil || len(m.spec.Exclude) > 0 || len(m.waiting()) > 0
}

// waiting returns the slots of the objects that the plan leaves out because they refer to outputs of Modules that are
// not known yet.
func (m *members) waiting() []int {
	if m.spec.RefreshOnly || m.spec.Destroy {
		return nil
	}
	return m.Waits
}

// expand adds the dependencies or the dependants of the selected objects, and removes those that the plan leaves out.
func (m *members) expand(roots []int) []int {
	if !m.leavesOut() {
		return roots
	}
	edges := m.edges(func(i int) []int32 {
		if !m.wanted(i) || m.spec.RefreshOnly {
			return m.requires(i)
		}
		return m.dependencies(i)
	})
	for _, i := range roots {
		edges[i].Changed = true
	}
	return withoutExcluded(m.spec, reach(m.spec, edges, roots), edges,
		append(m.slots(m.targets.excluded), m.waiting()...))
}

// reach returns the roots with their dependencies or, for a destroy, with their dependants. The roots are marked as
// changed in edges.
func reach(spec *v1alpha1.PlanSpec, edges []graph.Node, roots []int) []int {
	if spec.Destroy {
		return graph.Select(edges)
	}
	return graph.WithDependencies(edges, roots)
}

// withoutExcluded removes the excluded nodes, and those that depend on them, from a scope.
func withoutExcluded(spec *v1alpha1.PlanSpec, scope []int, edges []graph.Node, excluded []int) []int {
	if len(excluded) == 0 {
		return scope
	}
	out := graph.WithDependencies(edges, excluded)
	if !spec.Destroy {
		for i := range edges {
			edges[i].Changed = false
		}
		for _, i := range excluded {
			edges[i].Changed = true
		}
		out = graph.Select(edges)
	}
	return slices.DeleteFunc(scope, func(i int) bool {
		_, found := slices.BinarySearch(out, i)
		return found
	})
}

// limitReads returns the part of a scope that a plan with a read budget reads: recorded resources in the order of their
// addresses, after spec.readAfter. scope and the result are in ascending order.
func (m *members) limitReads(scope []int) []int {
	budget := m.spec.ReadBudget
	if budget == nil {
		return scope
	}
	names := map[int]string{}
	var out []int
	for _, i := range scope {
		if object := m.Nodes[i].Object; object == nil || object.Mode != v1alpha1.ModeManaged || !m.record(i).Exists {
			continue
		}
		if name := m.Nodes[i].Object.Address().String(); name > m.spec.ReadAfter {
			names[i] = name
			out = append(out, i)
		}
	}
	if most := int(budget.MaxReads); most > 0 && len(out) > most {
		slices.SortFunc(out, func(a, b int) int { return strings.Compare(names[a], names[b]) })
		out = out[:most]
		m.readTo = names[out[most-1]]
		slices.Sort(out)
	}
	return out
}

// propagateCreatesFirst finds the objects that must be created before their old instance is destroyed: those with
// createBeforeDestroy and all their dependencies. As in Terraform, objects outside of the plan do not count.
func (m *members) propagateCreatesFirst() {
	m.createsFirst = make([]bool, len(m.Nodes))
	var roots []int
	for i, n := range m.Nodes {
		if m.member[i] && m.wanted(i) && n.Object.Mode == v1alpha1.ModeManaged && n.Object.Has(index.CreatesFirst) {
			roots = append(roots, i)
		}
	}
	for len(roots) > 0 {
		i := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		if m.createsFirst[i] || !m.wanted(i) {
			continue
		}
		m.createsFirst[i] = true
		if !m.member[i] {
			continue
		}
		for _, d := range m.dependencies(i) {
			if m.Nodes[d].Object != nil {
				roots = append(roots, int(d))
			}
		}
	}
}

// canVisit reports whether an object in scope can have a change in the plan. Ephemeral
// resources, data sources and actions are never destroyed.
func (m *members) canVisit(i int) bool {
	switch n := m.Nodes[i]; {
	case n.Object == nil || !m.member[i]:
		return false
	case n.Object.Mode == v1alpha1.ModeManaged:
		_, moved := m.moves.to[i]
		return !moved
	case n.Object.Mode == v1alpha1.ModeData:
		return m.wanted(i)
	default:
		return m.wanted(i) && !m.spec.RefreshOnly
	}
}

// referrers returns the resources with infrastructure that the plan leaves out. Its key is the address that they refer
// to.
func (m *members) referrers(visits func(lang.Address) bool) map[lang.Address][]ledger.Referrer {
	out := map[lang.Address][]ledger.Referrer{}
	if m.spec.Destroy || m.spec.RefreshOnly || m.inScope == m.total {
		return out
	}
	visited := map[int32]lang.Address{}
	for i, n := range m.Nodes {
		if m.member[i] && visits(n.Object.Address()) {
			visited[int32(i)] = n.Object.Address()
		}
	}
	var from []int
	for i, n := range m.Nodes {
		if n.Object == nil || m.member[i] || !m.wanted(i) || n.Object.Mode != v1alpha1.ModeManaged ||
			!m.record(i).Living {
			continue
		}
		if slices.ContainsFunc(n.Object.References,
			func(r index.Reference) bool { _, is := visited[r.Slot]; return is }) {
			from = append(from, i)
		}
	}
	slices.SortFunc(from, m.before)
	for _, i := range from {
		object := m.Nodes[i].Object
		refs := map[lang.Address][]lang.Reference{}
		for _, r := range object.References {
			if addr, is := visited[r.Slot]; is {
				refs[addr] = append(refs[addr], lang.Reference{Address: addr, Attribute: r.Attribute.Value()})
			}
		}
		for addr, of := range refs {
			if len(out[addr]) < maxReferrers {
				out[addr] = append(out[addr], referrer(object.Address(), of))
			}
		}
	}
	return out
}
