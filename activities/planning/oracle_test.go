package planning

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"

	"k8s.io/apimachinery/pkg/types"
)

// oracle is a survey that loads all objects of the namespace with their records, and decides by these what a plan
// visits.
type oracle struct {
	*survey
	// scope has the positions of the nodes in scope.
	scope map[int]bool
}

// allOf loads all objects of a plan's namespace.
func allOf(t *testing.T, a *Planner, po *v1alpha1.Plan) *oracle {
	t.Helper()
	s, err := a.newSurvey(t.Context(), po)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{survey: s, scope: map[int]bool{}}
	o.targets = newTargets(o.entries, o.spec, func(string) bool { return false })
	records := map[types.UID]*ledger.Instance{}
	for rec, err := range a.Ledger.Instances(t.Context(), po.Namespace) {
		if err != nil {
			t.Fatal(err)
		}
		records[rec.Object.UID] = rec
	}
	var nodes []*node
	for _, obj := range a.Objects.(activitiestest.FakeObjects).List(po.Namespace) {
		r, err := resource.Of(obj, a.Catalog)
		if err != nil {
			s.diags = append(s.diags, notReady(obj, err))
			continue
		}
		n := nodeOf(po, r, records[r.Ref.UID])
		n.slot, _ = s.Slot(n.Address)
		if err := n.configure(s.configs); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	o.turnToAll(nodes)
	return o
}

// turnToAll makes all nodes the page.
func (o *oracle) turnToAll(nodes []*node) {
	o.page = newPage(nodes)
	for _, n := range nodes {
		o.expandSets(n)
	}
}

// visit returns the nodes that the plan visits, dependencies first. It adds errors to o.diags.
func (o *oracle) visit() []int {
	if len(o.diags) > 0 {
		return nil // providers are not ready
	}
	o.noteDuplicates()
	o.findMoves()
	edges := make([]graph.Node, len(o.nodes))
	for _, i := range o.selected() {
		n := o.nodes[i]
		o.scope[i] = true
		o.diags = append(o.diags, n.Invalid...)
		o.resolve(n)
		edges[i] = graph.Node{Changed: o.mustVisit(n) || o.targets.forced[n.Address], Deps: o.nodesAt(n.DependsOn)}
		if !n.wanted { // destroys are ordered by the recorded references
			edges[i].Deps = nil
		}
	}
	o.diags = append(o.diags, o.targets.diags...)
	visited := slices.DeleteFunc(graph.Select(edges), func(i int) bool { return !o.scope[i] || !o.canChange(o.nodes[i]) })
	if diag.HasErrors(o.diags) {
		return nil
	}
	local := make(map[int]int, len(visited))
	for k, i := range visited {
		local[i] = k
	}
	order, cycle := graph.Order(len(visited), func(k int) (deps []int) {
		for _, d := range edges[visited[k]].Deps {
			if l, ok := local[d]; ok {
				deps = append(deps, l)
			}
		}
		return deps
	})
	if cycle != nil {
		slots := make([]int, len(cycle))
		for k, i := range cycle {
			slots[k] = o.nodes[visited[i]].slot
		}
		text := graph.CycleText(slots, func(i int) string { return o.Nodes[i].Object.Address().String() })
		o.diags = append(o.diags, lang.Problem(o.nodes[visited[cycle[0]]].Address, "", "Cycle",
			fmt.Sprintf("These resources depend on each other in a cycle: %s. %sRemove one of the references.", text, o.configsInCycleText(slots))))
		return nil
	}
	out := make([]int, len(order))
	for k, i := range order {
		out[k] = visited[i]
	}
	return out
}

func (o *oracle) noteDuplicates() {
	seen := map[lang.Address]*node{}
	for _, n := range o.nodes {
		if other := seen[n.Address]; other != nil {
			o.diags = append(o.diags, lang.Problem(n.Address, "", summaryAmbiguous, fmt.Sprintf(
				"%s of the provider %q and of the provider %q have the same address. Rename one of the objects.", n.Address, other.Entry.Name, n.Entry.Name)))
		}
		seen[n.Address] = n
	}
}

// selected returns the nodes that the plan may change, in ascending order, and counts them.
func (o *oracle) selected() []int {
	var roots []int
	edges := make([]graph.Node, len(o.nodes))
	for i, n := range o.nodes {
		picked := o.targets.selects(n.Address, n.Object.GetLabels())
		if picked {
			roots = append(roots, i)
		}
		deps := n.DependsOn
		if !n.wanted || o.spec.RefreshOnly {
			deps = n.requires
		}
		edges[i] = graph.Node{Changed: picked, Deps: o.nodesAt(deps)}
	}
	o.targets.checkSelector(len(roots))
	scope := roots
	if o.spec.ReadBudget == nil {
		scope = withoutExcluded(o.spec, reach(o.spec, edges, roots), edges, o.nodesAt(o.targets.excluded))
	} else {
		scope = o.limitReads(roots)
	}
	o.inScope = len(scope)
	for _, i := range scope {
		if n := o.nodes[i]; n.Mode == v1alpha1.ModeManaged && n.record.Exists() {
			o.recorded++
		}
	}
	o.propagateCreatesFirst(scope)
	return scope
}

func (o *oracle) limitReads(roots []int) []int {
	name := func(i int) string { return o.nodes[i].Address.String() }
	out := slices.DeleteFunc(roots, func(i int) bool {
		return o.nodes[i].Mode != v1alpha1.ModeManaged || !o.nodes[i].record.Exists() || name(i) <= o.spec.ReadAfter
	})
	if most := int(o.spec.ReadBudget.MaxReads); most > 0 && len(out) > most {
		slices.SortFunc(out, func(a, b int) int { return strings.Compare(name(a), name(b)) })
		out = out[:most]
		o.readTo = name(out[most-1])
		slices.Sort(out)
	}
	return out
}

func (o *oracle) propagateCreatesFirst(scope []int) {
	edges := make([]graph.Node, len(o.nodes))
	var roots []int
	for _, i := range scope {
		n := o.nodes[i]
		edges[i].Deps = o.nodesAt(n.DependsOn)
		if n.wanted && n.Mode == v1alpha1.ModeManaged && n.Lifecycle.CreateBeforeDestroy {
			roots = append(roots, i)
		}
	}
	for _, i := range graph.WithDependencies(edges, roots) {
		o.nodes[i].createsFirst = o.nodes[i].Mode == v1alpha1.ModeManaged && o.nodes[i].wanted
	}
}

// canChange reports whether a node can have a change in the plan.
func (o *oracle) canChange(n *node) bool {
	switch n.Mode {
	case v1alpha1.ModeManaged:
		return n.movedTo == ""
	case v1alpha1.ModeData:
		return n.wanted
	default:
		return n.wanted && !o.spec.RefreshOnly
	}
}

// mustVisit reports whether the plan must visit a node itself, and not only because of a dependency.
func (o *oracle) mustVisit(n *node) bool {
	switch n.Mode {
	case v1alpha1.ModeData:
		return n.wanted
	case v1alpha1.ModeEphemeral:
		return n.External || n.Impure
	case v1alpha1.ModeAction:
		return n.wanted && !resource.HasRun(n.Resource, n.record)
	}
	switch {
	case !n.wanted:
		return n.record.Living() || n.record.Intent != nil || n.Deleting
	case o.spec.RefreshOnly:
		return n.record.Exists()
	case o.spec.Refresh == v1alpha1.RefreshAll:
		return true
	}
	status := resource.StatusOf(n.Object)
	return !n.record.Exists() || n.record.Object.Generation != n.Ref.Generation || n.record.Tainted ||
		n.record.Intent != nil || len(n.record.Deposed) > 0 || n.External || n.Impure || n.movedFrom != nil || !status.Good() || status.Drifted() ||
		!maps.Equal(known(o.dependencyVersions(n)), n.record.DependencyVersions)
}

// findMoves pairs each node whose lifecycle.moved names another node with that node, and those whose move was
// interrupted.
func (o *oracle) findMoves() {
	if o.spec.RefreshOnly {
		return
	}
	takesOver := func(n, from *node) {
		n.movedFrom, from.movedTo, n.requires = from, n.Address.String(), from.requires
	}
	for _, n := range o.nodes {
		if n.record.MovedFrom == "" || !n.record.Living() {
			continue
		}
		for _, from := range o.nodes {
			if from.Ref.UID == n.record.MovedFrom && from != n && from.movedTo == "" && from.record.Living() {
				takesOver(n, from)
			}
		}
	}
	for _, n := range o.nodes {
		written := n.movesFrom()
		if written == "" {
			continue
		}
		fail := func(summary, format string, args ...any) {
			n.Invalid = append(n.Invalid, lang.Problem(n.Address, "lifecycle.moved.from", summary, fmt.Sprintf(format, args...)))
		}
		former, err := lang.ParseAddress(written)
		if err != nil {
			fail("Invalid address", "%v", err)
			continue
		}
		i, ok := o.byAddr[former]
		switch {
		case !ok || !o.nodes[i].record.Living() || o.nodes[i] == n || n.movedFrom == o.nodes[i]:
		case n.record.Living() && n.record.MovedFrom != o.nodes[i].Ref.UID:
		case !o.nodes[i].Deleting:
			old := o.nodes[i].Ref
			fail("Moved object still exists", "lifecycle.moved of %s names %s, which is not marked for deletion. Two objects cannot manage one resource. Delete the old object (kubectl delete %s -n %s --wait=false), and run this same command again.",
				n.Address, former, shell.Word(old.Kind+"/"+old.Name), old.Namespace)
		case o.nodes[i].movedTo != "":
			fail("Ambiguous move", "Another object also names %s in lifecycle.moved. Remove lifecycle.moved from one of the two.", former)
		default:
			takesOver(n, o.nodes[i])
		}
	}
}

// changes creates the open changes of the visited nodes, which are in order, followed by those of their deposed
// instances.
func (o *oracle) changes(visited []int) (out []*ledger.Change) {
	position := map[lang.Address]int32{}
	var nodes []*node
	for _, i := range visited {
		if n := o.nodes[i]; n.Mode != v1alpha1.ModeEphemeral {
			position[n.Address] = int32(len(nodes))
			nodes = append(nodes, n)
		}
	}
	visits := func(addr lang.Address) bool { _, ok := position[addr]; return ok }
	l := links{func(addr lang.Address) (int32, bool) { i, ok := position[addr]; return i, ok }, o.holds(visits), o.leftOut(visits)}
	renamed, deposed := renames{}, []*ledger.Change(nil)
	for k, n := range nodes {
		c := o.change(n, l)
		c.Requires = texts(o.references(n))
		out = append(out, c)
		deposed = append(deposed, o.deposedChanges(n)...)
		renamed.noteGone(k, n)
		renamed.noteMade(k, n)
	}
	for made, gone := range renamed.pairs() {
		out[made].LooksLike = out[gone].Address
	}
	for _, c := range deposed {
		c.Index = int32(len(out))
		out = append(out, c)
	}
	return out
}

// holds is visits.leavesDeposed.
func (o *oracle) holds(visits func(lang.Address) bool) func(lang.Address) bool {
	if len(o.targets.named) > 0 {
		return func(addr lang.Address) bool { return !o.targets.named[addr] }
	}
	held := map[lang.Address]bool{}
	for _, n := range o.nodes {
		if len(o.spec.Exclude)+len(o.Waits) == 0 && o.spec.Selector == nil || visits(n.Address) || !n.record.Living() {
			continue
		}
		for _, addr := range n.requires {
			held[addr] = true
		}
	}
	return func(addr lang.Address) bool { return held[addr] }
}

// leftOut is members.referrers.
func (o *oracle) leftOut(func(lang.Address) bool) map[lang.Address][]ledger.Referrer {
	out := map[lang.Address][]ledger.Referrer{}
	if o.spec.Destroy || o.spec.RefreshOnly {
		return out
	}
	for i, n := range o.nodes {
		if o.scope[i] || !n.wanted || n.Mode != v1alpha1.ModeManaged || !n.record.Living() {
			continue
		}
		refs := map[lang.Address][]lang.Reference{}
		for _, ref := range n.References {
			if j, ok := o.byAddr[ref.Address]; ok && o.scope[j] {
				refs[ref.Address] = append(refs[ref.Address], ref)
			}
		}
		for addr, of := range refs {
			out[addr] = append(out[addr], referrer(n.Address, of))
		}
	}
	return out
}

// references returns the addresses that the record of a node refers to: directly, and through the records of others.
func (o *oracle) references(n *node) []lang.Address {
	out := slices.Clone(n.requires)
	for k := 0; k < len(out); k++ {
		i, ok := o.byAddr[out[k]]
		if !ok {
			continue
		}
		for _, addr := range o.nodes[i].requires {
			if _, exists := o.byAddr[addr]; exists && addr != n.Address && !slices.Contains(out, addr) {
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out[len(n.requires):], lang.Address.Compare)
	return out
}
