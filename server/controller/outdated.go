package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
)

// This file marks waiting plans as stale when a user writes or deletes one of their objects, or a Secret of their
// ProviderConfigs, and when their requester has lost the rights. The approval checks each
// change again, and can leave out the stale ones.

// maxWritten is the maximum number of written objects of a namespace that wait for the plans being made.
const maxWritten = 1024

// receiveWritten queues the namespaces of written objects in which a plan awaits approval or is being made, until ctx
// ends.
func (p *Plans) receiveWritten(ctx context.Context) {
	for {
		select {
		case w := <-p.Written:
			p.noteWritten(w)
		case <-ctx.Done():
			return
		}
	}
}

func (p *Plans) noteWritten(w kinds.Written) {
	if !slices.ContainsFunc(p.in(w.Namespace),
		func(plan *v1alpha1.Plan) bool { return awaitsApproval(plan) || isBeingMade(plan) }) {
		return
	}
	p.mu.Lock()
	if p.written[w.Namespace] == nil {
		p.written[w.Namespace] = map[types.UID]kinds.Written{}
	}
	if len(p.written[w.Namespace]) < maxWritten {
		p.written[w.Namespace][w.UID] = w
	}
	p.mu.Unlock()
	p.namespaces.work.Add(cache.ObjectName{Name: w.Namespace})
}

// markStale marks the plans of a namespace that await approval and are bound to an object that was written since they
// were made.
func (p *Plans) markStale(ctx context.Context, b *bindings, namespace string, plans []*v1alpha1.Plan) error {
	p.mu.Lock()
	written := maps.Clone(p.written[namespace])
	if !slices.ContainsFunc(plans, isBeingMade) {
		delete(p.written, namespace)
	}
	p.mu.Unlock()
	if len(written) == 0 {
		return nil
	}
	awaiting := map[types.UID]*v1alpha1.Plan{}
	for _, plan := range plans {
		if !awaitsApproval(plan) {
			continue
		}
		if err := b.add(ctx, p.Ledger, plan.UID); err != nil {
			return err
		}
		awaiting[plan.UID] = plan
	}
	for _, w := range written {
		for _, plan := range b.outdated(ctx, p.Ledger, w) {
			if awaiting[plan] == nil {
				continue
			}
			if err := p.reportStale(ctx, awaiting[plan], changedText(awaiting[plan], w.Object)); err != nil {
				return err
			}
			delete(awaiting, plan) // it is marked once
		}
	}
	return nil
}

// noteReconfigured queues a namespace in which a plan awaits approval or is being made, because a Secret of a
// ProviderConfig was written.
func (p *Plans) noteReconfigured(namespace, config string) {
	if !slices.ContainsFunc(p.in(namespace),
		func(plan *v1alpha1.Plan) bool { return awaitsApproval(plan) || isBeingMade(plan) }) {
		return
	}
	p.mu.Lock()
	if p.reconfigured[namespace] == nil {
		p.reconfigured[namespace] = map[string]bool{}
	}
	p.reconfigured[namespace][config] = true
	p.mu.Unlock()
	p.namespaces.work.Add(cache.ObjectName{Name: namespace})
}

// markReconfigured marks the plans of a namespace that await approval, and that were made with other Secrets of a
// ProviderConfig. Values that rotate do not count.
func (p *Plans) markReconfigured(ctx context.Context, namespace string, plans []*v1alpha1.Plan) error {
	p.mu.Lock()
	names := slices.Sorted(maps.Keys(p.reconfigured[namespace]))
	if !slices.ContainsFunc(plans, isBeingMade) {
		delete(p.reconfigured, namespace)
	}
	p.mu.Unlock()
	for _, plan := range plans {
		for _, name := range names {
			if !awaitsApproval(plan) {
				continue
			}
			other, err := p.OtherSecrets(ctx, plan, name)
			if err != nil {
				return err
			}
			if !other {
				continue
			}
			if err := p.reportStale(ctx, plan,
				changedText(plan, fmt.Sprintf("A Secret of the ProviderConfig %q", name))); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// outdated returns the waiting plans with a change of an older generation of a written object.
func (b *bindings) outdated(ctx context.Context, l *ledger.Ledger, w kinds.Written) []types.UID {
	var out []types.UID
	for _, x := range b.byObject[b.hash(w.UID)] {
		if x.plan.gone {
			continue
		}
		c, err := l.Change(ctx, x.plan.uid, x.change)
		if err != nil || c.Object.UID != w.UID { // the plan is being removed, or moves the record of the object
			continue
		}
		if c.Object.Generation < w.Generation || w.Generation == 0 && !c.Preconditions.Deleting {
			out = append(out, x.plan.uid)
		}
	}
	return out
}

// reportStale sets the condition Ready of a plan that awaits approval to Stale.
func (p *Plans) reportStale(ctx context.Context, plan *v1alpha1.Plan, message string) error {
	err := p.Status.UpdateStatus(ctx, plan.Namespace, plan.Name, plan.UID, func(s *v1alpha1.PlanStatus) {
		noteStale(&v1alpha1.Plan{ObjectMeta: plan.ObjectMeta, Spec: plan.Spec, Status: *s}, message, &s.Conditions)
		if reason, _ := readyOf(&v1alpha1.Plan{Status: *s}); reason == v1alpha1.ReasonStale && s.StaleAt == nil {
			s.StaleAt = new(metav1.Now())
		}
	})
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	return err
}

// noteStale sets the condition Ready of a plan that still awaits approval.
func noteStale(plan *v1alpha1.Plan, message string, conditions *[]metav1.Condition) {
	if awaitsApproval(plan) {
		condition.Waiting(conditions, plan.Generation, v1alpha1.ReasonStale, message)
	}
}

// changedText is the message of a plan one of whose objects was written.
func changedText(plan *v1alpha1.Plan, object string) string {
	return fmt.Sprintf("%s was changed or deleted after planning. Make a new plan. To apply only the changes that are not stale: %s --partial.",
		object, v1alpha1.ApproveCommand(plan.Name, plan.Namespace, plan.Status.Digest))
}

// rightsCheck is the time after which the server looks again whether the requester of a waiting plan still has the
// rights. Nothing tells the controller of a change of the token file or of a RoleBinding.
const rightsCheck = 30 * time.Second

// markUnauthorized marks a plan that awaits approval, and that no approval can apply, because its requester lost a
// right.
func (p *Plans) markUnauthorized(ctx context.Context, name cache.ObjectName, plan *v1alpha1.Plan) error {
	if p.LostRights == nil {
		return nil
	}
	p.queue.work.AddAfter(name, rightsCheck)
	why, err := p.LostRights(ctx, plan)
	if err != nil || why == "" {
		return err
	}
	return p.reportStale(ctx, plan,
		diag.Sentence(why)+" No approval can apply the plan. Give the right back, or make a new plan as another user.")
}

// awaitsApproval reports whether a plan waits for approval and its condition Ready has the reason AwaitingApproval.
func awaitsApproval(p *v1alpha1.Plan) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return waits(p) && ready != nil && ready.Reason == v1alpha1.ReasonAwaitingApproval
}

// isBeingMade reports whether a plan will await approval when it is made.
func isBeingMade(p *v1alpha1.Plan) bool {
	return !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) && !p.Ended() &&
		p.Status.Cancel == nil && !p.Spec.Speculative
}
