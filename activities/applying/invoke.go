package applying

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// progressInterval is the minimum time between two writes of an action's progress.
const progressInterval = time.Second

// invoke runs an action. It never repeats a run that an earlier attempt began, because that run may have had its
// effect.
func (s *stepRun) invoke(ctx context.Context) error {
	c, r := s.Change, s.resource
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	if s.Begun && rec.Intent == nil && rec.Plan == s.Plan.UID && rec.Object.Generation == c.Object.Generation {
		return nil // an earlier attempt ran it and stopped before it recorded that in the change
	}
	if err := s.checkRuns(ctx, rec); err != nil {
		return err
	}
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	config, _, err := (&scope.Evaluator{Ctx: ctx, Scope: s.scope}).Arguments(r)
	if err != nil {
		return s.retryable(err, true)
	}
	configured, err := s.acquire(ctx, r, config)
	if err != nil {
		return err
	}
	defer configured.Release()
	action := &instance.Action{Name: r.Address.Type, Schema: r.Schema, Provider: configured.ProviderServer,
		Audit: s.scope.Recorder(r, configured.ConfigName())}
	if _, err := action.Plan(ctx, config); err != nil {
		return s.retryable(err, true)
	}
	if err := s.judge(ctx, config); err != nil {
		return err
	}
	rec.Object, rec.Mode, rec.Provider, rec.Plan = c.Object, v1alpha1.ModeAction, r.Entry.Name, s.Plan.UID
	rec.State = ledger.State{Type: r.Address.Type, ProviderConfig: c.ProviderConfig,
		ProviderVersion: r.Entry.Package.Version}
	rec.Intent = &ledger.Intent{Plan: s.Plan.UID, PlanName: s.Plan.Name, Change: c.Index, Action: v1alpha1.ActionInvoke,
		At: time.Now().UTC(), Process: s.Processes.Own()}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.run(ctx, action, configured, config, rec)
}

// checkRuns returns an error if an earlier attempt began to run the action, or if another plan is running it.
func (s *stepRun) checkRuns(ctx context.Context, rec *ledger.Instance) error {
	if rec.Intent == nil {
		return nil
	}
	if rec.Intent.Plan == s.Plan.UID {
		d := changes.LostRun(s.resource.Address, rec.Intent)
		d.Severity = v1alpha1.SeverityError
		return &unknownError{&diag.Failure{Operation: "invoke", Diagnostics: diag.Diagnostics{d}}}
	}
	if abandoned, err := changes.IntentAbandoned(ctx, s.Ledger, rec.Intent); err != nil || !abandoned {
		return errors.Join(err, changes.Stale(v1alpha1.StalePlanRunning, "another plan is running this action"))
	}
	return nil
}

// run writes the intent, calls the action and writes the outcome. A cancel does not interrupt it, because the effect of
// the action would then be unknown.
func (s *stepRun) run(ctx context.Context, action *instance.Action, configured *session.Session, config cty.Value,
	rec *ledger.Instance) error {
	ctx = context.WithoutCancel(ctx)
	if err := s.Ledger.HasSpace(); err != nil {
		return store.Failed(err)
	}
	if err := s.overtaken(ctx, s.Ledger.Intents().Save(ctx, rec)); err != nil {
		return err
	}
	if err := s.Processes.MayCall(); err != nil {
		rec.Intent, rec.Object.Generation = nil, 0 // the action did not run
		if failed := s.conflict(s.Ledger.Intents().Save(ctx, rec)); failed != nil {
			return failed
		}
		return &laterError{fmt.Sprintf("the action does not run, because %v", err)}
	}
	s.intendedAction, s.answered = v1alpha1.ActionInvoke, true
	diags, err := action.Invoke(ctx, config, s.reportProgress(ctx))
	s.warnings = append(s.warnings, diag.Warnings(diags)...)
	if err != nil && (configured.Stopped() || diag.IsFailure(err, diag.Lost)) {
		return &unknownError{fmt.Errorf("the provider did not answer: %w; check what %s did before you run it again",
			err, s.resource.Address)}
	}
	rec.Intent = nil
	if err != nil {
		rec.Object.Generation = 0 // this generation did not run, so the next plan runs it
	}
	if saveErr := s.outcomes().Save(ctx, rec); saveErr != nil {
		return errors.Join(err, s.conflict(saveErr))
	}
	return s.retryable(err, session.Throttled(err))
}

// reportProgress returns a function that writes an action's progress to the change. It ignores write errors, since only
// the outcome matters.
func (s *stepRun) reportProgress(ctx context.Context) func(string) {
	var last time.Time
	return func(text string) {
		now := time.Now()
		if now.Sub(last) < progressInterval {
			return
		}
		last = now
		s.Change.Message = s.scope.Mask(text)
		if err := s.Ledger.SaveChange(ctx, s.Plan.UID, s.Change); err != nil {
			s.Logger.WarnContext(ctx, "write progress of action", "plan", s.Plan.Name, "namespace", s.Plan.Namespace,
				"address", s.Change.Address, "error", err)
		}
	}
}
