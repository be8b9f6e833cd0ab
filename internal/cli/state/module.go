package state

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
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
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
	name := o.files.Modules.Name
	if name == "" {
		return nil, nil
	}
	of := &pushedModule{name: name, namespace: o.Namespace}
	existing, err := objects.GetModule(ctx, o.Session, name)
	switch {
	case err == nil:
		of.mode = existing.Spec.Mode
	case o.files.Given() && apierrors.IsNotFound(err) && !session.NotServed(err):
		of.mode = v1alpha1.ModuleObserve
	default:
		return nil, err
	}
	if !o.files.Given() {
		return of, nil
	}
	return of, o.recordModule(ctx, of)
}

// recordModule records the objects of the directory, with the mode of the Module.
func (o *statePushOptions) recordModule(ctx context.Context, of *pushedModule) error {
	ms, err := manifest.Read(ctx, o.Session, &o.files)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(ms, func(m manifest.Manifest) bool {
		return addrs.IsModule(m.Object) && m.Object.GetName() == of.name
	})
	if ns := ms[at].Object.GetNamespace(); ns != "" && ns != o.Namespace {
		return fmt.Errorf("%s: the Module %q has the namespace %q, and the state goes to %q: add -n %s", ms[at].Where(),
			of.name, ns, o.Namespace, ns)
	}
	if err := setMode(ms[at].Object, of.mode); err != nil {
		return fmt.Errorf("%s: the Module %q: %w", ms[at].Where(), of.name, err)
	}
	rec := &record.Recorder{Session: o.Session, Force: o.files.Force, Timeout: o.files.Timeout}
	rs, err := rec.Record(ctx, ms)
	if err != nil {
		return err
	}
	of.recorded = slices.ContainsFunc(rs, func(r record.Recorded) bool { return r.Verb != "unchanged" })
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

// ownMode makes the state's field manager an owner of the mode Observe. A later apply of the files, which have no mode,
// would remove it otherwise, because the files' field manager owned it alone.
func (o *statePushOptions) ownMode(ctx context.Context, of *pushedModule) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Module",
		"metadata": map[string]any{"name": of.name}, "spec": map[string]any{"mode": of.mode},
	})
	if err != nil {
		return fmt.Errorf("encode the mode of Module %q: %w", of.name, err)
	}
	_, err = o.Resource(session.ModuleKind.GVR, of.namespace).Patch(ctx, of.name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: objects.StateManager})
	if err != nil {
		return fmt.Errorf("keep the mode of Module %q: %w", of.name, o.Explain(err))
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
			diff.Plural(len(lacking), "resource"),
			strings.Join(printer.Cut(lacking, printer.ListedChanges, "and %d more"), "\n  "))
	}
	fmt.Fprintf(o.ErrOut, "To see what differs: kubectl hykube plan --target module.%s -n %s\n", of.name, of.namespace)
	if of.mode == v1alpha1.ModuleObserve {
		fmt.Fprintf(o.ErrOut, "To let plans change the resources afterwards: %s\n",
			SetModeCommand(of.name, of.namespace, v1alpha1.ModuleManage))
	}
	return nil
}

// lacking returns the addresses of the resources of the Module that have no record and no entry in the state, sorted.
func (o *statePushOptions) lacking(ctx context.Context, of *pushedModule,
	entries []v1alpha1.StateEntry) ([]string, error) {
	pushed := map[string]bool{}
	for i := range entries {
		pushed[v1alpha1.KindOf(entries[i].Type)+"/"+entries[i].Name] = true
	}
	var out []string
	for u, err := range objects.InstancesOf(ctx, o.Session, session.ModulesResource, of.namespace, of.name) {
		if err != nil {
			return nil, o.Explain(err)
		}
		mode, _ := v1alpha1.ParseKind(u.GetKind())
		if mode == v1alpha1.ModeManaged && !pushed[u.GetKind()+"/"+u.GetName()] && !objects.HasRecord(u) {
			out = append(out, addrs.Of(u))
		}
	}
	slices.Sort(out)
	return out, nil
}

// SetModeCommand returns the command that sets the mode of a Module.
func SetModeCommand(name, namespace string, mode v1alpha1.ModuleMode) string {
	return fmt.Sprintf(`kubectl patch module %s -n %s --type=merge -p '{"spec":{"mode":"%s"}}'`, name, namespace, mode)
}
