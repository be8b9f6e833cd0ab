package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/store"
)

// This file follows the policies: a plan that waits for a decision shows the rules that hold for it now. When no rule
// refuses the plan of an automatic stack any more, the stack makes another.

// policyPoll is the time after which a refused plan is judged again, because rules may depend on the time.
const policyPoll = time.Minute

// judgments holds what is known about the rules for waiting plans. Plans.mu guards it.
type judgments struct {
	// informers watch the policies, and the Modules, whose mode is a rule, too.
	informers []cache.SharedIndexInformer
	// outdated holds the namespaces whose policies changed. at holds the times at which refused plans were last judged,
	// and allowed those of automatic stacks that no rule refuses now.
	outdated map[string]bool
	at       map[types.UID]time.Time
	allowed  map[types.UID]bool
}

func (p *Plans) followPolicies() {
	p.judged = judgments{outdated: map[string]bool{}, at: map[types.UID]time.Time{}, allowed: map[types.UID]bool{}}
	p.judged.informers = []cache.SharedIndexInformer{watch(p.Client, "planpolicies", &v1alpha1.PlanPolicy{}),
		watch(p.Client, "clusterplanpolicies", &v1alpha1.ClusterPlanPolicy{})}
	for _, inf := range p.judged.informers {
		follow(inf, p.policyChanged)
	}
	modules := watch(p.Client, "modules", &v1alpha1.Module{})
	// AddEventHandler fails only on a stopped informer.
	_, _ = modules.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) {
		if m := now.(*v1alpha1.Module); old.(*v1alpha1.Module).Spec.Mode != m.Spec.Mode {
			p.policyChanged(m)
		}
	}})
	p.judged.informers = append(p.judged.informers, modules)
}

// policyChanged queues the namespaces with a plan that waits for a decision, and for which the policy may have a rule.
func (p *Plans) policyChanged(obj metav1.Object) {
	for _, cached := range p.informer.GetStore().List() {
		plan := cached.(*v1alpha1.Plan)
		if ns := obj.GetNamespace(); ns != "" && ns != plan.Namespace || !waits(plan) {
			continue
		}
		p.mu.Lock()
		p.judged.outdated[plan.Namespace] = true
		p.mu.Unlock()
		p.namespaces.work.Add(cache.ObjectName{Name: plan.Namespace})
	}
}

// judgeAgain judges the waiting plans of a namespace whose policies changed, and those that were refused a while ago.
func (p *Plans) judgeAgain(ctx context.Context, namespace string, plans []*v1alpha1.Plan) error {
	now := time.Now()
	p.mu.Lock()
	outdated := p.judged.outdated[namespace]
	delete(p.judged.outdated, namespace)
	at := maps.Clone(p.judged.at)
	p.mu.Unlock()
	for _, plan := range plans {
		refused := plan.Status.StalledFor() == v1alpha1.ReasonPolicyDenied
		if !waits(plan) || !outdated && (!refused || now.Sub(at[plan.UID]) < policyPoll) {
			continue
		}
		if err := p.judge(ctx, plan); err != nil {
			p.mu.Lock()
			p.judged.outdated[namespace] = outdated
			p.mu.Unlock()
			return err
		}
		if refused {
			p.namespaces.work.AddAfter(cache.ObjectName{Name: namespace}, policyPoll)
		}
	}
	return nil
}

// judge writes to a waiting plan the rules that hold for it now.
func (p *Plans) judge(ctx context.Context, plan *v1alpha1.Plan) error {
	verdict, err := p.Judge(ctx, plan)
	if err != nil {
		return fmt.Errorf("judge plan %q again: %w", plan.Name, err)
	}
	refused := plan.Status.StalledFor() == v1alpha1.ReasonPolicyDenied
	allowed := refused && verdict.Denied() == "" && plan.Status.Stack != nil &&
		plan.Spec.Approval == v1alpha1.ApprovalAutomatic
	p.mu.Lock()
	if refused {
		p.judged.at[plan.UID] = time.Now()
	}
	p.judged.allowed[plan.UID] = allowed
	p.mu.Unlock()
	if allowed {
		p.stacks.NamespaceChanged(plan.Namespace)
		return nil // it makes another plan
	}
	err = p.Status.UpdateStatus(ctx, plan.Namespace, plan.Name, plan.UID, func(s *v1alpha1.PlanStatus) {
		if waits(&v1alpha1.Plan{ObjectMeta: plan.ObjectMeta, Spec: plan.Spec, Status: *s}) {
			noteVerdict(plan, s, verdict)
		}
	})
	return store.IgnoreGone(err)
}

// noteVerdict writes the rules that hold for a waiting plan to its status. It leaves a status with the same rules as it
// is.
func noteVerdict(plan *v1alpha1.Plan, s *v1alpha1.PlanStatus, verdict *policy.Verdict) {
	results, _ := verdict.First(changes.MaxPolicies)
	if equality.Semantic.DeepEqual(results, s.Policies) {
		return
	}
	s.Policies = results
	reason, _ := readyOf(&v1alpha1.Plan{Status: *s})
	refused := reason == v1alpha1.ReasonPolicyDenied
	if !refused && reason != v1alpha1.ReasonAwaitingApproval {
		return // it is blocked or stale
	}
	if why := verdict.Denied(); why != "" {
		condition.Stalled(&s.Conditions, plan.Generation, v1alpha1.ReasonPolicyDenied, changes.RefusedText(why))
		return
	}
	if refused && s.AutomaticApproval != nil {
		s.AutomaticApproval.Message = changes.WaitsText("a policy refused it when it was made")
	}
	condition.Waiting(&s.Conditions, plan.Generation, v1alpha1.ReasonAwaitingApproval,
		changes.AwaitingText(plan, s, verdict.Missing(s.RequestedBy, s.Approvals)))
}

// allows reports whether no rule refuses a plan of an automatic stack any more that was refused when it was made.
func (p *Plans) allows(plan *v1alpha1.Plan) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.judged.allowed[plan.UID]
}
