package planning

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/scope"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// This file determines the objects that a Stack selects, and whether their infrastructure matches them. It uses the
// index, by the same rules as a survey.

// Selection describes the objects that a Stack selects in its namespace.
type Selection struct {
	// Resources is the number of objects.
	Resources int
	// Contents is a digest of the objects that are not marked for deletion: their UIDs and generations, and the
	// versions of the values outside of the selection that they refer to. An apply of the selection does not change it.
	Contents string
	// Written is a digest of what users write of these objects, and of the versions of their providers: UIDs and
	// generations, for the instances of a ResourceSet those of the set. No apply changes it.
	Written string
	// Values is a digest of the recorded values.
	Values string
	// Missing lists the objects without infrastructure. Edited lists those that no plan has applied as they are written
	// now, or that are marked for deletion. Unread lists the data sources whose current arguments were not read. Faulty
	// lists those that are tainted or deposed, or have an operation of unknown outcome. Drifted lists those whose drift
	// was recorded for the generation that they have now. Failed lists the others that are applied and not ready.
	Missing, Edited, Unread, Faulty, Drifted, Failed []lang.Address
	// Lost lists those, of any of the lists above, whose create began and has no recorded outcome.
	Lost []lang.Address
	// Beyond is an object outside of the selection that a plan of the selection would change, because the object For
	// depends on it; nil if there is none. Destroys is true if it is marked for deletion, and the plan would destroy
	// it.
	Beyond, For *lang.Address
	Destroys    bool
}

// Pending returns the objects whose infrastructure does not match them.
func (s *Selection) Pending() []lang.Address {
	return slices.Concat(s.Missing, s.Edited, s.Faulty, s.Drifted, s.Failed)
}

// Select returns the selection of a Stack. who is the author of the Stack, with whose rights it reads the values that
// the objects refer to.
func Select(ctx context.Context, from *scope.Sources, who *v1alpha1.Identity, namespace string,
	selects func(labels.Set) bool) (*Selection, error) {
	view, err := from.Index.View(ctx, namespace)
	if err != nil {
		return nil, err
	}
	view.ExpandReferences()
	po := &v1alpha1.Plan{Spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshChanged},
		Status: v1alpha1.PlanStatus{RequestedBy: who}}
	po.Namespace = namespace
	o := newOutline(view, po, from.ProviderConfigs(ctx, po), from.Catalog, func([]lang.Reference) bool { return false })
	if view.Ambiguous() || !o.complete() {
		return selectRoughly(view, selects), nil // the plan will report the problem
	}
	if err := o.readConfigs(); err != nil {
		return nil, err
	}
	m := &members{versions: newVersions(o), member: make([]bool, len(view.Nodes))}
	for i, n := range view.Nodes {
		m.member[i] = n.Object != nil && selects(n.Object.Labels)
	}
	return m.selection(), nil
}

// SelectsAny reports whether any object of a namespace is selected.
func SelectsAny(ctx context.Context, from *scope.Sources, namespace string,
	selects func(labels.Set) bool) (bool, error) {
	view, err := from.Index.View(ctx, namespace)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(view.Nodes,
		func(n index.Node) bool { return n.Object != nil && selects(n.Object.Labels) }), nil
}

// selection returns the selection of a Stack.
func (m *members) selection() *Selection {
	out := &Selection{}
	var contents, values index.Sum
	written := newWrittenSum(m.View)
	for i, n := range m.Nodes {
		if !m.member[i] {
			continue
		}
		out.Resources++
		out.add(n, m.wanted(i), m.current(i))
		values.Add(n.Version)
		if m.wanted(i) {
			contents.Add(index.SumOf(string(n.Object.UID), fmt.Sprint(n.Object.Generation, m.versionsBeyond(i))))
			written.add(n.Object, m.providers[n.Object.Provider])
		}
	}
	out.Contents, out.Written, out.Values = textOf(contents), textOf(written.sum), textOf(values)
	out.Beyond, out.For = m.findBeyond()
	if out.Beyond != nil {
		slot, _ := m.Slot(*out.Beyond)
		out.Destroys = !m.wanted(slot)
	}
	return out
}

// writtenSum adds up Selection.Written.
type writtenSum struct {
	view *index.View
	sum  index.Sum
	// sets are those whose instances were added. The number of instances may depend on a ConfigMap, so a set counts
	// once.
	sets map[types.UID]bool
}

func newWrittenSum(view *index.View) *writtenSum {
	return &writtenSum{view: view, sets: map[types.UID]bool{}}
}

// add adds an object, with the version of its provider.
func (w *writtenSum) add(object *index.Object, provider index.Sum) {
	uid, generation := object.UID, object.Generation
	if object.Instance != nil {
		uid, generation = object.Instance.SetUID, 0
		if of, _, ok := object.Address().Set(); ok && w.view.SetOf(of) != nil {
			generation = w.view.SetOf(of).Generation
		}
		if w.sets[uid] {
			return
		}
		w.sets[uid] = true
	}
	w.sum.Add(index.SumOf(string(uid), fmt.Sprint(generation, provider)))
}

// add adds an object. wanted is false if it is marked for deletion. current is true if its record has the current
// versions of the values that it refers to.
func (s *Selection) add(n index.Node, wanted, current bool) {
	rec, object := n.Record, n.Object
	if rec == nil {
		rec = &noRecord
	}
	applied := rec.Exists && rec.Generation == object.Generation
	list := &s.Edited
	switch object.Mode {
	case v1alpha1.ModeEphemeral:
		return
	case v1alpha1.ModeData:
		if !wanted || object.Has(index.Good) {
			return
		}
		list = &s.Unread
	case v1alpha1.ModeAction:
		if !wanted || object.Has(index.Good) || rec.Planned && !rec.Intent && rec.Generation == object.Generation {
			return
		}
	default:
		if rec.Intent && !rec.Exists {
			s.Lost = append(s.Lost, object.Address())
		}
		switch {
		case !wanted:
			if !rec.Living && !rec.Intent && !object.Has(index.Deleting) {
				return
			}
		case rec.Tainted, rec.Intent, rec.Deposed:
			list = &s.Faulty
		case object.Has(index.Drifted):
			list = &s.Drifted
		case !rec.Exists:
			list = &s.Missing
		case applied && !object.Has(index.Good):
			list = &s.Failed
		case applied && current:
			return
		}
	}
	*list = append(*list, object.Address())
}

// versionsBeyond returns the sum of the versions of the values outside of the scope that an object refers to.
func (m *members) versionsBeyond(i int) index.Sum {
	sum := m.externalVersions(i)
	for _, ref := range m.values(i) {
		if !m.member[ref.Slot] {
			sum.Add(m.valueVersion(ref))
		}
	}
	return sum
}

// findBeyond returns an object outside of the scope that a plan of the scope would change, and the object in scope that
// depends on it. A plan also visits the dependencies of its objects.
func (m *members) findBeyond() (found, by *lang.Address) {
	edges := m.edges(func(i int) []int32 {
		if !m.wanted(i) {
			return m.requires(i)
		}
		return m.dependencies(i)
	})
	var roots []int
	for i, is := range m.member {
		if is {
			roots = append(roots, i)
		}
	}
	needed := graph.WithDependencies(edges, roots)
	slices.SortStableFunc(needed, func(a, b int) int { // objects that would be destroyed come last
		return cmp.Compare(rank(m.Nodes[a].Object), rank(m.Nodes[b].Object))
	})
	for _, d := range needed {
		n := m.Nodes[d]
		if n.Object == nil || m.member[d] || n.Object.Mode == v1alpha1.ModeData ||
			n.Object.Mode == v1alpha1.ModeEphemeral || !m.changed(d) {
			continue
		}
		dependants := graph.Collect(len(edges), func(i int) []int { return edges[i].Deps }).Reverse()
		for _, i := range dependants.Reach([]int{d}) {
			if m.member[i] {
				return new(n.Object.Address()), new(m.Nodes[i].Object.Address())
			}
		}
	}
	return nil, nil
}

// rank orders objects: those that are marked for deletion come last.
func rank(o *index.Object) int {
	if o != nil && o.Has(index.Deleting) {
		return 1
	}
	return 0
}

// selectRoughly is members.selection for a namespace that the index cannot survey, such as one whose provider is not
// ready. It ignores the versions of the values that the objects refer to.
func selectRoughly(view *index.View, selects func(labels.Set) bool) *Selection {
	out := &Selection{}
	var contents, values index.Sum
	written := newWrittenSum(view)
	for _, n := range view.Nodes {
		if n.Object == nil || !selects(n.Object.Labels) {
			continue
		}
		out.Resources++
		wanted := !n.Object.Has(index.Deleting)
		out.add(n, wanted, true)
		values.Add(n.Version)
		if wanted {
			contents.Add(index.SumOf(string(n.Object.UID), fmt.Sprint(n.Object.Generation)))
			written.add(n.Object, index.Sum{})
		}
	}
	out.Contents, out.Written, out.Values = textOf(contents), textOf(written.sum), textOf(values)
	return out
}

func textOf(s index.Sum) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s[0]), s[1]))
}
