package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// pushedModule is the Module of a push.
type pushedModule struct {
	name, namespace string
	mode            v1alpha1.ModuleMode
	// recorded is true if the command recorded or changed objects before the push.
	recorded bool
}

// moduleOf returns the Module of the push, after it recorded the files of the Module; nil for a push into objects.
func (o *statePushOptions) moduleOf(ctx context.Context) (*pushedModule, error) {
	name := o.files.modules.name
	if name == "" {
		return nil, nil
	}
	of := &pushedModule{name: name, namespace: o.namespace}
	existing, err := o.getModule(ctx, name)
	switch {
	case err == nil:
		of.mode = existing.Spec.Mode
	case o.files.given() && apierrors.IsNotFound(err) && !notServed(err):
		of.mode = v1alpha1.ModuleObserve
	default:
		return nil, err
	}
	if !o.files.given() {
		return of, nil
	}
	return of, o.recordModule(ctx, of)
}

// recordModule records the objects of the directory, with the mode of the Module.
func (o *statePushOptions) recordModule(ctx context.Context, of *pushedModule) error {
	ms, err := o.manifests(ctx, &o.files)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(ms, func(m manifest) bool { return isModule(m.object) && m.object.GetName() == of.name })
	if ns := ms[at].object.GetNamespace(); ns != "" && ns != o.namespace {
		return fmt.Errorf("%s: the Module %q has the namespace %q, and the state goes to %q: add -n %s", ms[at].where(), of.name, ns, o.namespace, ns)
	}
	if err := setMode(ms[at].object, of.mode); err != nil {
		return fmt.Errorf("%s: the Module %q: %w", ms[at].where(), of.name, err)
	}
	rec := &recorder{session: o.session, force: o.files.force, timeout: o.files.timeout}
	rs, err := rec.record(ctx, ms)
	if err != nil {
		return err
	}
	of.recorded = slices.ContainsFunc(rs, func(r recorded) bool { return r.verb != "unchanged" })
	if of.mode == v1alpha1.ModuleObserve {
		return of.withWhatStays(o.ownMode(ctx, of))
	}
	return nil
}

// setMode sets or removes the mode of a Module.
func setMode(u *unstructured.Unstructured, mode v1alpha1.ModuleMode) error {
	if mode == "" {
		unstructured.RemoveNestedField(u.Object, "spec", "mode")
		return nil
	}
	return unstructured.SetNestedField(u.Object, string(mode), "spec", "mode")
}

// ownMode makes the state's field manager an owner of the mode Observe. A later apply of the files, which have no mode, would remove
// it otherwise, because the files' field manager owned it alone.
func (o *statePushOptions) ownMode(ctx context.Context, of *pushedModule) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Module",
		"metadata": map[string]any{"name": of.name}, "spec": map[string]any{"mode": of.mode},
	})
	if err != nil {
		return fmt.Errorf("encode the mode of Module %q: %w", of.name, err)
	}
	_, err = o.resource(moduleKind.gvr, of.namespace).Patch(ctx, of.name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: stateManager})
	if err != nil {
		return fmt.Errorf("keep the mode of Module %q: %w", of.name, explain(err, o.server()))
	}
	return nil
}

// withWhatStays adds to the error of a push that the objects of the files stay.
func (m *pushedModule) withWhatStays(err error) error {
	if err == nil || m == nil || !m.recorded {
		return err
	}
	text := "The objects that are listed above as created or configured stay recorded."
	if m.mode == v1alpha1.ModuleObserve {
		text += fmt.Sprintf(" The Module %q has the mode Observe, so no plan changes its resources.", m.name)
	}
	return fmt.Errorf("%w\n%s When the cause is corrected, run the same command again", err, text)
}

// receipt lists the resources of the Module that the state lacks, and names the commands that follow.
func (o *statePushOptions) receipt(ctx context.Context, of *pushedModule, entries []v1alpha1.StateEntry) error {
	lacking, err := o.lacking(ctx, of, entries)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: the state is pushed, but the command could not list the resources of the Module that it lacks: %v\n", err)
	}
	if len(lacking) > 0 {
		fmt.Fprintf(o.Out, "%s of the Module not in the state, which will be created:\n  %s\n",
			diff.Plural(len(lacking), "resource"), strings.Join(cut(lacking, listedChanges, "and %d more"), "\n  "))
	}
	fmt.Fprintf(o.ErrOut, "To see what differs: kubectl hykube plan --target module.%s -n %s\n", of.name, of.namespace)
	if of.mode == v1alpha1.ModuleObserve {
		fmt.Fprintf(o.ErrOut, "To let plans change the resources afterwards: %s\n", setModeCommand(of.name, of.namespace, v1alpha1.ModuleManage))
	}
	return nil
}

// lacking returns the addresses of the resources of the Module that have no record and no entry in the state, sorted.
func (o *statePushOptions) lacking(ctx context.Context, of *pushedModule, entries []v1alpha1.StateEntry) ([]string, error) {
	pushed := map[string]bool{}
	for i := range entries {
		pushed[v1alpha1.KindOf(entries[i].Type)+"/"+entries[i].Name] = true
	}
	var out []string
	for u, err := range o.instancesOf(ctx, modulesResource, of.namespace, of.name) {
		if err != nil {
			return nil, explain(err, o.server())
		}
		mode, _ := v1alpha1.ParseKind(u.GetKind())
		if mode == v1alpha1.ModeManaged && !pushed[u.GetKind()+"/"+u.GetName()] && !hasRecord(u) {
			out = append(out, addressOf(u))
		}
	}
	slices.Sort(out)
	return out, nil
}
