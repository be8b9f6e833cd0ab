package planning

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"
)

// This file surveys a large plan in pages. The outline determines which objects the plan visits, and the indexes of their
// changes. The survey then loads the objects of a page with their dependencies, checks them, and stores their changes. So
// it never has all objects in memory.

// defaultPage is the number of objects up to which a survey loads the selected ones at once. The ledger stores as many
// changes in one transaction.
const defaultPage = 200

func (a *Planner) page() int { return cmp.Or(a.PageSize, defaultPage) }

// pages is a survey in pages. It stores the same changes and finds the same errors as a survey of all objects at once.
type pages struct {
	*survey
	planner *Planner
	plan    *v1alpha1.Plan
	// checked lists the slots of the objects that the survey checks, in the order of a list of all objects.
	checked []int
	// numbered lists the slots of the objects with a change, by its index.
	numbered []int
	links    links
	// asker is nil if the plan has no requester. lacking lists the rights that the requester lacks to read objects.
	asker   *store.Asker
	lacking []store.Right
	// renames is nil if the plan destroys nothing that may have been renamed.
	renames renames
	// deposed holds the changes of deposed instances, by the index of the change of the current one.
	deposed map[int32][]*ledger.Change
	// ephemerals holds the ephemeral resources, by slot. parsed holds visited resources, at most maxParsed.
	ephemerals map[int]*resource.Resource
	parsed     []*resource.Resource
}

// stored is the result of a survey that has stored its changes.
type stored struct {
	visited int
	// providers lists the names of the providers of the visited resources.
	providers []string
	// whole is true if the survey has stored a change for each dependant.
	whole bool
	// parsed lists resources that Propose need not parse again.
	parsed []*resource.Resource
}

func (s *stored) addProvider(name string) {
	if !slices.Contains(s.providers, name) {
		s.providers = append(s.providers, name)
	}
}

// inPages returns the pages of a survey whose outline has selected the objects. It returns nil if one page suffices, or
// if only the objects themselves show which of them the plan visits: because of a move, a cycle, or an object with the
// address of a ResourceSet.
func (s *survey) inPages(a *Planner, po *v1alpha1.Plan) *pages {
	o := s.outline
	p := &pages{survey: s, planner: a, plan: po, deposed: map[int32][]*ledger.Change{}, ephemerals: map[int]*resource.Resource{}}
	for i, is := range o.checked {
		if is {
			p.checked = append(p.checked, i)
		}
	}
	if len(p.checked) <= a.page() || len(o.taken)+len(o.takes) > 0 || o.hidesSet() {
		return nil
	}
	slices.SortFunc(p.checked, o.before)
	if !p.number() {
		return nil
	}
	if o.destroysRecorded() {
		p.renames = renames{}
	}
	return p
}

// number determines the indexes of the changes. It returns false if there is a cycle.
func (p *pages) number() bool {
	o := p.outline
	local, position := make([]int32, len(o.view.Nodes)), make([]int32, len(o.view.Nodes))
	for i := range local {
		local[i], position[i] = -1, -1
	}
	var visited []int
	for _, i := range p.checked {
		if o.visited[i] {
			local[i] = int32(len(visited))
			visited = append(visited, i)
		}
	}
	order, _ := graph.Order(len(visited), func(k int) []int {
		var deps []int
		for _, d := range o.dependencies(visited[k]) {
			if local[d] >= 0 {
				deps = append(deps, int(local[d]))
			}
		}
		return deps
	})
	if order == nil && len(visited) > 0 {
		return false
	}
	for _, k := range order {
		if i := visited[k]; o.view.Nodes[i].Object.Mode != v1alpha1.ModeEphemeral {
			position[i] = int32(len(p.numbered))
			p.numbered = append(p.numbered, i)
		}
	}
	p.links = p.linksOf(func(addr lang.Address) (int32, bool) {
		i, ok := o.view.Slot(addr)
		if !ok || position[i] < 0 {
			return 0, false
		}
		return position[i], true
	})
	return true
}

// hidesSet reports whether an object has the address of a ResourceSet.
func (o *outline) hidesSet() bool {
	return slices.ContainsFunc(o.view.Nodes, func(n index.Node) bool { return n.Object != nil && o.view.SetOf(n.Object.Address()) != nil })
}

// destroysRecorded reports whether the plan visits a recorded resource that is marked for deletion.
func (o *outline) destroysRecorded() bool {
	for i, n := range o.view.Nodes {
		if o.visited[i] && n.Object.Has(index.Deleting) && o.record(i).Exists {
			return true
		}
	}
	return false
}

// store surveys the pages and stores the changes. After an error in an object, it stores nothing.
func (p *pages) store(ctx context.Context) error {
	if diag.HasErrors(p.diags) {
		return nil
	}
	p.asker = p.planner.RequesterOf(p.plan)
	err := p.storePages(ctx)
	if err == nil && !diag.HasErrors(p.diags) {
		var missing diag.Diagnostics
		missing, err = missingRights(ctx, p.asker, p.lacking)
		p.diags = append(p.diags, missing...)
	}
	p.nodes, p.byAddr = nil, nil
	if err != nil || diag.HasErrors(p.diags) {
		if derr := p.planner.Ledger.DropPlan(ctx, p.plan.UID); derr != nil {
			return derr
		}
		return err
	}
	p.stored = &stored{whole: p.outline.isWhole(), parsed: slices.AppendSeq(p.parsed, maps.Values(p.ephemerals))}
	for i, is := range p.outline.visited {
		if is {
			p.stored.visited++
			p.stored.addProvider(p.outline.view.Nodes[i].Object.Provider)
		}
	}
	return nil
}

func (p *pages) storePages(ctx context.Context) error {
	for page := range slices.Chunk(p.checked, p.planner.page()) {
		visited, err := p.check(ctx, page)
		if err != nil {
			return err
		}
		if diag.HasErrors(p.diags) {
			continue // the other pages may have further errors
		}
		if err := p.checkRights(ctx, visited); err != nil {
			return err
		}
		if err := p.storeChanges(ctx, visited); err != nil {
			return err
		}
	}
	if diag.HasErrors(p.diags) {
		return nil
	}
	if err := p.storeDeposed(ctx); err != nil {
		return err
	}
	return p.storeRenames(ctx)
}

// check loads the objects of a page, and adds their errors to p.diags. It returns the visited nodes.
func (p *pages) check(ctx context.Context, page []int) (visited []int, err error) {
	o := p.outline
	if p.nodes, err = p.planner.loadNodes(ctx, p.plan, o.view, o.withDependencies(page), p.tolerance); err != nil {
		return nil, err
	}
	for _, n := range p.nodes {
		if err := n.configure(o.configs); err != nil {
			return nil, err
		}
		n.createsFirst = o.createsFirst[n.slot] && n.Mode == v1alpha1.ModeManaged
		if n.Mode == v1alpha1.ModeEphemeral {
			p.ephemerals[n.slot] = n.Resource
		}
	}
	p.indexAddresses()
	for k, n := range p.nodes[:len(page)] { // their dependencies follow
		p.diags = append(p.diags, n.Invalid...)
		p.resolve(n, p.planner.Sources)
		if !o.visited[n.slot] {
			continue
		}
		if changed := p.survey.changed(n) || p.forced[n.Address]; p.tolerance == exact && changed != o.root[n.slot] {
			return nil, errOutdated // its status changed after the outline was made
		}
		visited = append(visited, k)
		if len(p.parsed) < maxParsed {
			p.parsed = append(p.parsed, n.Resource)
		}
	}
	return visited, nil
}

// checkRights adds the rights that the requester lacks to read the visited objects.
func (p *pages) checkRights(ctx context.Context, visited []int) error {
	if p.asker == nil {
		return nil // missingRights reports it
	}
	rights, err := readRights(p.planner.Sources, p.plan, p.survey, visited)
	if err != nil {
		return err
	}
	lacking, err := p.asker.Missing(ctx, rights)
	p.lacking = append(p.lacking, lacking...)
	return err
}

// storeChanges stores the changes of visited nodes.
func (p *pages) storeChanges(ctx context.Context, visited []int) error {
	var out []*ledger.Change
	for _, k := range visited {
		n := p.nodes[k]
		if n.Mode == v1alpha1.ModeEphemeral {
			continue
		}
		c := p.change(n, p.links)
		out = append(out, c)
		if deposed := p.deposedChanges(n); len(deposed) > 0 {
			p.deposed[c.Index] = deposed
		}
		if p.renames != nil {
			p.renames.noteGone(int(c.Index), n)
			p.renames.noteMade(int(c.Index), n)
		}
	}
	return p.planner.Ledger.SaveChanges(ctx, p.plan.UID, out)
}

// storeDeposed stores the changes of deposed instances, after all others.
func (p *pages) storeDeposed(ctx context.Context) error {
	var out []*ledger.Change
	for _, of := range slices.Sorted(maps.Keys(p.deposed)) {
		for _, c := range p.deposed[of] {
			c.Index = int32(len(p.numbered) + len(out))
			out = append(out, c)
		}
	}
	return p.planner.Ledger.SaveChanges(ctx, p.plan.UID, out)
}

// storeRenames adds the former addresses of objects that may have been renamed to their changes.
func (p *pages) storeRenames(ctx context.Context) error {
	for made, gone := range p.renames.pairs() {
		c, err := p.planner.Ledger.Change(ctx, p.plan.UID, int32(made))
		if err != nil {
			return fmt.Errorf("note a renamed object: %w", err)
		}
		c.LooksLike = p.outline.view.Nodes[p.numbered[gone]].Object.Address().String()
		if err := p.planner.Ledger.SaveChange(ctx, p.plan.UID, c); err != nil {
			return err
		}
	}
	return nil
}

// isWhole reports whether the plan visits each object that depends on a changed one.
func (o *outline) isWhole() bool {
	for i, in := range o.closure {
		if in && !o.visited[i] && o.canVisit(i) {
			return false
		}
	}
	return true
}
