package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// History configures how many finished plans are kept.
type History struct {
	// Limit is the number of finished plans that a namespace keeps; 0 keeps all.
	Limit int
	// Age is the time for which a finished plan is kept; 0 means no limit.
	Age time.Duration
}

// prunedAtOnce is the number of plans of a namespace that are removed before other namespaces are processed.
const prunedAtOnce = 20

// outdated returns the finished plans to remove, oldest first. next is the time until another plan becomes too old, or
// 0.
func (h History) outdated(plans []*v1alpha1.Plan, now time.Time) (remove []*v1alpha1.Plan, next time.Duration) {
	var finished []*v1alpha1.Plan
	for _, p := range plans {
		if p.Status.FinishedAt != nil && p.DeletionTimestamp == nil {
			finished = append(finished, p)
		}
	}
	// finishedAt has a precision of a second.
	slices.SortFunc(finished, func(a, b *v1alpha1.Plan) int {
		return cmp.Or(a.Status.FinishedAt.Compare(b.Status.FinishedAt.Time), compareRequests(a, b))
	})
	for i, p := range finished {
		left := h.Age - now.Sub(p.Status.FinishedAt.Time)
		switch {
		case h.Limit > 0 && i < len(finished)-h.Limit, h.Age > 0 && left <= 0:
			remove = append(remove, p)
		case h.Age > 0 && (next == 0 || left < next):
			next = left
		}
	}
	return remove, next
}

// prune removes finished plans that exceed the limits. Their records remain.
func (p *Plans) prune(ctx context.Context, limits History, b *bindings, namespace string,
	plans []*v1alpha1.Plan) error {
	remove, next := limits.outdated(plans, time.Now())
	removed := 0
	for _, obj := range remove {
		if slices.Contains(obj.Finalizers, v1alpha1.FinalizerRecord) {
			continue // its update will trigger another check when the record is complete
		}
		if open, err := p.uncertain(ctx, b, obj.UID); err != nil {
			return err
		} else if open {
			continue
		}
		if removed++; removed > prunedAtOnce {
			next = time.Second
			break
		}
		opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(obj.UID),
			ResourceVersion: new(obj.ResourceVersion)}}
		err := p.Client.Delete().Namespace(namespace).Resource("plans").Name(obj.Name).Body(&opts).Do(ctx).Error()
		if apierrors.IsConflict(err) {
			next = time.Second // the plan was written in the meantime, which need not trigger a check
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove plan %q, which is no longer kept: %w", obj.Name, err)
		}
	}
	if next > 0 {
		p.namespaces.work.AddAfter(cache.ObjectName{Name: namespace}, next)
	}
	return nil
}

// uncertain reports whether the outcome of a plan's change is unknown. The plan explains that change, so the server
// keeps the plan until a user has checked the infrastructure.
func (p *Plans) uncertain(ctx context.Context, b *bindings, plan types.UID) (bool, error) {
	from := b.uncertain[plan] // the index at which it was found last time
	for c, err := range p.Ledger.Changes(ctx, plan, from) {
		if err != nil {
			return false, err
		}
		if c.State != v1alpha1.ChangeUnknown && c.State != v1alpha1.ChangeFailed && c.State != v1alpha1.ChangeRunning {
			continue
		}
		rec, err := p.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return false, err
		}
		if rec.Intent.Of(plan, c.Index) {
			b.uncertain[plan] = c.Index
			return true, nil
		}
	}
	delete(b.uncertain, plan)
	return false, nil
}

// dropOrphans queues the removal of the changes of plans that were deleted while the server was down. It must run
// before a plan begins, so that each plan with changes is either in the cache or deleted.
func (p *Plans) dropOrphans(ctx context.Context) error {
	known := map[types.UID]bool{}
	for _, obj := range p.informer.GetStore().List() {
		known[obj.(*v1alpha1.Plan).UID] = true
	}
	for uid, err := range p.Ledger.Plans(ctx) {
		if err != nil {
			return err
		}
		if !known[uid] {
			p.dropped.work.Add(deletedPlan(uid))
		}
	}
	return nil
}

// deletedPlan is the UID of a Plan that no longer exists.
type deletedPlan types.UID

func (d deletedPlan) String() string { return string(d) }

// drop removes the changes and the uploaded objects of a deleted plan.
func (p *Plans) drop(ctx context.Context, plan deletedPlan) error {
	return errors.Join(p.Ledger.DropPlan(ctx, types.UID(plan)), p.Ledger.DropDocuments(ctx, types.UID(plan)))
}

// recorded are the changes of a plan in its record.
type recorded struct {
	list []v1alpha1.PlanRecordChange
	// more is the number of changes that are not in the list.
	more int32
	// applied counts the changes that were made.
	applied v1alpha1.PlanSummary
}

// recordedChanges returns the changes of a plan for its record. Changes that were not applied come first.
func recordedChanges(ctx context.Context, l *ledger.Ledger, plan types.UID) (out recorded, err error) {
	type numbered struct {
		index int32
		v1alpha1.PlanRecordChange
	}
	var made, open []numbered
	total := 0
	for c, err := range l.Changes(ctx, plan, 0) {
		if err != nil {
			return out, err
		}
		if c.Action == v1alpha1.ActionNoOp && c.Importing == nil && c.PreviousAddress == "" && !c.Checks {
			continue
		}
		total++
		to := &open
		if c.State == v1alpha1.ChangeDone {
			to = &made
			out.applied.Count(&c.PlanChange)
		}
		if len(*to) < v1alpha1.MaxRecordedChanges {
			*to = append(*to, numbered{c.Index,
				v1alpha1.PlanRecordChange{Address: c.Address, Deposed: c.Deposed, Action: c.Action, Outcome: c.State}})
		}
	}
	kept := append(open, made[:min(len(made), v1alpha1.MaxRecordedChanges-len(open))]...)
	slices.SortFunc(kept, func(a, b numbered) int { return int(a.index - b.index) })
	for _, c := range kept {
		out.list = append(out.list, c.PlanRecordChange)
	}
	out.more = int32(total - len(kept))
	return out, nil
}
