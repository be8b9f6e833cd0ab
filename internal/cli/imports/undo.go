package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// importWritten describes the object that import recorded before its plan.
type importWritten struct {
	Kind session.Kind
	// Object is the object right after the write.
	Object *unstructured.Unstructured
	// undo is the merge patch that restores the object; nil if the command created it.
	undo map[string]any
}

// importPatched returns the description of a patched object, or nil if the object already had this import.
func importPatched(k session.Kind, old, now *unstructured.Unstructured) (*importWritten, error) {
	was, err := importFields(old)
	if err != nil {
		return nil, err
	}
	is, err := importFields(now)
	if err != nil {
		return nil, err
	}
	raw, err := jsonmergepatch.CreateThreeWayJSONMergePatch(is, was, is)
	if err != nil {
		return nil, fmt.Errorf("compare lifecycle: %w", err)
	}
	w := &importWritten{Kind: k, Object: now}
	if err := json.Unmarshal(raw, &w.undo); err != nil {
		return nil, fmt.Errorf("decode patch: %w", err)
	}
	if len(w.undo) == 0 {
		return nil, nil
	}
	before, _, _ := unstructured.NestedMap(old.Object, "lifecycle")
	after, _, _ := unstructured.NestedMap(now.Object, "lifecycle")
	delete(after, "import")
	delete(after, "providerConfig")
	if len(before)+len(after) == 0 {
		w.undo = map[string]any{"lifecycle": nil} // leave no empty lifecycle
	}
	return w, nil
}

// importFields returns the fields of an object that import writes, as JSON.
func importFields(u *unstructured.Unstructured) ([]byte, error) {
	fields := map[string]any{}
	for _, name := range []string{"import", "providerConfig"} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "lifecycle", name); ok {
			fields[name] = v
		}
	}
	raw, err := json.Marshal(map[string]any{"lifecycle": fields})
	if err != nil {
		return nil, fmt.Errorf("encode lifecycle: %w", err)
	}
	return raw, nil
}

// command returns the kubectl command that reverts the write of import.
func (w *importWritten) command() string {
	name, ns := objects.Long(w.Kind, w.Object.GetName()), shell.Word(w.Object.GetNamespace())
	if w.undo == nil {
		return fmt.Sprintf("kubectl delete %s -n %s --wait=false", name, ns)
	}
	return fmt.Sprintf("kubectl patch %s -n %s --type merge -p %s", name, ns, shell.Word(printer.CompactJSON(w.undo)))
}

// errChangedMeanwhile is the error if the spec or lifecycle of an object differs from the command's write.
var errChangedMeanwhile = errors.New("it was changed after the command wrote it")

// settle reverts the write of import after an error, unless a plan still needs it or the resource is imported.
func (o *Options) settle(ctx context.Context, err error) error {
	if err == nil || o.TakeBack == nil { // TakeBack is nil after a revert
		return err
	}
	w, name := o.Written, objects.Long(o.Written.Kind, o.Written.Object.GetName())
	for _, p := range o.Made {
		now, readErr := planapi.Read(ctx, o.Session, p.Namespace, p.Name)
		if readErr != nil || now.UID != p.UID || now.Ended() {
			continue
		}
		what, verb := "keeps its lifecycle.import", "discard"
		if w.undo == nil {
			what = "stays recorded"
		}
		if now.Status.Approval != nil || !planapi.Planned(now) {
			verb = "cancel"
		}
		fmt.Fprintf(o.ErrOut, "%s %s, because plan %q needs it. To take back the import:\n  kubectl hykube %s %s -n %s\n  %s\n",
			name, what, p.Name, verb, p.Name, p.Namespace, w.command())
		return WriteStays(err)
	}
	now, readErr := o.Resource(w.Kind.GVR, w.Object.GetNamespace()).Get(ctx, w.Object.GetName(), metav1.GetOptions{})
	if readErr == nil && now.GetUID() == w.Object.GetUID() {
		if has, readErr := objects.HasInfrastructure(ctx, o.Session, now); has || readErr != nil {
			return errors.Join(err, readErr)
		}
	}
	if undoErr := o.Undo(ctx); undoErr != nil {
		fmt.Fprintln(o.ErrOut, "Warning: "+undoErr.Error())
		return WriteStays(err)
	}
	return err
}

// WriteStays corrects the text of err for the case that the write of import stays.
func WriteStays(err error) error {
	if u, ok := errors.AsType[*exit.Unchanged](err); ok {
		u.Recorded = true
	}
	return err
}

// Undo reverts the write of import. It does not change an object that was changed in the meantime.
func (o *Options) Undo(ctx context.Context) error {
	o.TakeBack = nil
	w, name := o.Written, objects.Long(o.Written.Kind, o.Written.Object.GetName())
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return o.undoOnce(ctx) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		what := "keeps its lifecycle.import"
		if w.undo == nil {
			what = "stays recorded"
		}
		return fmt.Errorf("%s %s: %w\nTo take back the import:\n  %s", name, what, o.Explain(err), w.command())
	}
	if w.undo == nil {
		fmt.Fprintln(o.Out, name+" deleted, because this command created it")
		if o.out != "" {
			fmt.Fprintf(o.Out, "The file %s stays.\n", o.out)
		}
		return nil
	}
	fmt.Fprintln(o.Out, name+" configured: its lifecycle is as it was before the import")
	return nil
}

// undoOnce reverts the write on the current object, even if the server has changed its status.
func (o *Options) undoOnce(ctx context.Context) error {
	w := o.Written
	k, ns, name := w.Kind, w.Object.GetNamespace(), w.Object.GetName()
	now, err := o.Resource(k.GVR, ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if v1alpha1.ObjectVersion(now) != v1alpha1.ObjectVersion(w.Object) {
		return errChangedMeanwhile
	}
	uid, version := now.GetUID(), now.GetResourceVersion()
	if w.undo == nil {
		client, err := objects.Quiet(o.Session)
		if err != nil {
			return err
		}
		return client.Resource(k.GVR).Namespace(ns).Delete(ctx, name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	}
	patch := map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version}}
	for key, v := range w.undo {
		patch[key] = v
	}
	_, err = objects.Merge(ctx, o.Session, k, ns, name, patch)
	return err
}

// RefuseReplacement returns an error for a plan that would replace or destroy a resource that it imports, and reverts
// the write of import.
func (o *Options) RefuseReplacement(ctx context.Context, p *v1alpha1.Plan) error {
	var lines []string
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		if c.Importing != nil && (c.Action == v1alpha1.ActionReplace || c.Action == v1alpha1.ActionDelete) {
			lines = append(lines, "  "+diff.Name(c)+": "+diff.ReplaceCause(c))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(o.Out)
	if err := o.DiscardAll(ctx, []*v1alpha1.Plan{p}, "import destroys nothing"); err != nil {
		return err
	}
	if o.TakeBack != nil {
		if err := o.TakeBack(ctx); err != nil {
			fmt.Fprintln(o.ErrOut, "Warning: "+err.Error())
		}
	}
	return &exit.Error{Code: exit.Refused,
		Cause: fmt.Errorf("plan %q would destroy a resource that it imports, and the command never does that:\n%s\n"+
			"Make the spec match the real resource, and run the same command again. To replace the resource on purpose, set lifecycle.import in the file and run `kubectl hykube apply`.\n"+
			"No infrastructure was changed", p.Name, strings.Join(lines, "\n"))}
}
