package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// chunkBytes and chunkObjects limit one request of an upload. The server accepts 2 MiB and 1000 objects.
	chunkBytes   = 1 << 20
	chunkObjects = 500
	// prunedBytes is the approximate size of a pruned object in a request.
	prunedBytes = 512
	// listedChanges is the number of objects that are listed before a plan.
	listedChanges = 10
)

// speculation is the speculative planning of files.
type speculation struct {
	*session
	rec *recorder
	// set is the applyset of the files; nil without --prune.
	set *applySet
	// ms holds the objects of the files in the form for recording, followed by the pruned objects. results holds the
	// effect of recording each.
	ms      []manifest
	results []v1alpha1.PlanObjectResult
	// wanted holds the specifications of the plans, and plans the speculative plans themselves.
	wanted []wanted
	plans  []*v1alpha1.Plan
}

// speculate reads the files and makes speculative plans of them. If there are prerequisites, it returns only these. The
// caller must call discard to delete the plans.
func (s *session) speculate(ctx context.Context, ms []manifest, files *fileFlags, set *applySet, want func([]recorded) []wanted) (*speculation, []prerequisite, error) {
	sp := &speculation{session: s, set: set, rec: &recorder{session: s, force: files.force, timeout: files.timeout, installed: map[string]bool{}}, ms: ms}
	needs, err := sp.missing(ctx)
	if err != nil || len(needs) > 0 {
		return sp, needs, err
	}
	if err := sp.prepare(ctx); err != nil {
		return sp, nil, err
	}
	if set != nil {
		if err := set.readMembers(ctx, ms); err != nil {
			return sp, nil, err
		}
		sp.ms = slices.Concat(ms, set.left)
	}
	var rs []recorded
	for _, m := range sp.ms {
		if !m.pruned || held(m.object) {
			rs = append(rs, recorded{manifest: m, namespace: m.object.GetNamespace()})
		}
	}
	sp.wanted = want(rs)
	if err := sp.untilInterrupted(ctx, sp.upload); err != nil {
		return sp, nil, errors.Join(err, sp.discard(ctx))
	}
	return sp, sp.outdated(ctx), nil
}

// untilInterrupted calls do with a context that Ctrl-C cancels.
func (s *session) untilInterrupted(ctx context.Context, do func(context.Context) error) error {
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	pressed, done := s.interrupts()
	defer done()
	go func() {
		select {
		case <-pressed:
			cancel()
		case <-during.Done():
		}
	}()
	err := do(during)
	if err != nil && during.Err() != nil && ctx.Err() == nil {
		return errors.New("interrupted; nothing was recorded")
	}
	return err
}

// prepare prepares the objects for recording.
func (sp *speculation) prepare(ctx context.Context) error {
	var bad []error
	for _, m := range sp.ms {
		if _, _, err := sp.rec.prepare(ctx, m); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// upload creates the plans and uploads their objects. It returns all errors together.
func (sp *speculation) upload(ctx context.Context) error {
	sp.results = make([]v1alpha1.PlanObjectResult, len(sp.ms))
	for i, m := range sp.ms {
		if m.pruned {
			sp.results[i].Outcome = v1alpha1.ObjectPruned
		}
	}
	if len(sp.wanted) == 0 {
		// Without a plan, the objects are checked nevertheless.
		return sp.checkUnplanned(ctx)
	}
	for _, w := range sp.wanted {
		w.spec.Speculative = true
		// If the response were lost, the plan could not be deleted.
		p, err := sp.createPlan(context.WithoutCancel(ctx), w.namespace, w.base, w.spec)
		if err != nil {
			return sp.refusedPlan(w.namespace, err)
		}
		sp.plans = append(sp.plans, p)
	}
	for i, p := range sp.plans {
		if err := sp.send(ctx, p, sp.share(i), len(sp.plans) == 1); err != nil {
			return err
		}
	}
	if err := sp.rejectionErrors(ctx); err != nil {
		return err
	}
	if len(sp.plans) > 1 {
		for _, p := range sp.plans {
			if _, err := sp.sendChunk(ctx, p, v1alpha1.PlanObjectsSpec{Chunk: lastChunk, Complete: true}); err != nil {
				return err
			}
		}
	}
	return sp.awaitAll(ctx, sp.plans)
}

// refusedPlan returns the error for a plan that the server refused, with the first object of its namespace.
func (sp *speculation) refusedPlan(namespace string, err error) error {
	if i := slices.IndexFunc(sp.ms, func(m manifest) bool { return m.object.GetNamespace() == namespace }); i >= 0 && apiStatus(err) != nil {
		err = fmt.Errorf("%s: %w", sp.ms[i].where(), err)
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		err = fmt.Errorf("%w\nThe server is emptying the namespace, which cannot be reverted. When it is removed, create it again: kubectl create namespace %s", err, namespace)
		return &exitError{ExitError, err}
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w\nDoes the namespace exist? kubectl create namespace %s", err, namespace)
	}
	return err
}

// lastChunk is the number of the empty chunk that completes an upload.
const lastChunk = 255

// checkUnplanned checks objects for which there is no plan.
func (sp *speculation) checkUnplanned(ctx context.Context) error {
	namespace := sp.namespace
	for _, m := range sp.ms {
		if ns := m.object.GetNamespace(); ns != "" {
			namespace = ns
			break
		}
	}
	p, err := sp.createPlan(context.WithoutCancel(ctx), namespace, "judge", v1alpha1.PlanSpec{Speculative: true})
	if err != nil {
		return err
	}
	var all []int
	for i, m := range sp.ms {
		if !m.pruned || isResource(m.object) {
			all = append(all, i)
		}
	}
	err = sp.send(ctx, p, all, false)
	if err == nil {
		err = sp.rejectionErrors(ctx)
	}
	return errors.Join(err, sp.remove(ctx, p))
}

// share returns the indexes of the objects that a plan needs: those of its namespace, and all Secrets and ConfigMaps.
// The first plan also has the objects of namespaces without a plan. Pruned objects other than resources exist until the
// apply, so it omits them.
func (sp *speculation) share(plan int) []int {
	var out []int
	for i, m := range sp.ms {
		if m.pruned && !isResource(m.object) {
			continue
		}
		namespace := m.object.GetNamespace()
		planned := slices.ContainsFunc(sp.wanted, func(w wanted) bool { return w.namespace == namespace })
		stored := m.object.GroupVersionKind().Group == "" && namespace != ""
		if namespace == sp.wanted[plan].namespace || stored || plan == 0 && !planned {
			out = append(out, i)
		}
	}
	return out
}

// send uploads objects in chunks.
func (sp *speculation) send(ctx context.Context, p *v1alpha1.Plan, objects []int, complete bool) error {
	var chunk v1alpha1.PlanObjectsSpec
	var of []int
	size, refused := 0, false
	flush := func(last bool) error {
		chunk.Complete = last && complete && !refused
		results, err := sp.sendChunk(ctx, p, chunk)
		if err != nil {
			return err
		}
		for k, i := range of {
			if k < len(results) {
				sp.results[i] = results[k]
				refused = refused || results[k].Outcome == v1alpha1.ObjectRefused
			}
		}
		chunk, of, size = v1alpha1.PlanObjectsSpec{Chunk: chunk.Chunk + 1}, nil, 0
		return nil
	}
	for _, i := range objects {
		if sp.ms[i].pruned { // these come last, as their results do
			if len(of) == chunkObjects {
				if err := flush(false); err != nil {
					return err
				}
			}
			chunk.Prune, of, size = append(chunk.Prune, prunedRef(sp.ms[i].object)), append(of, i), size+prunedBytes
			continue
		}
		raw, err := json.Marshal(sp.ms[i].object)
		if err != nil {
			return fmt.Errorf("%s: encode %s %q: %w", sp.ms[i].where(), sp.ms[i].object.GetKind(), sp.ms[i].object.GetName(), err)
		}
		if len(of) > 0 && (size+len(raw) > chunkBytes || len(of) == chunkObjects) {
			if err := flush(false); err != nil {
				return err
			}
		}
		chunk.Objects, of, size = append(chunk.Objects, runtime.RawExtension{Raw: raw}), append(of, i), size+len(raw)
	}
	return flush(true)
}

func (sp *speculation) sendChunk(ctx context.Context, p *v1alpha1.Plan, chunk v1alpha1.PlanObjectsSpec) ([]v1alpha1.PlanObjectResult, error) {
	chunk.FieldManager, chunk.ForceConflicts = fieldManager, sp.rec.force
	out := &v1alpha1.PlanObjects{}
	err := sp.hykube.Post().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("objects").
		Body(&v1alpha1.PlanObjects{Spec: chunk}).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("upload objects to plan %q: %w", p.Name, explain(err, sp.server()))
	}
	return out.Status.Results, nil
}

// rejectionErrors returns all rejections with their positions in the files, and prints the warnings.
func (sp *speculation) rejectionErrors(ctx context.Context) error {
	var bad []error
	var deleting []manifest
	seen := map[string]bool{}
	for i, r := range sp.results {
		if r.Outcome == v1alpha1.ObjectRefused && r.Error != nil {
			err := &apierrors.StatusError{ErrStatus: *r.Error}
			if inDeletion(err) {
				deleting = append(deleting, sp.ms[i])
			} else {
				bad = append(bad, sp.rec.refused(sp.ms[i], sp.ms[i].object.GetNamespace(), err))
			}
		}
		for _, w := range r.Warnings {
			if !seen[w] {
				seen[w] = true
				fmt.Fprintln(sp.ErrOut, "Warning: "+w)
			}
		}
	}
	if len(deleting) > 0 {
		bad = append(bad, sp.beingDeleted(ctx, deleting))
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w\nNothing was recorded", errors.Join(bad...))
	}
	return nil
}

// discard deletes the speculative plans.
func (sp *speculation) discard(ctx context.Context) error {
	var errs []error
	for _, p := range sp.plans {
		errs = append(errs, sp.remove(ctx, p))
	}
	sp.plans = nil
	return errors.Join(errs...)
}

func (s *session) remove(ctx context.Context, p *v1alpha1.Plan) error {
	// Delete the plan even after Ctrl-C.
	err := s.hykube.Post().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("objects").
		Body(&v1alpha1.PlanObjects{Spec: v1alpha1.PlanObjectsSpec{Discard: true}}).Do(context.WithoutCancel(ctx)).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove speculative plan %q: %w", p.Name, explain(err, s.server()))
	}
	return nil
}

// changed returns the number of objects that recording would create, change or prune.
func (sp *speculation) changed() int {
	n := 0
	if sp.set != nil && !sp.set.exists {
		n++
	}
	for _, r := range sp.results {
		if r.Outcome != v1alpha1.ObjectUnchanged {
			n++
		}
	}
	return n
}

// leftFiles returns the pruned resources by namespace and address.
func (sp *speculation) leftFiles() map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, m := range sp.ms {
		if t, ok := (recorded{manifest: m}).target(); ok && m.pruned {
			out[[2]string{m.object.GetNamespace(), t.address()}] = true
		}
	}
	return out
}

// qualifiedName returns the name of an object, with its namespace if the files have several.
func (sp *speculation) qualifiedName(m manifest) string {
	name, namespace := strings.ToLower(m.object.GroupVersionKind().GroupKind().String())+"/"+m.object.GetName(), m.object.GetNamespace()
	other := func(o manifest) bool { return o.object.GetNamespace() != "" && o.object.GetNamespace() != namespace }
	if namespace != "" && slices.ContainsFunc(sp.ms, other) {
		name += " in namespace " + namespace
	}
	return name
}

// list prints the objects other than resources that the files create or change, and those that are deleted without a
// plan. For a Secret, it prints keys but no values.
func (sp *speculation) list() {
	var lines []string
	for i, m := range sp.ms {
		r := sp.results[i]
		gk := m.object.GroupVersionKind().GroupKind()
		if m.pruned && !held(m.object) {
			lines = append(lines, "  - "+sp.qualifiedName(m)+": deleted")
			continue
		}
		if isResource(m.object) && !isModule(m.object) || r.Outcome == v1alpha1.ObjectUnchanged {
			continue
		}
		sign, what := "~", "changes"
		if r.Outcome == v1alpha1.ObjectCreated {
			sign, what = "+", "created with"
		}
		text := fmt.Sprintf("  %s %s", sign, sp.qualifiedName(m))
		if len(r.Keys) > 0 && (gk.Group == "" || r.Outcome != v1alpha1.ObjectCreated) {
			text += ": " + what + " " + strings.Join(r.Keys, ", ")
		}
		lines = append(lines, text)
	}
	if sp.set != nil && !sp.set.exists {
		lines = append(lines, fmt.Sprintf("  + %s: created with the record of the applyset", sp.set))
	}
	if len(lines) == 0 {
		return
	}
	head := "Other objects that the files create or change:"
	if sp.set != nil {
		head = "Other objects that are created, changed or deleted:"
	}
	fmt.Fprintln(sp.Out, sp.style.Bold(head))
	fmt.Fprintln(sp.Out, strings.Join(cut(lines, listedChanges, "  … and %d more"), "\n"))
	fmt.Fprintln(sp.Out)
}

// overwrites returns the error for an object that changed after the plan was shown and that recording would change
// again.
func (sp *speculation) overwrites(moved []*changedError) error {
	for _, e := range moved {
		for i, m := range sp.ms {
			if identity(m.object) == identity(e.object) && sp.results[i].Outcome != v1alpha1.ObjectUnchanged {
				return &exitError{ExitStale, e.cause}
			}
		}
	}
	return nil
}

// sameAs reports whether the plans of the recorded objects have the same contents as the speculative plans.
func (sp *speculation) sameAs(plans []*v1alpha1.Plan) bool {
	for i, p := range plans {
		if p.Status.Contents == "" || p.Status.Contents != sp.plans[i].Status.Contents {
			return false
		}
	}
	return len(plans) == len(sp.plans)
}

func speculative(p *v1alpha1.Plan) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return p.Spec.Speculative && c != nil && c.Reason == v1alpha1.ReasonSpeculative
}
