package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/workflows"
)

// Plans starts the workflows of Plan objects. The objects hold the progress. So if Temporal has lost its database, the
// next start of the server starts the workflows again.
type Plans struct {
	Client   rest.Interface
	Status   store.Plans
	Temporal client.Client
	Ledger   *ledger.Ledger
	Logger   *slog.Logger
	History  History
	// Written delivers the objects that were written or deleted. It may be nil.
	Written <-chan kinds.Written
	// MaxRunning is the maximum number of plans that are made at once, and of those that are applied at once; 0 means
	// 64.
	MaxRunning int
	// Terminating reports whether a namespace is being deleted.
	Terminating func(ctx context.Context, namespace string) (bool, error)
	// NamespacePlans is the maximum number of plans of one namespace that are made at once; 0 means no other limit than
	// MaxRunning.
	NamespacePlans int
	// Judge evaluates the current policies for a plan that waits for a decision, with the approvals that it has.
	Judge func(ctx context.Context, plan *v1alpha1.Plan) (*policy.Verdict, error)
	// OtherSecrets reports whether a plan was made with other values of a ProviderConfig's Secrets, apart from those
	// that rotate.
	OtherSecrets func(ctx context.Context, plan *v1alpha1.Plan, config string) (bool, error)
	// LostRights returns why no approval can apply a plan whose requester has lost the rights; "" if the requester has
	// them. Nil checks nothing.
	LostRights func(ctx context.Context, plan *v1alpha1.Plan) (string, error)
	// Hold holds approved plans that another server may apply; the zero value holds none.
	Hold changes.Hold

	informer cache.SharedIndexInformer
	queue    *queue[cache.ObjectName]
	// namespaces queues the namespaces in which a plan was created or ended.
	namespaces *queue[cache.ObjectName]
	dropped    *queue[deletedPlan]
	// stacks are the stacks that make plans; nil without any.
	stacks *Stacks

	// making and applying limit the plans that are made or applied at once.
	making, applying *fair.Slots

	mu     sync.Mutex
	judged judgments
	// slots holds the slots of running plans, and the requests of plans that wait for a slot.
	slots map[types.UID]phaseSlot
	// bindings holds the objects of waiting plans, by namespace.
	bindings map[string]*bindings
	// written holds the objects that were written while a plan awaits approval, by namespace and UID.
	written map[string]map[types.UID]kinds.Written
	// reconfigured holds the ProviderConfigs of a namespace whose Secrets were written meanwhile.
	reconfigured map[string]map[string]bool
	// stages holds the last known stage of each plan.
	stages map[types.UID]stage
	// requests holds the keys of the requests that this process has sent. started holds the times at which it last
	// started workflows, by their IDs.
	requests map[string]bool
	started  map[string]time.Time
	// plans holds the plans that this process has seen, since a new plan may have the name of a deleted one.
	plans map[cache.ObjectName]workflows.Plan
}

func (p *Plans) start() {
	p.MaxRunning = cmp.Or(p.MaxRunning, maxRunning)
	p.making, p.applying = fair.NewLimited(p.MaxRunning, p.NamespacePlans), fair.New(p.MaxRunning)
	p.slots = map[types.UID]phaseSlot{}
	p.requests, p.started, p.plans = map[string]bool{}, map[string]time.Time{}, map[cache.ObjectName]workflows.Plan{}
	p.bindings, p.stages, p.written = map[string]*bindings{}, map[types.UID]stage{},
		map[string]map[types.UID]kinds.Written{}
	p.queue = newQueue("plan", p.Logger, p.reconcile)
	p.namespaces = newQueue("plans of namespace", p.Logger, p.reconcileNamespace)
	p.dropped = newQueue("changes of deleted plan", p.Logger, p.drop)
	p.informer = informer(p.Client, "plans", &v1alpha1.Plan{}, p.queue)
	p.reconfigured = map[string]map[string]bool{}
	p.followPolicies()
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
		p.forget(name, old)
	}
	if !ok {
		return nil
	}
	if slices.Contains(obj.Finalizers, v1alpha1.FinalizerRecord) {
		if err := p.record(ctx, obj); err != nil {
			return err
		}
	}
	ref := workflows.Plan{Namespace: obj.Namespace, Name: obj.Name, UID: string(obj.UID)}
	p.mu.Lock()
	p.plans[name] = ref
	p.mu.Unlock()
	p.noteStage(obj)
	if !runs(obj) {
		p.releaseSlot(obj.UID)
	}
	if obj.DeletionTimestamp != nil && !obj.Ended() {
		return nil
	}
	planned := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionPlanned)
	switch {
	case obj.Status.FinishedAt != nil:
		return nil
	case obj.Ended():
		return p.end(ctx, ref)
	case obj.Spec.Speculative && obj.Status.UploadedObjects == nil:
		return p.awaitObjects(ctx, name, obj)
	case planned == nil || planned.Reason == v1alpha1.ReasonPlanning || obj.ApprovalFollows():
		if ok, err := p.admit(ctx, name, obj, p.making); !ok || err != nil {
			return err
		}
		p.queue.work.AddAfter(name, runCheck)
		return p.begin(ctx, obj, ref, ref.PlanID(), workflows.PlanName)
	case meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionApproved):
		if reason, message := p.Hold.Of(obj); reason != "" {
			p.queue.work.AddAfter(name, heldPoll) // nothing tells the controller of a thaw
			return p.reportHeld(ctx, obj, reason, message)
		}
		if left := pauseLeft(obj); left > 0 {
			p.queue.work.AddAfter(name, min(left, pausePoll))
			return p.endPauseOfDeleted(ctx, obj)
		}
		if ok, err := p.admit(ctx, name, obj, p.applying); !ok || err != nil {
			return err
		}
		p.queue.work.AddAfter(name, runCheck)
		if err := p.begin(ctx, obj, ref, ref.ApplyID(), workflows.ApplyName); err != nil {
			return err
		}
		switch {
		case obj.Status.Cancel != nil:
			return p.signal(ctx, ref.ApplyID(), workflows.SignalCancel)
		case len(obj.Status.Rollouts) > 0:
			return p.resume(ctx, obj, ref.ApplyID())
		}
	case awaitsApproval(obj):
		return p.markUnauthorized(ctx, name, obj)
	}
	return nil
}

// heldPoll is the time after which the controller looks again at what waits for a thaw.
const heldPoll = 2 * time.Second

// reportHeld writes to an approved plan why it waits. Begin replaces the message when the plan goes on.
func (p *Plans) reportHeld(ctx context.Context, obj *v1alpha1.Plan, reason, message string) error {
	ready := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == reason && ready.Message == message {
		return nil
	}
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		condition.Waiting(&s.Conditions, obj.Generation, reason, message)
	})
	return store.IgnoreGone(err)
}

// uploadTimeout is the maximum time that a speculative plan waits for its objects.
const uploadTimeout = 15 * time.Minute

// awaitObjects fails a speculative plan whose upload was not completed in time, for example because the client was
// interrupted.
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
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed,
			message)
		condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonPlanFailed, message)
	})
	if err != nil && !errors.Is(err, store.ErrGone) {
		return err
	}
	return p.Ledger.DropDocuments(ctx, obj.UID)
}

// runCheck is the time after which a workflow is started again. A run that exists goes on. Temporal may have lost it,
// as after a restore of its database.
const runCheck = time.Minute

// begin starts a workflow unless it runs already.
func (p *Plans) begin(ctx context.Context, obj *v1alpha1.Plan, ref workflows.Plan, id, name string) error {
	p.mu.Lock()
	recent := time.Since(p.started[id]) < runCheck
	p.mu.Unlock()
	if recent {
		return nil
	}
	// The cache may be stale, and Temporal would restart a failed run. So read from the API whether the plan has ended.
	fresh, err := p.Status.Get(ctx, ref.Namespace, ref.Name, uid(ref))
	if errors.Is(err, store.ErrGone) || err == nil && fresh.Ended() {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = p.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		TypedSearchAttributes:    searchAttributes(obj),
		// Temporal dispatches the waiting tasks of the namespaces in turn. Activities inherit the key.
		Priority:      temporal.Priority{FairnessKey: ref.Namespace},
		StaticSummary: fmt.Sprintf("%s %s/%s", name, ref.Namespace, ref.Name),
	}, name, ref)
	if _, ran := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); err != nil && !ran {
		return fmt.Errorf("start workflow %q: %w", id, err)
	}
	err = p.Status.UpdateStatus(ctx, ref.Namespace, ref.Name, uid(ref), func(s *v1alpha1.PlanStatus) {
		if s.Runs == nil {
			s.Runs = &v1alpha1.PlanRuns{}
		}
		unqueue(s, obj.Generation)
		if name == workflows.PlanName {
			s.Runs.Plan = id
		} else {
			s.Runs.Apply = id
		}
	})
	if err != nil && !errors.Is(err, store.ErrGone) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started[id] = time.Now()
	delete(p.requests, id+" "+workflows.SignalCancel) // another run has no signals
	return nil
}

// maxKeyword is the maximum number of bytes of a keyword in Temporal's databases.
const maxKeyword = 255

// searchAttributes returns the search attributes of the runs of a plan.
func searchAttributes(obj *v1alpha1.Plan) temporal.SearchAttributes {
	all := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(workflows.SearchPlan).ValueSet(obj.Name),
		temporal.NewSearchAttributeKeyKeyword(workflows.SearchNamespace).ValueSet(obj.Namespace),
	}
	if by := obj.Status.RequestedBy; by != nil {
		name := strings.ToValidUTF8(by.Username[:min(len(by.Username), maxKeyword)], "")
		all = append(all, temporal.NewSearchAttributeKeyKeyword(workflows.SearchRequester).ValueSet(name))
	}
	return temporal.NewSearchAttributes(all...)
}

// signal sends a signal to a workflow once.
func (p *Plans) signal(ctx context.Context, id, name string) error {
	key := id + " " + name
	if p.sent(key) {
		return nil
	}
	err := p.Temporal.SignalWorkflow(ctx, id, "", name, nil)
	if _, over := errors.AsType[*serviceerror.NotFound](err); err != nil && !over {
		return fmt.Errorf("signal workflow %q: %w", id, err)
	}
	p.note(key, true)
	return nil
}

// sent reports whether this process has sent a request; see requests.
func (p *Plans) sent(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[key]
}

// note records whether a request was sent.
func (p *Plans) note(key string, sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[key] = sent
}

// end records when a plan ended without an apply: it was discarded, or was cancelled or superseded before its approval.
func (p *Plans) end(ctx context.Context, ref workflows.Plan) error {
	err := p.Status.UpdateStatus(ctx, ref.Namespace, ref.Name, uid(ref), func(s *v1alpha1.PlanStatus) {
		if s.FinishedAt == nil {
			s.FinishedAt = new(metav1.Now())
		}
	})
	return store.IgnoreGone(err)
}

// stage holds the properties of a plan that matter to other plans of its namespace.
type stage struct{ waits, supersedes, finished, recorded bool }

// noteStage queues the namespace of a plan if the plan's stage has changed. The progress of an apply does not matter.
func (p *Plans) noteStage(obj *v1alpha1.Plan) {
	now := stage{waits(obj), supersedes(obj), obj.Status.FinishedAt != nil,
		!slices.Contains(obj.Finalizers, v1alpha1.FinalizerRecord)}
	p.mu.Lock()
	before := p.stages[obj.UID]
	p.stages[obj.UID] = now
	p.mu.Unlock()
	if now != before {
		p.namespaces.work.Add(cache.ObjectName{Name: obj.Namespace})
	}
}

// reconcileNamespace ends the superseded waiting plans of a namespace, marks the stale ones, and removes finished plans
// that exceed the history limits.
func (p *Plans) reconcileNamespace(ctx context.Context, name cache.ObjectName) error {
	plans := p.in(name.Name)
	p.mu.Lock()
	b := p.bindings[name.Name]
	if b == nil {
		b = newBindings()
		p.bindings[name.Name] = b
	}
	if len(plans) == 0 {
		delete(p.bindings, name.Name)
	}
	p.mu.Unlock()
	b.keep(plans)
	if err := p.endSuperseded(ctx, b, plans); err != nil {
		return err
	}
	if err := p.markStale(ctx, b, name.Name, plans); err != nil {
		return err
	}
	if err := p.markReconfigured(ctx, name.Name, plans); err != nil {
		return err
	}
	if err := p.judgeAgain(ctx, name.Name, plans); err != nil {
		return err
	}
	if p.stacks != nil {
		for _, s := range p.stacks.in(name.Name) {
			if err := p.prune(ctx, History{Limit: keptChecks}, b, name.Name, endedChecks(s, plans)); err != nil {
				return err
			}
			if limit := s.Spec.HistoryLimit; limit != nil {
				if err := p.prune(ctx, History{Limit: int(*limit)}, b, name.Name, p.stacks.plansOf(s)); err != nil {
					return err
				}
			}
		}
	}
	return p.prune(ctx, p.History, b, name.Name, plans)
}

// forget queues the removal of a deleted plan's data.
func (p *Plans) forget(name cache.ObjectName, ref workflows.Plan) {
	p.dropped.work.Add(deletedPlan(ref.UID))
	p.namespaces.work.Add(cache.ObjectName{Name: ref.Namespace})
	p.releaseSlot(uid(ref))
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.plans, name)
	delete(p.stages, uid(ref))
	delete(p.judged.at, uid(ref))
	delete(p.judged.allowed, uid(ref))
	delete(p.started, ref.PlanID())
	delete(p.started, ref.ApplyID())
	delete(p.requests, ref.UID+" record")
	for _, signal := range []string{workflows.SignalCancel, workflows.SignalResume} {
		delete(p.requests, ref.ApplyID()+" "+signal)
	}
}
