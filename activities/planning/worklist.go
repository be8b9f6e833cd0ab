package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// visitTogether is the number of objects that a worklist adds to a plan at once.
const visitTogether = 100

// worklist schedules the changes of a plan. It begins with the changes that the survey stored, those of the changed
// objects. It follows their dependants in dependency order. It adds a change for a dependant only if the plan changes a
// value that the dependant refers to. It does not load the others, because they keep their values.
//
// It implements graph.Source: an item is the index of a change, or -1-k for the batch k of objects that it adds.
type worklist struct {
	pr     *proposal
	survey *survey

	// mu guards the following fields, and the outline and the ProviderConfigs of the survey.
	mu sync.Mutex
	// row holds the index of the change of each slot, or -1. slots holds the slot of each change; -1 for one that no
	// other waits for.
	row   []int32
	slots []int
	// waiting counts the dependencies of a slot in the closure that are not settled.
	waiting []int32
	// reached[i] is true if a value that the object refers to changes. failed[i] is true if a dependency could not be
	// planned.
	reached, failed []bool
	// arrived lists the slots whose dependencies are settled. ready lists the changes, and add the objects, that are
	// next.
	arrived   []int
	ready     []int
	add       []int
	batches   [][]int
	unsettled int
	// edited[i] is true if the object changed after the survey, so that its dependencies may be others.
	edited []bool
	// before caches the results of changesBefore.
	before map[int][]int32
	// missing lists the rights that the requester lacks for added objects.
	missing diag.Diagnostics
	// users counts the dependants of a slot in the closure that are not settled. An ephemeral one counts twice, because
	// its own dependants read the value later.
	users []int32
}

// newWorklist returns the worklist for the changes that a survey stored.
func newWorklist(ctx context.Context, pr *proposal) (*worklist, error) {
	s, err := pr.newSurvey(ctx, pr.plan)
	if err != nil {
		return nil, err
	}
	if len(s.diags) > 0 || !s.complete() {
		return nil, errObjectChanged // another survey reports the problem
	}
	if err := s.selectMembers(ctx); err != nil {
		return nil, err
	}
	o := s.visits
	o.linkMembers()
	n := len(o.Nodes)
	w := &worklist{pr: pr, survey: s, row: make([]int32, n), waiting: make([]int32, n), users: make([]int32, n),
		reached: make([]bool, n), failed: make([]bool, n), edited: make([]bool, n), before: map[int][]int32{}}
	for i := range w.row {
		w.row[i] = -1
	}
	var roots []int
	for k := range pr.all {
		c, slot := &pr.all[k], -1
		if c.Deposed != "" {
			w.ready = append(w.ready, k)
		} else if slot = w.slotOf(c.Address); slot < 0 {
			return nil, fmt.Errorf("%s: %w", c.Address, errObjectChanged)
		} else {
			w.row[slot] = int32(k)
			roots = append(roots, slot)
		}
		w.slots = append(w.slots, slot)
	}
	for i, node := range o.Nodes {
		if o.member[i] && node.Object.Mode == v1alpha1.ModeEphemeral && o.changed(i) {
			w.reached[i] = true
			roots = append(roots, i)
		}
	}
	o.selectClosure(roots)
	for i, in := range o.closure {
		if !in {
			continue
		}
		w.unsettled++
		for _, d := range o.depends.Of(i) {
			if o.closure[d] {
				w.waiting[i]++
				w.users[d]++
				if o.Nodes[i].Object.Mode == v1alpha1.ModeEphemeral {
					w.users[d]++
				}
			}
		}
		if w.waiting[i] == 0 {
			w.arrived = append(w.arrived, i)
		}
	}
	w.proceed()
	return w, nil
}

// slotOf returns the slot of an object, or -1 if it is no longer in the scope of the plan.
func (w *worklist) slotOf(address string) int {
	addr, err := lang.ParseAddress(address)
	if err != nil {
		return -1
	}
	i, ok := w.survey.Slot(addr)
	if !ok || !w.survey.member[i] {
		return -1
	}
	return i
}

// Ready implements graph.Source.
func (w *worklist) Ready() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for batch := range slices.Chunk(w.add, visitTogether) {
		w.ready = append(w.ready, -1-len(w.batches))
		w.batches = append(w.batches, batch)
	}
	out := w.ready
	w.ready, w.add = nil, nil
	return out
}

// batch returns the objects of an item.
func (w *worklist) batch(ctx context.Context, item int) []int {
	fair.Lock(ctx, &w.mu)
	defer w.mu.Unlock()
	return w.batches[-1-item]
}

// Done implements graph.Source.
func (w *worklist) Done(item int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if item < 0 {
		for _, i := range w.batches[-1-item] {
			w.ready = append(w.ready, int(w.row[i]))
		}
		return
	}
	if i := w.slots[item]; i >= 0 {
		w.settle(i)
	}
	w.proceed()
}

// Fail implements graph.Source.
func (w *worklist) Fail(item int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := []int{}
	if item < 0 {
		failed = w.batches[-1-item]
	} else if i := w.slots[item]; i >= 0 {
		failed = append(failed, i)
	}
	for _, i := range failed {
		w.failed[i] = true
		w.settle(i)
	}
	w.proceed()
	return nil
}

// proceed decides about the objects whose dependencies are settled.
func (w *worklist) proceed() {
	o := w.survey.visits
	for len(w.arrived) > 0 {
		i := w.arrived[len(w.arrived)-1]
		w.arrived = w.arrived[:len(w.arrived)-1]
		mode := o.Nodes[i].Object.Mode
		switch {
		case w.row[i] >= 0 && !w.failed[i]:
			w.ready = append(w.ready, int(w.row[i]))
		case w.row[i] >= 0:
			w.pr.dependOn(w.row[i], w.changesBefore(i)) // it stays open, and its dependencies show the reason
			w.settle(i)
		case w.reached[i] && !w.failed[i] && !o.spec.RefreshOnly && hasRecordedValue(mode):
			w.add = append(w.add, i)
		default:
			w.settle(i)
		}
	}
}

// settle records that the object needs no more work, and updates its dependants.
func (w *worklist) settle(i int) {
	o := w.survey.visits
	w.unsettled--
	var e *expected
	if w.row[i] >= 0 && !w.failed[i] {
		e = w.pr.expectedOf(o.Nodes[i].Object.Address())
	}
	for _, d := range o.dependants.Of(i) {
		if !o.closure[d] {
			continue
		}
		w.failed[d] = w.failed[d] || w.failed[i]
		w.reached[d] = w.reached[d] || w.reaches(d, i, e)
		if w.waiting[d]--; w.waiting[d] == 0 {
			w.arrived = append(w.arrived, d)
		}
	}
	w.release(i)
}

// release drops the results that no object will read after object i is settled.
func (w *worklist) release(i int) {
	o := w.survey.visits
	if w.users[i] == 0 {
		w.pr.release(o.Nodes[i].Object.Address())
	}
	for _, d := range o.depends.Of(i) {
		if !o.closure[d] {
			continue
		}
		if w.users[d]--; w.users[d] == 0 {
			w.pr.release(o.Nodes[d].Object.Address())
		}
	}
}

// reaches reports whether the plan must visit object d because of object i. e is the result of i; nil if i has no
// change.
func (w *worklist) reaches(d, i int, e *expected) bool {
	o := w.survey.visits
	switch {
	case o.Nodes[i].Object.Mode == v1alpha1.ModeEphemeral:
		return w.reached[i]
	case e == nil:
		return false
	case o.Nodes[d].Object.Mode == v1alpha1.ModeEphemeral:
		return e.affectsReferrers("") // lifecycle.dependsOn of an ephemeral resource delays its opening
	}
	for _, ref := range o.values(d) {
		if int(ref.Slot) == i && e.affectsReferrers(ref.Attribute.Value()) {
			return true
		}
	}
	return false
}

// link sets the dependencies of a change, which the worklist may have added after the survey stored the change. As in
// Terraform, a change waits for others also through unchanged instances.
func (w *worklist) link(c *ledger.Change) {
	o, i := w.survey.visits, w.slots[c.Index]
	if i < 0 {
		return
	}
	c.DependsOn, c.ReadAfter = nil, nil
	on := w.changesBefore(i)
	c.DependsOn = slices.Clone(on)
	if c.Mode != v1alpha1.ModeData {
		return
	}
	own := o.Nodes[i].Object.DependsOn
	awaits := func(d int32) {
		inherited := !slices.Contains(own, d) && slices.Contains(o.dependencies(i), d)
		if row := w.row[d]; row >= 0 && !inherited && !slices.Contains(c.ReadAfter, row) {
			c.ReadAfter = append(c.ReadAfter, row)
		}
	}
	for _, d := range o.dependencies(i) {
		awaits(d)
	}
	o.forEachThrough(i, func(e int) {
		for _, d := range o.dependencies(e) {
			awaits(d)
		}
	}, v1alpha1.ModeEphemeral)
}

// prepare links a change before it is planned. It does nothing without a worklist.
func (w *worklist) prepare(ctx context.Context, c *ledger.Change) {
	if w == nil {
		return
	}
	fair.Lock(ctx, &w.mu)
	defer w.mu.Unlock()
	w.link(c)
}

// changesBefore returns the changes that an object depends on directly, or through objects without a change.
func (w *worklist) changesBefore(i int) []int32 {
	if found, ok := w.before[i]; ok {
		return found
	}
	var out []int32
	seen := map[int32]bool{}
	add := func(row int32) {
		if !seen[row] {
			seen[row] = true
			out = append(out, row)
		}
	}
	o := w.survey.visits
	for _, d := range o.depends.Of(i) {
		switch {
		case w.row[d] >= 0:
			add(w.row[d])
		case o.closure[d]:
			for _, row := range w.changesBefore(d) {
				add(row)
			}
		}
	}
	w.before[i] = out
	return out
}

// visit loads the objects of a batch and adds a change for each. ok is false if the requester may not read one of them.
func (w *worklist) visit(ctx context.Context, batch []int) (ok bool, err error) {
	pr, o := w.pr, w.survey.visits
	fair.Lock(ctx, &w.mu)
	for _, i := range batch {
		if w.edited[i] = !w.unedited(i); w.edited[i] && pr.restarts() {
			w.mu.Unlock()
			return false, fmt.Errorf("%s: %w", o.Nodes[i].Object.Address(), errObjectChanged)
		}
	}
	slots := o.withDependencies(slices.Sorted(slices.Values(batch)))
	w.mu.Unlock()
	nodes, err := pr.loadNodes(ctx, pr.plan, o.View, slots, tolerance(!pr.restarts()))
	if err != nil {
		return false, changedIfOutdated(err)
	}
	fair.Lock(ctx, &w.mu)
	defer w.mu.Unlock()
	s := *w.survey
	if err := s.turnTo(nodes); err != nil {
		return false, err
	}
	for _, n := range nodes {
		w.edited[n.slot] = w.edited[n.slot] || n.edited
	}
	visited := make([]int, len(batch)) // the nodes of the batch come first
	for k := range batch {
		visited[k] = k
	}
	missing, err := checkReads(ctx, pr.Sources, pr.plan, &s, visited)
	if err != nil || diag.HasErrors(missing) {
		w.missing = append(w.missing, missing...)
		return false, err
	}
	added := s.addedChanges(visited, int32(len(w.slots)))
	if err := pr.Ledger.AddChanges(ctx, pr.plan.UID, added); err != nil {
		return false, err
	}
	for _, c := range added {
		i := w.slotOf(c.Address)
		w.row[i] = c.Index
		w.slots = append(w.slots, i)
	}
	pr.append(added)
	return true, nil
}

// isEdited reports whether the object of a change that the worklist added changed after the survey.
func (w *worklist) isEdited(c *ledger.Change) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.slots[c.Index]
	return i >= 0 && w.edited[i]
}

// unedited reports whether an object is unchanged since the survey left it out: it is applied, and was not edited.
func (w *worklist) unedited(i int) bool {
	o := w.survey.visits
	object, rec := o.Nodes[i].Object, o.record(i)
	return object.Mode == v1alpha1.ModeManaged && o.wanted(i) && rec.Exists && rec.Generation == object.Generation
}

// changedIfOutdated converts errOutdated, which needs another survey, to errObjectChanged.
func changedIfOutdated(err error) error {
	if errors.Is(err, errOutdated) {
		return fmt.Errorf("%w: %w", errObjectChanged, err)
	}
	return err
}

// changesOf returns the source of the plan's changes for graph.Run. whole is true if the survey stored all of them.
func (pr *proposal) changesOf(ctx context.Context, whole bool) (graph.Source, error) {
	if whole || len(pr.all) == 0 {
		return newReleasing(pr), nil
	}
	w, err := newWorklist(ctx, pr)
	if err != nil {
		return nil, changedIfOutdated(err)
	}
	pr.worklist = w
	return w, nil
}

// finish returns an error if objects remain open, because an edit during planning made them depend on each other in a
// cycle.
func (w *worklist) finish() error {
	if w == nil || w.unsettled == 0 {
		return nil
	}
	return errObjectChanged
}
