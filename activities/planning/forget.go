package planning

import (
	"fmt"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/shell"

	"github.com/zclconf/go-cty/cty"
)

// This file plans changes that remove records without destroying anything.

// forget plans to remove the record of an instance. The reason is empty if only lifecycle.destroy says so.
func (pr *proposal) forget(c *ledger.Change, r *resource.Resource, state *ledger.State,
	reason string) (*expected, error) {
	null := cty.NullVal(r.Schema.Block.ImpliedType())
	prior := null
	if v, err := instance.Recorded(state, r.Schema); err == nil { // it is only shown
		prior = v
	}
	err := describeChange(c, r.Schema.Block, instance.State{Value: prior},
		&instance.Planned{Action: v1alpha1.ActionForget, Value: null, Reason: reason})
	return &expected{recorded: prior, prior: prior, planned: null}, err
}

// notFound plans an instance that the provider does not find with other arguments than before. With the earlier ones,
// the provider may still find it. A refresh-only plan, or one that removes the instance, forgets it. That needs the
// right to delete and counts as a forget for policies. Any other plan fails, because it would create another instance.
func (pr *proposal) notFound(c *ledger.Change, r *resource.Resource, l *scope.Lease, state *ledger.State,
	wanted bool) (*expected, error) {
	d := lang.Problem(r.Address, "", "Resource is not found with the new arguments", fmt.Sprintf(
		"The arguments of the ProviderConfig of %s, or the Secrets that they come from, changed since Hykube last read the resource. With the new ones of %q the provider does not find it. With the earlier ones, the provider may still find it.",
		r.Address, l.ConfigName()))
	if wanted && !pr.plan.Spec.RefreshOnly {
		d.Detail += fmt.Sprintf(" If it does, restore the arguments. If the resource no longer exists, remove its record with kubectl hykube refresh %s -n %s, and plan again.", shell.Word(r.Address.String()), r.Ref.Namespace)
		return nil, &diag.Failure{Operation: "read", Diagnostics: diag.Diagnostics{d}}
	}
	d.Severity = v1alpha1.SeverityWarning
	d.Detail += " This plan forgets it and destroys nothing."
	c.Diagnostics = append(c.Diagnostics, d)
	return pr.forget(c, r, state, plan.ReasonNotFound)
}

// forgetLost plans to remove the record of a create with an unknown outcome, because its object was deleted. Hykube
// cannot destroy a resource that it has not found. So a warning says that the resource may exist, and how to find and
// keep it.
func (pr *proposal) forgetLost(c *ledger.Change, r *resource.Resource, rec *ledger.Instance) (*expected, error) {
	d := lang.Problem(r.Address, "", "The resource may exist", fmt.Sprintf(
		"At %s a create of %s started%s, and its outcome is unknown. This plan removes the record of it and destroys nothing. If the resource exists, "+
			"nothing manages it afterwards. Search for it by name or tags, where %s creates resources. "+
			"To remove it, delete it there. To keep it, discard this plan, %s, and then %s --adopt ID.",
		rec.Intent.At.Format(time.RFC3339), r.Address, byPlan(rec.Intent), madeWith(rec, r), takeBack(r),
		changes.ResolveCommand(r.Ref)))
	d.Severity = v1alpha1.SeverityWarning
	c.Diagnostics = append(c.Diagnostics, d)
	return pr.forget(c, r, &rec.State, plan.ReasonCreateUnknown)
}

// takeBack tells users how to keep an object that plans remove.
func takeBack(r *resource.Resource) string {
	switch {
	case r.Ref.Set == "":
		return fmt.Sprintf("run kubectl hykube undelete %s/%s -n %s", r.Ref.Kind, r.Ref.Name, r.Ref.Namespace)
	case !r.Deleting: // its namespace is being deleted
		return "run kubectl hykube undelete namespace/" + r.Ref.Namespace
	}
	if r.Address.Module != "" {
		return fmt.Sprintf("make the Module %q have it again", r.Ref.Set)
	}
	return fmt.Sprintf("make the ResourceSet %q have its key again", r.Ref.Set)
}

// madeWith names the ProviderConfig or provider with which a create may have created the resource.
func madeWith(rec *ledger.Instance, r *resource.Resource) string {
	if rec.ProviderConfig == "" {
		return fmt.Sprintf("the provider %q", r.Entry.Name)
	}
	return fmt.Sprintf("the ProviderConfig %q of the provider %q", rec.ProviderConfig, r.Entry.Name)
}

func byPlan(i *ledger.Intent) string {
	if i.PlanName == "" {
		return ""
	}
	return fmt.Sprintf(" by the plan %q", i.PlanName)
}
