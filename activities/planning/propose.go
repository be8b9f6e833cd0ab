package planning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// errObjectChanged is the error for an object that changed after the survey.
var errObjectChanged = errors.New("the object changed while the plan was being made")

// restartWithin is the time after the start of Propose during which an object that changed since the survey causes
// another survey. Later, another survey would repeat too much work, so the plan leaves out the object.
const restartWithin = 5 * time.Second

// Propose plans each open change of a plan with its provider. It adds changes for the resources that refer to a changed
// value. It keeps the changes that an earlier attempt planned.
func (a *Planner) Propose(ctx context.Context, in workflows.Propose) (result workflows.Proposed, err error) {
	po, err := a.readUnpublished(ctx, in.Plan)
	if err != nil {
		return workflows.Proposed{}, err
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Proposed{}, err
	}
	pr, err := a.newProposal(ctx, po)
	if err != nil {
		return workflows.Proposed{}, err
	}
	if !in.Last {
		pr.restartUntil = time.Now().Add(restartWithin)
	}
	defer func() {
		closing := context.WithoutCancel(ctx)
		if cerr := errors.Join(pr.past.Close(closing), pr.scope.Close(closing)); cerr != nil {
			err = errors.Join(err, pr.warn(closing, scope.Unclosed(cerr)))
		}
	}()
	ctx, done := a.Cancels.UntilCancelled(ctx, in.Plan)
	defer done()
	err = pr.planAll(ctx, in.Whole)
	if err == nil && pr.errors == 0 {
		err = pr.check(ctx)
	}
	switch {
	case errors.Is(context.Cause(ctx), changes.ErrCancelled):
		return workflows.Proposed{}, nil // Publish reports the cancel
	case errors.Is(err, errObjectChanged):
		return workflows.Proposed{}, temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrorObjectChanged,
			err)
	}
	return workflows.Proposed{Errors: pr.errors}, err
}

// proposal is the planning of one Plan.
type proposal struct {
	*Planner
	plan *v1alpha1.Plan
	// The dependencies of a change are planned before it. worklist adds further changes; it is nil if the survey stored
	// all.
	briefs
	results
	worklist *worklist
	// restartUntil is the time until which an object that changed since the survey causes another survey.
	restartUntil time.Time
	// forced holds the addresses to replace or invoke regardless of their state.
	forced map[string]bool
	// ahead reads the changes for their planning.
	ahead *changes.ReadAhead
	// reads limits the reads of a plan with a read budget; nil means no limit.
	reads *rate.Limiter
	// scope provides planned values. past provides recorded values, for reads and destroys.
	scope, past *scope.Scope

	// owning guards imports.
	owning  sync.Mutex
	imports imports

	// configuring guards configs, the cache of ProviderConfigs, created on first use.
	configuring sync.Mutex
	configs     *scope.ProviderConfigs

	// writing guards writers, the cache of the results of writersOf.
	writing sync.Mutex
	writers map[writtenConfig][]v1alpha1.Contributor

	mu sync.Mutex
	// accounts holds the accounts of the planned resources whose schemas have secrets.
	accounts map[lang.Address]account
	// effects caches the results of hasEffect.
	effects map[int32]bool
	// warned holds the index of the change that has a warning of warnOnce, by its type and summary.
	warned map[string]int32
	// shown is the plan that the user saw, whose answers this plan takes over; "" without one.
	shown     types.UID
	sharedIDs sharedIDs
	errors    int
}

// newProposal returns the proposal of a plan with the changes that the survey stored. The caller closes its scopes.
func (a *Planner) newProposal(ctx context.Context, po *v1alpha1.Plan) (*proposal, error) {
	pr := &proposal{
		Planner: a, plan: po, forced: map[string]bool{}, results: newResults(), accounts: map[lang.Address]account{},
		imports: imports{}, reads: readLimiter(&po.Spec), warned: map[string]int32{},
		writers: map[writtenConfig][]v1alpha1.Contributor{},
	}
	for c, err := range a.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return nil, err
		}
		pr.all = append(pr.all, changes.BriefOf(c))
		pr.imports.add(c) // an earlier attempt may have planned it
	}
	for _, text := range slices.Concat(po.Spec.Replace, po.Spec.Invoke) {
		if addr, err := lang.ParseAddress(text); err == nil {
			pr.forced[addr.String()] = true
		}
	}
	var err error
	if pr.shown, err = a.shownTo(ctx, po); err != nil {
		return nil, err
	}
	pr.ahead = changes.NewReadAhead(a.Ledger, po.UID)
	pr.scope = a.NewScope(po, po.Namespace, pr.plannedValue)
	pr.past = a.NewScope(po, po.Namespace, func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	pr.scope.Decoder = a.decoders.take(po.UID, a.Catalog)
	pr.past.Decoder = pr.scope.Decoder
	pr.past.Secrets = pr.scope.Secrets // both scopes hide the same secrets, but have separate ephemeral resources
	return pr, nil
}

// planAll plans all changes, and checks the rights to make them. whole is true if the survey stored a change for each
// dependant.
func (pr *proposal) planAll(ctx context.Context, whole bool) error {
	slow := &waiting{Planner: pr.Planner, plan: pr.plan, began: time.Now(), total: pr.count}
	slow.watch(ctx)
	source, err := pr.changesOf(ctx, whole)
	if err != nil {
		return err
	}
	err = changes.Each(ctx, source, pr.width(), func(ctx context.Context, i int) (bool, error) {
		if i < 0 { // a batch of objects that the worklist adds
			return pr.worklist.visit(ctx, pr.worklist.batch(ctx, i))
		}
		c, err := pr.ahead.Change(ctx, int32(i))
		if err != nil {
			return false, err
		}
		defer slow.begin(c)()
		ok, err := pr.planChange(ctx, c)
		pr.note(c)
		return ok, err
	})
	if err == nil {
		err = pr.worklist.finish()
	}
	if err == nil && pr.errors == 0 {
		err = pr.skipDependents(ctx)
	}
	if err == nil {
		err = pr.reportMissingRights(ctx)
	}
	if err == nil && pr.errors == 0 {
		err = pr.reportMissingVerbs(ctx)
	}
	return err
}

// width returns the maximum number of changes that are planned at once. A plan finds its changes while it is made, so
// all installed providers count.
func (a *Planner) width() int {
	if a.Catalog.TakesBatches(a.Catalog.Names()) {
		return session.BatchWidth
	}
	return session.Width
}

// scopeFor returns the scope for a provider's configuration: planned values for a wanted resource, else recorded
// values.
func (pr *proposal) scopeFor(wanted bool) *scope.Scope {
	if !wanted || pr.plan.Spec.RefreshOnly {
		return pr.past
	}
	return pr.scope
}

// planChange plans one change. ok is false if planning failed; its diagnostics then have the reason.
func (pr *proposal) planChange(ctx context.Context, c *ledger.Change) (ok bool, err error) {
	addr, err := lang.ParseAddress(c.Address)
	if err != nil {
		return false, workflows.Final(err)
	}
	r, err := pr.resource(ctx, c)
	if err != nil {
		return false, pr.leaveOut(ctx, c, addr, err)
	}
	if c.State == v1alpha1.ChangeSkipped {
		return false, nil
	}
	if c.Action != "" {
		return true, pr.restoreExpected(ctx, c, r)
	}
	pr.worklist.prepare(ctx, c)
	if pr.shown != "" {
		if err := pr.Ledger.LoadAnswers(ctx, pr.shown, c); err != nil {
			return false, err
		}
	}
	var e *expected
	err = retryTransient(ctx, func() error {
		return bug.Guard(pr.Logger, "plan "+c.Address, func() (err error) {
			e, err = pr.planWithProvider(ctx, c, r)
			return err
		})
	})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || !pr.plan.Spec.Speculative {
		c.Answers = nil // no plan recalls them
	}
	if _, _, ok := blockingReason(addr, err); ok {
		return false, pr.leaveOut(ctx, c, addr, err)
	}
	if err != nil {
		pr.fail(c, addr, err)
		return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	pr.expect(c, addr, e)
	c.Referrers = affected(c, e)
	c.Diagnostics = pr.scope.MaskAll(c.Diagnostics)
	pr.noteDependencyVersions(c)
	c.UpdatesRecord = changes.RecordsRefresh(c)
	if err := pr.noteReferences(ctx, c, r); err != nil {
		return false, err
	}
	return pr.save(ctx, c, addr)
}

// restarts reports whether an object that changed since the survey causes another survey.
func (pr *proposal) restarts() bool { return time.Now().Before(pr.restartUntil) }

// leaveOut takes a change out of the plan for an error that blockingReason accepts, and returns other errors. It
// returns errObjectChanged as long as a changed object causes another survey.
func (pr *proposal) leaveOut(ctx context.Context, c *ledger.Change, addr lang.Address, err error) error {
	why, d, ok := blockingReason(addr, err)
	if !ok || errors.Is(err, errObjectChanged) && pr.restarts() {
		return err
	}
	block(c, why, d)
	if be, ok := errors.AsType[*busyError](err); ok {
		c.WaitsFor = &v1alpha1.PlanReference{Name: be.intent.PlanName, UID: be.intent.Plan}
	}
	return pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// save stores a planned change. If the change is too large, it fails, and its values are dropped. A removal holds only
// what is already stored, so its size has no limit.
func (pr *proposal) save(ctx context.Context, c *ledger.Change, addr lang.Address) (ok bool, err error) {
	if c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget {
		return true, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	err = pr.Ledger.SavePlanned(ctx, pr.plan.UID, c)
	if _, tooLarge := errors.AsType[*ledger.TooLargeError](err); !tooLarge {
		return err == nil, err
	}
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.Planned, c.PlannedSensitive, c.PlannedPrivate, c.Refreshed = nil, nil, nil, nil
	c.Secrets, c.Origins, c.Discloses, c.Answers = nil, nil, nil, nil
	pr.fail(c, addr, changes.TooLarge(addr, err))
	return false, pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// reportMissingVerbs fails the plan if its creator lacks a right for its changes.
func (pr *proposal) reportMissingVerbs(ctx context.Context) error {
	missing, err := checkVerbs(ctx, pr.Sources, pr.plan, pr.all)
	if err != nil || len(missing) == 0 {
		return err
	}
	pr.errors++
	return pr.warn(ctx, missing[0])
}

// reportMissingRights fails the plan if its creator lacks a right for an added change.
func (pr *proposal) reportMissingRights(ctx context.Context) error {
	if pr.worklist == nil || len(pr.worklist.missing) == 0 {
		return nil
	}
	pr.errors++
	return pr.warn(ctx, pr.worklist.missing[0])
}

// edit changes a stored change.
func (pr *proposal) edit(ctx context.Context, i int, change func(*ledger.Change)) error {
	pr.ahead.Forget(ctx, int32(i))
	c, err := pr.Ledger.Change(ctx, pr.plan.UID, int32(i))
	if err != nil {
		return err
	}
	change(c)
	pr.note(c)
	return pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
}

// warn adds a diagnostic that is about no particular change. It stores it in the first change, unless an earlier
// attempt did.
func (pr *proposal) warn(ctx context.Context, d v1alpha1.Diagnostic) error {
	if len(pr.all) == 0 {
		return nil
	}
	d.Detail = pr.scope.Mask(d.Detail)
	return pr.edit(ctx, 0, func(c *ledger.Change) {
		if !slices.Contains(c.Diagnostics, d) {
			c.Diagnostics = append(c.Diagnostics, d)
		}
	})
}

// restoreExpected makes the planned value that an earlier attempt stored available to dependants.
func (pr *proposal) restoreExpected(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	planned, err := changes.PlannedValue(c, r.Schema.Block)
	if err != nil {
		return err
	}
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return err
	}
	e := &expected{recorded: recordedValue(&rec.State, r.Schema), planned: lang.MarkSensitive(r.Schema.Block, planned)}
	e.prior = e.recorded
	if c.Refreshed != nil {
		e.prior = recordedValue(c.Refreshed, r.Schema)
	}
	pr.expect(c, r.Address, e)
	return nil
}

// resource reads the object of a change. It returns errObjectChanged if the object changed after the survey.
func (pr *proposal) resource(ctx context.Context, c *ledger.Change) (*resource.Resource, error) {
	obj, err := pr.Objects.Get(ctx, c.Object)
	if errors.Is(err, store.ErrGone) {
		return nil, fmt.Errorf("%s: %w", c.Address, errObjectChanged)
	}
	if err != nil {
		return nil, err
	}
	r, err := pr.scope.Decoder.Decode(obj)
	if err != nil {
		return nil, err
	}
	if pr.worklist.isEdited(c) || r.Ref.Generation != c.Object.Generation || r.Deleting != c.Preconditions.Deleting ||
		pr.plan.Spec.Destroy != c.Preconditions.Destroys {
		return nil, fmt.Errorf("%s: %w", c.Address, errObjectChanged)
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

// deposedKey returns the key of the old instance of a replace that creates first. It is deterministic and differs for
// each change.
func deposedKey(planUID types.UID, index int32) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", planUID, index))
	return hex.EncodeToString(sum[:4])
}

// describeChange fills in the planned values of a change, for users and for the apply.
func describeChange(c *ledger.Change, block *schema.Block, prior instance.State, p *instance.Planned) error {
	ty := block.ImpliedType()
	planned, err := ctymsgpack.Marshal(lang.WithoutMarks(p.Value), ty)
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
	c.Planned, c.PlannedPrivate, c.Validated = planned, p.Private, p.Validated
	c.Action, c.ActionReason, c.State = p.Action, p.Reason, v1alpha1.ChangePending
	c.Before, c.After, c.AfterUnknown = rendered.Before, rendered.After, rendered.AfterUnknown
	c.BeforeSensitive, c.AfterSensitive, c.SecretsChanged = rendered.BeforeSensitive, rendered.AfterSensitive,
		rendered.SecretsChanged
	c.ReplacePaths = nil
	if p.Action == v1alpha1.ActionReplace && len(p.Replace) > 0 {
		if c.ReplacePaths, err = plan.RenderPaths(p.Replace); err != nil {
			return fmt.Errorf("render change of %s: %w", c.Address, err)
		}
	}
	return nil
}
