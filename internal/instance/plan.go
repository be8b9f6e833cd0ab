package instance

//lint:file-ignore SA1019 the mark is for those who write providers; who calls them has to honour it

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// Planned is what the provider promises to do.
type Planned struct {
	Action v1alpha1.Action
	// Reason is Terraform's, such as "replace_because_cannot_update".
	Reason string
	// Value is what will be there, unknown where only the apply can tell; null for a delete. Secrets are marked.
	Value   cty.Value
	Private []byte
	// Identity is what the instance will be told from others by; it may be unknown, in part, where the instance is created.
	// Null or cty.NilVal when there is none.
	Identity cty.Value
	// Replace holds the paths that force a replace.
	Replace []cty.Path
	// Legacy is true for providers that are allowed to break their word about values (terraform-plugin-sdk).
	Legacy bool
}

// Config is what an instance should be. Both values may hold unknown values and marks.
type Config struct {
	// Written is what the spec says.
	Written cty.Value
	// Effective is Written with the changes that are to be ignored taken back.
	Effective cty.Value
	// Ignored are the paths that Effective takes back, as lifecycle.ignoreChanges has them. They are taken back once more
	// from what a provider on the old SDK plans, which may have changed them on its own.
	Ignored []string
	// PlannedPrivate is the private data of the plan that was approved, when the change is planned again to be applied; nil while
	// it is planned for the first time.
	PlannedPrivate []byte
}

// replanner is a provider that takes the private data of an earlier plan of the same change. terraform-plugin-go's
// interface has no room for it; a provider that does without plans as if it were for the first time.
type replanner interface {
	PlanAgain(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest, planned []byte) (*tfprotov6.PlanResourceChangeResponse, error)
}

// planChange makes the call. planned is what came with the plan that was approved.
func (t *Type) planChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest, planned []byte) (*tfprotov6.PlanResourceChangeResponse, error) {
	if p, ok := t.Provider.(replanner); ok && len(planned) > 0 {
		return p.PlanAgain(ctx, req, planned)
	}
	return t.Provider.PlanResourceChange(ctx, req)
}

// Plan asks the provider what it would do to bring the prior state to the configuration. forced asks for a replace.
func (t *Type) Plan(ctx context.Context, prior State, config Config, forced bool) (*Planned, diag.Diagnostics, error) {
	diags, err := t.Validate(ctx, config.Written)
	if err != nil {
		return nil, diags, err
	}
	if prior.Tainted {
		// A tainted instance is planned as if it were not there, so nothing of it is kept, and replaced.
		p, more, err := t.planOnce(ctx, t.Null(), nil, Config{Written: config.Written, Effective: config.Written, PlannedPrivate: config.PlannedPrivate}, true)
		diags = append(diags, more...)
		if err != nil {
			return nil, diags, err
		}
		p.Action, p.Reason = v1alpha1.ActionReplace, plan.ReasonTainted
		return p, diags, nil
	}
	p, more, err := t.planOnce(ctx, prior, prior.Private, config, true)
	diags = append(diags, more...)
	if err != nil {
		return nil, diags, err
	}
	p.Action, p.Reason = plan.Decide(unmarked(prior.Value), unmarked(p.Value), p.Replace, forced, false)
	switch p.Action {
	case v1alpha1.ActionCreate:
		return p, diags, nil
	case v1alpha1.ActionReplace:
		// A second plan, as for a create, says what the new instance will be. There is nothing left to ignore, its
		// warnings repeat the first's, and of the checks only those of the wire are made.
		anew, more, err := t.planOnce(ctx, t.Null(), p.Private, Config{Written: config.Written, Effective: config.Written}, false)
		if err != nil {
			return nil, append(diags, more...), err
		}
		p.Value, p.Private, p.Identity, p.Legacy = anew.Value, anew.Private, anew.Identity, anew.Legacy
		return p, diags, nil
	}
	if err := t.checkIdentityKnown("plan", p.Identity); err != nil {
		return nil, diags, err
	}
	if p.Action == v1alpha1.ActionNoOp && prior.Exists() && !t.sameSecrets(prior.Value, p.Value) {
		// What is secret changed, and nothing else. Apply records it without the provider.
		p.Action = v1alpha1.ActionUpdate
	}
	return p, diags, nil
}

// sameSecrets says whether the same is secret in two values, by their marks or by the schema: what the schema calls secret is that
// also where a secret was referred to.
func (t *Type) sameSecrets(a, b cty.Value) bool {
	return sameMarks(a, b) || sameMarks(lang.MarkSensitive(t.Schema.Block, a), lang.MarkSensitive(t.Schema.Block, b))
}

// Validate asks the provider whether it accepts the configuration, which may hold unknown values.
func (t *Type) Validate(ctx context.Context, config cty.Value) (diag.Diagnostics, error) {
	c, err := t.encode(config)
	if err != nil {
		return nil, err
	}
	resp, err := t.Provider.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: t.Name, Config: c,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		return nil, fmt.Errorf("validate %s: %w", t.Name, err)
	}
	return diag.Answer("validate", resp.Diagnostics)
}

// planOnce makes one call to plan. private is what the provider gets as the prior private data. Without check only those
// checks are made that what is stored must pass.
func (t *Type) planOnce(ctx context.Context, prior State, private []byte, config Config, check bool) (*Planned, diag.Diagnostics, error) {
	priorValue := unmarked(prior.Value)
	configValue, marks := config.Effective.UnmarkDeepWithPaths()
	req, err := t.planRequest(prior, private, plan.ProposedNew(t.Schema.Block, priorValue, configValue), configValue)
	if err != nil {
		return nil, nil, err
	}
	resp, err := t.planChange(ctx, req, config.PlannedPrivate)
	if err != nil {
		return nil, nil, fmt.Errorf("plan %s: %w", t.Name, err)
	}
	diags, err := diag.Answer("plan", resp.Diagnostics)
	if err != nil {
		return nil, diags, err
	}
	if err := deferred("plan", t.Name, resp.Deferred, t.Deferral); err != nil {
		return nil, diags, err
	}
	value, err := t.decode(resp.PlannedState)
	if err != nil {
		return nil, diags, fmt.Errorf("plan %s: the provider planned a value that does not fit its schema: %w", t.Name, err)
	}
	if err := t.checkWriteOnly("plan", value); err != nil {
		return nil, diags, err
	}
	p := &Planned{Private: resp.PlannedPrivate, Legacy: resp.UnsafeToUseLegacyTypeSystem} //nolint:staticcheck // the protocol's own word for it
	if p.Identity, err = t.takeIdentity("plan", resp.PlannedIdentity); err != nil {
		return nil, diags, err
	}
	// The checks see the marks, so that no secret gets into what they say.
	if errs := plan.CheckPlanned(t.Schema.Block, prior.Value, config.Effective, value); check && len(errs) > 0 && !p.Legacy {
		return nil, diags, brokenWord("plan", t.Name, "planned a value that the configuration does not allow", errs)
	}
	if check && p.Legacy {
		if value, err = t.ignoreAgain(value, priorValue, config.Ignored); err != nil {
			return nil, diags, err
		}
	}
	if p.Replace, err = t.requiredReplace(resp.RequiresReplace, priorValue, value); err != nil {
		return nil, diags, fmt.Errorf("plan %s: %w", t.Name, err)
	}
	p.Value = remark(value, marks)
	return p, diags, nil
}

func (t *Type) planRequest(prior State, private []byte, proposed, config cty.Value) (*tfprotov6.PlanResourceChangeRequest, error) {
	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName: t.Name, PriorPrivate: private,
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{DeferralAllowed: t.Deferral},
	}
	var err error
	if req.PriorState, err = t.encode(prior.Value); err != nil {
		return nil, err
	}
	if req.Config, err = t.encode(config); err != nil {
		return nil, err
	}
	if req.ProposedNewState, err = t.encode(proposed); err != nil {
		return nil, err
	}
	if req.PriorIdentity, err = t.encodeIdentity(prior.Identity); err != nil {
		return nil, err
	}
	if req.ProviderMeta, err = encodeMeta(t.Meta, t.MetaBlock); err != nil {
		return nil, err
	}
	return req, nil
}

// ignoreAgain takes ignored changes back from what a provider on the old SDK planned: it may plan something else than the
// configuration says, a hash of it for instance, and with it the change that was to be ignored.
func (t *Type) ignoreAgain(planned, prior cty.Value, ignored []string) (cty.Value, error) {
	switch {
	case len(ignored) == 0 || prior.IsNull() || planned.IsNull():
		return planned, nil
	case slices.Contains(ignored, "all"):
		// Nothing changes then, computed attributes included.
		return prior, nil
	}
	return plan.IgnoreChanges(t.Schema.Block, planned, prior, ignored)
}

func (t *Type) requiredReplace(from []*tftypes.AttributePath, prior, planned cty.Value) ([]cty.Path, error) {
	if prior.IsNull() || planned.IsNull() {
		return nil, nil // nothing is replaced that does not exist, whatever the provider says
	}
	paths := make([]cty.Path, 0, len(from))
	for _, ap := range from {
		path, err := diag.FromProtoPath(ap)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return plan.RequiredReplace(t.Schema.Block, paths, prior, planned)
}

// PlanDelete asks the provider before a destroy, if it wants to be asked. planned is the private data of the plan that was
// approved; nil while it is planned for the first time.
func (t *Type) PlanDelete(ctx context.Context, prior State, planned []byte) (*Planned, diag.Diagnostics, error) {
	null := cty.NullVal(t.Schema.Block.ImpliedType())
	p := &Planned{Action: v1alpha1.ActionDelete, Value: null, Private: prior.Private}
	if !t.PlanDestroy || !prior.Exists() {
		return p, nil, nil
	}
	req, err := t.planRequest(prior, prior.Private, null, null)
	if err != nil {
		return nil, nil, err
	}
	resp, err := t.planChange(ctx, req, planned)
	if err != nil {
		return nil, nil, fmt.Errorf("plan destroy of %s: %w", t.Name, err)
	}
	diags, err := diag.Answer("plan destroy", resp.Diagnostics)
	if err != nil {
		return nil, diags, err
	}
	if err := deferred("plan destroy of", t.Name, resp.Deferred, t.Deferral); err != nil {
		return nil, diags, err
	}
	if v, err := t.decode(resp.PlannedState); err != nil || !v.IsNull() {
		return nil, diags, fmt.Errorf("plan destroy of %s: the provider planned to leave something, which is a bug of the provider", t.Name)
	}
	p.Private = resp.PlannedPrivate
	return p, diags, nil
}
