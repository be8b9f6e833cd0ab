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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// chunkBytes and chunkObjects bound one request of an upload; the server takes 2 MiB and 1000 objects.
	chunkBytes   = 1 << 20
	chunkObjects = 500
	// prunedBytes is about what an object that left the files takes of a request.
	prunedBytes = 512
	// listedChanges is how many objects of the files are listed before a plan.
	listedChanges = 10
)

// speculation is a set of files, planned as if they were recorded.
type speculation struct {
	*session
	rec *recorder
	// set is the applyset of the files; nil without --prune.
	set *applySet
	// ms are the objects of the files, as they would be recorded, and after them what left the files; results are what would be
	// done to each.
	ms      []manifest
	results []v1alpha1.PlanObjectResult
	// wanted are the plans of the files, and plans the speculative ones that were made of them.
	wanted []wanted
	plans  []*v1alpha1.Plan
}

// prerequisite is an object without which no plan can be made.
type prerequisite struct {
	manifest
	why string
}

// speculate reads the files and makes speculative plans of them. Prerequisites are returned when there are any, and then
// nothing else. Whatever it leaves on the server, discard removes.
func (s *session) speculate(ctx context.Context, ms []manifest, files *fileFlags, set *applySet, want func([]recorded) []wanted) (*speculation, []prerequisite, error) {
	sp := &speculation{session: s, set: set, rec: &recorder{session: s, force: files.force, timeout: files.timeout, installed: map[string]bool{}}, ms: ms}
	missing, err := sp.missing(ctx)
	if err != nil || len(missing) > 0 {
		return sp, missing, err
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
	return sp, sp.outdated(), nil
}

// untilInterrupted does something that Ctrl-C ends.
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

// missing are the namespaces and providers of the files that are not there. It waits for providers that are being installed.
func (sp *speculation) missing(ctx context.Context) ([]prerequisite, error) {
	var out []prerequisite
	var providers []manifest
	for _, m := range sp.ms {
		gvk := m.object.GroupVersionKind()
		gk := gvk.GroupKind()
		if gk.Kind != "Namespace" && gk != v1alpha1.Kind("Provider") {
			continue
		}
		gvr, _, err := sp.mapping(gvk)
		if err != nil {
			return nil, sp.rec.unknownKind(ctx, m, err)
		}
		_, err = sp.resource(gvr, "").Get(ctx, m.object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, prerequisite{m, "does not exist"})
		case apierrors.IsForbidden(err): // who may not look plans with what is there
		case err != nil:
			return nil, fmt.Errorf("%s: get %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, sp.server()))
		case gk == v1alpha1.Kind("Provider"):
			providers = append(providers, m)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, sp.rec.awaitProviders(ctx, providers)
}

// outdated are the providers that the files change: their kinds may be other ones then.
func (sp *speculation) outdated() []prerequisite {
	var out []prerequisite
	for i, m := range sp.ms {
		if m.object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") && sp.results[i].Outcome == v1alpha1.ObjectConfigured &&
			slices.ContainsFunc(sp.results[i].Keys, func(key string) bool { return strings.HasPrefix(key, "spec.") }) {
			out = append(out, prerequisite{m, "is to be changed: " + strings.Join(sp.results[i].Keys, ", ")})
		}
	}
	return out
}

// prepare finds the kinds of the objects, and brings the objects into the form in which they would be recorded.
func (sp *speculation) prepare(ctx context.Context) error {
	var bad []error
	for _, m := range sp.ms {
		if _, _, err := sp.rec.prepare(ctx, m); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// upload makes the plans and sends them their objects. All mistakes come in one error.
func (sp *speculation) upload(ctx context.Context) error {
	sp.results = make([]v1alpha1.PlanObjectResult, len(sp.ms))
	for i, m := range sp.ms {
		if m.pruned {
			sp.results[i].Outcome = v1alpha1.ObjectPruned
		}
	}
	if len(sp.wanted) == 0 {
		// Nothing is to be planned, and the objects are judged all the same.
		return sp.judgeAlone(ctx)
	}
	for _, w := range sp.wanted {
		w.spec.Speculative = true
		// A plan of which no answer came could not be removed.
		p, err := sp.createPlan(context.WithoutCancel(ctx), w.namespace, w.base, w.spec)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return &exitError{ExitError, fmt.Errorf("%w\nThe namespace is being emptied, which cannot be taken back. Create it again when it is gone: kubectl create namespace %s", err, w.namespace)}
		}
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w\nDoes the namespace exist? kubectl create namespace %s", err, w.namespace)
		}
		if err != nil {
			return err
		}
		sp.plans = append(sp.plans, p)
	}
	for i, p := range sp.plans {
		if err := sp.send(ctx, p, sp.share(i), len(sp.plans) == 1); err != nil {
			return err
		}
	}
	if err := sp.mistakes(ctx); err != nil {
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

// lastChunk is the number of an empty chunk that says that an upload is complete.
const lastChunk = 255

// judgeAlone judges objects of which no plan is to be made.
func (sp *speculation) judgeAlone(ctx context.Context) error {
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
		err = sp.mistakes(ctx)
	}
	return errors.Join(err, sp.remove(ctx, p))
}

// share are the objects that a plan needs: those of its namespace, the Secrets and ConfigMaps of all, and with the first plan
// whatever no plan is about. Secrets and the like that left the files are there until the plan is applied.
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

// mistakes are all refusals, each with its place in the files; warnings are printed.
func (sp *speculation) mistakes(ctx context.Context) error {
	var bad []error
	var deleting []manifest
	told := map[string]bool{}
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
			if !told[w] {
				told[w] = true
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

// discard removes the speculative plans.
func (sp *speculation) discard(ctx context.Context) error {
	var errs []error
	for _, p := range sp.plans {
		errs = append(errs, sp.remove(ctx, p))
	}
	sp.plans = nil
	return errors.Join(errs...)
}

func (s *session) remove(ctx context.Context, p *v1alpha1.Plan) error {
	// It is removed also when Ctrl-C ended what it was made for.
	err := s.hykube.Post().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("objects").
		Body(&v1alpha1.PlanObjects{Spec: v1alpha1.PlanObjectsSpec{Discard: true}}).Do(context.WithoutCancel(ctx)).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove speculative plan %q: %w", p.Name, explain(err, s.server()))
	}
	return nil
}

// changed is how many objects of the files recording would create or change, with what left the files.
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

// leftFiles are the resources that left the files, by namespace and address.
func (sp *speculation) leftFiles() map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, m := range sp.ms {
		if t, ok := (recorded{manifest: m}).target(); ok && m.pruned {
			out[[2]string{m.object.GetNamespace(), t.address()}] = true
		}
	}
	return out
}

// beside names an object, with its namespace when there are others.
func (sp *speculation) beside(m manifest) string {
	name, namespace := strings.ToLower(m.object.GroupVersionKind().GroupKind().String())+"/"+m.object.GetName(), m.object.GetNamespace()
	other := func(o manifest) bool { return o.object.GetNamespace() != "" && o.object.GetNamespace() != namespace }
	if namespace != "" && slices.ContainsFunc(sp.ms, other) {
		name += " in namespace " + namespace
	}
	return name
}

// list writes which objects that are no resources the files create or change, and what leaves without a plan. Of a Secret it names keys, and never values.
func (sp *speculation) list() {
	var lines []string
	for i, m := range sp.ms {
		r := sp.results[i]
		gk := m.object.GroupVersionKind().GroupKind()
		if m.pruned && !held(m.object) {
			lines = append(lines, "  - "+sp.beside(m)+": deleted")
			continue
		}
		if isResource(m.object) || r.Outcome == v1alpha1.ObjectUnchanged {
			continue
		}
		sign, what := "~", "changes"
		if r.Outcome == v1alpha1.ObjectCreated {
			sign, what = "+", "created with"
		}
		text := fmt.Sprintf("  %s %s", sign, sp.beside(m))
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

// needed is the error of a plan that cannot be made before some objects are recorded.
func (s *session) needed(ps []prerequisite) error {
	var b strings.Builder
	b.WriteString("these files cannot be planned yet:\n")
	for _, p := range ps {
		fmt.Fprintf(&b, "  %s: %s %q %s\n", p.where(), p.object.GetKind(), p.object.GetName(), p.why)
	}
	b.WriteString("Record these first, or run `kubectl hykube apply -f`, which asks whether to record them:\n")
	for _, p := range ps {
		if p.object.GetKind() == "Namespace" {
			fmt.Fprintf(&b, "  kubectl create namespace %s\n", p.object.GetName())
			continue
		}
		raw, _ := json.Marshal(p.object) // it came from YAML
		fmt.Fprintf(&b, "  kubectl apply --server-side -f - <<'EOF'\n%s\nEOF\n  kubectl wait --for=condition=Ready --timeout=5m provider/%s\n", raw, p.object.GetName())
	}
	b.WriteString("Nothing was recorded")
	return errors.New(b.String())
}

// overwrites returns the error of an object that changed after it was shown, and that recording would change again.
func (sp *speculation) overwrites(moved []*movedError) error {
	for _, e := range moved {
		for i, m := range sp.ms {
			if identity(m.object) == identity(e.object) && sp.results[i].Outcome != v1alpha1.ObjectUnchanged {
				return &exitError{ExitStale, e.cause}
			}
		}
	}
	return nil
}

// sameAs says whether the plans of what was recorded do the same as the speculative ones that were shown.
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
