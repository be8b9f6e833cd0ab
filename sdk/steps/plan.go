package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/api/v1alpha1"
)

// plan makes the plan of the step, or adopts it.
func (s *Steps) plan(ctx context.Context, o PlanOptions) (out PlanResult, err error) {
	p := planOfStep(activity.GetInfo(ctx), s.in(o.Namespace), o.Spec)
	ctx, done := withHeartbeats(ctx, "plan "+p.Namespace+"/"+p.Name)
	defer done()
	if p, err = s.makePlan(ctx, p); err != nil {
		return out, err
	}
	out = PlanResult{PlanRef: refer(p), NoChanges: nothingToDo(p), Automatic: p.ApprovesItself()}
	if p.Status.Summary != nil {
		out.Summary = *p.Status.Summary
	}
	return out, nil
}

// planOfStep returns the plan that a step makes. It is the same for all attempts of the step.
func planOfStep(step activity.Info, namespace string, spec v1alpha1.PlanSpec) *v1alpha1.Plan {
	return &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      stepName(step),
			Annotations: map[string]string{
				v1alpha1.AnnotationWorkflowNamespace: step.Namespace,
				v1alpha1.AnnotationWorkflowID:        step.WorkflowExecution.ID,
				v1alpha1.AnnotationWorkflowRunID:     step.WorkflowExecution.RunID,
				v1alpha1.AnnotationWorkflowStep:      step.ActivityID,
			},
		},
		Spec: spec,
	}
}

var unnameable = regexp.MustCompile(`[^a-z0-9]+`)

// stepName returns the name of the plan of a step: the workflow ID, shortened and without invalid characters, and a
// hash that differs for each step of each run.
func stepName(step activity.Info) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{step.Namespace, step.WorkflowExecution.ID,
		step.WorkflowExecution.RunID, step.ActivityID}, "\x00")))
	id := unnameable.ReplaceAllString(strings.ToLower(step.WorkflowExecution.ID), "-")
	id = strings.Trim(id[:min(len(id), 40)], "-")
	if id == "" {
		id = "workflow"
	}
	return id + "-" + hex.EncodeToString(sum[:5])
}

// makePlan creates a plan, or adopts the one that an earlier attempt created, and waits until it is made. It returns an
// error about a plan that cannot be applied.
func (s *Steps) makePlan(ctx context.Context, want *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	what := fmt.Sprintf("make plan %q in namespace %q", want.Name, want.Namespace)
	p := &v1alpha1.Plan{}
	err := s.hykube.Post().Namespace(want.Namespace).Resource("plans").Body(want).Do(ctx).Into(p)
	if apierrors.IsAlreadyExists(err) {
		if p, err = s.getPlan(ctx, refer(want)); err == nil && !sameStep(p, want) {
			return nil, failure(Conflict, "%s: the plan exists, and this step did not make it", what)
		}
	}
	if err != nil {
		return nil, explain(what, ended(ctx, err))
	}
	p, err = s.untilPlan(ctx, refer(p), func(p *v1alpha1.Plan) (bool, error) { return planned(p), nil })
	if err != nil {
		return nil, explain(what, err)
	}
	switch stalled := p.Status.StalledFor(); {
	case p.PlanFailed():
		return nil, failed(PlanFailed, p, "failed")
	case stalled == v1alpha1.ReasonPolicyDenied && !p.Ended():
		return nil, failed(PolicyDenied, p, "is denied")
	case stalled == v1alpha1.ReasonBlocked && !p.Ended():
		return nil, failed(Blocked, p, "is blocked")
	}
	return p, nil
}

// sameStep reports whether a plan is the one that the step makes.
func sameStep(p, want *v1alpha1.Plan) bool {
	for key, value := range want.Annotations {
		if p.Annotations[key] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(withDefaults(p.Spec), withDefaults(want.Spec))
}

// withDefaults returns a spec with the defaults of the server.
func withDefaults(spec v1alpha1.PlanSpec) v1alpha1.PlanSpec {
	if spec.Refresh == "" {
		spec.Refresh = v1alpha1.RefreshChanged
	}
	if spec.Approval == "" {
		spec.Approval = v1alpha1.ApprovalManual
	}
	return spec
}

// awaitApproval waits until the plan is approved, or needs no approval.
func (s *Steps) awaitApproval(ctx context.Context, o AwaitApprovalOptions) (out Approval, err error) {
	ctx, done := withHeartbeats(ctx, "plan "+o.Plan.String())
	defer done()
	p, err := s.untilPlan(ctx, o.Plan, func(p *v1alpha1.Plan) (bool, error) {
		switch {
		case succeeded(p), p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved,
			p.ApprovesItself() && planned(p) && !p.Ended():
			return true, nil
		case p.Ended(), p.Status.StalledFor() == v1alpha1.ReasonPolicyDenied:
			return false, failedFor(p)
		}
		return false, nil
	})
	if err != nil {
		return out, explain(fmt.Sprintf("wait for the approval of plan %q", o.Plan), err)
	}
	if a := p.Status.Approval; a != nil {
		out.Message = a.Message
		if a.By != nil {
			out.By = a.By.Username
		}
	}
	return out, nil
}

// apply approves the plan if the options request it, and waits for the end of its apply.
func (s *Steps) apply(ctx context.Context, o ApplyOptions) (out ApplyResult, err error) {
	ctx, done := withHeartbeats(ctx, "plan "+o.Plan.String())
	defer done()
	if o.Approve {
		if err := s.approve(ctx, o); err != nil {
			return out, err
		}
	}
	p, err := s.untilPlan(ctx, o.Plan, func(p *v1alpha1.Plan) (bool, error) {
		if succeeded(p) {
			return true, nil
		}
		if p.Ended() {
			return false, failedFor(p)
		}
		return false, nil
	})
	if err != nil {
		return out, explain(fmt.Sprintf("apply plan %q", o.Plan), err)
	}
	if p.Status.Progress != nil {
		out.Progress = *p.Status.Progress
	}
	out.InPart = v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionApplied) == v1alpha1.ReasonAppliedInPart
	return out, nil
}

// approve approves a plan that has no decision. An earlier attempt of the step may have approved it.
func (s *Steps) approve(ctx context.Context, o ApplyOptions) error {
	what := fmt.Sprintf("approve plan %q", o.Plan)
	p, err := s.getPlan(ctx, o.Plan)
	if err != nil {
		return explain(what, ended(ctx, err))
	}
	if p.Status.Approval != nil || p.ApprovesItself() || p.Ended() {
		return nil
	}
	if p.Status.Digest != o.Plan.Digest {
		return failure(Stale, "%s: it has the digest %s, not %s", what, p.Status.Digest, o.Plan.Digest)
	}
	err = s.decide(ctx, o.Plan, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: o.Plan.Digest,
		Partial: o.Partial, Message: o.Message})
	if !apierrors.IsConflict(err) {
		return explain(what, ended(ctx, err))
	}
	// Another decision, or the end of the plan, came first: the caller waits next, and then sees which.
	if p, again := s.getPlan(ctx, o.Plan); again == nil && (p.Status.Approval != nil || p.Ended()) {
		return nil
	}
	return explain(what, ended(ctx, err))
}

// discard discards a plan that has no decision.
func (s *Steps) discard(ctx context.Context, o DiscardOptions) error {
	ctx, done := withHeartbeats(ctx, "plan "+o.Plan.String())
	defer done()
	what := fmt.Sprintf("discard plan %q", o.Plan)
	p, err := s.getPlan(ctx, o.Plan)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return explain(what, ended(ctx, err))
	case p.Ended():
		return nil
	case p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionDiscarded:
		return nil
	case p.Status.Approval != nil:
		return failure(Approved, "%s: it was approved; to stop its apply: kubectl hykube cancel %s -n %s", what, p.Name,
			p.Namespace)
	}
	err = s.decide(ctx, o.Plan, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest,
		Message: o.Message})
	if apierrors.IsConflict(err) { // the plan was decided or completed meanwhile: the next attempt reads it again
		return fmt.Errorf("%s: %w", what, err)
	}
	return explain(what, ended(ctx, err))
}

func (s *Steps) decide(ctx context.Context, plan PlanRef, decision v1alpha1.PlanApproval) error {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: plan.Name, Namespace: plan.Namespace, UID: plan.UID},
		Status:     v1alpha1.PlanStatus{Approval: &decision},
	}
	return s.hykube.Put().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("approval").Body(
		body).Do(ctx).Error()
}

// getPlan returns a plan. If another plan has its name now, it does not exist.
func (s *Steps) getPlan(ctx context.Context, ref PlanRef) (*v1alpha1.Plan, error) {
	p := &v1alpha1.Plan{}
	if err := s.hykube.Get().Namespace(ref.Namespace).Resource("plans").Name(ref.Name).Do(ctx).Into(p); err != nil {
		return nil, err
	}
	if ref.UID != "" && p.UID != ref.UID {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("plans"), ref.Name)
	}
	return p, nil
}

func (s *Steps) untilPlan(ctx context.Context, ref PlanRef,
	done func(*v1alpha1.Plan) (bool, error)) (*v1alpha1.Plan, error) {
	return until(ctx, ref.Name, source[*v1alpha1.Plan]{
		get: func(ctx context.Context) (*v1alpha1.Plan, error) { return s.getPlan(ctx, ref) },
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return s.hykube.Get().Namespace(ref.Namespace).Resource("plans").VersionedParams(&options,
				metav1.ParameterCodec).Watch(ctx)
		},
	}, done)
}

func refer(p *v1alpha1.Plan) PlanRef {
	return PlanRef{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Digest: p.Status.Digest}
}

// planned reports whether the planning of a plan has ended.
func planned(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) || p.Status.StalledFor() != "" ||
		p.Ended() || p.PlanFailed()
}

// nothingToDo reports whether a plan has no changes that can be applied.
func nothingToDo(p *v1alpha1.Plan) bool {
	reason := v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady)
	return reason == v1alpha1.ReasonNoChanges || reason == v1alpha1.ReasonDeferred
}

// succeeded reports whether a plan was applied, or has nothing to apply.
func succeeded(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// failedFor returns the error about a plan that was not applied as a whole.
func failedFor(p *v1alpha1.Plan) error {
	switch p.Status.StalledFor() {
	case v1alpha1.ReasonDiscarded:
		return failed(Discarded, p, "")
	case v1alpha1.ReasonSuperseded:
		return failed(Superseded, p, "")
	case v1alpha1.ReasonStale:
		return failed(Stale, p, "is stale")
	case v1alpha1.ReasonCancelled, v1alpha1.ReasonCancelling:
		return failed(Cancelled, p, "")
	case v1alpha1.ReasonPolicyDenied:
		return failed(PolicyDenied, p, "is denied")
	case v1alpha1.ReasonBlocked:
		return failed(Blocked, p, "is blocked")
	case v1alpha1.ReasonPlanFailed:
		return failed(PlanFailed, p, "failed")
	}
	return failed(ApplyFailed, p, "was not applied")
}
