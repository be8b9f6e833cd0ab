// Package speculation plans files that are not recorded yet, and tells what recording them would do: prerequisites,
// conflicts, and the objects that --prune removes. The verbs plan, apply and verify use it.
package speculation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
)

const (
	// chunkBytes and chunkObjects limit one request of an upload. The server accepts 2 MiB and 1000 objects.
	chunkBytes   = 1 << 20
	chunkObjects = 500
	// prunedBytes is the approximate size of a pruned object in a request.
	prunedBytes = 512
)

// Speculation is the speculative planning of files.
type Speculation struct {
	*session.Session
	Recorder *record.Recorder
	// set is the applyset of the files; nil without --prune.
	set *ApplySet
	// Manifests holds the objects of the files in the form for recording, followed by the pruned objects. results holds
	// the effect of recording each.
	Manifests []manifest.Manifest
	Results   []v1alpha1.PlanObjectResult
	// Wanted holds the specifications of the plans, and plans the speculative plans themselves.
	Wanted []operation.Wanted
	Plans  []*v1alpha1.Plan
}

// Speculate reads the files and makes speculative plans of them. If there are prerequisites, it returns only these. The
// caller must call discard to delete the plans.
func Speculate(ctx context.Context, s *session.Session, ms []manifest.Manifest, files *manifest.Flags, set *ApplySet,
	want func([]record.Recorded) []operation.Wanted) (*Speculation, []Prerequisite, error) {
	sp := &Speculation{Session: s, set: set,
		Recorder: &record.Recorder{Session: s, Force: files.Force, Timeout: files.Timeout,
			Installed: map[string]bool{}}, Manifests: ms}
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
		sp.Manifests = slices.Concat(ms, set.Left)
	}
	var rs []record.Recorded
	for _, m := range sp.Manifests {
		if !m.Pruned || staysUntilDestroyed(m.Object) {
			rs = append(rs, record.Recorded{Manifest: m, Namespace: m.Object.GetNamespace()})
		}
	}
	sp.Wanted = want(rs)
	if err := UntilInterrupted(ctx, sp.Session, sp.upload); err != nil {
		return sp, nil, errors.Join(err, sp.Discard(ctx))
	}
	return sp, sp.outdated(ctx), nil
}

// UntilInterrupted calls do with a context that Ctrl-C cancels.
func UntilInterrupted(ctx context.Context, s *session.Session, do func(context.Context) error) error {
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	pressed, done := s.Interrupts()
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
func (sp *Speculation) prepare(ctx context.Context) error {
	var bad []error
	for _, m := range sp.Manifests {
		if _, _, err := sp.Recorder.Prepare(ctx, m); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// upload creates the plans and uploads their objects. It returns all errors together.
func (sp *Speculation) upload(ctx context.Context) error {
	sp.Results = make([]v1alpha1.PlanObjectResult, len(sp.Manifests))
	for i, m := range sp.Manifests {
		if m.Pruned {
			sp.Results[i].Outcome = v1alpha1.ObjectPruned
		}
	}
	if len(sp.Wanted) == 0 {
		// Without a plan, the objects are checked nevertheless.
		return sp.checkUnplanned(ctx)
	}
	for _, w := range sp.Wanted {
		w.Spec.Speculative = true
		// If the response were lost, the plan could not be deleted.
		p, err := planapi.Create(context.WithoutCancel(ctx), sp.Session, w.Namespace, w.Base, w.Spec)
		if err != nil {
			return sp.refusedPlan(w.Namespace, err)
		}
		sp.Plans = append(sp.Plans, p)
	}
	for i, p := range sp.Plans {
		if err := sp.send(ctx, p, sp.share(i), len(sp.Plans) == 1); err != nil {
			return err
		}
	}
	if err := sp.rejectionErrors(ctx); err != nil {
		return err
	}
	if len(sp.Plans) > 1 {
		for _, p := range sp.Plans {
			if _, err := sp.SendChunk(ctx, p, v1alpha1.PlanObjectsSpec{Chunk: lastChunk, Complete: true}); err != nil {
				return err
			}
		}
	}
	return operation.AwaitAll(ctx, sp.Session, sp.Plans)
}

// refusedPlan returns the error for a plan that the server refused, with the first object of its namespace.
func (sp *Speculation) refusedPlan(namespace string, err error) error {
	if i := slices.IndexFunc(sp.Manifests,
		func(m manifest.Manifest) bool { return m.Object.GetNamespace() == namespace }); i >= 0 &&
		session.APIStatus(err) != nil {
		err = fmt.Errorf("%s: %w", sp.Manifests[i].Where(), err)
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		err = fmt.Errorf("%w\nThe server is emptying the namespace, which cannot be reverted. When it is removed, create it again: kubectl create namespace %s", err, namespace)
		return &exit.Error{Code: exit.Failed, Cause: err}
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w\nDoes the namespace exist? kubectl create namespace %s", err, namespace)
	}
	return err
}

// lastChunk is the number of the empty chunk that completes an upload.
const lastChunk = 255

// checkUnplanned checks objects for which there is no plan.
func (sp *Speculation) checkUnplanned(ctx context.Context) error {
	namespace := sp.Namespace
	for _, m := range sp.Manifests {
		if ns := m.Object.GetNamespace(); ns != "" {
			namespace = ns
			break
		}
	}
	p, err := planapi.Create(context.WithoutCancel(ctx), sp.Session, namespace, "judge",
		v1alpha1.PlanSpec{Speculative: true})
	if err != nil {
		return err
	}
	var all []int
	for i, m := range sp.Manifests {
		if !m.Pruned || addrs.IsResource(m.Object) {
			all = append(all, i)
		}
	}
	err = sp.send(ctx, p, all, false)
	if err == nil {
		err = sp.rejectionErrors(ctx)
	}
	return errors.Join(err, Remove(ctx, sp.Session, p))
}

// share returns the indexes of the objects that a plan needs: those of its namespace, and all Secrets and ConfigMaps.
// The first plan also has the objects of namespaces without a plan. Pruned objects other than resources exist until the
// apply, so it omits them.
func (sp *Speculation) share(plan int) []int {
	var out []int
	for i, m := range sp.Manifests {
		if m.Pruned && !addrs.IsResource(m.Object) {
			continue
		}
		namespace := m.Object.GetNamespace()
		planned := slices.ContainsFunc(sp.Wanted, func(w operation.Wanted) bool { return w.Namespace == namespace })
		stored := m.Object.GroupVersionKind().Group == "" && namespace != ""
		if namespace == sp.Wanted[plan].Namespace || stored || plan == 0 && !planned {
			out = append(out, i)
		}
	}
	return out
}

// send uploads objects in chunks.
func (sp *Speculation) send(ctx context.Context, p *v1alpha1.Plan, objects []int, complete bool) error {
	var chunk v1alpha1.PlanObjectsSpec
	var of []int
	size, refused := 0, false
	flush := func(last bool) error {
		chunk.Complete = last && complete && !refused
		results, err := sp.SendChunk(ctx, p, chunk)
		if err != nil {
			return err
		}
		for k, i := range of {
			if k < len(results) {
				sp.Results[i] = results[k]
				refused = refused || results[k].Outcome == v1alpha1.ObjectRefused
			}
		}
		chunk, of, size = v1alpha1.PlanObjectsSpec{Chunk: chunk.Chunk + 1}, nil, 0
		return nil
	}
	for _, i := range objects {
		if sp.Manifests[i].Pruned { // these come last, as their results do
			if len(of) == chunkObjects {
				if err := flush(false); err != nil {
					return err
				}
			}
			chunk.Prune, of, size = append(chunk.Prune, prunedRef(sp.Manifests[i].Object)), append(of, i),
				size+prunedBytes
			continue
		}
		raw, err := json.Marshal(sp.Manifests[i].Object)
		if err != nil {
			return fmt.Errorf("%s: encode %s %q: %w", sp.Manifests[i].Where(), sp.Manifests[i].Object.GetKind(),
				sp.Manifests[i].Object.GetName(), err)
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

// SendChunk uploads a part of the objects of a speculative plan, and returns what the server says about each.
func (sp *Speculation) SendChunk(ctx context.Context, p *v1alpha1.Plan,
	chunk v1alpha1.PlanObjectsSpec) ([]v1alpha1.PlanObjectResult, error) {
	chunk.FieldManager, chunk.ForceConflicts = objects.FieldManager, sp.Recorder.Force
	out := &v1alpha1.PlanObjects{}
	err := sp.Hykube.Post().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("objects").
		Body(&v1alpha1.PlanObjects{Spec: chunk}).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("upload objects to plan %q: %w", p.Name, sp.Explain(err))
	}
	return out.Status.Results, nil
}

// rejectionErrors returns all rejections with their positions in the files, and prints the warnings.
func (sp *Speculation) rejectionErrors(ctx context.Context) error {
	var bad []error
	var deleting []manifest.Manifest
	seen := map[string]bool{}
	for i, r := range sp.Results {
		if r.Outcome == v1alpha1.ObjectRefused && r.Error != nil {
			err := &apierrors.StatusError{ErrStatus: *r.Error}
			if record.InDeletion(err) {
				deleting = append(deleting, sp.Manifests[i])
			} else {
				bad = append(bad, sp.Recorder.Refused(sp.Manifests[i], sp.Manifests[i].Object.GetNamespace(), err))
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
		bad = append(bad, record.BeingDeleted(ctx, sp.Session, deleting))
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w\nNothing was recorded", errors.Join(bad...))
	}
	return nil
}

// Discard deletes the speculative plans.
func (sp *Speculation) Discard(ctx context.Context) error {
	var errs []error
	for _, p := range sp.Plans {
		errs = append(errs, Remove(ctx, sp.Session, p))
	}
	sp.Plans = nil
	return errors.Join(errs...)
}

// Remove discards a speculative plan.
func Remove(ctx context.Context, s *session.Session, p *v1alpha1.Plan) error {
	// Delete the plan even after Ctrl-C.
	err := s.Hykube.Post().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("objects").
		Body(&v1alpha1.PlanObjects{Spec: v1alpha1.PlanObjectsSpec{Discard: true}}).Do(
		context.WithoutCancel(ctx)).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove speculative plan %q: %w", p.Name, s.Explain(err))
	}
	return nil
}

// Changed returns the number of objects that recording would create, change or prune.
func (sp *Speculation) Changed() int {
	n := 0
	if sp.set != nil && !sp.set.exists {
		n++
	}
	for _, r := range sp.Results {
		if r.Outcome != v1alpha1.ObjectUnchanged {
			n++
		}
	}
	return n
}

// LeftFiles returns the pruned resources by namespace and address.
func (sp *Speculation) LeftFiles() map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, m := range sp.Manifests {
		if t, ok := (record.Recorded{Manifest: m}).Target(); ok && m.Pruned {
			out[[2]string{m.Object.GetNamespace(), t.Address()}] = true
		}
	}
	return out
}

// qualifiedName returns the name of an object, with its namespace if the files have several.
func (sp *Speculation) qualifiedName(m manifest.Manifest) string {
	name, namespace := strings.ToLower(m.Object.GroupVersionKind().GroupKind().String())+"/"+m.Object.GetName(),
		m.Object.GetNamespace()
	other := func(o manifest.Manifest) bool {
		return o.Object.GetNamespace() != "" && o.Object.GetNamespace() != namespace
	}
	if namespace != "" && slices.ContainsFunc(sp.Manifests, other) {
		name += " in namespace " + namespace
	}
	return name
}

// List prints the objects other than resources that the files create or change, and those that are deleted without a
// plan. For a Secret, it prints keys but no values.
func (sp *Speculation) List() {
	var lines []string
	for i, m := range sp.Manifests {
		r := sp.Results[i]
		gk := m.Object.GroupVersionKind().GroupKind()
		if m.Pruned && !staysUntilDestroyed(m.Object) {
			lines = append(lines, "  - "+sp.qualifiedName(m)+": deleted")
			continue
		}
		if addrs.IsResource(m.Object) && !addrs.IsModule(m.Object) || r.Outcome == v1alpha1.ObjectUnchanged {
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
	fmt.Fprintln(sp.Out, sp.Style.Bold(head))
	fmt.Fprintln(sp.Out, strings.Join(printer.Cut(lines, printer.ListedChanges, "  … and %d more"), "\n"))
	fmt.Fprintln(sp.Out)
}

// Overwrites returns the error for an object that changed after the plan was shown and that recording would change
// again.
func (sp *Speculation) Overwrites(moved []*record.ChangedError) error {
	for _, e := range moved {
		for i, m := range sp.Manifests {
			if identity(m.Object) == identity(e.Object) && sp.Results[i].Outcome != v1alpha1.ObjectUnchanged {
				return &exit.Error{Code: exit.Stale, Cause: e.Cause}
			}
		}
	}
	return nil
}

// SameAs reports whether the plans of the recorded objects have the same contents as the speculative plans.
func (sp *Speculation) SameAs(plans []*v1alpha1.Plan) bool {
	for i, p := range plans {
		if p.Status.Contents == "" || p.Status.Contents != sp.Plans[i].Status.Contents {
			return false
		}
	}
	return len(plans) == len(sp.Plans)
}
