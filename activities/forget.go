package activities

import (
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

// This file plans what removes records and asks no provider to destroy anything.

// forget plans to drop the record of an instance: of one that is left alone, or, with a reason, of one that is not there.
func (pr *proposal) forget(c *ledger.Change, r *resource, state *ledger.State, reason string) (expected, error) {
	null := cty.NullVal(r.schema.Block.ImpliedType())
	prior := null
	if v, err := instance.Recorded(state, r.schema); err == nil { // it is shown, and nothing else
		prior = v
	}
	err := describeChange(c, r.schema.Block, instance.State{Value: prior}, &instance.Planned{Action: v1alpha1.ActionForget, Value: null, Reason: reason})
	return expected{prior: prior, planned: null}, err
}

// forgetLost plans to drop the record of a create whose outcome is unknown, since its object was deleted. Nothing can be destroyed that
// nobody has found, so the plan says that the resource may exist, and how to find and keep it.
func (pr *proposal) forgetLost(c *ledger.Change, r *resource, rec *ledger.Instance) (expected, error) {
	d := problem(r.addr, "The resource may exist", fmt.Sprintf(
		"At %s a create of %s was begun%s, and its outcome is unknown. This plan removes the record of it and destroys nothing. If the resource exists, "+
			"nothing manages it afterwards. Look for it by its name or tags, where %s makes things. "+
			"If it exists and must go, delete it there. If it exists and must stay, discard this plan, run kubectl hykube undelete %s/%s -n %s, and name it in lifecycle.import.",
		rec.Intent.At.Format(time.RFC3339), r.addr, byPlan(rec.Intent), madeWith(rec, r),
		r.ref.Kind, r.ref.Name, r.ref.Namespace))
	d.Severity = v1alpha1.SeverityWarning
	c.Diagnostics = append(c.Diagnostics, d)
	return pr.forget(c, r, &rec.State, plan.ReasonCreateUnknown)
}

// madeWith names the account in which a create may have made the resource.
func madeWith(rec *ledger.Instance, r *resource) string {
	if rec.ProviderConfig == "" {
		return fmt.Sprintf("the provider %q", r.entry.Name)
	}
	return fmt.Sprintf("the ProviderConfig %q of the provider %q", rec.ProviderConfig, r.entry.Name)
}

func byPlan(i *ledger.Intent) string {
	if i.PlanName == "" {
		return ""
	}
	return fmt.Sprintf(" by the plan %q", i.PlanName)
}

// lostCreate refuses to plan a resource of which a create was begun and nobody knows its outcome.
func lostCreate(addr lang.Address, intent *ledger.Intent) error {
	return &diag.Failure{Operation: "plan", Diagnostics: diag.Diagnostics{problem(addr, "Outcome of a create is unknown", fmt.Sprintf(
		"At %s a create of %s was begun, and the provider's answer never came. It may exist. Look for it. If it exists, name it in lifecycle.import. "+
			"If it does not, or you removed it, delete the object, apply a plan that forgets the record, and write it again.",
		intent.At.Format(time.RFC3339), addr))}}
}
