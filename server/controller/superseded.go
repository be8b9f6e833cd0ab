package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
)

// This file ends plans that wait for approval and were superseded. A later plan with the same spec supersedes a plan,
// and so does an applied plan that changed one of its objects.

// waits reports whether a plan waits for a user's decision. A plan with automatic approval waits only if changes of it
// are blocked.
func waits(p *v1alpha1.Plan) bool {
	s := &p.Status
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionPlanned) && s.Approval == nil &&
		s.Cancel == nil && !p.Ended() &&
		!p.Spec.Speculative && (!p.ApprovesItself() || s.StalledFor() == v1alpha1.ReasonBlocked) &&
		p.DeletionTimestamp == nil
}

// supersedes reports whether a plan supersedes earlier ones with the same spec, because it has the current changes.
func supersedes(p *v1alpha1.Plan) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) && !p.Spec.Speculative &&
		(p.Status.Cancel == nil || p.Status.Approval != nil) &&
		(ready == nil || ready.Reason != v1alpha1.ReasonDeferred)
}

// applied reports whether the apply of a plan has ended, with any outcome.
func applied(p *v1alpha1.Plan) bool {
	return p.Status.FinishedAt != nil && meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionApplied) != nil
}

// scope returns a key that is equal for plans of the same resources with the same options. It ignores approval,
// timestamp and shown.
func scope(p *v1alpha1.Plan) string {
	spec := p.Spec
	spec.Approval, spec.Timestamp = "", nil
	spec.Shown = nil
	for _, set := range []*[]string{&spec.Targets, &spec.Exclude, &spec.Replace, &spec.Invoke} {
		*set = slices.Sorted(slices.Values(*set))
	}
	key, _ := json.Marshal(spec) // the spec has only strings, lists and maps
	return string(key)
}

// later reports whether plan a was requested after plan b.
func later(a, b *v1alpha1.Plan) bool { return compareRequests(a, b) > 0 }

// compareRequests compares the times at which two plans were requested. The creationTimestamp has a precision of a
// second only, and every write of a status changes the resourceVersion.
func compareRequests(a, b *v1alpha1.Plan) int { return requestedAt(a).Compare(requestedAt(b)) }

func requestedAt(p *v1alpha1.Plan) time.Time {
	if at := p.Status.RequestedAt; at != nil {
		return at.Time
	}
	return p.CreationTimestamp.Time
}

// superseded maps each waiting plan that a later plan with the same spec superseded to the latest such plan.
func superseded(plans []*v1alpha1.Plan) map[*v1alpha1.Plan]*v1alpha1.Plan {
	latest := latestPlans(plans)
	out := map[*v1alpha1.Plan]*v1alpha1.Plan{}
	for _, p := range plans {
		if !waits(p) {
			continue
		}
		if l := latest[scope(p)]; l != p && later(l, p) && mayReplace(l, p) {
			out[p] = l
		}
	}
	return out
}

// mayReplace reports whether a later plan may supersede a waiting one. If users have approved the waiting plan, only a
// plan of its requester or of one of these users may. Otherwise each author of plans could undo their approvals.
func mayReplace(later, p *v1alpha1.Plan) bool {
	if len(p.Status.Approvals) == 0 {
		return true
	}
	by := later.Status.RequestedBy
	same := func(who *v1alpha1.Identity) bool { return by != nil && who != nil && by.Within(who) }
	return same(p.Status.RequestedBy) || slices.ContainsFunc(p.Status.Approvals,
		func(a v1alpha1.PlanApproval) bool { return same(a.By) })
}

// latestPlans returns the latest plan of each scope that supersedes others.
func latestPlans(plans []*v1alpha1.Plan) map[string]*v1alpha1.Plan {
	latest := map[string]*v1alpha1.Plan{} // by scope
	for _, p := range plans {
		if !supersedes(p) {
			continue
		}
		if key := scope(p); latest[key] == nil || later(p, latest[key]) {
			latest[key] = p
		}
	}
	return latest
}

// redirectFor is the time after the end of a superseded plan during which its message is updated to name the current
// plan. Users may still work with the superseded plan.
const redirectFor = 10 * time.Minute

// outdatedSuccessors maps each recently superseded plan whose message names a plan that is superseded itself to the
// current plan.
func outdatedSuccessors(plans []*v1alpha1.Plan, now time.Time) map[*v1alpha1.Plan]*v1alpha1.Plan {
	latest := latestPlans(plans)
	out := map[*v1alpha1.Plan]*v1alpha1.Plan{}
	for _, p := range plans {
		if p.Status.StalledFor() != v1alpha1.ReasonSuperseded || p.Status.Approval != nil ||
			p.Status.FinishedAt == nil || now.Sub(p.Status.FinishedAt.Time) > redirectFor {
			continue
		}
		message := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled).Message
		if l := latest[scope(p)]; l != nil && waits(l) && later(l, p) && message != supersededBy(l) {
			out[p] = l
		}
	}
	return out
}

// supersededBy returns the message of a plan that p superseded.
func supersededBy(p *v1alpha1.Plan) string {
	switch {
	case waits(p), p.Status.Approval == nil && !p.Ended():
		return fmt.Sprintf("Superseded by plan %s, a later plan of the same resources. %s", p.Name, toRead(p))
	case p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved:
		return fmt.Sprintf("Superseded by plan %s, which was approved. %s", p.Name, toRead(p))
	case meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady):
		return fmt.Sprintf("Superseded by plan %s, which has no changes.", p.Name)
	}
	return fmt.Sprintf("Superseded by plan %s, which has ended; make a new plan.", p.Name)
}

// toRead tells how to read a plan.
func toRead(p *v1alpha1.Plan) string {
	return fmt.Sprintf("To read it: kubectl hykube show %s -n %s.", p.Name, p.Namespace)
}

// bindings indexes the objects that the waiting plans of one namespace change. It is built on first use, from one read
// of each waiting plan's changes. An apply then needs one lookup per change, however many plans wait.
type bindings struct {
	seed     maphash.Seed
	byObject map[uint64][]binding // by the hash of the object's UID
	plans    map[types.UID]*boundPlan
	gone     int // number of bindings of plans that no longer wait
	// done holds the applied plans whose changes were processed.
	done map[types.UID]bool
	// uncertain maps finished plans with a change of unknown outcome to the index of that change.
	uncertain map[types.UID]int32
}

// binding is one change of a waiting plan to an object.
type binding struct {
	plan   *boundPlan
	change int32
}

// boundPlan is a waiting plan with bindings.
type boundPlan struct {
	uid  types.UID
	n    int // number of its bindings
	gone bool
}

func newBindings() *bindings {
	return &bindings{seed: maphash.MakeSeed(), byObject: map[uint64][]binding{}, plans: map[types.UID]*boundPlan{},
		done: map[types.UID]bool{}, uncertain: map[types.UID]int32{}}
}

// keep removes plans that no longer exist.
func (b *bindings) keep(plans []*v1alpha1.Plan) {
	exists := map[types.UID]bool{}
	for _, p := range plans {
		exists[p.UID] = true
	}
	gone := func(uid types.UID) bool { return !exists[uid] }
	maps.DeleteFunc(b.done, func(uid types.UID, _ bool) bool { return gone(uid) })
	maps.DeleteFunc(b.uncertain, func(uid types.UID, _ int32) bool { return gone(uid) })
}

func (b *bindings) hash(uid types.UID) uint64 { return maphash.String(b.seed, string(uid)) }

// add reads the changes of a waiting plan.
func (b *bindings) add(ctx context.Context, l *ledger.Ledger, plan types.UID) error {
	if b.plans[plan] != nil {
		return nil
	}
	to := &boundPlan{uid: plan}
	b.plans[plan] = to // an error below removes it again
	for c, err := range l.Changes(ctx, plan, 0) {
		if err != nil {
			b.remove(plan)
			return err
		}
		if !binds(c) {
			continue
		}
		for _, uid := range objects(c) {
			h := b.hash(uid)
			b.byObject[h] = append(b.byObject[h], binding{to, c.Index})
			to.n++
		}
	}
	return nil
}

// remove removes a plan that no longer waits. Its bindings are removed once more than half of all bindings are
// obsolete.
func (b *bindings) remove(plan types.UID) {
	to := b.plans[plan]
	if to == nil {
		return
	}
	delete(b.plans, plan)
	to.gone = true
	b.gone += to.n
	live := 0
	for _, p := range b.plans {
		live += p.n
	}
	if b.gone <= live {
		return
	}
	b.gone = 0
	for h, list := range b.byObject {
		if list = slices.DeleteFunc(list, func(x binding) bool { return x.plan.gone }); len(list) == 0 {
			delete(b.byObject, h)
		} else {
			b.byObject[h] = slices.Clip(list)
		}
	}
}

// binds reports whether a change affects an object with a recorded state.
func binds(c *ledger.Change) bool {
	return (c.Mode == "" || c.Mode == v1alpha1.ModeManaged) &&
		(c.Action != v1alpha1.ActionNoOp || c.Importing != nil || c.PreviousAddress != "" || c.Checks)
}

// changedState reports whether an applied change may have changed the recorded state of its object.
func changedState(c *ledger.Change) bool {
	switch {
	case c.State == v1alpha1.ChangeSkipped, c.State == v1alpha1.ChangeStale:
		return c.HalfDone
	case binds(c):
		return true
	}
	return c.Refreshed != nil // the apply recorded the values that were read
}

// objects returns the UIDs of the objects whose records a change depends on.
func objects(c *ledger.Change) []types.UID {
	if c.Preconditions.From != nil {
		return []types.UID{c.Object.UID, c.Preconditions.From.UID}
	}
	return []types.UID{c.Object.UID}
}

// stateChanged reports whether the recorded state that a change depends on has changed since planning.
func stateChanged(ctx context.Context, l *ledger.Ledger, c *ledger.Change) (bool, error) {
	rec, err := l.Instance(ctx, c.Object)
	if err != nil {
		return false, err
	}
	state := rec.Digest()
	if c.Deposed != "" {
		state = "none"
		if old := rec.FindDeposed(c.Deposed); old != nil {
			state = old.Digest()
		}
	}
	if state != c.Preconditions.State || c.Preconditions.From == nil {
		return state != c.Preconditions.State, nil
	}
	from, err := l.Instance(ctx, *c.Preconditions.From)
	return err == nil && from.Digest() != c.Preconditions.FromState, err
}

// endDependents calls end for each waiting plan that depends on a recorded state which the applied plan changed.
func (b *bindings) endDependents(ctx context.Context, l *ledger.Ledger, plan types.UID,
	end func(plan types.UID, address string) error) error {
	for c, err := range l.Changes(ctx, plan, 0) {
		if err != nil {
			return err
		}
		if !changedState(c) {
			continue
		}
		for _, uid := range objects(c) {
			for _, x := range slices.Clone(b.byObject[b.hash(uid)]) {
				if x.plan.gone {
					continue
				}
				waiting, err := l.Change(ctx, x.plan.uid, x.change)
				if errors.Is(err, ledger.ErrNotFound) {
					continue // its plan is being removed
				}
				if err != nil {
					return err
				}
				if changed, err := stateChanged(ctx, l, waiting); err != nil {
					return err
				} else if !changed {
					continue
				}
				if err := end(x.plan.uid, waiting.Address); err != nil {
					return err
				}
				b.remove(x.plan.uid)
			}
		}
	}
	return nil
}

// endSuperseded ends the superseded waiting plans of a namespace.
func (p *Plans) endSuperseded(ctx context.Context, b *bindings, plans []*v1alpha1.Plan) error {
	waiting := map[types.UID]*v1alpha1.Plan{}
	successors := superseded(plans)
	for _, obj := range plans {
		if by := successors[obj]; by != nil {
			if err := p.supersede(ctx, obj, supersededBy(by)); err != nil {
				return err
			}
		} else if waits(obj) {
			waiting[obj.UID] = obj
		}
	}
	for obj, by := range outdatedSuccessors(plans, time.Now()) {
		if err := p.redirect(ctx, obj, supersededBy(by)); err != nil {
			return err
		}
	}
	for uid := range b.plans {
		if waiting[uid] == nil {
			b.remove(uid)
		}
	}
	for _, obj := range plans {
		if !applied(obj) || b.done[obj.UID] {
			continue
		}
		concerned := 0
		for uid, w := range waiting {
			// Times have a precision of a second. The ledger shows whether a state really changed.
			if w.Status.PlannedAt == nil || !w.Status.PlannedAt.After(obj.Status.FinishedAt.Time) {
				if err := b.add(ctx, p.Ledger, uid); err != nil {
					return err
				}
				concerned++
			}
		}
		if concerned > 0 {
			if err := b.endDependents(ctx, p.Ledger, obj.UID, func(uid types.UID, address string) error {
				message := fmt.Sprintf("Plan %s changed %s after this plan was made; make a new plan.", obj.Name,
					address)
				return p.supersede(ctx, waiting[uid], message)
			}); err != nil {
				return err
			}
		}
		b.done[obj.UID] = true
	}
	return nil
}

// supersede marks a plan as superseded, unless a user has decided on it in the meantime. The plan's own reconciliation
// ends it.
func (p *Plans) supersede(ctx context.Context, obj *v1alpha1.Plan, message string) error {
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if s.Approval != nil || s.Cancel != nil || s.Ended() {
			return
		}
		condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonSuperseded, message)
	})
	return store.IgnoreGone(err)
}

// redirect changes the message of a superseded plan so that it names another plan.
func (p *Plans) redirect(ctx context.Context, obj *v1alpha1.Plan, message string) error {
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if s.StalledFor() == v1alpha1.ReasonSuperseded && s.Approval == nil {
			condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonSuperseded, message)
		}
	})
	return store.IgnoreGone(err)
}
