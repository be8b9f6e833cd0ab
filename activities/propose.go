package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"go.temporal.io/sdk/temporal"
)

const (
	// width bounds the calls of one plan that are under way at once, over all provider configurations.
	width = 32
	// attempts bounds how often a call that only asks is made when the answer is that it may work later.
	attempts = 5
)

// gone stands in the drift of a change for infrastructure that is not there any more.
const gone = "(removed)"

// errMoved says that an object changed after the survey.
var errMoved = errors.New("the object changed while the plan was being made")

// Propose asks the providers what each open change of a plan would do. Changes that an earlier attempt closed are kept.
func (a *Activities) Propose(ctx context.Context, p workflows.Plan) (workflows.Proposed, error) {
	defer heartbeat(ctx)()
	po, err := a.plan(ctx, p)
	if err != nil {
		return workflows.Proposed{}, err
	}
	var changes []*ledger.Change
	for c, err := range a.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return workflows.Proposed{}, err
		}
		changes = append(changes, c)
	}
	pr := &proposal{Activities: a, plan: po, forced: map[string]bool{}, planned: map[plan.Address]cty.Value{}}
	for _, text := range po.Spec.Replace {
		if addr, err := plan.ParseAddress(text); err == nil {
			pr.forced[addr.String()] = true
		}
	}
	tracker := plan.NewTracker(len(changes), func(i int) []int { return ints(changes[i].DependsOn) })
	err = run(ctx, tracker, width, func(ctx context.Context, i int) (bool, error) { return pr.change(ctx, changes[i]) })
	if err == nil && pr.errors == 0 {
		err = pr.spread(ctx, changes)
	}
	if errors.Is(err, errMoved) {
		return workflows.Proposed{}, temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrorMoved, err)
	}
	return workflows.Proposed{Errors: pr.errors}, err
}

// proposal is the planning of one Plan.
type proposal struct {
	*Activities
	plan   *v1alpha1.Plan
	forced map[string]bool

	mu sync.Mutex
	// planned holds what each resource of the plan will be, for those that refer to it.
	planned map[plan.Address]cty.Value
	errors  int
}

// change closes one change; ok is false when it could not be planned, which then stands in its diagnostics.
func (pr *proposal) change(ctx context.Context, c *ledger.Change) (ok bool, err error) {
	addr, err := plan.ParseAddress(c.Address)
	if err != nil {
		return false, final(err)
	}
	r, err := pr.resource(ctx, c)
	if err != nil {
		return false, err
	}
	if c.State == v1alpha1.ChangeSkipped {
		return false, nil
	}
	if c.Action != "" {
		v, err := ctymsgpack.Unmarshal(c.Planned, r.schema.Block.ImpliedType())
		if err != nil {
			return false, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
		}
		if v, err = instance.Remark(v, c.PlannedSensitive); err != nil {
			return false, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
		}
		pr.publish(addr, plan.MarkSensitive(r.schema.Block, v))
		return true, nil
	}
	var planned cty.Value
	err = again(ctx, func() (err error) {
		planned, err = pr.ask(ctx, c, r)
		return err
	})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if pe, ok := errors.AsType[*preventedError](err); ok {
		block(c, pe.Error(), pe.diagnostic(addr))
		return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	if err != nil {
		pr.fail(c, addr, err)
		return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	pr.publish(addr, planned)
	return true, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// resource reads the object of a change, which must be as the survey saw it.
func (pr *proposal) resource(ctx context.Context, c *ledger.Change) (*resource, error) {
	obj, err := pr.Objects.Get(ctx, c.Object)
	if errors.Is(err, ErrGone) {
		return nil, fmt.Errorf("%s: %w", c.Address, errMoved)
	}
	if err != nil {
		return nil, err
	}
	r, err := resourceOf(obj, pr.Catalog)
	if err != nil {
		return nil, err
	}
	if r.ref.Generation != c.Object.Generation || r.deleting != c.Bound.Deleting {
		return nil, fmt.Errorf("%s: %w", c.Address, errMoved)
	}
	return r, nil
}

func (pr *proposal) publish(addr plan.Address, v cty.Value) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.planned[addr] = v
}

func (pr *proposal) fail(c *ledger.Change, addr plan.Address, err error) {
	pr.mu.Lock()
	pr.errors++
	pr.mu.Unlock()
	c.State, c.Message = v1alpha1.ChangeFailed, err.Error()
	c.Diagnostics = plan.WithAddress(append(c.Diagnostics, diagnosticsOf(err)...), addr)
}

// ask fills the change with what the provider would do, and returns the value that it plans.
func (pr *proposal) ask(ctx context.Context, c *ledger.Change, r *resource) (cty.Value, error) {
	wanted := !r.deleting && !pr.plan.Spec.Destroy
	// An earlier attempt may have left these.
	c.Message, c.Diagnostics, c.Drift, c.Refreshed = "", nil, nil, nil
	rec, err := pr.Ledger.Instance(ctx, r.ref)
	if err != nil {
		return cty.NilVal, err
	}
	if rec.Intent != nil && rec.Intent.Action == v1alpha1.ActionCreate && !rec.Exists() {
		// Who deletes the object has looked: there is nothing, or it is not Hykube's any more.
		if over, err := pr.over(ctx, rec.Intent); err != nil || !over || !r.deleting {
			return cty.NilVal, cmp.Or(err, lostCreate(r.addr, rec.Intent))
		}
	}
	l, err := pr.lease(ctx, r, rec, wanted, pr.plan.Status.RequestedBy)
	if err != nil {
		return cty.NilVal, err
	}
	defer l.release()
	c.ProviderConfig = l.config

	recorded, err := l.Load(ctx, rec)
	if err != nil {
		return cty.NilVal, err
	}
	prior, err := pr.refresh(ctx, c, l, rec, recorded)
	if err != nil {
		return cty.NilVal, err
	}
	var p *instance.Planned
	var diags plan.Diagnostics
	switch {
	case pr.plan.Spec.RefreshOnly:
		p = &instance.Planned{Action: v1alpha1.ActionNoOp, Value: prior.Value, Private: prior.Private}
		if len(c.Drift) > 0 {
			p.Action = v1alpha1.ActionRead
		}
		prior = recorded
	case !wanted:
		if r.lifecycle.PreventDestroy && prior.Exists() {
			return cty.NilVal, &preventedError{}
		}
		p, diags, err = l.PlanDelete(ctx, prior)
		if err == nil && !prior.Exists() && !r.deleting {
			p.Action = v1alpha1.ActionNoOp
		}
		if err == nil && pr.plan.Spec.Destroy && !r.deleting {
			p.Reason = "delete_because_requested"
		}
	default:
		p, diags, err = pr.askWanted(ctx, c, r, l, prior)
	}
	c.Diagnostics = append(c.Diagnostics, plan.WithAddress(diags, r.addr)...)
	if err != nil {
		c.Diagnostics = nil // the error holds them
		return cty.NilVal, err
	}
	return plan.MarkSensitive(r.schema.Block, p.Value), describeChange(c, r.schema.Block, prior, p)
}

// askWanted plans a resource that should exist.
func (pr *proposal) askWanted(ctx context.Context, c *ledger.Change, r *resource, l *lease, prior instance.State) (*instance.Planned, plan.Diagnostics, error) {
	config, err := evaluate(r, prior, func(addr plan.Address) (cty.Value, bool, error) {
		pr.mu.Lock()
		v, ok := pr.planned[addr]
		pr.mu.Unlock()
		if ok {
			return v, true, nil
		}
		return pr.current(ctx, r.ref.Namespace, addr)
	})
	if err != nil {
		return nil, nil, err
	}
	p, diags, err := l.Plan(ctx, prior, config, pr.forced[c.Address])
	if err == nil && p.Action == v1alpha1.ActionReplace && r.lifecycle.PreventDestroy {
		return nil, diags, &preventedError{}
	}
	return p, diags, err
}

// refresh reads what is there, if the plan asks for it, and records in the change what was found different.
func (pr *proposal) refresh(ctx context.Context, c *ledger.Change, l *lease, rec *ledger.Instance, recorded instance.State) (instance.State, error) {
	mode := pr.plan.Spec.Refresh
	if !recorded.Exists() || mode == v1alpha1.RefreshNone && !pr.plan.Spec.RefreshOnly {
		return recorded, nil
	}
	found, diags, err := l.Read(ctx, recorded)
	if err != nil {
		return instance.State{}, err
	}
	c.Diagnostics = append(c.Diagnostics, diags...)
	before, _ := recorded.Value.UnmarkDeep()
	after, _ := found.Value.UnmarkDeep()
	switch {
	case !found.Exists():
		c.Drift = []string{gone}
	default:
		c.Drift = plan.Drift(before, after)
	}
	if len(c.Drift) == 0 && string(recorded.Private) == string(found.Private) {
		return found, nil
	}
	refreshed := *rec
	if err := l.Record(&refreshed, found); err != nil {
		return instance.State{}, err
	}
	c.Refreshed = &refreshed
	return found, nil
}

// describeChange writes what is planned into the change, for people and for the apply.
func describeChange(c *ledger.Change, block *schema.Block, prior instance.State, p *instance.Planned) error {
	ty := block.ImpliedType()
	value, _ := p.Value.UnmarkDeep()
	planned, err := ctymsgpack.Marshal(value, ty)
	if err != nil {
		return fmt.Errorf("encode planned value of %s: %w", c.Address, err)
	}
	if c.PlannedSensitive, err = instance.SensitivePaths(p.Value); err != nil {
		return fmt.Errorf("encode planned value of %s: %w", c.Address, err)
	}
	rendered, err := plan.Render(block, prior.Value, p.Value)
	if err != nil {
		return fmt.Errorf("render change of %s: %w", c.Address, err)
	}
	c.Planned, c.PlannedPrivate = planned, p.Private
	c.Action, c.ActionReason, c.State = p.Action, p.Reason, v1alpha1.ChangePending
	c.Before, c.After, c.AfterUnknown = rendered.Before, rendered.After, rendered.AfterUnknown
	c.BeforeSensitive, c.AfterSensitive = rendered.BeforeSensitive, rendered.AfterSensitive
	c.ReplacePaths = nil
	if p.Action == v1alpha1.ActionReplace && len(p.Replace) > 0 {
		if c.ReplacePaths, err = plan.RenderPaths(p.Replace); err != nil {
			return fmt.Errorf("render change of %s: %w", c.Address, err)
		}
	}
	return nil
}

// evaluate works out a resource's configuration, with unknown values where the scope has them.
func evaluate(r *resource, prior instance.State, scope func(plan.Address) (cty.Value, bool, error)) (instance.Config, error) {
	parsed, diags := plan.ParseConfig(r.spec(), r.schema.Block)
	if plan.HasErrors(diags) {
		return instance.Config{}, &instance.DiagnosticsError{Operation: "read spec", Diagnostics: diags}
	}
	var unread error
	written, diags := parsed.Evaluate(func(addr plan.Address) (cty.Value, bool) {
		v, ok, err := scope(addr)
		unread = errors.Join(unread, err)
		return v, ok
	})
	if unread != nil {
		// What could not be read is not unknown: a plan must not be made of it.
		return instance.Config{}, unread
	}
	if plan.HasErrors(diags) {
		return instance.Config{}, &instance.DiagnosticsError{Operation: "evaluate spec", Diagnostics: diags}
	}
	config := instance.Config{Written: written, Effective: written}
	if len(r.lifecycle.IgnoreChanges) == 0 || !prior.Exists() {
		return config, nil
	}
	var err error
	config.Effective, err = plan.IgnoreChanges(r.schema.Block, written, prior.Value, r.lifecycle.IgnoreChanges)
	return config, err
}

// current is the value of a resource as it is recorded, for expressions that refer to it.
func (a *Activities) current(ctx context.Context, namespace string, addr plan.Address) (v cty.Value, ok bool, err error) {
	for _, name := range a.Catalog.Providers(addr.Type) {
		obj, err := a.Objects.Get(ctx, v1alpha1.ObjectReference{
			APIVersion: v1alpha1.ProviderGroup(name) + "/" + v1alpha1.ResourceVersion, Kind: v1alpha1.KindOf(addr.Type),
			Namespace: namespace, Name: addr.Name,
		})
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return cty.NilVal, false, err
		}
		r, err := resourceOf(obj, a.Catalog)
		if err != nil {
			return cty.NilVal, false, err
		}
		rec, err := a.Ledger.Instance(ctx, r.ref)
		if err != nil {
			return cty.NilVal, false, err
		}
		if !rec.Exists() {
			continue
		}
		if v, err = instance.Recorded(rec, r.schema); err != nil {
			return cty.NilVal, false, err
		}
		return plan.MarkSensitive(r.schema.Block, v), true, nil
	}
	return cty.NilVal, false, nil
}

// again repeats a call that only asks while its failure is one that passes.
func again(ctx context.Context, call func() error) error {
	pause := 500 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || attempt == attempts || !transient(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}

func lostCreate(addr plan.Address, intent *ledger.Intent) error {
	return &instance.DiagnosticsError{Operation: "plan", Diagnostics: plan.Diagnostics{problem(addr, "Outcome of a create is unknown", fmt.Sprintf(
		"At %s a create of %s was begun, and the provider's answer never came. It may exist. Look for it; if it does not exist, or you removed it, delete the object, apply a plan, and write it again.",
		intent.At.Format(time.RFC3339), addr))}}
}

// over says whether the plan that left an intent behind has given up on it: the outcome is not known, and nobody is at it.
func (a *Activities) over(ctx context.Context, i *ledger.Intent) (bool, error) {
	c, err := a.Ledger.Change(ctx, i.Plan, i.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // the plan was deleted
	}
	return err == nil && c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeRunning, err
}

// diagnosticsOf keeps what a provider said whole, and makes a diagnostic of any other error.
func diagnosticsOf(err error) plan.Diagnostics {
	if de, ok := errors.AsType[*instance.DiagnosticsError](err); ok {
		return de.Diagnostics
	}
	return plan.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Change could not be made", Detail: err.Error()}}
}

func ints(in []int32) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = int(v)
	}
	return out
}
