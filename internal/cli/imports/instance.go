package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/shell"
)

// importBlock returns an error with the import block that imports the resource of a Module.
func (o *Options) importBlock(t addrs.Target) error {
	return fmt.Errorf("%s: %w", cmp.Or(o.Verb, "import"), ImportBlock(t, &o.By))
}

// ImportBlock returns an error with the import block that imports a resource of a Module.
func ImportBlock(t addrs.Target, by *v1alpha1.PlanImport) error {
	path, _ := v1alpha1.SplitModuleObjectName(t.Name)
	return fmt.Errorf("%s is a resource of a Module. Add this block to the files of the Module, and apply them:\n\n%s",
		t.Address(), operation.ImportBlockOf(t.Address(), v1alpha1.RootModule(path), by))
}

// importInstance imports an existing resource as an instance of a ResourceSet: it adds an entry to spec.imports of the
// set, and removes it after the import.
func (o *Options) importInstance(ctx context.Context, k session.Kind, ns string) error {
	if o.generate || o.out != "" || o.config != "" {
		return fmt.Errorf("import: %s is an instance of a ResourceSet, whose template has the spec and the ProviderConfig: leave out --generate-only, --out and --provider-config", o.Target.Address())
	}
	u, err := objects.Get(ctx, o.Session, k, ns, o.Target.Name)
	if err != nil {
		return err
	}
	if has, err := objects.HasInfrastructure(ctx, o.Session, u); err != nil {
		return err
	} else if has {
		return fmt.Errorf("import: %s already has infrastructure: kubectl hykube state show %s -n %s",
			o.Target.Address(), shell.Word(o.Target.Address()), ns)
	}
	instance, _ := u.Object[v1alpha1.FieldInstance].(map[string]any)
	set, _ := instance["set"].(string)
	_, key, _ := v1alpha1.ParseInstanceName(o.Target.Name)
	entry, declared := v1alpha1.InstanceImport{Key: key.Text(), ID: o.By.ID, Identity: o.By.Identity}, false
	change := func(entries func([]v1alpha1.InstanceImport) []v1alpha1.InstanceImport) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			s := &v1alpha1.ResourceSet{}
			if err := o.Hykube.Get().Namespace(ns).Resource(session.SetsResource).Name(set).Do(ctx).Into(
				s); err != nil {
				return err
			}
			declared = declared || slices.ContainsFunc(s.Spec.Imports,
				func(i v1alpha1.InstanceImport) bool { return equality.Semantic.DeepEqual(i, entry) })
			s.Spec.Imports = entries(slices.DeleteFunc(s.Spec.Imports,
				func(i v1alpha1.InstanceImport) bool { return i.Key == key.Text() }))
			return o.Hykube.Put().Namespace(ns).Resource(session.SetsResource).Name(set).Param("fieldManager",
				objects.FieldManager).Body(s).Do(ctx).Error()
		})
	}
	err = change(func(rest []v1alpha1.InstanceImport) []v1alpha1.InstanceImport {
		return append(rest, entry)
	})
	if err != nil {
		return fmt.Errorf("import: change ResourceSet %q: %w", set, o.Explain(err))
	}
	fmt.Fprintf(o.Out, "resourceset.hykube.io/%s configured\n", set)
	wrote := !declared
	remove := func() error {
		return change(func(rest []v1alpha1.InstanceImport) []v1alpha1.InstanceImport { return rest })
	}
	undo := func(context.Context) error {
		o.TakeBack = nil
		if err := remove(); err != nil {
			return fmt.Errorf("take back the entry in spec.imports of ResourceSet %q: %w", set, o.Explain(err))
		}
		fmt.Fprintf(o.Out, "resourceset.hykube.io/%s reverted\n", set)
		return nil
	}
	o.Gap, o.Refuse, o.TakeBack = true, o.RefuseReplacement, undo
	err = o.PlanAndApply(ctx, []operation.Wanted{{Namespace: ns, Base: "import",
		Spec: v1alpha1.PlanSpec{Targets: []string{o.Target.Address()}}}})
	if err == nil && wrote {
		return o.removeApplied(ctx, k, ns, set, remove)
	}
	if err == nil || o.TakeBack == nil || len(o.Made) > 0 && o.Awaited(ctx) {
		return err
	}
	return errors.Join(err, undo(ctx))
}

// removeApplied removes the entry in spec.imports after the import. Otherwise it would become effective again, and fail
// plans, when the instance is destroyed. A plan without changes then settles the instance, whose content changed.
func (o *Options) removeApplied(ctx context.Context, k session.Kind, ns, set string, remove func() error) error {
	u, err := objects.Get(ctx, o.Session, k, ns, o.Target.Name)
	if err != nil || !objects.Managed(u) {
		return err // another command changed it
	}
	if err := remove(); err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: the resource was imported, but its entry in spec.imports of the ResourceSet %q stays: %v\nRemove the entry: kubectl edit resourceset %s -n %s\n", set, err, set, ns)
		return nil
	}
	plans, err := o.Plan(ctx, []operation.Wanted{{Namespace: ns, Base: "import",
		Spec: v1alpha1.PlanSpec{Targets: []string{o.Target.Address()}}}})
	if err == nil && len(plans) == 1 && planapi.Waiting(plans[0]) {
		_, err = planapi.Decide(ctx, o.Session, plans[0],
			v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: plans[0].Status.Digest})
	}
	if err != nil { // the next plan settles the instance
		fmt.Fprintf(o.ErrOut, "Warning: %v\n", err)
	}
	return nil
}

// Awaited reports whether a plan of the command still waits or runs, so that it needs what the command recorded.
func (o *Options) Awaited(ctx context.Context) bool {
	for _, p := range o.Made {
		if now, err := planapi.Read(ctx, o.Session, p.Namespace, p.Name); err == nil && now.UID == p.UID &&
			!now.Ended() {
			return true
		}
	}
	return false
}
