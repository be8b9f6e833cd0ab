package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
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

// Planned is the provider's planned change.
type Planned struct {
	Action v1alpha1.Action
	// Reason is a reason from Terraform's JSON plan, such as "replace_because_cannot_update".
	Reason string
	// Value is the planned value, with unknown values that only the apply determines; null for a delete. Secrets are
	// marked.
	Value   cty.Value
	Private []byte
	// Identity is the planned identity. It may be partly unknown if the instance is created. It is null or cty.NilVal
	// if there is none.
	Identity cty.Value
	// Replace lists the paths whose changes force a replace.
	Replace []cty.Path
	// Validated is a digest of the configuration that the provider validated, if all of it was known; else empty.
	Validated string
	// Final is true if a second plan of the same configuration could not differ. The change is then a create whose
	// configuration was known.
	Final bool
	// Legacy is true for a provider whose SDK (terraform-plugin-sdk) may break the rules for planned values.
	Legacy bool
}

// Config is the configuration of an instance. Written and Effective may hold unknown values and marks.
type Config struct {
	// Written is the configuration in the spec.
	Written cty.Value
	// Effective is Written with the ignored changes reverted.
	Effective cty.Value
	// Ignored holds the paths in lifecycle.ignoreChanges, which Effective reverts. Plan reverts them again in the plan
	// of a provider on the legacy SDK, which may have changed them on its own.
	Ignored []string
	// PlannedPrivate is the private data of the approved plan, if the change is planned again for its apply; nil in the
	// first plan.
	PlannedPrivate []byte
	// Validated is Planned.Validated of the approved plan, by the same version of the provider. The validation of an
	// equal configuration has the same result, so the provider does not validate that one again.
	Validated string
	// Final is the approved plan if it is final and the provider has the same arguments; else nil. An equal
	// configuration is not planned again.
	Final *Planned
}

// replanner is a provider that accepts the private data of an earlier plan of the same change. terraform-plugin-go's
// interface has no such field. Another provider plans again without that data.
type replanner interface {
	PlanAgain(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
		planned []byte) (*tfprotov6.PlanResourceChangeResponse, error)
}

// planChange calls the provider. planned is the private data of the approved plan.
func (t *Type) planChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
	planned []byte) (*tfprotov6.PlanResourceChangeResponse, error) {
	if p, ok := t.Provider.(replanner); ok && len(planned) > 0 {
		return p.PlanAgain(ctx, req, planned)
	}
	return t.Provider.PlanResourceChange(ctx, req)
}

// Plan makes the provider plan the change from the prior state to the configuration. forced requests a replace.
func (t *Type) Plan(ctx context.Context, prior State, config Config, forced bool) (*Planned, diag.Diagnostics, error) {
	validated, diags, err := t.validateOnce(ctx, config)
	if err != nil {
		return nil, diags, err
	}
	if config.Final != nil && t.Deterministic && none(t.Meta) && validated != "" && validated == config.Validated &&
		!prior.Exists() {
		p := *config.Final
		p.Value = restoreMarks(p.Value, t.withEchoes(marksOf(config.Effective)))
		return &p, diags, nil
	}
	p, more, err := t.planValid(ctx, prior, config, forced)
	if p != nil {
		p.Validated, p.Final = validated, validated != "" && t.final(p)
	}
	return p, append(diags, more...), err
}

// final reports whether a second plan of the same known configuration could not differ from p. Metadata of the provider
// may change in between.
func (t *Type) final(p *Planned) bool {
	return t.Deterministic && p.Action == v1alpha1.ActionCreate && !p.Legacy && none(t.Meta)
}

// planValid plans a change to a valid configuration.
func (t *Type) planValid(ctx context.Context, prior State, config Config,
	forced bool) (*Planned, diag.Diagnostics, error) {
	if prior.Tainted {
		// Plan a tainted instance as if it did not exist, so that the plan keeps none of its values. Then replace it.
		p, diags, err := t.planOnce(ctx, t.Null(), nil,
			Config{Written: config.Written, Effective: config.Written, PlannedPrivate: config.PlannedPrivate}, true)
		if err != nil {
			return nil, diags, err
		}
		p.Action, p.Reason = v1alpha1.ActionReplace, plan.ReasonTainted
		return p, diags, nil
	}
	p, diags, err := t.planOnce(ctx, prior, prior.Private, config, true)
	if err != nil {
		return nil, diags, err
	}
	p.Action, p.Reason = plan.Decide(unmarked(prior.Value), unmarked(p.Value), p.Replace, forced, false)
	switch p.Action {
	case v1alpha1.ActionCreate:
		return p, diags, nil
	case v1alpha1.ActionReplace:
		// A second plan, as for a create, determines the values of the new instance. It ignores no changes, because
		// there is no prior value. Its warnings repeat those of the first plan. Only the checks of stored values apply
		// to it.
		anew, more, err := t.planOnce(ctx, t.Null(), p.Private,
			Config{Written: config.Written, Effective: config.Written}, false)
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
		// Only sensitivity changed. Apply records that without the provider.
		p.Action = v1alpha1.ActionUpdate
	}
	return p, diags, nil
}

// sameSecrets reports whether two values have the same secrets. It compares their marks with and without those of the
// schema, since an attribute may be secret for both reasons.
func (t *Type) sameSecrets(a, b cty.Value) bool {
	return sameMarks(a, b) || sameMarks(lang.MarkSensitive(t.Schema.Block, a), lang.MarkSensitive(t.Schema.Block, b))
}

// validateOnce makes the provider validate the configuration as written, unless it is the one that the approved plan
// validated. It returns the digest for Planned.Validated.
func (t *Type) validateOnce(ctx context.Context, config Config) (validated string, diags diag.Diagnostics, err error) {
	encoded, err := t.encode(config.Written)
	if err != nil {
		return "", nil, err
	}
	if plain := unmarked(config.Written); plain.IsWhollyKnown() {
		sum := sha256.Sum256(encoded.MsgPack)
		validated = base64.RawStdEncoding.EncodeToString(sum[:16])
	}
	if validated == "" || validated != config.Validated {
		diags, err = t.validate(t.withSecrets(ctx, config.Written), encoded)
	}
	return validated, diags, err
}

// validate makes the provider validate the configuration, which may hold unknown values.
func (t *Type) validate(ctx context.Context, c *tfprotov6.DynamicValue) (diag.Diagnostics, error) {
	resp, err := t.Provider.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: t.Name, Config: c,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		return nil, fmt.Errorf("validate %s: %w", t.Name, err)
	}
	return diag.Answer("validate", resp.Diagnostics)
}

// planOnce makes one plan call. private is the prior private data. Without check, it makes only the checks that stored
// values must pass.
func (t *Type) planOnce(ctx context.Context, prior State, private []byte, config Config,
	check bool) (*Planned, diag.Diagnostics, error) {
	priorValue := unmarked(prior.Value)
	configValue, marks := unmarkedWithPaths(config.Effective)
	req, err := t.planRequest(prior, private, plan.ProposedNew(t.Schema.Block, priorValue, configValue), configValue)
	if err != nil {
		return nil, nil, err
	}
	resp, err := t.planChange(t.withSecrets(ctx, prior.Value, config.Written, config.Effective), req,
		config.PlannedPrivate)
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
		return nil, diags, fmt.Errorf("plan %s: the provider planned a value that does not fit its schema: %w", t.Name,
			err)
	}
	if err := t.checkWriteOnly("plan", value); err != nil {
		return nil, diags, err
	}
	//nolint:staticcheck // the protocol's own word for it
	p := &Planned{Private: resp.PlannedPrivate, Legacy: resp.UnsafeToUseLegacyTypeSystem}
	if p.Identity, err = t.decodeIdentity("plan", resp.PlannedIdentity); err != nil {
		return nil, diags, err
	}
	// The checks need the marks, so that their errors contain no secret.
	if errs := plan.CheckPlanned(t.Schema.Block, prior.Value, config.Effective, value); check && len(errs) > 0 &&
		!p.Legacy {
		return nil, diags, inconsistentResult("plan", t.Name, "planned a value that the configuration does not allow",
			errs)
	}
	if check && p.Legacy {
		if value, err = t.ignoreAgain(value, priorValue, config.Ignored); err != nil {
			return nil, diags, err
		}
	}
	if p.Replace, err = t.requiredReplace(resp.RequiresReplace, priorValue, value); err != nil {
		return nil, diags, fmt.Errorf("plan %s: %w", t.Name, err)
	}
	p.Value = restoreMarks(value, t.withEchoes(marks))
	return p, diags, nil
}

func (t *Type) planRequest(prior State, private []byte, proposed,
	config cty.Value) (*tfprotov6.PlanResourceChangeRequest, error) {
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

// ignoreAgain reverts ignored changes in the plan of a provider on the legacy SDK. Such a provider may plan another
// value than the configured one, such as a hash, and so reintroduce an ignored change.
func (t *Type) ignoreAgain(planned, prior cty.Value, ignored []string) (cty.Value, error) {
	switch {
	case len(ignored) == 0 || prior.IsNull() || planned.IsNull():
		return planned, nil
	case slices.Contains(ignored, "all"):
		// Nothing changes, including computed attributes.
		return prior, nil
	}
	return plan.IgnoreChanges(t.Schema.Block, planned, prior, ignored)
}

func (t *Type) requiredReplace(from []*tftypes.AttributePath, prior, planned cty.Value) ([]cty.Path, error) {
	if prior.IsNull() || planned.IsNull() {
		return nil, nil // an absent instance is never replaced
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

// PlanDelete makes the provider plan a destroy, if it has that capability. planned is the private data of the approved
// plan; nil in the first plan.
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
	resp, err := t.planChange(t.withSecrets(ctx, prior.Value), req, planned)
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
		return nil, diags, fmt.Errorf(
			"plan destroy of %s: the provider's plan to destroy does not remove everything, which is a bug of the provider", t.Name)
	}
	p.Private = resp.PlannedPrivate
	return p, diags, nil
}
