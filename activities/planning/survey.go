package planning

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/labels"
)

// Survey lists the objects in a plan's scope, resolves their references, and selects those that the plan visits. It
// stores an open change for each of these, in dependency order.
func (a *Planner) Survey(ctx context.Context, p workflows.Plan) (workflows.Surveyed, error) {
	po, err := a.readPlan(ctx, p)
	if err == nil && po.ApprovalFollows() {
		return workflows.Surveyed{Published: true}, nil
	}
	if err == nil {
		err = unpublished(po, p)
	}
	if err != nil {
		return workflows.Surveyed{}, err
	}
	if po.PlanFailed() { // an earlier attempt recorded the reason
		return workflows.Surveyed{Invalid: true}, nil
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Surveyed{}, err
	}
	if err := a.Ledger.DropPlan(ctx, po.UID); err != nil {
		return workflows.Surveyed{}, err
	}
	s, err := a.loadSurvey(ctx, po)
	if err != nil {
		return workflows.Surveyed{}, err
	}
	if diag.HasErrors(s.diags) { // without these objects, further errors about addresses and types would be false
		return workflows.Surveyed{Invalid: true}, a.failPlan(ctx, p, diag.Summarize(s.diags), s.diags)
	}
	if s.stored == nil {
		if err := a.storeSurvey(ctx, po, s); err != nil {
			return workflows.Surveyed{}, err
		}
	}
	if diag.HasErrors(s.diags) {
		return workflows.Surveyed{Invalid: true}, a.failPlan(ctx, p, diag.Summarize(s.diags), s.diags)
	}
	a.decoders.keep(po.UID, a.Catalog, s.stored.parsed)
	slices.Sort(s.stored.providers)
	return workflows.Surveyed{Resources: s.inScope, Visited: s.stored.visited, Recorded: s.recorded, ReadTo: s.readTo, Whole: s.stored.whole, Providers: s.stored.providers}, nil
}

// storeSurvey surveys loaded objects and stores the changes.
func (a *Planner) storeSurvey(ctx context.Context, po *v1alpha1.Plan, s *survey) error {
	visited := s.visit(a.Sources)
	if !diag.HasErrors(s.diags) {
		missing, err := checkReads(ctx, a.Sources, po, s, visited)
		if err != nil {
			return err
		}
		s.diags = append(s.diags, missing...)
	}
	if diag.HasErrors(s.diags) {
		return nil
	}
	s.stored = &stored{visited: len(visited), whole: s.outline == nil, parsed: parsed(s.nodes, visited)}
	for _, i := range visited {
		s.stored.addProvider(s.nodes[i].Entry.Name)
	}
	return a.Ledger.SaveChanges(ctx, po.UID, s.changes(visited))
}

// survey selects the objects that a plan visits. It does no I/O, except in functions that it receives.
type survey struct {
	spec   *v1alpha1.PlanSpec
	nodes  []*node
	diags  diag.Diagnostics
	byAddr map[lang.Address]int
	// leftFiles reports whether an object is no longer in the plan's files. Such an object is planned as if it were
	// marked for deletion.
	leftFiles func(v1alpha1.ObjectReference) bool
	// hasModule reports whether there is an instance of a module with a path.
	hasModule func(path string) bool
	// inScope is the number of nodes in scope, and recorded is the number of those resources with recorded
	// infrastructure.
	inScope, recorded int
	// readTo is the last resource of a plan with a read budget, if others follow.
	readTo string
	// member[i] is true if node i is in scope.
	member []bool
	// writers finds who wrote objects that are no resources; nil for a speculative plan, which has no contributors.
	writers *writers
	// accounts knows the arguments of providers, their writers, and which a person approved; nil with writers.
	accounts *accounts
	// missing checks a node's references to objects outside of the namespace's plans; nil checks nothing.
	missing func(*node) diag.Diagnostics
	// targets, excluded and forced hold the addresses in the spec: targets, exclude, and those to replace or invoke.
	targets, forced map[lang.Address]bool
	excluded        []lang.Address
	// selector is that of the spec; nil if there is none, or if it is invalid.
	selector labels.Selector
	// prepared is true after prepare.
	prepared bool
	// outline knows the objects that nodes lacks; nil if nodes has all objects of the namespace.
	outline   *outline
	tolerance tolerance
	// sets finds the set with an address of the namespace if there is no outline; nil finds none. known caches it.
	sets  func(lang.Address) *resourceset.Set
	known map[lang.Address]*resourceset.Set
	// modules finds the Module of the namespace with a name if there is no outline; nil finds none.
	modules func(name string) *resourceset.Module
	// stored is nil before the changes are stored.
	stored *stored
	// setsFailed is the error of sets and modules.
	setsFailed error
	// byType is created for the first error that needs it.
	byType map[lang.Address][]string
}

func (s *survey) indexAddresses() {
	s.byAddr = make(map[lang.Address]int, len(s.nodes))
	for i, n := range s.nodes {
		if other, twice := s.byAddr[n.Address]; twice {
			s.diags = append(s.diags, lang.Problem(n.Address, "", "Ambiguous address", fmt.Sprintf(
				"%s of the provider %q and of the provider %q have the same address. Rename one of the objects.", n.Address, s.nodes[other].Entry.Name, n.Entry.Name)))
		}
		s.byAddr[n.Address] = i
		s.expandSets(n)
		if s.setAt(n.Address) != nil && !n.Deleting {
			s.diags = append(s.diags, lang.Problem(n.Address, "", "Ambiguous address", fmt.Sprintf(
				"%s is an object, and the template of a ResourceSet, too. Rename one of them.", n.Address)))
		}
	}
}

func (s *survey) nodesAt(addrs []lang.Address) []int {
	out := make([]int, 0, len(addrs))
	for _, a := range addrs {
		if i, ok := s.byAddr[a]; ok {
			out = append(out, i)
		}
	}
	return out
}

// visit returns the nodes that the plan visits, dependencies first. It adds errors to s.diags.
func (s *survey) visit(a *scope.Sources) []int {
	s.indexAddresses()
	s.findMoves()
	scope := s.scope()
	edges := make([]graph.Node, len(s.nodes))
	s.member = make([]bool, len(s.nodes))
	for _, i := range scope {
		n := s.nodes[i]
		s.member[i] = true
		s.diags = append(s.diags, n.Invalid...)
		s.resolve(n, a)
		if s.outline != nil && !s.outline.visited[n.slot] {
			continue // it is only a dependency, and lacks its own
		}
		edges[i] = graph.Node{Changed: s.changed(n) || s.forced[n.Address], Deps: s.nodesAt(n.DependsOn)}
		if !n.wanted {
			// Destroys are ordered by the recorded references.
			edges[i].Deps = nil
		}
	}
	visited := slices.DeleteFunc(graph.Select(edges), func(i int) bool { return !s.member[i] || !s.canChange(s.nodes[i]) })
	if diag.HasErrors(s.diags) {
		return nil
	}
	local := make(map[int]int, len(visited))
	for k, i := range visited {
		local[i] = k
	}
	order, cycle := graph.Order(len(visited), func(k int) []int {
		var deps []int
		for _, d := range edges[visited[k]].Deps {
			if l, ok := local[d]; ok {
				deps = append(deps, l)
			}
		}
		return deps
	})
	if cycle != nil {
		text := graph.CycleText(cycle, func(k int) string { return s.nodes[visited[k]].Address.String() })
		s.diags = append(s.diags, lang.Problem(s.nodes[visited[cycle[0]]].Address, "", "Cycle",
			fmt.Sprintf("These resources depend on each other in a cycle: %s. %sRemove one of the references.", text, s.configsInCycleText(visited, cycle))))
		return nil
	}
	out := make([]int, len(order))
	for k, i := range order {
		out[k] = visited[i]
	}
	return out
}

// scope returns the nodes that the plan may change, in ascending order, and counts them. Without a selector and targets
// these are all nodes. Otherwise they are the selected nodes with their dependencies or, for a destroy, their dependants.
func (s *survey) scope() []int {
	if s.outline != nil {
		return s.outlinedScope()
	}
	s.prepare()
	var roots []int
	edges := make([]graph.Node, len(s.nodes))
	for i, n := range s.nodes {
		picked := s.selects(n.Address, n.Object.GetLabels())
		if picked {
			roots = append(roots, i)
		}
		deps := n.DependsOn
		if !n.wanted || s.spec.RefreshOnly {
			deps = n.requires
		}
		edges[i] = graph.Node{Changed: picked, Deps: s.nodesAt(deps)}
	}
	s.checkSelector(len(roots))
	scope := roots
	if s.spec.ReadBudget == nil {
		scope = withoutExcluded(s.spec, reach(s.spec, edges, roots), edges, append(s.nodesAt(s.excluded), s.waitingNodes()...))
	}
	scope = s.limitReads(scope, func(i int) lang.Address { return s.nodes[i].Address }, func(i int) bool {
		return s.nodes[i].Mode == v1alpha1.ModeManaged && s.nodes[i].record.Exists()
	})
	s.inScope = len(scope)
	for _, i := range scope {
		if n := s.nodes[i]; n.Mode == v1alpha1.ModeManaged && n.record.Exists() {
			s.recorded++
		}
	}
	s.propagateCreatesFirst(scope)
	return scope
}

// waitingNodes is waitingSlots for the nodes of a survey without an outline.
func (s *survey) waitingNodes() (out []int) {
	for i, n := range s.nodes {
		if n.waits && n.wanted && !s.spec.RefreshOnly {
			out = append(out, i)
		}
	}
	return out
}

// leavesOut reports whether the plan leaves out objects that wait.
func (s *survey) leavesOut() bool {
	if s.outline != nil {
		return len(s.waitingSlots()) > 0
	}
	return len(s.waitingNodes()) > 0
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

// propagateCreatesFirst finds the nodes that must be created before their old instance is destroyed: those with
// createBeforeDestroy and all their dependencies. As in Terraform, nodes outside of the plan do not count.
func (s *survey) propagateCreatesFirst(scope []int) {
	edges := make([]graph.Node, len(s.nodes))
	var roots []int
	for _, i := range scope {
		n := s.nodes[i]
		edges[i].Deps = s.nodesAt(n.DependsOn)
		if n.wanted && n.Mode == v1alpha1.ModeManaged && n.Lifecycle.CreateBeforeDestroy {
			roots = append(roots, i)
		}
	}
	for _, i := range graph.WithDependencies(edges, roots) {
		s.nodes[i].createsFirst = s.nodes[i].Mode == v1alpha1.ModeManaged && s.nodes[i].wanted
	}
}

// canChange reports whether a node can have a change in the plan. Ephemeral resources, data sources and actions are
// never destroyed.
func (s *survey) canChange(n *node) bool {
	switch n.Mode {
	case v1alpha1.ModeManaged:
		return n.movedTo == nil
	case v1alpha1.ModeEphemeral:
		return n.wanted && !s.spec.RefreshOnly
	case v1alpha1.ModeAction:
		return n.wanted && !s.spec.RefreshOnly
	default:
		return n.wanted
	}
}

// changed reports whether the plan must visit a node itself, and not only because of a dependency.
func (s *survey) changed(n *node) bool {
	switch n.Mode {
	case v1alpha1.ModeData:
		return n.wanted // its data may have changed since the last read
	case v1alpha1.ModeEphemeral:
		return n.External || n.Impure
	case v1alpha1.ModeAction:
		return n.wanted && !resource.HasRun(n.Resource, n.record)
	}
	switch {
	case !n.wanted:
		return n.record.Living() || n.record.Intent != nil || n.Deleting
	case s.spec.RefreshOnly:
		return n.record.Exists()
	case s.spec.Refresh == v1alpha1.RefreshAll:
		return true
	}
	known := resource.StatusOf(n.Object)
	return !n.record.Exists() || n.record.Object.Generation != n.Ref.Generation || n.record.Tainted || n.record.Intent != nil ||
		len(n.record.Deposed) > 0 || n.External || n.Impure || n.movedFrom != nil || !known.Good() || known.Drifted() || s.dependenciesChanged(n)
}

// changes creates the open changes of the visited nodes, which are in order, followed by those of their deposed
// instances.
func (s *survey) changes(visited []int) []*ledger.Change {
	position := make(map[lang.Address]int32, len(visited))
	var nodes []*node
	for _, i := range visited {
		if n := s.nodes[i]; n.Mode != v1alpha1.ModeEphemeral {
			position[n.Address] = int32(len(nodes))
			nodes = append(nodes, n)
		}
	}
	l := s.linksOf(func(addr lang.Address) (int32, bool) {
		i, ok := position[addr]
		return i, ok
	})
	alike := renamed(nodes)
	var out []*ledger.Change
	for _, n := range nodes {
		c := s.change(n, l)
		c.LooksLike = alike[n.Address]
		out = append(out, c)
	}
	for _, n := range nodes {
		for _, c := range s.deposedChanges(n) {
			c.Index = int32(len(out))
			out = append(out, c)
		}
	}
	return out
}

// links connect the changes of a plan with each other and with the resources that the plan leaves out.
type links struct {
	// position returns the index of the change of an address.
	position      func(lang.Address) (int32, bool)
	leavesDeposed func(*node) bool
	referrers     map[lang.Address][]ledger.Referrer
}

func (s *survey) linksOf(position func(lang.Address) (int32, bool)) links {
	visits := func(addr lang.Address) bool {
		_, ok := position(addr)
		return ok
	}
	return links{position, s.leavesDeposed(visits), s.referrers(visits)}
}

// change creates the open change of a visited node.
func (s *survey) change(n *node, l links) *ledger.Change {
	c := s.newChange(n, &n.record.State, texts(s.recordedReferences(n)))
	c.Index, _ = l.position(n.Address)
	c.Requested = n.Deleting || s.selects(n.Address, n.Object.GetLabels())
	c.CreatesFirst = n.createsFirst || !n.wanted && n.record.CreateBeforeDestroy
	c.LeaveDeposed, c.Referrers = l.leavesDeposed(n), l.referrers[n.Address]
	if !c.Requested {
		c.DestroyedWith = s.destroyedWith(n, l)
	}
	if n.movedFrom != nil {
		c.PreviousAddress = n.movedFrom.Address.String()
		c.Preconditions.From, c.Preconditions.FromState = &n.movedFrom.Ref, n.movedFrom.record.Digest()
	}
	s.addDependencies(c, n, l)
	c.TakenBack, c.Account = n.takenBack, n.account
	if n.Mode == v1alpha1.ModeManaged && n.Ref.Set == "" {
		c.Inputs = ledger.InputsOf(n.Object)
	}
	return c
}

// recordedReferences returns the addresses that the record of a node refers to: directly, and through the records of
// others.
func (s *survey) recordedReferences(n *node) []lang.Address {
	out := slices.Clone(n.requires)
	seen := map[lang.Address]bool{n.Address: true}
	for _, addr := range out {
		seen[addr] = true
	}
	for k := 0; k < len(out); k++ {
		for _, addr := range s.requires(out[k]) {
			if !seen[addr] && s.exists(addr) {
				seen[addr] = true
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out[len(n.requires):], lang.Address.Compare)
	return out
}

// requires returns the addresses that the record of the resource with an address refers to.
func (s *survey) requires(addr lang.Address) (out []lang.Address) {
	if s.outline == nil {
		if i, ok := s.byAddr[addr]; ok {
			return s.nodes[i].requires
		}
		return nil
	}
	view := s.outline.view
	i, ok := view.Slot(addr)
	if !ok || view.Nodes[i].Object == nil {
		return nil
	}
	for _, d := range s.outline.requires(i) {
		if view.Nodes[d].Object != nil {
			out = append(out, view.Nodes[d].Object.Address())
		}
	}
	return out
}

// deposedChanges creates the open changes of the deposed instances of a visited node, without their indexes.
func (s *survey) deposedChanges(n *node) (out []*ledger.Change) {
	if s.spec.RefreshOnly || len(s.targets) > 0 && !s.spec.Destroy && !s.targets[n.Address] {
		return nil
	}
	for _, d := range n.deposed() {
		c := s.newChange(n, &d.State, d.Dependencies)
		c.Deposed = d.Key
		out = append(out, c)
	}
	return out
}

// newChange returns an open change of an instance of a node, whose recorded state and dependencies are given.
func (s *survey) newChange(n *node, state *ledger.State, requires []string) *ledger.Change {
	c := &ledger.Change{Preconditions: ledger.Preconditions{State: state.Digest(), Content: resourceset.Content(n.Object), Deleting: n.Deleting, Destroys: s.spec.Destroy}, Requires: requires}
	c.Address, c.Type, c.Object = n.Address.String(), n.Address.Type, n.Ref
	if n.Mode != v1alpha1.ModeManaged {
		c.Mode = n.Mode
	}
	c.Provider, c.ProviderVersion = n.Entry.Package.Source.String(), n.Entry.Package.Version
	c.State, c.Contributors = v1alpha1.ChangePending, s.contributors(n)
	if s.outline != nil {
		c.Basis = s.outline.view.Basis(n.slot)
	}
	return c
}

// addDependencies writes the dependencies of a node to its change.
func (s *survey) addDependencies(c *ledger.Change, n *node, l links) {
	for _, addr := range s.dependenciesWithChanges(n.DependsOn, v1alpha1.ModeEphemeral) {
		j, ok := l.position(addr)
		if !ok || !n.wanted {
			continue
		}
		c.DependsOn = append(c.DependsOn, j)
		if n.Mode == v1alpha1.ModeData && !slices.Contains(n.inherited, addr) {
			c.ReadAfter = append(c.ReadAfter, j)
		}
	}
	c.DependencyVersions, c.ConfigVersion = s.dependencyVersions(n), n.configVersion
	// The recorded dependencies order destroys, in which ephemeral resources and data sources have no part.
	recorded := s.dependenciesWithChanges(n.DependsOn, v1alpha1.ModeEphemeral, v1alpha1.ModeData)
	c.Dependencies = texts(slices.DeleteFunc(recorded, s.leaves))
}

// leaves reports whether the plan removes the resource with an address. A data source depends on the instances that leave
// a set.
func (s *survey) leaves(addr lang.Address) bool {
	i, ok := s.byAddr[addr]
	return ok && !s.nodes[i].wanted
}

// leavesDeposed returns a predicate: must the replace of this node leave its old instance to a later plan? As in
// Terraform, a target includes its dependencies but not their deposed instances. Without targets, the old instance must
// stay while a dependant outside of the plan refers to it.
func (s *survey) leavesDeposed(visits func(lang.Address) bool) func(*node) bool {
	if len(s.targets) > 0 {
		return func(n *node) bool { return !s.targets[n.Address] }
	}
	if len(s.spec.Exclude) == 0 && s.spec.Selector == nil && !s.leavesOut() {
		return func(*node) bool { return false }
	}
	if s.outline != nil {
		held := s.outline.held(func(i int, addr lang.Address) bool {
			return visits(addr) || s.outline.closure[i] && !s.outline.taken[i]
		})
		return func(n *node) bool { return held(n.Address) }
	}
	held := map[lang.Address]bool{}
	for _, n := range s.nodes {
		if !visits(n.Address) && n.record.Living() {
			for _, addr := range n.requires {
				held[addr] = true
			}
		}
	}
	return func(n *node) bool { return held[n.Address] }
}

// deposed returns the deposed instances of the node, or none if its record is moved.
func (n *node) deposed() []ledger.Deposed {
	if n.movedFrom != nil {
		return nil // they move with the record, and the next plan handles them
	}
	return n.record.Deposed
}

// dependenciesWithChanges is transitiveDependencies without ephemeral resources, which have no changes.
func (s *survey) dependenciesWithChanges(addrs []lang.Address, modes ...v1alpha1.Mode) []lang.Address {
	return slices.DeleteFunc(s.transitiveDependencies(addrs, modes...), func(addr lang.Address) bool { return addr.Mode == v1alpha1.ModeEphemeral })
}

// transitiveDependencies returns the addresses with the dependencies of those that have one of the modes, recursively.
func (s *survey) transitiveDependencies(addrs []lang.Address, modes ...v1alpha1.Mode) []lang.Address {
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
