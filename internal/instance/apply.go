package instance

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Outcome is the result of an apply.
type Outcome struct {
	// State is the resulting state, as far as it is known. The caller must save it even if Err is set.
	State State
	// Err is the error of the apply: a *diag.Failure if the provider reported it, or if the provider did not answer.
	Err         error
	Diagnostics diag.Diagnostics
	// Quarantine is the provider's answer if it could not be decoded to a state; State is then the prior state.
	// Otherwise it is nil. The caller must store it for the user: after a create, it is the only record of the new
	// instance. It holds the original bytes, without write-only values, which are never stored.
	Quarantine []byte
}

// applyCall is one apply of a planned change.
type applyCall struct {
	t       *Type
	prior   State
	planned *Planned
	// marks are the marks of the planned value, which the result has, too.
	marks              []cty.PathValueMarks
	deleting, creating bool
}

// Apply applies a planned change: a create if prior is null, a delete if the planned value is null, else an update.
// config must be wholly known and is the configuration as written, without ignoreChanges. The end of ctx does not
// interrupt the call, because its effect would then be unknown.
func (t *Type) Apply(ctx context.Context, prior State, p *Planned, config cty.Value) Outcome {
	a := applyCall{t: t, prior: prior, planned: p}
	priorValue, plannedValue := unmarked(prior.Value), unmarked(p.Value)
	a.deleting, a.creating = plannedValue.IsNull(), priorValue.IsNull()
	if onlyMarksDiffer(prior.Value, p.Value) {
		return Outcome{State: State{Value: p.Value, Private: prior.Private, Identity: prior.Identity,
			Tainted: prior.Tainted}}
	}
	a.marks = marksOf(p.Value)
	req, err := a.request(priorValue, plannedValue, unmarked(config))
	if err != nil {
		return Outcome{State: prior, Err: err}
	}
	end, err := t.Audit.begin(a.operation(), t.Name)
	if err != nil {
		return Outcome{State: prior, Err: err}
	}
	o := a.call(t.withSecrets(ctx, prior.Value, p.Value, config), req)
	end(o.Err)
	return o
}

// call makes the provider apply the change.
func (a *applyCall) call(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) Outcome {
	resp, err := a.t.Provider.ApplyResourceChange(context.WithoutCancel(ctx), req)
	if err != nil {
		return Outcome{State: a.prior, Err: &diag.Failure{Kind: diag.Lost, Operation: "apply " + a.t.Name, Cause: err}}
	}
	return a.outcome(resp)
}

func (a *applyCall) operation() audit.Operation {
	switch {
	case a.creating:
		return audit.Create
	case a.deleting:
		return audit.Delete
	}
	return audit.Update
}

// onlyMarksDiffer reports whether a change concerns only which values are sensitive, so that the provider is not
// called.
func onlyMarksDiffer(prior, planned cty.Value) bool {
	p, v := unmarked(prior), unmarked(planned)
	return !p.IsNull() && v.IsWhollyKnown() && v.RawEquals(p) && !sameMarks(prior, planned)
}

func (a *applyCall) request(prior, planned, config cty.Value) (*tfprotov6.ApplyResourceChangeRequest, error) {
	t := a.t
	if !config.IsWhollyKnown() {
		return nil, fmt.Errorf("apply %s: its configuration is not known yet", t.Name)
	}
	req := &tfprotov6.ApplyResourceChangeRequest{TypeName: t.Name, PlannedPrivate: a.planned.Private}
	var err error
	if req.PriorState, err = t.encode(prior); err != nil {
		return nil, err
	}
	if req.PlannedState, err = t.encode(planned); err != nil {
		return nil, err
	}
	if req.Config, err = t.encode(config); err != nil {
		return nil, err
	}
	identity := a.planned.Identity
	if a.deleting {
		// The protocol has no field for the prior identity in this call. Providers read the identity of a destroyed
		// instance from PlannedIdentity.
		identity = a.prior.Identity
	}
	if req.PlannedIdentity, err = t.encodeIdentity(identity); err != nil {
		return nil, err
	}
	if req.ProviderMeta, err = encodeMeta(t.Meta, t.MetaBlock); err != nil {
		return nil, err
	}
	return req, nil
}

// outcome converts any answer of the provider to an Outcome.
func (a *applyCall) outcome(resp *tfprotov6.ApplyResourceChangeResponse) Outcome {
	t := a.t
	o := Outcome{State: a.prior}
	o.Diagnostics, o.Err = diag.Answer("apply", resp.Diagnostics)
	value, err := t.decode(resp.NewState) // an answer without a state decodes to null
	if err != nil {
		o.Quarantine = rawBytes(resp.NewState)
		o.Err = errors.Join(o.Err, fmt.Errorf(
			"apply %s: the provider answered with a value that does not fit its schema; the state from before is kept: %w", t.Name, err))
		return o
	}
	if errs := plan.CheckWriteOnly(t.Schema.Block, value); len(errs) > 0 {
		o.Err = errors.Join(o.Err, inconsistentResult("apply", t.Name,
			"returned write-only values, which must never be stored,", errs))
		if d, err := t.encode(withoutPaths(value, errs)); err == nil {
			o.Quarantine = d.MsgPack
		}
		return o
	}
	if !value.IsWhollyKnown() {
		if o.Err == nil {
			o.Err = fmt.Errorf("apply %s: the provider left values unknown, which is a bug of the provider; they are recorded as null", t.Name)
		}
		if value = cty.UnknownAsNull(value); value.IsNull() { // all of it was unknown
			o.Quarantine = rawBytes(resp.NewState)
		}
	}
	switch {
	case o.Err == nil && a.deleting && !value.IsNull():
		o.Err = fmt.Errorf("apply %s: the provider reports success of the destroy, but still returns the instance, which is a bug of the provider", t.Name)
	case o.Err == nil && a.deleting:
		o.State = t.Null()
		return o
	case o.Err == nil && value.IsNull():
		o.Err = fmt.Errorf("apply %s: the provider reports success, but returns no state, which is a bug of the provider", t.Name)
		return o
	case value.IsNull():
		// An error and a null state: the prior instance still exists. For a create there is none.
		return o
	}
	o.State = State{Value: restoreMarks(value, a.marks), Private: resp.Private}
	if a.deleting {
		// a delete has no configuration, so the prior marks apply
		o.State.Value = restoreMarks(value, marksOf(a.prior.Value))
	}
	if o.State.Identity, err = t.takeKnownIdentity("apply", resp.NewIdentity); err != nil {
		o.State.Identity, o.Err = cty.NilVal, errors.Join(o.Err, err)
	}
	if none(o.State.Identity) && !a.creating {
		o.State.Identity = a.prior.Identity
	}
	if o.Err == nil && !resp.UnsafeToUseLegacyTypeSystem { //nolint:staticcheck // the protocol's own word for it
		if errs := plan.CheckCompatible(t.Schema.Block, a.planned.Value, value); len(errs) > 0 {
			o.Err = inconsistentResult("apply", t.Name, "returned another value than it had planned", errs)
		}
	}
	if o.Err != nil {
		// A failed create taints the instance. A failed update or destroy does not change whether it is tainted.
		o.State.Tainted = a.creating || a.prior.Tainted
	}
	return o
}

// rawBytes returns the encoded value as received.
func rawBytes(d *tfprotov6.DynamicValue) []byte {
	switch {
	case d == nil:
		return nil
	case len(d.MsgPack) != 0:
		return d.MsgPack
	}
	return d.JSON
}

// withoutPaths sets the values at the paths of the errors, which are cty.PathErrors, to null.
func withoutPaths(v cty.Value, errs []error) cty.Value {
	drop := cty.NewPathSet()
	for _, err := range errs {
		if pe, ok := errors.AsType[cty.PathError](err); ok {
			drop.Add(pe.Path)
		}
	}
	return withoutPathSet(v, drop)
}

func withoutPathSet(v cty.Value, drop cty.PathSet) cty.Value {
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if drop.Has(p) {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.NullVal(v.Type())
	}
	return out
}
