package planning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
)

// gone is the entry in a change's drift if the infrastructure no longer exists.
const gone = "(removed)"

// errMoved is the error for an object that changed after the survey.
var errMoved = errors.New("the object changed while the plan was being made")

// Propose plans each open change of a plan with its provider. It keeps the changes that an earlier attempt planned.
func (a *Planner) Propose(ctx context.Context, p workflows.Plan) (result workflows.Proposed, err error) {
	po, err := a.unpublished(ctx, p)
	if err != nil {
		return workflows.Proposed{}, err
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Proposed{}, err
	}
	var all []*ledger.Change
	for c, err := range a.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return workflows.Proposed{}, err
		}
		all = append(all, c)
	}
	pr := &proposal{Planner: a, plan: po, all: all, forced: map[string]bool{}, expected: map[lang.Address]expected{}, imports: imports{}}
	for _, c := range all {
		pr.imports.claim(c) // an earlier attempt may have planned it
	}
	for _, text := range slices.Concat(po.Spec.Replace, po.Spec.Invoke) {
		if addr, err := lang.ParseAddress(text); err == nil {
			pr.forced[addr.String()] = true
		}
	}
	pr.scope = a.NewScope(po, po.Namespace, pr.plannedValue)
	pr.past = a.NewScope(po, po.Namespace, func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	pr.scope.Decoder = a.surveyed.take(po.UID, a.Catalog)
	pr.past.Decoder = pr.scope.Decoder
	pr.past.Secrets = pr.scope.Secrets // both scopes hide the same secrets, but have separate ephemeral resources
	defer func() {
		closing := context.WithoutCancel(ctx)
		if cerr := errors.Join(pr.past.Close(closing), pr.scope.Close(closing)); cerr != nil {
			err = errors.Join(err, pr.warn(closing, scope.Unclosed(cerr)))
		}
	}()
	ctx, done := a.Cancels.UntilCancelled(ctx, p)
	defer done()
	tracker := graph.NewTracker(len(all), func(i int) []int { return changes.Indexes(all[i].DependsOn) })
	err = graph.Run(ctx, tracker, session.Width, func(ctx context.Context, i int) (bool, error) { return pr.change(ctx, all[i]) })
	if err == nil && pr.errors == 0 {
		err = pr.skipDependents(ctx, all)
	}
	if err == nil && pr.errors == 0 {
		err = pr.checkVerbs(ctx)
	}
	if errors.Is(context.Cause(ctx), changes.ErrCancelled) {
		return workflows.Proposed{}, nil // Publish reports the cancel
	}
	if errors.Is(err, errMoved) {
		return workflows.Proposed{}, temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrorMoved, err)
	}
	return workflows.Proposed{Errors: pr.errors}, err
}

// proposal is the planning of one Plan.
type proposal struct {
	*Planner
	plan *v1alpha1.Plan
	// all holds the plan's changes. The dependencies of a change are planned before it.
	all []*ledger.Change
	// forced holds the addresses to replace or invoke regardless of their state.
	forced map[string]bool
	// scope provides planned values. past provides recorded values, for reads and destroys.
	scope, past *scope.Scope

	// owning guards owners, imports and managed.
	owning  sync.Mutex
	owners  query.OwnersByType
	imports imports
	// managed maps the resources of the namespace to the objects that manage them; see changes.OwnedKey. It is loaded
	// for the first destroy.
	managed map[string][]v1alpha1.ObjectReference

	// configuring guards configs, the cache of ProviderConfigs, created on first use.
	configuring sync.Mutex
	configs     *scope.ProviderConfigs

	mu sync.Mutex
	// expected holds the result of each planned resource, for the resources that refer to it.
	expected map[lang.Address]expected
	// does caches the results of the method changes.
	does   map[int32]bool
	errors int
}

// expected holds the action and the values of a resource before and after the plan.
type expected struct {
	action         v1alpha1.Action
	prior, planned cty.Value
}

// scopeFor returns the scope for a provider's configuration: planned values for a wanted resource, else recorded
// values.
func (pr *proposal) scopeFor(wanted bool) *scope.Scope {
	if !wanted || pr.plan.Spec.RefreshOnly {
		return pr.past
	}
	return pr.scope
}

// plannedValue returns the planned value of a resource.
func (pr *proposal) plannedValue(addr lang.Address) (cty.Value, bool) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	e, ok := pr.expected[addr]
	return e.planned, ok
}

// expect makes the planned value of a resource available to its dependants.
func (pr *proposal) expect(c *ledger.Change, addr lang.Address, prior, planned cty.Value) {
	if c.Deposed != "" {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.expected[addr] = expected{c.Action, prior, planned}
}

// change plans one change. ok is false if planning failed; its diagnostics then have the reason.
func (pr *proposal) change(ctx context.Context, c *ledger.Change) (ok bool, err error) {
	addr, err := lang.ParseAddress(c.Address)
	if err != nil {
		return false, workflows.Final(err)
	}
	r, err := pr.resource(ctx, c)
	if err != nil {
		return false, err
	}
	if c.State == v1alpha1.ChangeSkipped {
		return false, nil
	}
	if c.Action != "" {
		return true, pr.restoreExpected(ctx, c, r)
	}
	var e expected
	err = again(ctx, func() (err error) {
		e, err = pr.planWithProvider(ctx, c, r)
		return err
	})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if why, d, ok := blocking(addr, err); ok {
		block(c, why, d)
		if be, ok := errors.AsType[*busyError](err); ok {
			c.WaitsFor = &v1alpha1.PlanReference{Name: be.intent.PlanName, UID: be.intent.Plan}
		}
		return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	if err != nil {
		pr.fail(c, addr, err)
		return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	pr.expect(c, addr, e.prior, e.planned)
	c.Referrers = affected(c, e)
	c.Diagnostics = pr.scope.MaskAll(c.Diagnostics)
	pr.noteDependencyVersions(c)
	c.UpdatesRecord = changes.RecordsRefresh(c)
	if err := pr.refer(ctx, c, r); err != nil {
		return false, err
	}
	return true, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// checkVerbs fails the plan if its creator lacks a right for its changes.
func (pr *proposal) checkVerbs(ctx context.Context) error {
	lacks, err := checkVerbs(ctx, pr.Sources, pr.plan, pr.all)
	if err != nil || len(lacks) == 0 {
		return err
	}
	pr.errors++
	if slices.Contains(pr.all[0].Diagnostics, lacks[0]) {
		return nil // an earlier attempt reported it
	}
	return pr.warn(ctx, lacks[0])
}

// warn adds a diagnostic that is about no particular change. It stores it in the first change.
func (pr *proposal) warn(ctx context.Context, d v1alpha1.Diagnostic) error {
	if len(pr.all) == 0 {
		return nil
	}
	c := pr.all[0]
	d.Detail = pr.scope.Mask(d.Detail)
	c.Diagnostics = append(c.Diagnostics, d)
	return pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// restoreExpected makes the planned value that an earlier attempt stored available to dependants.
func (pr *proposal) restoreExpected(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	planned, err := changes.PlannedValue(c, r.Schema.Block)
	if err != nil {
		return err
	}
	state := c.Refreshed
	if state == nil {
		rec, err := pr.Ledger.Instance(ctx, r.Ref)
		if err != nil {
			return err
		}
		state = &rec.State
	}
	prior := cty.NullVal(r.Schema.Block.ImpliedType())
	if state.Exists() {
		if prior, err = instance.Recorded(state, r.Schema); err != nil {
			// The schema version has changed, so treat the value as changed.
			prior = cty.UnknownVal(r.Schema.Block.ImpliedType())
		}
	}
	pr.expect(c, r.Address, prior, lang.MarkSensitive(r.Schema.Block, planned))
	return nil
}

// resource reads the object of a change. It returns errMoved if the object changed after the survey.
func (pr *proposal) resource(ctx context.Context, c *ledger.Change) (*resource.Resource, error) {
	obj, err := pr.Objects.Get(ctx, c.Object)
	if errors.Is(err, store.ErrGone) {
		return nil, fmt.Errorf("%s: %w", c.Address, errMoved)
	}
	if err != nil {
		return nil, err
	}
	r, err := pr.scope.Decoder.Decode(obj)
	if err != nil {
		return nil, err
	}
	if r.Ref.Generation != c.Object.Generation || r.Deleting != c.Preconditions.Deleting || pr.plan.Spec.Destroy != c.Preconditions.Destroys {
		return nil, fmt.Errorf("%s: %w", c.Address, errMoved)
	}
	return r, nil
}

func (pr *proposal) fail(c *ledger.Change, addr lang.Address, err error) {
	pr.mu.Lock()
	pr.errors++
	pr.mu.Unlock()
	c.State, c.Message = v1alpha1.ChangeFailed, pr.scope.Mask(err.Error())
	c.Diagnostics = pr.scope.MaskAll(lang.WithAddress(append(c.Diagnostics, diag.Of(err)...), addr))
}

// planWithProvider plans a change with its provider and fills in the change.
func (pr *proposal) planWithProvider(ctx context.Context, c *ledger.Change, r *resource.Resource) (expected, error) {
	// An earlier attempt may have set these.
	c.Message, c.Diagnostics, c.Drift, c.Refreshed, c.Importing, c.Checks, c.Read, c.WaitsFor = "", nil, nil, nil, nil, false, false, nil
	c.Prevented, c.Blocked = false, ""
	c.Recorded, c.RecordedSensitive = nil, nil
	switch r.Mode {
	case v1alpha1.ModeData:
		v, err := pr.askData(ctx, c, r)
		return expected{planned: v}, err
	case v1alpha1.ModeAction:
		v, err := pr.askAction(ctx, c, r)
		return expected{planned: v}, err
	}
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return expected{}, err
	}
	wanted := !r.Deleting && !pr.plan.Spec.Destroy
	if rec.Intent != nil {
		lost, err := pr.checkIntent(ctx, c, r, rec)
		if err != nil {
			return expected{}, err
		}
		if lost {
			return pr.forgetLost(c, r, rec)
		}
	}
	state := &rec.State
	if c.Deposed != "" {
		d := rec.FindDeposed(c.Deposed)
		if d == nil {
			return expected{}, fmt.Errorf("%s: %w", c.Address, errMoved)
		}
		state, wanted = &d.State, false
	}
	if !wanted && r.Lifecycle.Forgets() && !pr.plan.Spec.RefreshOnly && state.Exists() {
		return pr.forget(c, r, state, "")
	}
	return pr.askManaged(ctx, c, r, rec, state, wanted)
}

// checkIntent handles an intent without a recorded outcome. It returns an error if the call may still be running, or if
// the outcome of a create is unknown. lost is true if the plan must forget such a create, because its object was
// deleted.
func (pr *proposal) checkIntent(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.Instance) (lost bool, err error) {
	abandoned, err := changes.IntentAbandoned(ctx, pr.Ledger, rec.Intent)
	if err != nil {
		return false, err
	}
	if !abandoned {
		return false, &busyError{rec.Intent}
	}
	if rec.Intent.Action != v1alpha1.ActionCreate || rec.Exists() {
		return false, nil
	}
	if r.Deleting {
		return c.Deposed == "" && !pr.plan.Spec.RefreshOnly, nil
	}
	if r.Lifecycle.Import != nil && !pr.plan.Spec.Destroy {
		return false, nil // the import names the resource, so the user has found it
	}
	return false, changes.LostCreate(r.Address, rec.Intent)
}

// askManaged plans the current instance of a resource or a deposed one. state is the recorded state of that instance.
func (pr *proposal) askManaged(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.Instance, state *ledger.State, wanted bool) (expected, error) {
	l, err := pr.scopeFor(wanted).Lease(ctx, r, state, wanted, session.SlotAndRate)
	if err != nil {
		return expected{}, err
	}
	defer l.Release()
	c.ProviderConfig = l.ConfigName()
	recorded, prior, err := pr.found(ctx, c, r, l, state)
	if err != nil {
		return expected{}, err
	}
	var p *instance.Planned
	var diags diag.Diagnostics
	switch {
	case pr.plan.Spec.RefreshOnly:
		p = &instance.Planned{Action: v1alpha1.ActionNoOp, Value: prior.Value, Private: prior.Private}
		if len(c.Drift) > 0 {
			p.Action = v1alpha1.ActionRead
		}
		prior = recorded
	case !wanted && !prior.Exists() && (state.Exists() || r.Deleting && len(rec.Deposed) == 0):
		return pr.forget(c, r, state, plan.ReasonGone)
	case !wanted && !prior.Exists():
		// only deposed instances remain, which have their own changes
		p = &instance.Planned{Action: v1alpha1.ActionNoOp, Value: prior.Value}
	case !wanted:
		if r.Lifecycle.PreventDestroy && c.Deposed == "" {
			prevent(c)
		}
		if p, diags, err = l.PlanDelete(ctx, prior, nil); err == nil && r.Deleting && c.Deposed == "" {
			p.Reason = plan.ReasonNoConfig
		}
		if err == nil {
			err = pr.warnOtherManagers(ctx, c, r, state, l)
		}
	default:
		if !prior.Exists() && !rec.Exists() && r.Lifecycle.Import != nil {
			if prior, err = pr.adopt(ctx, c, r, l, rec); err != nil {
				return expected{}, err
			}
		}
		p, diags, err = pr.askWanted(ctx, c, r, l, prior)
		if err == nil && p.Action == v1alpha1.ActionCreate && r.Lifecycle.Moved != nil && c.Preconditions.From == nil && !movedBefore(r) {
			diags = append(diags, nothingMoved(r))
		}
		if err == nil && p.Action == v1alpha1.ActionReplace && !c.Forget && c.Importing == nil {
			err = pr.warnOtherManagers(ctx, c, r, state, l)
		}
		if err == nil && p.Action == v1alpha1.ActionCreate && c.LooksLike != "" {
			diags = append(diags, renameWarning(r, c.LooksLike))
		}
	}
	c.Diagnostics = append(c.Diagnostics, lang.WithAddress(diags, r.Address)...)
	if err != nil {
		c.Diagnostics = nil // the error has them
		return expected{}, err
	}
	block := r.Schema.Block
	pr.scope.NoteSecretState(block, prior)
	pr.scope.NoteSecretAttributes(block, p.Value)
	return expected{prior: lang.MarkSensitive(block, prior.Value), planned: lang.MarkSensitive(block, p.Value)}, describeChange(c, block, prior, p)
}

// askWanted plans a resource that should exist.
func (pr *proposal) askWanted(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease, prior instance.State) (*instance.Planned, diag.Diagnostics, error) {
	v := &scope.Evaluator{Ctx: ctx, Scope: pr.scope}
	open, err := v.Holds(r, resource.Preconditions, cty.NilVal)
	if err != nil {
		return nil, nil, err
	}
	config, err := v.Config(r, prior)
	if err != nil {
		return nil, nil, err
	}
	triggered, err := pr.triggered(v, r)
	if err != nil {
		return nil, nil, err
	}
	forced := pr.forced[c.Address]
	p, diags, err := l.Plan(ctx, prior, config, forced || triggered)
	if err != nil {
		return nil, diags, err
	}
	c.CreateBeforeDestroy, c.Forget = false, false
	if p.Action == v1alpha1.ActionReplace && l.Config != nil && l.Config.DeletionTimestamp != nil {
		return nil, diags, scope.BeingDeleted(fmt.Sprintf("the ProviderConfig %q", l.Config.Name))
	}
	if p.Action == v1alpha1.ActionReplace {
		c.Forget = r.Lifecycle.Forgets()
		c.CreateBeforeDestroy = c.CreatesFirst && !c.Forget
		if r.Lifecycle.PreventDestroy && !c.Forget {
			prevent(c)
		}
		if c.CreateBeforeDestroy || c.Forget {
			c.DeposedKey = deposedKey(pr.plan.UID, c.Index)
		}
	}
	if triggered && (p.Action == v1alpha1.ActionReplace || p.Action == v1alpha1.ActionCreate) {
		p.Reason = plan.ReasonTriggered // as in Terraform, this reason has priority
	}
	openAfter, err := v.Holds(r, resource.Postconditions, lang.MarkSensitive(r.Schema.Block, p.Value))
	c.Checks = open || openAfter
	return p, diags, err
}

// triggered reports whether an entry of lifecycle.replaceTriggeredBy changes in this plan.
func (pr *proposal) triggered(v *scope.Evaluator, r *resource.Resource) (bool, error) {
	triggers, err := resource.TriggersOf(r)
	if err != nil {
		return false, err
	}
	var diags diag.Diagnostics
	for _, t := range triggers {
		ref := t.References()[0]
		pr.mu.Lock()
		e, ok := pr.expected[ref.Address]
		pr.mu.Unlock()
		if !ok || e.action != v1alpha1.ActionUpdate && e.action != v1alpha1.ActionReplace {
			continue
		}
		if ref.Attribute == "" {
			return true, nil
		}
		at := func(value cty.Value) cty.Value {
			found, more := t.Evaluate(func(lang.Address) (cty.Value, bool) { return value, true }, cty.NilVal)
			diags = append(diags, more...)
			return found
		}
		if plan.Differs(at(e.prior), at(e.planned)) {
			return true, nil
		}
	}
	if diag.HasErrors(diags) {
		return false, &diag.Failure{Operation: "read lifecycle.replaceTriggeredBy", Diagnostics: diags}
	}
	return false, v.Err
}

// deposedKey returns the key of the old instance of a replace that creates first. It is deterministic and differs for
// each change.
func deposedKey(planUID types.UID, index int32) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", planUID, index))
	return hex.EncodeToString(sum[:4])
}

// describeChange fills in the planned values of a change, for users and for the apply.
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
	c.BeforeSensitive, c.AfterSensitive, c.SecretsChanged = rendered.BeforeSensitive, rendered.AfterSensitive, rendered.SecretsChanged
	c.ReplacePaths = nil
	if p.Action == v1alpha1.ActionReplace && len(p.Replace) > 0 {
		if c.ReplacePaths, err = plan.RenderPaths(p.Replace); err != nil {
			return fmt.Errorf("render change of %s: %w", c.Address, err)
		}
	}
	return nil
}
