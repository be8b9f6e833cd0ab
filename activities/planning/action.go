package planning

import (
	"context"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
)

// invokeRequested is the action reason of an action that spec.invoke names.
const invokeRequested = "invoke_because_requested"

// planAction plans the run of an action, unless this generation has run and the plan does not request another run. It
// returns the planned arguments without write-only values; they may be partly unknown.
func (pr *proposal) planAction(ctx context.Context, c *ledger.Change, r *resource.Resource) (cty.Value, error) {
	c.ProviderConfig = "" // an earlier attempt may have set it
	nothing := cty.NullVal(r.Schema.Block.ImpliedType())
	rest := func() (cty.Value, error) {
		p := &instance.Planned{Action: v1alpha1.ActionNoOp, Value: nothing}
		return nothing, describeChange(c, r.Schema.Block, instance.State{Value: nothing}, p)
	}
	if r.Deleting || pr.plan.Spec.Destroy || pr.plan.Spec.RefreshOnly {
		return rest()
	}
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return cty.NilVal, err
	}
	requested := pr.forced[c.Address]
	if rec.Intent != nil && rec.Object.Generation == r.Ref.Generation && !requested {
		abandoned, err := changes.IntentAbandoned(ctx, pr.Ledger, rec.Intent)
		if err != nil {
			return cty.NilVal, err
		}
		if abandoned {
			c.Diagnostics = diag.Diagnostics{changes.LostRun(r.Address, rec.Intent)}
		}
		return rest() // another plan is running it, or its outcome is unknown
	}
	if !requested && resource.HasRun(r, rec) {
		return rest()
	}
	config, _, err := (&scope.Evaluator{Ctx: ctx, Scope: pr.scope.WrittenBy(c.Contributors)}).Arguments(r)
	if err != nil {
		return cty.NilVal, err
	}
	configured, err := pr.scope.Acquire(ctx, r, session.SlotAndRate)
	if err != nil {
		return cty.NilVal, err
	}
	defer configured.Release()
	c.ProviderConfig = configured.ConfigName()
	bind(c, configured)
	pr.bindAccount(ctx, c, configured, nil)
	ctx = pr.withAnswers(ctx, c, r, configured)
	withheld, err := pr.noteSecrets(ctx, c, r, configured, config, nil)
	if err == nil {
		config, err = unknownAt(config, withheld)
	}
	if err != nil {
		return cty.NilVal, err
	}
	action := &instance.Action{Name: r.Address.Type, Schema: r.Schema, Provider: configured.ProviderServer,
		Deferral: true}
	diags, err := action.Plan(ctx, config)
	if err != nil {
		return cty.NilVal, err
	}
	c.Diagnostics = lang.WithAddress(diags, r.Address)
	v := lang.MarkSensitive(r.Schema.Block, plan.WithoutWriteOnly(r.Schema.Block, config))
	p := &instance.Planned{Action: v1alpha1.ActionInvoke, Value: v}
	if requested {
		p.Reason = invokeRequested
	}
	return v, describeChange(c, r.Schema.Block, instance.State{Value: nothing}, p)
}
