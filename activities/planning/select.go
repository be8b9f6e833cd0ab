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

// This file selects, with the index, the objects that a survey loads.

// outlineScope finds the scope of the plan with the outline.
func (s *survey) outlineScope() error {
	for i, n := range s.outline.view.Nodes {
		if n.Object == nil {
			continue
		}
		if _, err := s.outline.config(i); err != nil {
			return err
		}
	}
	s.prepare()
	s.selectScope()
	s.outline.propagateCreatesFirst()
	return nil
}

// selectNodes returns the slots of the objects that a survey without pages must load, in the order of a list. The survey
// finds the same changes and the same errors with them as with all objects.
func (o *outline) selectNodes() []int {
	load := slices.Clone(o.checked)
	for i := range o.taken {
		load[i] = true
	}
	for i := range o.takes {
		load[i] = true
	}
	var out []int
	for i, is := range load {
		if is {
			out = append(out, i)
		}
	}
	out = o.withDependencies(out)
	slices.SortFunc(out, o.before)
	return out
}

// selectScope determines the scope; see survey.scope.
func (s *survey) selectScope() {
	o := s.outline
	o.member = make([]bool, len(o.view.Nodes))
	waiting := s.waitingSlots()
	all := len(s.spec.Targets) == 0 && s.spec.Selector == nil && len(s.spec.Exclude) == 0 && len(waiting) == 0
	var edges []graph.Node
	if !all {
		edges = o.edges(func(i int) []int32 {
			if !o.wanted(i) || o.spec.RefreshOnly {
				return o.requires(i)
			}
			return o.dependencies(i)
		})
	}
	var roots []int
	for i, n := range o.view.Nodes {
		if n.Object != nil && s.selects(n.Object.Address(), n.Object.Labels) {
			roots = append(roots, i)
		}
	}
	s.checkSelector(len(roots))
	selected := roots
	if !all && s.spec.ReadBudget == nil {
		for _, i := range roots {
			edges[i].Changed = true
		}
		selected = withoutExcluded(s.spec, reach(s.spec, edges, roots), edges, append(s.slots(s.excluded), waiting...))
	}
	selected = s.limitReads(selected, func(i int) lang.Address { return o.view.Nodes[i].Object.Address() }, func(i int) bool {
		object := o.view.Nodes[i].Object
		return object != nil && object.Mode == v1alpha1.ModeManaged && o.record(i).Exists
	})
	for _, i := range selected {
		n := o.view.Nodes[i]
		if n.Object == nil || n.Object.Has(index.KeysUnknown) { // no plan changes what waits for values to be known
			continue
		}
		o.member[i] = true
		s.inScope++
		if n.Object.Mode == v1alpha1.ModeManaged && o.record(i).Exists {
			s.recorded++
		}
	}
}

// limitReads returns the part of a scope that a plan with a read budget reads: recorded resources in the order of their
// addresses, after spec.readAfter. scope and the result are in ascending order.
func (s *survey) limitReads(scope []int, address func(int) lang.Address, exists func(int) bool) []int {
	budget := s.spec.ReadBudget
	if budget == nil {
		return scope
	}
	names := map[int]string{}
	var out []int
	for _, i := range scope {
		if !exists(i) {
			continue
		}
		if name := address(i).String(); name > s.spec.ReadAfter {
			names[i] = name
			out = append(out, i)
		}
	}
	if most := int(budget.MaxReads); most > 0 && len(out) > most {
		slices.SortFunc(out, func(a, b int) int { return strings.Compare(names[a], names[b]) })
		out = out[:most]
		s.readTo = names[out[most-1]]
		slices.Sort(out)
	}
	return out
}

// outlinedScope returns the nodes in the scope that selectScope determined.
func (s *survey) outlinedScope() []int {
	var scope []int
	for i, n := range s.nodes {
		n.createsFirst = s.outline.createsFirst[n.slot] && n.Mode == v1alpha1.ModeManaged
		if s.outline.member[n.slot] {
			scope = append(scope, i)
		}
	}
	return scope
}

// waitingSlots returns the slots of the objects that the plan leaves out because they refer to outputs of Modules that are not known
// yet.
func (s *survey) waitingSlots() []int {
	if s.spec.RefreshOnly || s.spec.Destroy {
		return nil
	}
	return s.outline.view.Waits
}

func (s *survey) slots(addrs []lang.Address) []int {
	var out []int
	for _, addr := range addrs {
		if i, ok := s.outline.view.Slot(addr); ok {
			out = append(out, i)
		}
	}
	return out
}

// propagateCreatesFirst is survey.propagateCreatesFirst.
func (o *outline) propagateCreatesFirst() {
	o.createsFirst = make([]bool, len(o.view.Nodes))
	var roots []int
	for i, n := range o.view.Nodes {
		if o.member[i] && o.wanted(i) && n.Object.Mode == v1alpha1.ModeManaged && n.Object.Has(index.CreatesFirst) {
			roots = append(roots, i)
		}
	}
	for len(roots) > 0 {
		i := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		if o.createsFirst[i] || !o.wanted(i) {
			continue
		}
		o.createsFirst[i] = true
		if !o.member[i] {
			continue
		}
		for _, d := range o.dependencies(i) {
			if o.view.Nodes[d].Object != nil {
				roots = append(roots, int(d))
			}
		}
	}
}

// selectVisited sets o.closure and o.visited. The plan visits the changed objects. It visits their dependants during
// planning if a value changes; see worklist.
func (s *survey) selectVisited() {
	o := s.outline
	forced := map[int]bool{}
	for addr := range s.forced {
		if i, ok := o.view.Slot(addr); ok {
			forced[i] = true
		}
	}
	o.root = make([]bool, len(o.view.Nodes))
	var roots []int
	for i := range o.view.Nodes {
		if o.root[i] = o.member[i] && (forced[i] || o.changed(i)); o.root[i] {
			roots = append(roots, i)
		}
	}
	o.linkMembers()
	o.selectClosure(roots)
	o.visited = make([]bool, len(o.view.Nodes))
	for _, i := range o.throughEphemerals(roots) {
		o.visited[i] = o.canVisit(i)
	}
	if len(roots) == 0 {
		return
	}
	order, _ := graph.Order(len(o.view.Nodes), func(i int) []int {
		if !o.closure[i] {
			return nil
		}
		return o.depends.Of(i)
	})
	if order == nil { // the survey must find the cycle
		for i := range o.closure {
			o.visited[i] = o.closure[i] && o.canVisit(i)
		}
	}
}

// linkMembers sets o.depends and o.dependants.
func (o *outline) linkMembers() {
	edges := o.edges(func(i int) []int32 {
		if !o.member[i] {
			return nil
		}
		return o.dependencies(i)
	})
	o.depends = graph.Collect(len(edges), func(i int) []int { return edges[i].Deps })
	o.dependants = o.depends.Reverse()
}

// selectClosure sets o.closure: the objects in scope that are roots, or depend on one.
func (o *outline) selectClosure(roots []int) {
	o.closure = make([]bool, len(o.view.Nodes))
	for _, i := range o.dependants.Reach(roots) {
		o.closure[i] = o.member[i] && o.view.Nodes[i].Object != nil
	}
}

// throughEphemerals returns the roots, and the objects that refer to an ephemeral resource among them. The plan stores
// nothing about an ephemeral resource, so its dependants count as changed with it.
func (o *outline) throughEphemerals(roots []int) []int {
	out := slices.Clone(roots)
	seen := map[int]bool{}
	for _, i := range roots {
		seen[i] = true
	}
	for k := 0; k < len(out); k++ {
		if object := o.view.Nodes[out[k]].Object; object == nil || object.Mode != v1alpha1.ModeEphemeral {
			continue
		}
		for _, d := range o.dependants.Of(out[k]) {
			if !seen[d] && o.member[d] {
				seen[d] = true
				out = append(out, d)
			}
		}
	}
	return out
}

// canVisit reports whether an object in scope can have a change in the plan; see survey.canChange.
func (o *outline) canVisit(i int) bool {
	switch n := o.view.Nodes[i]; {
	case n.Object == nil || !o.member[i]:
		return false
	case n.Object.Mode == v1alpha1.ModeManaged:
		return true
	case n.Object.Mode == v1alpha1.ModeData:
		return o.wanted(i)
	default:
		return o.wanted(i) && !o.spec.RefreshOnly
	}
}

// selectChecked sets o.checked. The survey checks the visited objects, those with references
// that may be wrong, and the first user of each ProviderConfig. The check of that user reports the errors of the
// ProviderConfig.
func (o *outline) selectChecked() {
	users := map[use]int{}
	o.checked = slices.Clone(o.visited)
	for i, n := range o.view.Nodes {
		if !o.member[i] {
			continue
		}
		u, _ := o.config(i)
		if slices.Contains(u.refersTo, int32(i)) {
			o.checked[i] = true
		}
		if !o.parsed(i) {
			continue
		}
		absent := u.ProviderConfigRef == nil && n.Object.Config != ""
		if absent || n.Object.Has(index.Suspicious) || o.versionOutside(n.Object.Outside).broken || slices.ContainsFunc(n.Object.DependsOn, o.unreliable) {
			o.checked[i] = true
		}
		key := use{provider: n.Object.Provider, config: n.Object.Config}
		if first, ok := users[key]; !ok || o.before(i, first) < 0 {
			users[key] = i
		}
	}
	for _, i := range users {
		o.checked[i] = true
	}
}

// unreliable reports whether a reference to a slot may be an error: no object has its address, or the object goes away.
func (o *outline) unreliable(d int32) bool {
	n := o.view.Nodes[d]
	return n.Object == nil || n.Object.Has(index.Deleting) || o.taken[int(d)]
}

// withDependencies returns the slots of objects followed by those of their dependencies, of those that their records
// depend on, and of the dependencies of ephemeral resources and data sources among these.
func (o *outline) withDependencies(slots []int) []int {
	queue := slices.Clone(slots)
	load := make(map[int]bool, 2*len(slots))
	for _, i := range slots {
		load[i] = true
	}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		if mode := o.view.Nodes[i].Object.Mode; k >= len(slots) && mode != v1alpha1.ModeEphemeral && mode != v1alpha1.ModeData {
			continue
		}
		for _, d := range slices.Concat(o.dependencies(i), o.requires(i)) {
			if o.view.Nodes[d].Object != nil && !load[int(d)] {
				load[int(d)] = true
				queue = append(queue, int(d))
			}
		}
	}
	return queue
}

// held returns a predicate: does a living resource that the plan leaves out depend on the address by its record?
func (o *outline) held(visits func(int, lang.Address) bool) func(lang.Address) bool {
	held := map[int32]bool{}
	for i, n := range o.view.Nodes {
		if n.Object == nil || !o.record(i).Living || visits(i, n.Object.Address()) {
			continue
		}
		for _, d := range o.requires(i) {
			held[d] = true
		}
	}
	return func(addr lang.Address) bool {
		i, ok := o.view.Slot(addr)
		return ok && held[int32(i)]
	}
}

// referrers is survey.referrers, for the addresses that the plan visits.
func (o *outline) referrers(visits func(lang.Address) bool) map[lang.Address][]ledger.Referrer {
	visited := map[int32]lang.Address{}
	for i, n := range o.view.Nodes {
		if o.member[i] && visits(n.Object.Address()) {
			visited[int32(i)] = n.Object.Address()
		}
	}
	var from []int
	for i, n := range o.view.Nodes {
		if n.Object == nil || o.member[i] || !o.wanted(i) || n.Object.Mode != v1alpha1.ModeManaged || !o.record(i).Living {
			continue
		}
		if slices.ContainsFunc(n.Object.References, func(r index.Reference) bool { _, is := visited[r.Slot]; return is }) {
			from = append(from, i)
		}
	}
	slices.SortFunc(from, o.before)
	out := map[lang.Address][]ledger.Referrer{}
	for _, i := range from {
		object := o.view.Nodes[i].Object
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
