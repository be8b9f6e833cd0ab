package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/stack"
)

// changePage is the number of changes per request.
const changePage = 500

// createPlan creates a plan. It also records which plans of the namespace ended before. Timestamps have only whole
// seconds, so they cannot order concurrent plans.
func (s *session) createPlan(ctx context.Context, namespace, base string, spec v1alpha1.PlanSpec) (*v1alpha1.Plan, error) {
	// Without the right to list plans, the command finds no concurrent plans, and reports that later.
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
	// As in kubectl, plan/NAME and plan.hykube.io/NAME are valid, too.
	if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains([]string{"plan", "plans", "plan.hykube.io", "plans.hykube.io"}, kind) {
		name = rest
	}
	if strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q names no plan: write NAME or plan/NAME%s", name, s.stackHint(ctx, namespace, name))
	}
	out, err := s.readPlan(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no plan %q in namespace %q: `kubectl get plans -n %s` lists them%s", name, namespace, namespace, s.stackHint(ctx, namespace, name))
	}
	if err != nil {
		return nil, fmt.Errorf("get plan %q: %w", name, explain(err, s.server()))
	}
	return out, nil
}

// stackHint returns what to do if a user wrote the name of a stack in place of that of a plan; "" if there is no such stack.
func (s *session) stackHint(ctx context.Context, namespace, name string) string {
	name, err := stackName(name)
	if err != nil {
		return ""
	}
	found := &v1alpha1.Stack{}
	if s.hykube.Get().Namespace(namespace).Resource(stacksResource).Name(name).Do(ctx).Into(found) != nil {
		return ""
	}
	text := fmt.Sprintf(". A stack has this name: kubectl hykube stack status %s -n %s shows it", name, namespace)
	if plan := stack.LastPlan(found); plan != "" {
		text += ", and its last plan is " + plan
	}
	return text
}

// readPlan reads a plan. It returns the errors of the API unchanged.
func (s *session) readPlan(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error) {
	out := &v1alpha1.Plan{}
	return out, s.hykube.Get().Namespace(namespace).Resource("plans").Name(name).Do(ctx).Into(out)
}

func (s *session) listPlans(ctx context.Context, namespace string) ([]v1alpha1.Plan, error) {
	out := &v1alpha1.PlanList{}
	err := s.hykube.Get().Namespace(namespace).Resource("plans").Do(ctx).Into(out)
	where := "of all namespaces"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("list plans %s: %w", where, explain(err, s.server()))
	}
	return out.Items, nil
}

// changes returns the changes of a plan, page by page. It requests the next page before it decodes a page.
func (s *session) changes(ctx context.Context, plan *v1alpha1.Plan) iter.Seq2[*v1alpha1.PlanChange, error] {
	return func(yield func(*v1alpha1.PlanChange, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for answer := s.requestChanges(ctx, plan, ""); answer != nil; {
			next, page, err := pageOf(<-answer)
			if answer = nil; err == nil && next != "" {
				answer = s.requestChanges(ctx, plan, next)
			}
			var list v1alpha1.PlanChangeList
			if err == nil {
				err = jsonv1.Unmarshal(page, &list) // twice as fast as encoding/json
			}
			if err != nil {
				yield(nil, fmt.Errorf("read changes of plan %q: %w", plan.Name, explain(err, s.server())))
				return
			}
			for i := range list.Items {
				if !yield(&list.Items[i], nil) {
					return
				}
			}
		}
	}
}

// requestChanges requests a page of the changes of a plan, and returns a channel for the answer.
func (s *session) requestChanges(ctx context.Context, plan *v1alpha1.Plan, token string) <-chan rest.Result {
	req := s.hykube.Get().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("changes").Param("limit", strconv.Itoa(changePage))
	if token != "" {
		req = req.Param("continue", token)
	}
	answer := make(chan rest.Result, 1)
	go func() { answer <- req.Do(ctx) }()
	return answer
}

// pageOf returns a page, and the token of the next one; "" for the last page. It decodes only what comes before the items.
func pageOf(answer rest.Result) (next string, page []byte, err error) {
	if err := answer.Error(); err != nil { // Raw would not decode the server's reason
		return "", nil, err
	}
	if page, err = answer.Raw(); err != nil {
		return "", nil, err
	}
	d := json.NewDecoder(bytes.NewReader(page))
	for {
		switch key, err := d.Token(); {
		case err != nil:
			return "", nil, err
		case key == "metadata":
			var meta metav1.ListMeta
			err := d.Decode(&meta)
			return meta.Continue, page, err
		case key == "items":
			return "", nil, errors.New("the server sent the changes before their metadata")
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
	case apierrors.HasStatusCause(err, v1alpha1.CausePolicy):
		return nil, &exitError{ExitRefused, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)
		if !s.mayApprove(ctx, plan.Namespace) { // another right may be missing, such as the verb of a change
			err = fmt.Errorf("%w\n%s", err, cannotApproveText(plan))
		}
		return nil, err
	case apierrors.HasStatusCause(err, v1alpha1.CauseStale):
		return nil, &exitError{ExitStale, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.HasStatusCause(err, v1alpha1.CauseBlocked):
		return nil, &exitError{ExitRefused, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.IsConflict(err) && (plan.Ended() || plan.PlanFailed()): // as the user read it
		return nil, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)
	case apierrors.IsConflict(err):
		return nil, &exitError{ExitStale, fmt.Errorf("%s plan %q: %w\nThe plan changed after you read it. Read it again: kubectl hykube show %s -n %s",
			verb, plan.Name, err, plan.Name, plan.Namespace)}
	}
	return nil, fmt.Errorf("%s plan %q: %w", verb, plan.Name, explain(err, s.server()))
}

// cancelPlan cancels a plan and returns it. The plan has ended only if nothing was running.
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

// planEvent is the current state of a plan, or the error that ends the watch.
type planEvent struct {
	plan *v1alpha1.Plan
	err  error
}

// planWatcher sends a plan each time that the plan changes.
type planWatcher struct {
	*session
	plan *v1alpha1.Plan
	out  chan planEvent
	// version is the last received version. It is empty if the plan must be read again.
	version string
	// broken is the start of the current loss of connection. It is zero while there is a connection.
	broken time.Time
	// connected receives false if the server does not answer for a while, and true when it answers again; nil without a
	// receiver. lost is true in between.
	connected chan<- bool
	lost      bool
}

// lostAfter is the time without a connection after which a command reports the loss. After an orderly restart, the
// server is back sooner.
const lostAfter = time.Second

// watchPlan sends the plan at first and after each change, until ctx ends. It restarts a broken watch, because the
// server may restart while the plan continues.
func (s *session) watchPlan(ctx context.Context, plan *v1alpha1.Plan) <-chan planEvent {
	return s.watchConnection(ctx, plan, nil)
}

// watchConnection is watchPlan with a channel for the state of the connection.
func (s *session) watchConnection(ctx context.Context, plan *v1alpha1.Plan, connected chan<- bool) <-chan planEvent {
	w := &planWatcher{session: s, plan: plan, out: make(chan planEvent), version: plan.ResourceVersion, connected: connected}
	go func() {
		defer close(w.out)
		w.send(ctx, planEvent{plan: plan})
		for ctx.Err() == nil {
			if err := w.watchOnce(ctx); err != nil {
				w.send(ctx, planEvent{err: err})
				return
			}
		}
	}()
	return w.out
}

func (w *planWatcher) send(ctx context.Context, e planEvent) {
	select {
	case w.out <- e:
	case <-ctx.Done():
	}
}

// watchOnce watches the plan until the watch ends. It returns an error if another watch would fail, too.
func (w *planWatcher) watchOnce(ctx context.Context) error {
	began := time.Now()
	events, err := w.hykube.Get().Namespace(w.plan.Namespace).Resource("plans").VersionedParams(&metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", w.plan.Name).String(),
		ResourceVersion: w.version,
		Watch:           true,
	}, metav1.ParameterCodec).Watch(ctx)
	switch {
	case err == nil:
		w.restored(ctx)
		w.drain(ctx, events)
		if time.Since(began) < time.Second {
			pause(ctx, 100*time.Millisecond) // avoid a tight loop if the server closes the connection at once
		}
		if w.version != "" {
			return nil
		}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), !w.broken.IsZero() && time.Since(w.broken) > time.Minute:
		return fmt.Errorf("watch plan %q: %w", w.plan.Name, explain(err, w.server()))
	case w.broken.IsZero():
		w.broken = time.Now()
	case time.Since(w.broken) > lostAfter && !w.lost:
		w.lost = true
		w.notify(ctx, false)
	}
	return w.read(ctx)
}

// restored notes that there is a connection.
func (w *planWatcher) restored(ctx context.Context) {
	w.broken = time.Time{}
	if w.lost {
		w.lost = false
		w.notify(ctx, true)
	}
}

func (w *planWatcher) notify(ctx context.Context, connected bool) {
	if w.connected == nil {
		return
	}
	select {
	case w.connected <- connected:
	case <-ctx.Done():
	}
}

// drain sends the plans of a watch until it ends. It clears the version if the plan must be read again.
func (w *planWatcher) drain(ctx context.Context, events watch.Interface) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events.ResultChan():
			if !ok {
				return
			}
			if e.Type == watch.Error || e.Type == watch.Deleted {
				w.version = ""
				return
			}
			if p, ok := e.Object.(*v1alpha1.Plan); ok {
				w.version = p.ResourceVersion
				if e.Type != watch.Bookmark {
					w.send(ctx, planEvent{plan: p})
				}
			}
		}
	}
}

// read reads the plan again after a pause, because the version is too old or there is no connection.
func (w *planWatcher) read(ctx context.Context) error {
	pause(ctx, 200*time.Millisecond)
	fresh, err := w.readPlan(ctx, w.plan.Namespace, w.plan.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("plan %q was deleted", w.plan.Name)
	case err == nil:
		w.version = fresh.ResourceVersion
		w.restored(ctx)
		w.send(ctx, planEvent{plan: fresh})
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// planned reports whether planning has ended, with or without changes.
func planned(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) || stalled(p) || ready(p) || p.PlanFailed()
}

// waiting reports whether a plan waits for a decision.
func waiting(p *v1alpha1.Plan) bool {
	return planned(p) && !p.Ended() && p.Status.Approval == nil && !p.ApprovesItself()
}

func ready(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// stalled reports whether a plan ended without success. A plan with blocked changes waits for a decision instead.
func stalled(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled) && !blocked(p) && !denied(p)
}

// denied reports whether a plan waits for a decision and a policy denies it.
func denied(p *v1alpha1.Plan) bool {
	return !p.Ended() && p.Status.StalledFor() == v1alpha1.ReasonPolicyDenied
}

// hasDenied reports whether a policy denies a plan that no user has approved.
func hasDenied(p *v1alpha1.Plan) bool {
	return p.Status.Approval == nil && slices.ContainsFunc(p.Status.Policies, func(r v1alpha1.PlanPolicyResult) bool { return r.Effect == v1alpha1.PolicyDeny && r.Undecided == nil })
}

// requiresApprovals reports whether a policy requires certain approvals of a plan.
func requiresApprovals(p *v1alpha1.Plan) bool {
	return slices.ContainsFunc(p.Status.Policies, func(r v1alpha1.PlanPolicyResult) bool {
		return r.Effect == v1alpha1.PolicyRequireApprovals && r.Undecided == nil
	})
}

// whyNotApproved returns an error if a plan cannot be approved: a policy denies it, or changes are blocked and the
// approval is not partial.
func whyNotApproved(p *v1alpha1.Plan, partial bool) error {
	switch {
	case hasDenied(p):
		err := &unchangedError{problem: fmt.Sprintf("a policy refuses plan %q", p.Name)}
		if !p.Spec.Speculative {
			err.advice = "The plan can be approved when no policy refuses it any more: " + approveCommand(p)
		}
		return &exitError{ExitRefused, err}
	case !partial && hasBlocked(p):
		return isBlocked(p)
	}
	return nil
}

// hasBlocked reports whether changes of a plan without a decision are blocked.
func hasBlocked(p *v1alpha1.Plan) bool {
	return p.Status.Approval == nil && p.Status.Summary != nil && p.Status.Summary.Blocked > 0
}

// blocked reports whether a plan waits for a decision because changes are blocked.
func blocked(p *v1alpha1.Plan) bool { return p.Status.StalledFor() == v1alpha1.ReasonBlocked }

// appliedInPart reports whether a partial approval left out changes of an applied plan.
func appliedInPart(p *v1alpha1.Plan) bool {
	return ready(p) && p.Status.Progress != nil && p.Status.Progress.Blocked > 0
}

func stale(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStale)
}

// outdated reports whether an object of a waiting plan was written after planning, or its requester lost the rights.
func outdated(p *v1alpha1.Plan) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Reason == v1alpha1.ReasonStale
}

func applyFailed(p *v1alpha1.Plan) bool {
	return p.Status.FinishedAt != nil && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionApplied)
}

func discarded(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionDiscarded
}

// superseded reports whether another plan took the place of a plan, or the server ended it because its stack no longer needs
// it.
func superseded(p *v1alpha1.Plan) bool {
	reason := p.Status.StalledFor()
	return reason == v1alpha1.ReasonSuperseded || reason == v1alpha1.ReasonDiscarded && p.Status.Approval == nil
}

func nothingToDo(p *v1alpha1.Plan) bool {
	return deferred(p) || v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonNoChanges
}

// deferred reports whether a plan has changes, and none of them can be applied now.
func deferred(p *v1alpha1.Plan) bool {
	return v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonDeferred
}

// why returns the most specific message about a plan that stopped.
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
