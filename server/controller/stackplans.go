package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/shell"
	"github.com/hykube/hykube/internal/stack"
	"github.com/hykube/hykube/internal/store"
)

// This file makes and ends the plans of stacks.

// watchOverlap returns the predicate of a stack. The predicate stores the name of an older stack that also selects an
// object in the returned string.
func watchOverlap(s *v1alpha1.Stack, stacks []*v1alpha1.Stack) (func(labels.Set) bool, *string) {
	found := new(string)
	own := stack.Selects(s, stacks)
	type olderStack struct {
		name    string
		selects func(labels.Set) bool
	}
	var older []olderStack
	for _, other := range stacks {
		if other.UID != s.UID && before(other, s) {
			older = append(older, olderStack{other.Name, stack.Selects(other, stacks)})
		}
	}
	return func(set labels.Set) bool {
		if !own(set) {
			return false
		}
		for _, r := range older {
			if *found == "" && r.selects(set) {
				*found = r.name
			}
		}
		return true
	}, found
}

// before reports whether a stack is older than another. Times have a precision of a second.
func before(a, b *v1alpha1.Stack) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// planSpec returns the spec of the plan that a stack needs. It selects nothing that the stack does not select.
func planSpec(s *v1alpha1.Stack, stacks []*v1alpha1.Stack, selected *planning.Selection) v1alpha1.PlanSpec {
	spec := v1alpha1.PlanSpec{Refresh: s.Spec.Plan.Refresh, Approval: s.Spec.Approval, Selector: s.Spec.Selector}
	// the plan destroys a resource outside of the stack, together with one that depends on it: a user must approve that
	if selected.Destroys {
		spec.Approval = v1alpha1.ApprovalManual
	}
	if spec.Selector != nil {
		return spec
	}
	rest := &metav1.LabelSelector{}
	for _, other := range stacks {
		if other.Spec.Selector == nil {
			continue
		}
		without, ok := negated(other.Spec.Selector)
		if !ok { // no selector can exclude a combination of labels: name the resources
			for _, a := range append(selected.Pending(), selected.Unread...) {
				spec.Targets = append(spec.Targets, a.String())
			}
			return spec
		}
		rest.MatchExpressions = append(rest.MatchExpressions, without)
	}
	if len(rest.MatchExpressions) > 0 {
		spec.Selector = rest
	}
	return spec
}

// negated returns the requirement that selects exactly the objects that a selector does not. ok is false if no single
// requirement does.
func negated(s *metav1.LabelSelector) (out metav1.LabelSelectorRequirement, ok bool) {
	if len(s.MatchLabels)+len(s.MatchExpressions) != 1 {
		return out, false
	}
	for key, value := range s.MatchLabels {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn,
			Values: []string{value}}, true
	}
	out = *s.MatchExpressions[0].DeepCopy()
	out.Operator = map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn: metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpNotIn: metav1.LabelSelectorOpIn,
		metav1.LabelSelectorOpExists:       metav1.LabelSelectorOpDoesNotExist,
		metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
	}[out.Operator]
	return out, true
}

// snapshot returns the data of a plan for the status of its stack.
func snapshot(p *v1alpha1.Plan) *v1alpha1.StackPlan {
	out := &v1alpha1.StackPlan{Name: p.Name, UID: p.UID, PlanStack: *p.Status.Stack, Ended: p.Ended()}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		out.Reason = ready.Reason
	}
	return out
}

// makePlan makes the next plan of a stack, on behalf of its author. The name of the plan has its number. So an attempt
// after a crash, or with an old cache, finds the plan of the first attempt.
func (c *Stacks) makePlan(ctx context.Context, state *stackState, next *stackStep) error {
	s := state.stack
	number := int64(0)
	if state.last != nil {
		number = state.last.Number
	}
	for _, p := range c.plans.in(s.Namespace) { // those of a deleted stack of this name, too
		if origin := p.Status.Stack; origin != nil && origin.Stack == s.Name && !isCheck(p) {
			number = max(number, origin.Number)
		}
	}
	for range maxNames {
		number++
		made, err := c.createPlan(ctx, state, next, number)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			next.stall(v1alpha1.ReasonPlanFailed, "The server refused the next plan of the stack: "+err.Error())
			return nil
		case err != nil:
			return fmt.Errorf("make plan %d of stack %q: %w", number, s.Name, err)
		case made == nil:
			continue // another plan has the name
		}
		if old := state.plan; old != nil && waits(old) {
			if err := c.plans.supersede(ctx, old, replacedBy(made, s)); err != nil {
				return err
			}
		}
		state.plan, state.last = made, snapshot(made)
		c.noteMade(state, next)
		return nil
	}
	next.stall(v1alpha1.ReasonPlanFailed,
		fmt.Sprintf("Plans that the stack did not make have its next %d names, from %s-%d on: delete them.", maxNames,
			s.Name, number-maxNames+1))
	next.after = time.Minute
	return nil
}

// maxNames is the number of names that makePlan tries.
const maxNames = 100

// approvedByAnother reports whether a plan of a stack was applied as a whole, after the approval of another user than
// the author of the stack.
func approvedByAnother(p *v1alpha1.Plan) bool {
	whole := !slices.ContainsFunc(p.AllApprovals(), func(a v1alpha1.PlanApproval) bool { return a.Partial })
	return whole && p.Status.RequestedBy != nil && meta.IsStatusConditionTrue(p.Status.Conditions,
		v1alpha1.ConditionApplied) &&
		changes.ApprovedByAnother(p, []v1alpha1.Contributor{{Identity: *p.Status.RequestedBy}})
}

// createPlan makes the plan with a number. It returns nil if a plan that the stack did not make has the name.
func (c *Stacks) createPlan(ctx context.Context, state *stackState, next *stackStep,
	number int64) (*v1alpha1.Plan, error) {
	s := state.stack
	p := &v1alpha1.Plan{Spec: state.specFor(next.trigger)}
	p.Name = fmt.Sprintf("%s-%d", s.Name, number)
	p.Status.Stack = &v1alpha1.PlanStack{Number: number, Contents: state.selected.Contents, Attempt: next.attempt,
		Trigger: next.trigger, Request: next.request}
	return c.create(ctx, s, p)
}

// create creates a plan for a stack, on behalf of its author. It returns the plan of an earlier attempt, and nil if a
// plan that the stack did not make has the name.
func (c *Stacks) create(ctx context.Context, s *v1alpha1.Stack, p *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	p.APIVersion, p.Kind, p.Namespace = v1alpha1.SchemeGroupVersion.String(), "Plan", s.Namespace
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s,
		v1alpha1.SchemeGroupVersion.WithKind("Stack"))}
	p.Status.RequestedBy = s.Status.Author
	p.Status.Stack.Stack, p.Status.Stack.StackUID, p.Status.Stack.StackGeneration = s.Name, s.UID, s.Generation
	p.Status.Stack.AuthorApproved = s.Status.AuthorGeneration > 0 &&
		s.Status.ApprovedGeneration >= s.Status.AuthorGeneration
	if d := s.Status.Drift; d != nil && d.Requested != nil && d.Requested.ID == p.Status.Stack.Request {
		p.Status.Stack.CheckRequestedBy = d.Requested.By
	}
	made := &v1alpha1.Plan{}
	err := c.Client.Post().Namespace(p.Namespace).Resource("plans").Body(p).Do(ctx).Into(made)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	made = &v1alpha1.Plan{}
	if err := c.Client.Get().Namespace(p.Namespace).Resource("plans").Name(p.Name).Do(ctx).Into(made); err != nil {
		return nil, err
	}
	if origin := made.Status.Stack; origin == nil || origin.StackUID != s.UID {
		return nil, nil
	}
	return made, nil
}

// maxCovered is the maximum number of changes of a plan of a user that a Manual stack waits for instead of making its
// own.
const maxCovered = 1000

// isApplied reports whether a plan was approved and has not ended.
func isApplied(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved && !p.Ended()
}

// covering returns a plan of a user that awaits approval, or is being applied, and has a change for each object that a
// Manual stack must change; nil if there is none. If one of these objects is written, the plan becomes stale. If a
// value changes to which they refer, the contents change.
func (c *Stacks) covering(ctx context.Context, s *stackState) (*v1alpha1.Plan, error) {
	pending := s.selected.Pending()
	if s.stack.Spec.Approval == v1alpha1.ApprovalAutomatic || s.stack.Spec.Workflow != nil ||
		s.plan != nil && !s.plan.Ended() || len(pending) == 0 {
		return nil, nil
	}
	for _, plan := range c.plans.in(s.stack.Namespace) {
		if plan.Status.Stack != nil || !awaitsApproval(plan) && !isApplied(plan) || plan.Status.Summary == nil ||
			plan.Status.Summary.Changes() > maxCovered {
			continue
		}
		planned := map[string]bool{}
		for change, err := range c.plans.Ledger.Changes(ctx, plan.UID, 0) {
			if err != nil {
				return nil, err
			}
			if binds(change) {
				planned[change.Address] = true
			}
		}
		lacks := func(a lang.Address) bool { return !planned[a.String()] }
		if !slices.ContainsFunc(pending, lacks) && c.firstCovered(s, plan) == s.selected.Contents {
			return plan, nil
		}
	}
	return nil, nil
}

// firstCovered returns the contents of a stack with which a plan first covered it.
func (c *Stacks) firstCovered(s *stackState, plan *v1alpha1.Plan) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.seen[s.stack.UID]
	if known.coveredBy != plan.UID {
		known.coveredBy, known.covered = plan.UID, s.selected.Contents
		c.seen[s.stack.UID] = known
	}
	return known.covered
}

// in returns the plans of a namespace. Callers must not change them.
func (p *Plans) in(namespace string) []*v1alpha1.Plan {
	return inNamespace[*v1alpha1.Plan](p.informer.GetIndexer(), namespace)
}

// discard ends a plan that no user has decided on. It cancels one that is being made, whose workflow writes its status.
func (p *Plans) discard(ctx context.Context, obj *v1alpha1.Plan, message string) error {
	if !meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionPlanned) {
		return p.cancel(ctx, obj)
	}
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if s.Approval != nil || s.Cancel != nil || s.Ended() {
			return
		}
		condition.Set(&s.Conditions, obj.Generation, v1alpha1.ConditionApproved, false, v1alpha1.ReasonDiscarded,
			message)
		condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonDiscarded, message)
	})
	return store.IgnoreGone(err)
}

// cancel cancels a plan.
func (p *Plans) cancel(ctx context.Context, obj *v1alpha1.Plan) error {
	body := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID}}
	body.APIVersion, body.Kind = v1alpha1.SchemeGroupVersion.String(), "Plan"
	err := p.Client.Put().Namespace(obj.Namespace).Resource("plans").Name(obj.Name).SubResource("cancel").Body(body).Do(
		ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the plan no longer exists, or has ended
	}
	return err
}

// readyOf returns the reason and the message of the condition Ready of a plan.
func readyOf(p *v1alpha1.Plan) (reason, message string) {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return v1alpha1.ReasonPlanning, "Waiting to be planned."
	}
	return ready.Reason, ready.Message
}

// failure returns the message of the last plan, which did not apply everything. If it could not be made, failure adds
// the commands that help; the message of an apply has them.
func (s *stackState) failure() string {
	_, message := readyOf(s.plan)
	text := strings.TrimSuffix(message, ".") + "."
	if s.last.Reason != v1alpha1.ReasonPlanFailed {
		if left := int32(len(s.selected.Lost)); left > 0 && left < s.last.UnknownCreates {
			text += fmt.Sprintf(" Resolved since then: %d of %d unknown outcomes. Still unknown: %s.",
				s.last.UnknownCreates-left, s.last.UnknownCreates, named(s.selected.Lost))
		}
		return text
	}
	text += fmt.Sprintf(" To see why: kubectl hykube status %s -n %s.", s.plan.Name, s.plan.Namespace)
	if lost := s.selected.Lost; len(lost) > 0 {
		text += fmt.Sprintf(" The outcome of the create of %s is unknown. Check whether it exists. Then: kubectl hykube resolve %s %s -n %s.",
			named(lost), shell.Word(lost[0].Kind()+"/"+lost[0].Name),
			changes.ResolveFlags(v1alpha1.ObjectReference{Name: lost[0].Name}), s.plan.Namespace)
	}
	return text + s.goAround()
}

// maxExcluded is the maximum number of resources that goAround excludes.
const maxExcluded = 5

// goAround returns the command that plans the other resources of the stack if those with errors are few; "" otherwise.
func (s *stackState) goAround() string {
	var flags []string
	for _, d := range s.plan.Status.Diagnostics {
		if flag := "--exclude " + shell.Word(d.Address); d.Severity == v1alpha1.SeverityError && !slices.Contains(flags,
			flag) {
			if d.Address == "" || len(flags) == maxExcluded {
				return ""
			}
			flags = append(flags, flag)
		}
	}
	if len(flags) == 0 || len(flags) >= s.selected.Resources {
		return ""
	}
	return fmt.Sprintf(" An error in one resource fails the plan as a whole. To plan the others meanwhile: kubectl hykube plan%s %s -n %s.",
		s.selectorFlag(), strings.Join(flags, " "), s.plan.Namespace)
}

// selectorFlag returns the flag that selects the resources of the stack; "" without a selector.
func (s *stackState) selectorFlag() string {
	if s.stack.Spec.Selector == nil {
		return ""
	}
	return fmt.Sprintf(" -l '%s'", metav1.FormatLabelSelector(s.stack.Spec.Selector))
}

func counted(resources int) string {
	if resources == 1 {
		return "1 resource"
	}
	return fmt.Sprintf("%d resources", resources)
}

// named returns the first of some addresses, and the number of the others.
func named(list []lang.Address) string {
	switch len(list) {
	case 0:
		return "nothing"
	case 1:
		return list[0].String()
	}
	return fmt.Sprintf("%s and %d more", list[0], len(list)-1)
}

// mismatch names the resources whose infrastructure does not match their specs.
func mismatch(list []lang.Address) string {
	if len(list) == 1 {
		return named(list) + " does not match its spec"
	}
	return named(list) + " do not match their specs"
}
