package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"
)

// Plans starts the workflows of Plan objects. What is under way is in the objects, so that a Temporal that lost its database, or
// never heard of a plan, is told again at the next start.
type Plans struct {
	Client   rest.Interface
	Status   activities.Plans
	Temporal client.Client
	Ledger   *ledger.Ledger
	// Settle takes back on the objects of a plan that it waits for approval.
	Settle func(context.Context, workflows.Plan) error
	Logger *slog.Logger

	informer cache.SharedIndexInformer
	queue    *queue

	mu sync.Mutex
	// begun holds what this process has asked Temporal for, by workflow ID.
	begun map[string]bool
	// plans holds the plans that this process has seen: an object of the same name may be another plan.
	plans map[cache.ObjectName]workflows.Plan
}

func (p *Plans) start() {
	p.begun, p.plans = map[string]bool{}, map[cache.ObjectName]workflows.Plan{}
	p.queue = newQueue("plan", p.Logger, p.reconcile)
	p.informer = informer(p.Client, "plans", &v1alpha1.Plan{}, p.queue)
}

func (p *Plans) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, ok, err := lookup[*v1alpha1.Plan](p.informer, name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	old, known := p.plans[name]
	p.mu.Unlock()
	if known && (!ok || string(obj.UID) != old.UID) {
		if err := p.forget(ctx, name, old); err != nil {
			return err
		}
	}
	if !ok || obj.DeletionTimestamp != nil {
		return nil
	}
	ref := workflows.Plan{Namespace: obj.Namespace, Name: obj.Name, UID: string(obj.UID)}
	p.mu.Lock()
	p.plans[name] = ref
	p.mu.Unlock()
	planned := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionPlanned)
	switch {
	case obj.Status.FinishedAt != nil:
		return nil
	case rejected(obj):
		return p.end(ctx, ref)
	case obj.Spec.Speculative && obj.Status.UploadedObjects == nil:
		return p.awaitObjects(ctx, name, obj)
	case planned == nil || planned.Reason == v1alpha1.ReasonPlanning:
		return p.begin(ctx, ref, ref.PlanID(), workflows.PlanName, workflows.MakePlan, &v1alpha1.PlanRuns{Plan: ref.PlanID()})
	case meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionApproved):
		if err := p.begin(ctx, ref, ref.ApplyID(), workflows.ApplyName, workflows.ApplyPlan, &v1alpha1.PlanRuns{Plan: ref.PlanID(), Apply: ref.ApplyID()}); err != nil {
			return err
		}
		if obj.Status.Cancel != nil {
			return p.signal(ctx, ref.ApplyID())
		}
	}
	return nil
}

// uploadTimeout bounds how long a speculative plan waits for its objects.
const uploadTimeout = 15 * time.Minute

// awaitObjects ends a speculative plan whose objects never came: the client was interrupted, say.
func (p *Plans) awaitObjects(ctx context.Context, name cache.ObjectName, obj *v1alpha1.Plan) error {
	if left := time.Until(obj.CreationTimestamp.Add(uploadTimeout)); left > 0 {
		p.queue.work.AddAfter(name, left)
		return nil
	}
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if s.UploadedObjects != nil {
			return
		}
		message := fmt.Sprintf("Its objects were not complete within %s. Make a new plan.", uploadTimeout)
		s.ObservedGeneration, s.FinishedAt = obj.Generation, new(metav1.Now())
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, message)
		condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonPlanFailed, message)
	})
	if err != nil && !errors.Is(err, activities.ErrGone) {
		return err
	}
	return p.Ledger.DropDocuments(ctx, obj.UID)
}

// begin starts a workflow, unless it runs already.
func (p *Plans) begin(ctx context.Context, ref workflows.Plan, id, name string, workflow any, runs *v1alpha1.PlanRuns) error {
	p.mu.Lock()
	begun := p.begun[id]
	p.mu.Unlock()
	if begun {
		return nil
	}
	_, err := p.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(workflows.SearchPlan).ValueSet(ref.Name),
			temporal.NewSearchAttributeKeyKeyword(workflows.SearchNamespace).ValueSet(ref.Namespace),
		),
		StaticSummary: fmt.Sprintf("%s %s/%s", name, ref.Namespace, ref.Name),
	}, name, ref)
	if _, ran := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); err != nil && !ran {
		return fmt.Errorf("start workflow %q: %w", id, err)
	}
	err = p.Status.UpdateStatus(ctx, ref.Namespace, ref.Name, uid(ref), func(s *v1alpha1.PlanStatus) { s.Runs = runs })
	if err != nil && !errors.Is(err, activities.ErrGone) {
		return err
	}
	p.mu.Lock()
	p.begun[id] = true
	p.mu.Unlock()
	return nil
}

func (p *Plans) signal(ctx context.Context, id string) error {
	key := id + " cancel"
	p.mu.Lock()
	sent := p.begun[key]
	p.mu.Unlock()
	if sent {
		return nil
	}
	err := p.Temporal.SignalWorkflow(ctx, id, "", workflows.SignalCancel, nil)
	if _, over := errors.AsType[*serviceerror.NotFound](err); err != nil && !over {
		return fmt.Errorf("signal workflow %q: %w", id, err)
	}
	p.mu.Lock()
	p.begun[key] = true
	p.mu.Unlock()
	return nil
}

// rejected says whether a plan will not be applied, because a person decided so.
func rejected(obj *v1alpha1.Plan) bool {
	stalled := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && (stalled.Reason == v1alpha1.ReasonDiscarded || stalled.Reason == v1alpha1.ReasonCancelled)
}

// end settles the objects of a plan that ended without being applied: it was discarded, or cancelled before it was approved.
func (p *Plans) end(ctx context.Context, ref workflows.Plan) error {
	if err := p.Settle(ctx, ref); err != nil {
		return fmt.Errorf("settle the objects of plan %q: %w", ref.Name, err)
	}
	err := p.Status.UpdateStatus(ctx, ref.Namespace, ref.Name, uid(ref), func(s *v1alpha1.PlanStatus) {
		if s.FinishedAt == nil {
			s.FinishedAt = new(metav1.Now())
		}
	})
	if errors.Is(err, activities.ErrGone) {
		return nil
	}
	return err
}

// forget removes what is stored of a plan whose object is gone.
func (p *Plans) forget(ctx context.Context, name cache.ObjectName, ref workflows.Plan) error {
	if err := p.Settle(ctx, ref); err != nil {
		p.Logger.WarnContext(ctx, "settle the objects of a deleted plan", "plan", ref.Name, "namespace", ref.Namespace, "error", err)
	}
	if err := errors.Join(p.Ledger.DropPlan(ctx, uid(ref)), p.Ledger.DropDocuments(ctx, uid(ref))); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.plans, name)
	delete(p.begun, ref.PlanID())
	delete(p.begun, ref.ApplyID())
	delete(p.begun, ref.ApplyID()+" cancel")
	return nil
}
