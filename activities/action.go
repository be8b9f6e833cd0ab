package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// invokeRequested is why an action runs that ran before.
const invokeRequested = "invoke_because_requested"

// progressInterval bounds how often the progress of an action is written down.
const progressInterval = time.Second

// askAction plans to run an action, unless this generation of it ran before and nobody asks for it again. The value
// is what it will run with, as far as is known, without what must not be stored.
func (pr *proposal) askAction(ctx context.Context, c *ledger.Change, r *resource) (cty.Value, error) {
	c.ProviderConfig = "" // an earlier attempt may have left it
	nothing := cty.NullVal(r.schema.Block.ImpliedType())
	rest := func() (cty.Value, error) {
		p := &instance.Planned{Action: v1alpha1.ActionNoOp, Value: nothing}
		return nothing, describeChange(c, r.schema.Block, instance.State{Value: nothing}, p)
	}
	if r.deleting || pr.plan.Spec.Destroy || pr.plan.Spec.RefreshOnly {
		return rest()
	}
	rec, err := pr.Ledger.Instance(ctx, r.ref)
	if err != nil {
		return cty.NilVal, err
	}
	requested := pr.forced[c.Address]
	if rec.Intent != nil && rec.Object.Generation == r.ref.Generation && !requested {
		over, err := pr.over(ctx, rec.Intent)
		if err != nil {
			return cty.NilVal, err
		}
		if over {
			c.Diagnostics = diag.Diagnostics{lostRun(r.addr, rec.Intent)}
		}
		return rest() // another plan runs it, or did, as far as is known
	}
	if !requested && hasRun(r, rec) {
		return rest()
	}
	config, _, err := (&evaluator{ctx: ctx, scope: pr.scope}).config(r)
	if err != nil {
		return cty.NilVal, err
	}
	loan, err := pr.scope.acquire(ctx, r, slotAndRate)
	if err != nil {
		return cty.NilVal, err
	}
	defer loan.release()
	c.ProviderConfig = loan.config()
	action := &instance.Action{Name: r.addr.Type, Schema: r.schema, Provider: loan.ProviderServer, Deferral: true}
	diags, err := action.Plan(ctx, config)
	if err != nil {
		return cty.NilVal, err
	}
	c.Diagnostics = lang.WithAddress(diags, r.addr)
	v := lang.MarkSensitive(r.schema.Block, plan.WithoutWriteOnly(r.schema.Block, config))
	p := &instance.Planned{Action: v1alpha1.ActionInvoke, Value: v}
	if requested {
		p.Reason = invokeRequested
	}
	return v, describeChange(c, r.schema.Block, instance.State{Value: nothing}, p)
}

// hasRun says whether this generation of an action was run. The record knows it also when the object could not be told.
func hasRun(r *resource, rec *ledger.Instance) bool {
	recorded := rec.Plan != "" && rec.Intent == nil && rec.Object.Generation == r.ref.Generation
	return recorded || statusOf(r.obj).good()
}

// lostRun says that nobody knows how a run of an action ended.
func lostRun(addr lang.Address, i *ledger.Intent) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{
		Severity: v1alpha1.SeverityWarning, Summary: "Outcome of an action is unknown", Address: addr.String(),
		Detail: fmt.Sprintf("At %s a run of %s was begun, and the provider's answer never came. It may have run. Look what it did; to run it again, name it in the plan's spec.invoke, or change its spec.",
			i.At.Format(time.RFC3339), addr),
	}
}

// invoke runs an action. It never begins a run that an earlier attempt began: that may have done its work.
func (s *stepRun) invoke(ctx context.Context) error {
	c, r := s.change, s.resource
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	switch {
	case s.begun && rec.Intent == nil && rec.Plan == s.plan.UID && rec.Object.Generation == c.Object.Generation:
		return nil // an earlier attempt ran it, and only the change does not know
	case rec.Intent != nil && rec.Intent.Plan == s.plan.UID:
		d := lostRun(r.addr, rec.Intent)
		d.Severity = v1alpha1.SeverityError
		return &unknownError{&diag.Failure{Operation: "invoke", Diagnostics: diag.Diagnostics{d}}}
	case rec.Intent != nil:
		if over, err := s.over(ctx, rec.Intent); err != nil || !over {
			return errors.Join(err, &staleError{"another plan is running it, or was when the server stopped"})
		}
	}
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	config, _, err := (&evaluator{ctx: ctx, scope: s.scope}).config(r)
	if err != nil {
		return s.retryable(err, true)
	}
	if err := s.checkApproved(r, config); err != nil {
		return err
	}
	loan, err := s.scope.acquire(ctx, r, slotAndRate)
	if err != nil {
		return s.retryable(err, true)
	}
	defer loan.release()
	if loan.config() != c.ProviderConfig {
		return &staleError{fmt.Sprintf("it would be run with the ProviderConfig %q, and the plan was made with %q", loan.config(), c.ProviderConfig)}
	}
	if err := s.checkProviderConfig(ctx, loan.cfg); err != nil {
		return err
	}
	action := &instance.Action{Name: r.addr.Type, Schema: r.schema, Provider: loan.ProviderServer}
	if _, err := action.Plan(ctx, config); err != nil {
		return s.retryable(err, true)
	}
	rec.Object, rec.Mode, rec.Provider, rec.Plan = c.Object, v1alpha1.ModeAction, r.entry.Name, s.plan.UID
	rec.State = ledger.State{Type: r.addr.Type, ProviderConfig: c.ProviderConfig, ProviderVersion: r.entry.Package.Version}
	rec.Intent = &ledger.Intent{Plan: s.plan.UID, PlanName: s.plan.Name, Change: c.Index, Action: v1alpha1.ActionInvoke, At: time.Now().UTC()}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Nobody would know what it did if it were cut off, nor whether it was begun if this were.
	ctx = context.WithoutCancel(ctx)
	if err := s.Ledger.Save(ctx, rec); err != nil {
		return s.conflict(err)
	}

	s.answered = true
	diags, err := action.Invoke(ctx, config, s.reportProgress(ctx))
	s.warnings = append(s.warnings, warningsOf(diags)...)
	if err != nil && (loan.stopped() || diag.IsFailure(err, diag.Lost)) {
		return &unknownError{fmt.Errorf("the provider did not answer: %w; look what %s did before it is run again", err, r.addr)}
	}
	rec.Intent = nil
	if err != nil {
		rec.Object.Generation = 0 // this generation was not run, so the next plan runs it
	}
	if saveErr := s.Ledger.Save(ctx, rec); saveErr != nil {
		return errors.Join(err, s.conflict(saveErr))
	}
	return s.retryable(err, throttled(err))
}

// checkApproved refuses a configuration that is not what the plan was approved with, as far as that was known.
func (s *stepRun) checkApproved(r *resource, config cty.Value) error {
	promised, err := ctymsgpack.Unmarshal(s.change.Planned, r.schema.Block.ImpliedType())
	if err == nil {
		promised, err = instance.Remark(promised, s.change.PlannedSensitive)
	}
	if err != nil {
		return fmt.Errorf("decode planned value of %s: %w", s.change.Address, err)
	}
	config = plan.WithoutWriteOnly(r.schema.Block, config) // which may be another each time, and was not stored
	if errs := plan.CheckCompatible(r.schema.Block, promised, config); len(errs) > 0 {
		return &staleError{fmt.Sprintf("with all values known its arguments are other than was approved: %v", errors.Join(errs...))}
	}
	return nil
}

// reportProgress returns what writes an action's progress into the change, for those who watch. What cannot be written is lost: the
// outcome counts.
func (s *stepRun) reportProgress(ctx context.Context) func(string) {
	var last time.Time
	return func(text string) {
		now := time.Now()
		if now.Sub(last) < progressInterval {
			return
		}
		last = now
		s.change.Message = s.scope.mask(text)
		if err := s.Ledger.SaveChange(ctx, s.plan.UID, s.change); err != nil {
			s.Logger.WarnContext(ctx, "write progress of action", "plan", s.plan.Name, "namespace", s.plan.Namespace, "address", s.change.Address, "error", err)
		}
	}
}
