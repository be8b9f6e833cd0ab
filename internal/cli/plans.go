package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/api/v1alpha1"
)

// changePage is how many changes are asked for at once.
const changePage = 500

// createPlan creates a plan, and notes which plans of the namespace ended before it: times have whole seconds, which is too coarse for
// rivals.
func (s *session) createPlan(ctx context.Context, namespace, base string, spec v1alpha1.PlanSpec) (*v1alpha1.Plan, error) {
	// Without the right to list plans, this command knows no rivals, and says so when it looks for them.
	before, _ := s.listPlans(ctx, namespace)
	in := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{GenerateName: base + "-", Namespace: namespace}, Spec: spec}
	out := &v1alpha1.Plan{}
	err := s.hykube.Post().Namespace(namespace).Resource("plans").Body(in).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("create plan in namespace %q: %w", namespace, explain(err, s.server()))
	}
	ended := map[types.UID]bool{}
	for _, p := range before {
		ended[p.UID] = p.Ended()
	}
	if s.endedBefore == nil {
		s.endedBefore = map[types.UID]map[types.UID]bool{}
	}
	s.endedBefore[out.UID] = ended
	return out, nil
}

func (s *session) getPlan(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error) {
	out := &v1alpha1.Plan{}
	// As everywhere in kubectl, plan/NAME and plan.hykube.io/NAME name it, too.
	if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains([]string{"plan", "plans", "plan.hykube.io", "plans.hykube.io"}, kind) {
		name = rest
	}
	err := s.hykube.Get().Namespace(namespace).Resource("plans").Name(name).Do(ctx).Into(out)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no plan %q in namespace %q: `kubectl get plans -n %s` lists them", name, namespace, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("get plan %q: %w", name, explain(err, s.server()))
	}
	return out, nil
}

func (s *session) listPlans(ctx context.Context, namespace string) ([]v1alpha1.Plan, error) {
	out := &v1alpha1.PlanList{}
	err := s.hykube.Get().Namespace(namespace).Resource("plans").Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("list plans in namespace %q: %w", namespace, explain(err, s.server()))
	}
	return out.Items, nil
}

// changes walks the changes of a plan, page by page.
func (s *session) changes(ctx context.Context, plan *v1alpha1.Plan) iter.Seq2[*v1alpha1.PlanChange, error] {
	return func(yield func(*v1alpha1.PlanChange, error) bool) {
		next := ""
		for {
			page := &v1alpha1.PlanChangeList{}
			req := s.hykube.Get().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("changes").
				Param("limit", strconv.Itoa(changePage))
			if next != "" {
				req = req.Param("continue", next)
			}
			if err := req.Do(ctx).Into(page); err != nil {
				yield(nil, fmt.Errorf("read changes of plan %q: %w", plan.Name, explain(err, s.server())))
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if next = page.Continue; next == "" {
				return
			}
		}
	}
}

// decide approves or discards a plan. The digest binds the decision to the changes that were read.
func (s *session) decide(ctx context.Context, plan *v1alpha1.Plan, decision v1alpha1.PlanApproval) (*v1alpha1.Plan, error) {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: plan.Name, Namespace: plan.Namespace, UID: plan.UID},
		Status:     v1alpha1.PlanStatus{Approval: &decision},
	}
	out := &v1alpha1.Plan{}
	err := s.hykube.Put().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("approval").Body(body).Do(ctx).Into(out)
	verb := map[v1alpha1.Decision]string{v1alpha1.DecisionApproved: "approve", v1alpha1.DecisionDiscarded: "discard"}[decision.Decision]
	switch {
	case err == nil:
		return out, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s plan %q: %w\n%s", verb, plan.Name, err, notForYou(plan))
	case apierrors.HasStatusCause(err, v1alpha1.CauseStale):
		return nil, &exitError{ExitStale, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.HasStatusCause(err, v1alpha1.CauseBlocked):
		return nil, &exitError{ExitRefused, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.IsConflict(err):
		return nil, &exitError{ExitStale, fmt.Errorf("%s plan %q: %w\nIt isn't the plan that you read any more; look again: kubectl hykube show %s -n %s",
			verb, plan.Name, err, plan.Name, plan.Namespace)}
	}
	return nil, fmt.Errorf("%s plan %q: %w", verb, plan.Name, explain(err, s.server()))
}

// cancelPlan asks the server to stop a plan, and returns the plan as it is then: over only when nothing was under way.
func (s *session) cancelPlan(ctx context.Context, plan *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: plan.Name, Namespace: plan.Namespace, UID: plan.UID},
		Status:     v1alpha1.PlanStatus{Cancel: &v1alpha1.PlanCancel{}},
	}
	out := &v1alpha1.Plan{}
	err := s.hykube.Put().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("cancel").Body(body).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("cancel plan %q: %w", plan.Name, explain(err, s.server()))
	}
	return out, nil
}

// watchPlan yields the plan as it is and then each time it changes, until ctx ends. A watch that breaks is begun
// again: the server may restart in the middle of a plan, and the plan goes on.
func (s *session) watchPlan(ctx context.Context, plan *v1alpha1.Plan) <-chan planEvent {
	out := make(chan planEvent)
	send := func(e planEvent) bool {
		select {
		case out <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(out)
		if !send(planEvent{plan: plan}) {
			return
		}
		version := plan.ResourceVersion
		broken := time.Time{}
		for ctx.Err() == nil {
			w, err := s.hykube.Get().Namespace(plan.Namespace).Resource("plans").VersionedParams(&metav1.ListOptions{
				FieldSelector:   fields.OneTermEqualSelector("metadata.name", plan.Name).String(),
				ResourceVersion: version,
				Watch:           true,
			}, metav1.ParameterCodec).Watch(ctx)
			if err == nil {
				began := time.Now()
				broken = time.Time{}
				version = drain(ctx, w, version, send)
				if time.Since(began) < time.Second {
					pause(ctx, 100*time.Millisecond) // a server that hangs up at once must not be asked in a tight loop
				}
			} else {
				if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
					send(planEvent{err: fmt.Errorf("watch plan %q: %w", plan.Name, explain(err, s.server()))})
					return
				}
				if broken.IsZero() {
					broken = time.Now()
				}
				if time.Since(broken) > time.Minute {
					send(planEvent{err: fmt.Errorf("watch plan %q: %w", plan.Name, explain(err, s.server()))})
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
			if version == "" || err != nil {
				// Too old, or no connection: look at the plan itself, in a moment.
				pause(ctx, 200*time.Millisecond)
				fresh := &v1alpha1.Plan{}
				getErr := s.hykube.Get().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).Do(ctx).Into(fresh)
				if apierrors.IsNotFound(getErr) {
					send(planEvent{err: fmt.Errorf("plan %q was deleted", plan.Name)})
					return
				}
				if getErr == nil {
					version, broken = fresh.ResourceVersion, time.Time{}
					if !send(planEvent{plan: fresh}) {
						return
					}
				}
			}
		}
	}()
	return out
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

type planEvent struct {
	plan *v1alpha1.Plan
	err  error
}

// drain passes on the events of a watch; it returns the last version seen, or "" when the plan must be read anew.
func drain(ctx context.Context, w watch.Interface, version string, send func(planEvent) bool) string {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version
		case e, ok := <-w.ResultChan():
			if !ok {
				return version
			}
			switch e.Type {
			case watch.Error:
				return ""
			case watch.Deleted:
				return ""
			}
			if p, ok := e.Object.(*v1alpha1.Plan); ok {
				version = p.ResourceVersion
				if e.Type != watch.Bookmark && !send(planEvent{plan: p}) {
					return version
				}
			}
		}
	}
}

// planned is true when a plan's changes are known, or when they never will be.
func planned(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) || stalled(p) || ready(p) || p.PlanFailed()
}

// waiting is true when a plan waits for a decision.
func waiting(p *v1alpha1.Plan) bool {
	return planned(p) && !p.Ended() && p.Status.Approval == nil && !p.ApprovesItself()
}

func ready(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// stalled is true when a plan ended, and not as it should. One with blocked changes waits for a decision.
func stalled(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled) && !blocked(p)
}

// hasBlocked is true when changes of a plan that nobody approved cannot be made.
func hasBlocked(p *v1alpha1.Plan) bool {
	return p.Status.Approval == nil && p.Status.Summary != nil && p.Status.Summary.Blocked > 0
}

// blocked is true when a plan waits for a decision, and changes of it cannot be made.
func blocked(p *v1alpha1.Plan) bool { return p.Status.StalledFor() == v1alpha1.ReasonBlocked }

// appliedInPart is true when a partial approval left out changes of a plan that was applied.
func appliedInPart(p *v1alpha1.Plan) bool {
	return ready(p) && p.Status.Progress != nil && p.Status.Progress.Blocked > 0
}

func stale(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStale)
}

func applyFailed(p *v1alpha1.Plan) bool {
	return p.Status.FinishedAt != nil && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionApplied)
}

func discarded(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionDiscarded
}

func superseded(p *v1alpha1.Plan) bool { return p.Status.StalledFor() == v1alpha1.ReasonSuperseded }

func nothingToDo(p *v1alpha1.Plan) bool {
	reason := v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady)
	return reason == v1alpha1.ReasonNoChanges || reason == v1alpha1.ReasonDeferred
}

// why is the message of the condition that says most about a plan that stopped.
func why(p *v1alpha1.Plan) string {
	for _, t := range []string{v1alpha1.ConditionStale, v1alpha1.ConditionStalled, v1alpha1.ConditionApplied, v1alpha1.ConditionPlanned, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(p.Status.Conditions, t)
		if c == nil || c.Message == "" {
			continue
		}
		if (t == v1alpha1.ConditionStale || t == v1alpha1.ConditionStalled) && c.Status != metav1.ConditionTrue {
			continue
		}
		return c.Message
	}
	return ""
}
