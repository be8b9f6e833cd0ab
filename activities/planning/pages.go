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

// defaultPage is the number of objects in a page. The ledger stores as many changes in one transaction.
const defaultPage = 200

func (a *Planner) page() int { return cmp.Or(a.PageSize, defaultPage) }

// pages are the pages of a survey. The index determines the indexes of their changes. The survey loads the objects of a
// page with their dependencies, checks them, and stores their changes. So it never has all objects in memory.
type pages struct {
	*survey
	tolerance tolerance
	// checked lists the slots of the objects that the survey checks, in the order of a list of all objects.
	checked []int
	// numbered lists the slots of the objects with a change, by its index.
	numbered []int
	links    links
	// cycle is the error if the visited objects depend on each other in a cycle; the survey reports it if it finds no
	// other.
	cycle diag.Diagnostics
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

func newPages(s *survey, t tolerance) *pages {
	p := &pages{survey: s, tolerance: t, deposed: map[int32][]*ledger.Change{},
		ephemerals: map[int]*resource.Resource{}}
	for i, is := range s.checked {
		if is {
			p.checked = append(p.checked, i)
		}
	}
	slices.SortFunc(p.checked, p.before)
	p.number()
	if p.destroysRecorded() {
		p.renames = renames{}
	}
	return p
}

// number determines the indexes of the changes.
func (p *pages) number() {
	order, cycle := p.orderOf(slices.DeleteFunc(slices.Clone(p.checked), func(i int) bool { return !p.visited[i] }))
	if cycle != nil {
		first := p.Nodes[cycle[0]].Object.Address()
		text := graph.CycleText(cycle, func(i int) string { return p.Nodes[i].Object.Address().String() })
		p.cycle = diag.Diagnostics{lang.Problem(first, "", "Cycle",
			fmt.Sprintf("These resources depend on each other in a cycle: %s. %sRemove one of the references.",
				text, p.configsInCycleText(cycle)))}
	}
	position := make([]int32, len(p.Nodes))
	for i := range position {
		position[i] = -1
	}
	for _, i := range order {
		if p.Nodes[i].Object.Mode != v1alpha1.ModeEphemeral {
			position[i] = int32(len(p.numbered))
			p.numbered = append(p.numbered, i)
		}
	}
	p.links = p.linksOf(func(addr lang.Address) (int32, bool) {
		i, ok := p.Slot(addr)
		if !ok || position[i] < 0 {
			return 0, false
		}
		return position[i], true
	})
}

// store surveys the pages and stores the changes. After an error in an object, it stores nothing.
func (p *pages) store(ctx context.Context) error {
	p.asker = p.planner.RequesterOf(p.plan)
	err := p.storePages(ctx)
	if !diag.HasErrors(p.diags) {
		p.diags = append(p.diags, p.cycle...)
	}
	if err == nil && !diag.HasErrors(p.diags) {
		var missing diag.Diagnostics
		missing, err = missingRights(ctx, p.asker, p.lacking)
		p.diags = append(p.diags, missing...)
	}
	p.page = page{}
	if err != nil || diag.HasErrors(p.diags) {
		if derr := p.planner.Ledger.DropPlan(ctx, p.plan.UID); derr != nil {
			return derr
		}
		return err
	}
	p.stored = &stored{whole: p.isWhole(), parsed: slices.AppendSeq(p.parsed, maps.Values(p.ephemerals))}
	for i, is := range p.visited {
		if is {
			p.stored.visited++
			p.stored.addProvider(p.Nodes[i].Object.Provider)
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
		if diag.HasErrors(p.diags) || p.cycle != nil {
			continue // the other pages may have further errors
		}
		if err := p.checkRights(ctx, visited); err != nil {
			return err
		}
		if err := p.storeChanges(ctx, visited); err != nil {
			return err
		}
	}
	if diag.HasErrors(p.diags) || p.cycle != nil {
		return nil
	}
	if err := p.storeDeposed(ctx); err != nil {
		return err
	}
	return p.storeRenames(ctx)
}

// check loads the objects of a page, and adds their errors to p.diags. It returns the visited nodes.
func (p *pages) check(ctx context.Context, slots []int) (visited []int, err error) {
	if err := p.load(ctx, slots, p.tolerance); err != nil {
		return nil, err
	}
	for _, n := range p.nodes {
		if n.Mode == v1alpha1.ModeEphemeral {
			p.ephemerals[n.slot] = n.Resource
		}
	}
	for k, n := range p.nodes[:len(slots)] { // their dependencies follow
		p.diags = slices.Concat(p.diags, n.Invalid, p.moves.failed[n.slot])
		p.resolve(n)
		if !p.visited[n.slot] {
			continue
		}
		if p.tolerance == exact && p.hasOtherStatus(n) {
			return nil, errOutdated
		}
		visited = append(visited, k)
		if len(p.parsed) < maxParsed {
			p.parsed = append(p.parsed, n.Resource)
		}
	}
	return visited, nil
}

// hasOtherStatus reports whether the status of a node was written after the outline was made, so that the plan must
// visit the node, or need not visit it.
func (p *pages) hasOtherStatus(n *node) bool {
	now, status := *p.Nodes[n.slot].Object, resource.FactsOf(n.Object)
	now.Flags &^= index.Good | index.Drifted
	if status.Good {
		now.Flags |= index.Good
	}
	if status.Drifted != 0 && status.Drifted == now.Generation {
		now.Flags |= index.Drifted
	}
	return p.changedAs(n.slot, &now) != p.changed(n.slot)
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
		c.LooksLike = p.Nodes[p.numbered[gone]].Object.Address().String()
		if err := p.planner.Ledger.SaveChange(ctx, p.plan.UID, c); err != nil {
			return err
		}
	}
	return nil
}
