// Package planapi reads and decides Plans on a server, and says in which state a Plan is and who may approve it. It
// makes no decision of a verb; package operation does.
package planapi

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
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/stack"
)

// Complete completes plans of the namespace with their state. A nil keep permits all.
func Complete(s *session.Session, keep func(*v1alpha1.Plan) bool) session.Completer {
	return s.CompleteWith(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		plans, err := List(ctx, s, s.Namespace)
		for _, p := range plans {
			if keep == nil || keep(&p) {
				out = append(out, p.Name+"\t"+State(&p))
			}
		}
		return out, err
	})
}

// changePage is the number of changes per request.
const changePage = 500

// Create creates a plan. It also records which plans of the namespace ended before. Timestamps have only whole
// seconds, so they cannot order concurrent plans.
func Create(ctx context.Context, s *session.Session, namespace, base string,
	spec v1alpha1.PlanSpec) (*v1alpha1.Plan, error) {
	// Without the right to list plans, the command finds no concurrent plans, and reports that later.
	before, _ := List(ctx, s, namespace)
	in := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{GenerateName: base + "-", Namespace: namespace}, Spec: spec}
	out := &v1alpha1.Plan{}
	answer := s.Hykube.Post().Namespace(namespace).Resource("plans").Body(in).Do(ctx)
	if err := answer.Into(out); err != nil {
		return nil, fmt.Errorf("create plan in namespace %q: %w", namespace, s.Explain(err))
	}
	ended := map[types.UID]bool{}
	for _, p := range before {
		ended[p.UID] = p.Ended()
	}
	if s.EndedBefore == nil {
		s.EndedBefore = map[types.UID]map[types.UID]bool{}
	}
	s.EndedBefore[out.UID] = ended
	if s.Frozen == nil {
		s.Frozen = map[string]bool{}
	}
	s.Frozen[namespace] = slices.ContainsFunc(answer.Warnings(), func(w net.WarningHeader) bool {
		return w.Agent == v1alpha1.WarningAgentFrozen
	})
	return out, nil
}

// Get returns a plan. If there is none, the error names the stack of that name.
func Get(ctx context.Context, s *session.Session, namespace, name string) (*v1alpha1.Plan, error) {
	// As in kubectl, plan/NAME and plan.hykube.io/NAME are valid, too.
	if kind, rest, ok := strings.Cut(name, "/"); ok &&
		slices.Contains([]string{"plan", "plans", "plan.hykube.io", "plans.hykube.io"}, kind) {
		name = rest
	}
	if strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q names no plan: write NAME or plan/NAME%s", name, stackHint(ctx, s, namespace, name))
	}
	out, err := Read(ctx, s, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no plan %q in namespace %q: `kubectl get plans -n %s` lists them%s", name, namespace,
			namespace, stackHint(ctx, s, namespace, name))
	}
	if err != nil {
		return nil, fmt.Errorf("get plan %q: %w", name, s.Explain(err))
	}
	return out, nil
}

// stackHint returns what to do if a user wrote the name of a stack in place of that of a plan; "" if there is no such
// stack.
func stackHint(ctx context.Context, s *session.Session, namespace, name string) string {
	name, err := StackName(name)
	if err != nil {
		return ""
	}
	found := &v1alpha1.Stack{}
	if s.Hykube.Get().Namespace(namespace).Resource(StacksResource).Name(name).Do(ctx).Into(found) != nil {
		return ""
	}
	text := fmt.Sprintf(". A stack has this name: kubectl hykube stack status %s -n %s shows it", name, namespace)
	if plan := stack.LastPlan(found); plan != "" {
		text += ", and its last plan is " + plan
	}
	return text
}

// Read reads a plan. It returns the errors of the API unchanged.
func Read(ctx context.Context, s *session.Session, namespace, name string) (*v1alpha1.Plan, error) {
	out := &v1alpha1.Plan{}
	return out, s.Hykube.Get().Namespace(namespace).Resource("plans").Name(name).Do(ctx).Into(out)
}

// List returns the plans of a namespace; an empty one means all.
func List(ctx context.Context, s *session.Session, namespace string) ([]v1alpha1.Plan, error) {
	out := &v1alpha1.PlanList{}
	err := s.Hykube.Get().Namespace(namespace).Resource("plans").Do(ctx).Into(out)
	where := "of all namespaces"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("list plans %s: %w", where, s.Explain(err))
	}
	return out.Items, nil
}

// Changes returns the changes of a plan, page by page. It requests the next page before it decodes a page.
func Changes(ctx context.Context, s *session.Session, plan *v1alpha1.Plan) iter.Seq2[*v1alpha1.PlanChange, error] {
	return func(yield func(*v1alpha1.PlanChange, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for answer := requestChanges(ctx, s, plan, ""); answer != nil; {
			next, page, err := pageOf(<-answer)
			if answer = nil; err == nil && next != "" {
				answer = requestChanges(ctx, s, plan, next)
			}
			var list v1alpha1.PlanChangeList
			if err == nil {
				err = jsonv1.Unmarshal(page, &list) // twice as fast as encoding/json
			}
			if err != nil {
				yield(nil, fmt.Errorf("read changes of plan %q: %w", plan.Name, s.Explain(err)))
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
func requestChanges(ctx context.Context, s *session.Session, plan *v1alpha1.Plan, token string) <-chan rest.Result {
	req := s.Hykube.Get().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("changes").Param(
		"limit", strconv.Itoa(changePage))
	if token != "" {
		req = req.Param("continue", token)
	}
	answer := make(chan rest.Result, 1)
	go func() { answer <- req.Do(ctx) }()
	return answer
}

// pageOf returns a page, and the token of the next one; "" for the last page. It decodes only what comes before the
// items.
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

// Decide approves or discards a plan. The digest binds the decision to the changes that were read.
func Decide(ctx context.Context, s *session.Session, plan *v1alpha1.Plan,
	decision v1alpha1.PlanApproval) (*v1alpha1.Plan, error) {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: plan.Name, Namespace: plan.Namespace, UID: plan.UID},
		Status:     v1alpha1.PlanStatus{Approval: &decision},
	}
	out := &v1alpha1.Plan{}
	err := s.Hykube.Put().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("approval").Body(
		body).Do(ctx).Into(out)
	verb := map[v1alpha1.Decision]string{v1alpha1.DecisionApproved: "approve",
		v1alpha1.DecisionDiscarded: "discard"}[decision.Decision]
	switch {
	case err == nil:
		return out, nil
	case apierrors.HasStatusCause(err, v1alpha1.CausePolicy):
		return nil, &exit.Error{Code: exit.Refused, Cause: fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)
		if !MayApprove(ctx, s, plan.Namespace) { // another right may be missing, such as the verb of a change
			err = fmt.Errorf("%w\n%s", err, CannotApproveText(plan))
		}
		return nil, err
	case apierrors.HasStatusCause(err, v1alpha1.CauseStale):
		return nil, &exit.Error{Code: exit.Stale, Cause: fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.HasStatusCause(err, v1alpha1.CauseBlocked):
		return nil, &exit.Error{Code: exit.Refused, Cause: fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)}
	case apierrors.IsConflict(err) && (plan.Ended() || plan.PlanFailed()): // as the user read it
		return nil, fmt.Errorf("%s plan %q: %w", verb, plan.Name, err)
	case apierrors.IsConflict(err):
		return nil, &exit.Error{Code: exit.Stale,
			Cause: fmt.Errorf("%s plan %q: %w\nThe plan changed after you read it. Read it again: kubectl hykube show %s -n %s",
				verb, plan.Name, err, plan.Name, plan.Namespace)}
	}
	return nil, fmt.Errorf("%s plan %q: %w", verb, plan.Name, s.Explain(err))
}

// Cancel cancels a plan and returns it. The plan has ended only if nothing was running.
func Cancel(ctx context.Context, s *session.Session, plan *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: plan.Name, Namespace: plan.Namespace, UID: plan.UID},
		Status:     v1alpha1.PlanStatus{Cancel: &v1alpha1.PlanCancel{}},
	}
	out := &v1alpha1.Plan{}
	err := s.Hykube.Put().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).SubResource("cancel").Body(
		body).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("cancel plan %q: %w", plan.Name, s.Explain(err))
	}
	return out, nil
}

// planEvent is the current state of a plan, or the error that ends the watch.
type planEvent struct {
	Plan *v1alpha1.Plan
	Err  error
}

// planWatcher sends a plan each time that the plan changes.
type planWatcher struct {
	*session.Session
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

// Watch sends the plan at first and after each change, until ctx ends. It restarts a broken watch, because the
// server may restart while the plan continues.
func Watch(ctx context.Context, s *session.Session, plan *v1alpha1.Plan) <-chan planEvent {
	return WatchConnection(ctx, s, plan, nil)
}

// WatchConnection is Watch with a channel for the state of the connection.
func WatchConnection(ctx context.Context, s *session.Session, plan *v1alpha1.Plan,
	connected chan<- bool) <-chan planEvent {
	w := &planWatcher{Session: s, plan: plan, out: make(chan planEvent), version: plan.ResourceVersion,
		connected: connected}
	go func() {
		defer close(w.out)
		w.send(ctx, planEvent{Plan: plan})
		for ctx.Err() == nil {
			if err := w.watchOnce(ctx); err != nil {
				w.send(ctx, planEvent{Err: err})
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
	events, err := w.Hykube.Get().Namespace(w.plan.Namespace).Resource("plans").VersionedParams(&metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", w.plan.Name).String(),
		ResourceVersion: w.version,
		Watch:           true,
	}, metav1.ParameterCodec).Watch(ctx)
	switch {
	case err == nil:
		w.restored(ctx)
		w.drain(ctx, events)
		if time.Since(began) < time.Second {
			session.Pause(ctx, 100*time.Millisecond) // avoid a tight loop if the server closes the connection at once
		}
		if w.version != "" {
			return nil
		}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err),
		!w.broken.IsZero() && time.Since(w.broken) > time.Minute:
		return fmt.Errorf("watch plan %q: %w", w.plan.Name, w.Explain(err))
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
					w.send(ctx, planEvent{Plan: p})
				}
			}
		}
	}
}

// read reads the plan again after a pause, because the version is too old or there is no connection.
func (w *planWatcher) read(ctx context.Context) error {
	session.Pause(ctx, 200*time.Millisecond)
	fresh, err := Read(ctx, w.Session, w.plan.Namespace, w.plan.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("plan %q was deleted", w.plan.Name)
	case err == nil:
		w.version = fresh.ResourceVersion
		w.restored(ctx)
		w.send(ctx, planEvent{Plan: fresh})
	}
	return nil
}

// Planned reports whether planning has ended, with or without changes.
func Planned(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) || Stalled(p) || Ready(p) ||
		p.PlanFailed()
}

// readyCondition returns the condition Ready; an empty one if the plan has none yet.
func readyCondition(p *v1alpha1.Plan) metav1.Condition {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Waiting reports whether a plan waits for a decision.
func Waiting(p *v1alpha1.Plan) bool {
	return Planned(p) && !p.Ended() && p.Status.Approval == nil && !p.ApprovesItself()
}

// Ready reports whether a plan needs nothing more: it was applied, or has no changes.
func Ready(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// Stalled reports whether a plan ended without success. A plan with blocked changes waits for a decision instead.
func Stalled(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled) && !Blocked(p) && !Denied(p)
}

// Denied reports whether a plan waits for a decision and a policy denies it.
func Denied(p *v1alpha1.Plan) bool {
	return !p.Ended() && p.Status.StalledFor() == v1alpha1.ReasonPolicyDenied
}

// hasDenied reports whether a policy denies a plan that no user has approved.
func hasDenied(p *v1alpha1.Plan) bool {
	return p.Status.Approval == nil && slices.ContainsFunc(p.Status.Policies,
		func(r v1alpha1.PlanPolicyResult) bool { return r.Effect == v1alpha1.PolicyDeny && r.Undecided == nil })
}

// RequiresApprovals reports whether a policy requires certain approvals of a plan.
func RequiresApprovals(p *v1alpha1.Plan) bool {
	return slices.ContainsFunc(p.Status.Policies, func(r v1alpha1.PlanPolicyResult) bool {
		return r.Effect == v1alpha1.PolicyRequireApprovals && r.Undecided == nil
	})
}

// WhyNotApproved returns an error if a plan cannot be approved: a policy denies it, or changes are blocked and the
// approval is not partial.
func WhyNotApproved(p *v1alpha1.Plan, partial bool) error {
	switch {
	case hasDenied(p):
		err := &exit.Unchanged{Problem: fmt.Sprintf("a policy refuses plan %q", p.Name)}
		if !p.Spec.Speculative {
			err.Advice = "The plan can be approved when no policy refuses it any more: " + ApproveCommand(p)
		}
		return &exit.Error{Code: exit.Refused, Cause: err}
	case !partial && hasBlocked(p):
		return isBlocked(p)
	}
	return nil
}

// hasBlocked reports whether changes of a plan without a decision are blocked.
func hasBlocked(p *v1alpha1.Plan) bool {
	return p.Status.Approval == nil && p.Status.Summary != nil && p.Status.Summary.Blocked > 0
}

// Blocked reports whether a plan waits for a decision because changes are blocked.
func Blocked(p *v1alpha1.Plan) bool { return p.Status.StalledFor() == v1alpha1.ReasonBlocked }

// AppliedInPart reports whether a partial approval left out changes of an applied plan.
func AppliedInPart(p *v1alpha1.Plan) bool {
	return Ready(p) && p.Status.Progress != nil && p.Status.Progress.Blocked > 0
}

// Stale reports whether objects or states changed after the planning of a plan.
func Stale(p *v1alpha1.Plan) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStale)
}

// Outdated reports whether an object of a waiting plan was written after planning, or its requester lost the rights.
func Outdated(p *v1alpha1.Plan) bool {
	return readyCondition(p).Reason == v1alpha1.ReasonStale
}

// ApplyFailed reports whether a change of an applied plan failed.
func ApplyFailed(p *v1alpha1.Plan) bool {
	return p.Status.FinishedAt != nil && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionApplied)
}

// Discarded reports whether a user discarded a plan.
func Discarded(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionDiscarded
}

// Superseded reports whether another plan took the place of a plan, or the server ended it because its stack no longer
// needs it.
func Superseded(p *v1alpha1.Plan) bool {
	reason := p.Status.StalledFor()
	return reason == v1alpha1.ReasonSuperseded || reason == v1alpha1.ReasonDiscarded && p.Status.Approval == nil
}

// NothingToDo reports whether a plan ended without changes.
func NothingToDo(p *v1alpha1.Plan) bool {
	return Deferred(p) || v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonNoChanges
}

// Deferred reports whether a plan has changes, and none of them can be applied now.
func Deferred(p *v1alpha1.Plan) bool {
	return v1alpha1.TrueReason(p.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonDeferred
}

// Why returns the most specific message about a plan that stopped.
func Why(p *v1alpha1.Plan) string {
	for _, t := range []string{v1alpha1.ConditionStale, v1alpha1.ConditionStalled, v1alpha1.ConditionApplied,
		v1alpha1.ConditionPlanned, v1alpha1.ConditionReady} {
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

// HasNoResources reports whether a plan's namespace has no resources.
func HasNoResources(p *v1alpha1.Plan) bool {
	s := p.Status.Summary
	return NothingToDo(p) && s != nil && s.Resources == 0 && s.NoOp == 0 && s.NotRead == 0
}

// isBlocked returns the error for a plan that is not applied because changes are blocked.
func isBlocked(p *v1alpha1.Plan) error {
	if Speculative(p) { // it has no condition about that, and the server removes it when the command ends
		return &exit.Error{Code: exit.Refused,
			Cause: &exit.Unchanged{Problem: "the plan is blocked: lifecycle.preventDestroy forbids the changes that the errors above name"}}
	}
	return &exit.Error{Code: exit.Refused,
		Cause: &exit.Unchanged{Problem: fmt.Sprintf("plan %q is blocked: %s", p.Name, diff.Clean(Why(p), true))}}
}

// Speculative reports whether a plan is speculative, so that nobody can approve it.
func Speculative(p *v1alpha1.Plan) bool {
	return p.Spec.Speculative && readyCondition(p).Reason == v1alpha1.ReasonSpeculative
}

// StacksResource is the resource of Stacks.
const StacksResource = "stacks"

// StackName returns the name of a stack from NAME or stack/NAME.
func StackName(arg string) (string, error) {
	kind, name, ok := strings.Cut(arg, "/")
	switch {
	case !ok:
		return arg, nil
	case slices.Contains([]string{"stack", "stacks", "stk", "stack." + v1alpha1.GroupName,
		"stacks." + v1alpha1.GroupName}, kind):
		return name, nil
	}
	return "", fmt.Errorf("%q names no stack: write NAME or stack/NAME, and the namespace with -n", arg)
}

// StackReadiness returns the condition Ready of a stack. A status that is older than the spec does not count.
func StackReadiness(s *v1alpha1.Stack) (status, reason, message string) {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || s.Status.ObservedGeneration != s.Generation {
		return string(metav1.ConditionFalse), v1alpha1.ReasonSettling,
			"The server has not seen the newest spec of the stack yet."
	}
	return string(ready.Status), ready.Reason, diff.Clean(ready.Message, false)
}

// Stacks returns the stacks of a namespace.
func Stacks(ctx context.Context, s *session.Session, namespace string) ([]*v1alpha1.Stack, error) {
	list := &v1alpha1.StackList{}
	if err := s.Hykube.Get().Namespace(namespace).Resource(StacksResource).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list stacks: %w", s.Explain(err))
	}
	out := make([]*v1alpha1.Stack, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
