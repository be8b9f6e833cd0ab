package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/shell"
)

// importBlock returns an error with the import block that imports the resource of a Module.
func (o *importOptions) importBlock(t target) error {
	return fmt.Errorf("%s: %w", cmp.Or(o.verb, "import"), t.importBlock(&o.by))
}

// importBlock returns an error with the import block that imports a resource of a Module.
func (t target) importBlock(by *v1alpha1.PlanImport) error {
	path, _ := v1alpha1.SplitModuleObjectName(t.name)
	return fmt.Errorf("%s is a resource of a Module. Add this block to the files of the Module, and apply them:\n\n%s",
		t.address(), importBlockOf(t.address(), v1alpha1.RootModule(path), by))
}

// importBlockOf returns an import block for the resource of a Module with an address.
func importBlockOf(address, module string, by *v1alpha1.PlanImport) string {
	from := fmt.Sprintf("id = %q", by.ID)
	if by.Identity != nil {
		from = "identity = " + string(by.Identity.Raw)
	}
	return fmt.Sprintf("import {\n  to = %s\n  %s\n}", strings.TrimPrefix(address, "module."+module+"."), from)
}

// importInstance imports an existing resource as an instance of a ResourceSet: it adds an entry to spec.imports of the
// set, and removes it after the import.
func (o *importOptions) importInstance(ctx context.Context, k kind, ns string) error {
	if o.generate || o.out != "" || o.config != "" {
		return fmt.Errorf("import: %s is an instance of a ResourceSet, whose template has the spec and the ProviderConfig: leave out --generate-only, --out and --provider-config", o.target.address())
	}
	u, err := o.get(ctx, k, ns, o.target.name)
	if err != nil {
		return err
	}
	if has, err := o.hasInfrastructure(ctx, u); err != nil {
		return err
	} else if has {
		return fmt.Errorf("import: %s already has infrastructure: kubectl hykube state show %s -n %s", o.target.address(), shell.Word(o.target.address()), ns)
	}
	instance, _ := u.Object[v1alpha1.FieldInstance].(map[string]any)
	set, _ := instance["set"].(string)
	_, key, _ := v1alpha1.ParseInstanceName(o.target.name)
	entry, declared := v1alpha1.InstanceImport{Key: key.Text(), ID: o.by.ID, Identity: o.by.Identity}, false
	change := func(entries func([]v1alpha1.InstanceImport) []v1alpha1.InstanceImport) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			s := &v1alpha1.ResourceSet{}
			if err := o.hykube.Get().Namespace(ns).Resource(setsResource).Name(set).Do(ctx).Into(s); err != nil {
				return err
			}
			declared = declared || slices.ContainsFunc(s.Spec.Imports, func(i v1alpha1.InstanceImport) bool { return equality.Semantic.DeepEqual(i, entry) })
			s.Spec.Imports = entries(slices.DeleteFunc(s.Spec.Imports, func(i v1alpha1.InstanceImport) bool { return i.Key == key.Text() }))
			return o.hykube.Put().Namespace(ns).Resource(setsResource).Name(set).Param("fieldManager", fieldManager).Body(s).Do(ctx).Error()
		})
	}
	err = change(func(rest []v1alpha1.InstanceImport) []v1alpha1.InstanceImport {
		return append(rest, entry)
	})
	if err != nil {
		return fmt.Errorf("import: change ResourceSet %q: %w", set, explain(err, o.server()))
	}
	fmt.Fprintf(o.Out, "resourceset.hykube.io/%s configured\n", set)
	wrote := !declared
	remove := func() error {
		return change(func(rest []v1alpha1.InstanceImport) []v1alpha1.InstanceImport { return rest })
	}
	undo := func(context.Context) error {
		o.takeBack = nil
		if err := remove(); err != nil {
			return fmt.Errorf("take back the entry in spec.imports of ResourceSet %q: %w", set, explain(err, o.server()))
		}
		fmt.Fprintf(o.Out, "resourceset.hykube.io/%s reverted\n", set)
		return nil
	}
	o.gap, o.refuse, o.takeBack = true, o.refuseReplacement, undo
	err = o.run(ctx, []wanted{{ns, "import", v1alpha1.PlanSpec{Targets: []string{o.target.address()}}}})
	if err == nil && wrote {
		return o.removeApplied(ctx, k, ns, set, remove)
	}
	if err == nil || o.takeBack == nil || len(o.made) > 0 && o.awaited(ctx) {
		return err
	}
	return errors.Join(err, undo(ctx))
}

// removeApplied removes the entry in spec.imports after the import. Otherwise it would become effective again, and fail
// plans, when the instance is destroyed. A plan without changes then settles the instance, whose content changed.
func (o *importOptions) removeApplied(ctx context.Context, k kind, ns, set string, remove func() error) error {
	u, err := o.get(ctx, k, ns, o.target.name)
	if err != nil || !managed(u) {
		return err // another command changed it
	}
	if err := remove(); err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: the resource was imported, but its entry in spec.imports of the ResourceSet %q stays: %v\nRemove the entry: kubectl edit resourceset %s -n %s\n", set, err, set, ns)
		return nil
	}
	plans, err := o.plan(ctx, []wanted{{ns, "import", v1alpha1.PlanSpec{Targets: []string{o.target.address()}}}})
	if err == nil && len(plans) == 1 && waiting(plans[0]) {
		_, err = o.decide(ctx, plans[0], v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: plans[0].Status.Digest})
	}
	if err != nil { // the next plan settles the instance
		fmt.Fprintf(o.ErrOut, "Warning: %v\n", err)
	}
	return nil
}

// awaited reports whether a plan of the command still waits or runs, so that it needs what the command recorded.
func (o *importOptions) awaited(ctx context.Context) bool {
	for _, p := range o.made {
		if now, err := o.readPlan(ctx, p.Namespace, p.Name); err == nil && now.UID == p.UID && !now.Ended() {
			return true
		}
	}
	return false
}
