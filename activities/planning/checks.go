package planning

import (
	"context"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// check evaluates the check blocks of the Modules with the planned values, and writes what does not hold to the Plan.
// As in Terraform, a destroy evaluates none.
func (pr *proposal) check(ctx context.Context) error {
	if pr.plan.Spec.Destroy {
		return nil
	}
	names, err := pr.checkedModules(ctx)
	if err != nil {
		return err
	}
	var failed diag.Diagnostics
	for _, name := range names {
		diags, err := pr.scopeFor(true).Checks(ctx, name)
		if err != nil {
			return err
		}
		failed = append(failed, diags...)
	}
	if len(failed)+len(pr.plan.Status.Checks) == 0 {
		return nil
	}
	return pr.Plans.UpdateStatus(ctx, pr.plan.Namespace, pr.plan.Name, pr.plan.UID,
		func(s *v1alpha1.PlanStatus) { s.Checks = diag.Limit(failed) })
}

// checkedModules returns the names of the Modules whose check blocks the plan evaluates. If the plan selects resources,
// these are the Modules that a target names, and those of which the plan changes a resource.
func (pr *proposal) checkedModules(ctx context.Context) ([]string, error) {
	names, err := pr.Index.CheckedModules(ctx, pr.plan.Namespace)
	if err != nil {
		return nil, err
	}
	if o, ok := pr.Objects.(*overlay); ok {
		for _, m := range o.modulesOf(pr.plan.Namespace) {
			if m.Module != nil && m.Expansion != nil && m.Expansion.HasChecks() {
				names = append(names, m.name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if pr.plan.Spec.Selector == nil && len(pr.plan.Spec.Targets) == 0 {
		return names, nil
	}
	selected := map[string]bool{}
	for _, target := range pr.plan.Spec.Targets {
		if strings.HasPrefix(target, "module.") {
			selected[v1alpha1.RootModule(target)] = true
		}
	}
	for i := range pr.all {
		if of := &pr.all[i].Object; v1alpha1.InModule(of.Name) {
			selected[of.Set] = true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !selected[name] }), nil
}
