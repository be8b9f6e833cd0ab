package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file starts, follows and ends the workflow runs of stacks.

const (
	// workerGrace is the time for which a run waits for a worker before the stack reports it. runPoll is the interval
	// at which the server looks for the worker of a run.
	workerGrace = 10 * time.Second
	runPoll     = time.Minute
	// runRetry is the pause before the next attempt after Temporal refused a run, or while another workflow has the ID.
	runRetry = 10 * time.Second
)

// knownRuns is the state of the stacks' workflow runs in this process.
type knownRuns struct {
	// read has the stacks whose last run was read from Temporal, so that their status is current.
	read map[types.UID]bool
	// awaited has the IDs of the runs for whose end a goroutine waits.
	awaited map[string]bool
	// going has the UIDs of the stacks with a running workflow, by name. With it, the server finds the run of a deleted
	// stack.
	going map[cache.ObjectName]types.UID
	// first has the IDs of the first runs of other runs that made plans of a stack, by the ID of the run.
	first map[cache.ObjectName]map[string]string
}

func newKnownRuns() knownRuns {
	return knownRuns{read: map[types.UID]bool{}, awaited: map[string]bool{}, going: map[cache.ObjectName]types.UID{},
		first: map[cache.ObjectName]map[string]string{}}
}

// noteRun records whether a stack has a running workflow.
func (c *Stacks) noteRun(obj metav1.Object) {
	s, ok := obj.(*v1alpha1.Stack)
	if !ok || s.Status.Run == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := cache.MetaObjectToName(s)
	switch {
	case s.Status.Run.EndedAt == nil:
		c.runs.going[name] = s.UID
	case c.runs.going[name] == s.UID:
		delete(c.runs.going, name)
	}
}

// readRun reads the last run of the workflow of a stack. It asks Temporal, because a crash may have prevented the write
// of the status.
func (c *Stacks) readRun(ctx context.Context, state *stackState) error {
	s := state.stack
	known := s.Status.Run
	if known == nil && s.Spec.Workflow == nil {
		return nil
	}
	if known != nil {
		state.run = &stackRun{StackRun: *known.DeepCopy()}
	}
	c.mu.Lock()
	current := c.runs.read[s.UID]
	c.mu.Unlock()
	if c.Runs != nil && (s.Spec.Workflow != nil && !current || state.run.running()) {
		if err := c.refreshRun(ctx, state); err != nil {
			return err
		}
	}
	if state.run == nil {
		return nil
	}
	if c.Runs == nil && state.run.running() { // the server used an embedded Temporal before
		state.run.Outcome, state.run.EndedAt = v1alpha1.RunLost, &metav1.Time{Time: state.now}
	}
	if err := c.findPlans(ctx, state); err != nil {
		return err
	}
	if state.run.running() {
		c.awaitRun(ctx, cache.MetaObjectToName(s), state.run.StackRun)
	}
	return c.endPlansOfRun(ctx, state)
}

// endPlansOfRun discards the plans of a run that ended without success, if no user has decided on them. The workflow
// may have ended without that, or its author may not discard plans. Nothing would follow their apply.
func (c *Stacks) endPlansOfRun(ctx context.Context, state *stackState) error {
	run := state.run
	if run.Outcome == "" || run.Outcome == v1alpha1.RunCompleted || run.Outcome == v1alpha1.RunLost {
		return nil
	}
	ended := "failed"
	if run.Outcome == v1alpha1.RunCancelled {
		ended = "was cancelled"
	}
	for _, p := range run.plans {
		if !p.Undecided() {
			continue
		}
		if err := c.plans.discard(ctx, p,
			fmt.Sprintf("Discarded, because the workflow of the stack %s, which made it, %s.", state.stack.Name,
				ended)); err != nil {
			return err
		}
	}
	return nil
}

// refreshRun brings the last run of a stack up to date.
func (c *Stacks) refreshRun(ctx context.Context, state *stackState) error {
	s := state.stack
	found, err := c.Runs.Read(ctx, s.Namespace, v1alpha1.WorkflowIDOfStack(s.Name), "")
	if err != nil {
		return err
	}
	if !state.adopt(found) && state.run.running() { // another run has the ID now, or none
		if found, err = c.Runs.Read(ctx, s.Namespace, state.run.WorkflowID, state.run.RunID); err != nil {
			return err
		}
		if found == nil {
			state.run.Outcome, state.run.EndedAt = v1alpha1.RunLost, &metav1.Time{Time: state.now}
		} else {
			found.RunOrigin, found.FirstRunID, found.stack = state.run.RunOrigin, state.run.FirstRunID, s.UID
			state.adopt(found)
		}
	}
	if state.run.running() && found != nil {
		if err := c.findWorker(ctx, state, found); err != nil {
			return err
		}
		if err := c.endUnbegun(ctx, state, found); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs.read[s.UID] = true
	return nil
}

// adopt sets the last run of the stack to a run that Temporal returned. It returns false for a run that is not the last
// one of this stack. A user can start a workflow with the memo of an earlier run. So a run with a known number must be
// the known one, or its continuation.
func (s *stackState) adopt(found *userRun) bool {
	if found == nil || found.stack != s.stack.UID || s.run != nil && found.Number < s.run.Number {
		return false
	}
	if s.run != nil && found.Number == s.run.Number && found.RunID != s.run.RunID &&
		found.FirstRunID != s.run.FirstRunID {
		return false
	}
	next := found.StackRun
	if s.run != nil && s.run.Number == found.Number {
		next.StartedAt, next.Plan = s.run.StartedAt, s.run.Plan // it may have continued as new since
	}
	s.run = &stackRun{StackRun: next}
	return true
}

// endUnbegun ends a run that no worker can begin and that was started for another spec of the stack: with a wrong task
// queue, or a wrong type. The stack then starts its workflow with the new spec.
func (c *Stacks) endUnbegun(ctx context.Context, state *stackState, found *userRun) error {
	s, run := state.stack, state.run
	if run.StackGeneration == s.Generation || s.Spec.Suspend || !run.idle && !run.failing() {
		return nil
	}
	if begun, err := c.Runs.begun(ctx, s.Namespace, found); err != nil || begun {
		return err
	}
	if err := c.Runs.End(ctx, s.Namespace, found, "The spec of the stack was changed."); err != nil {
		return err
	}
	run.again = time.Second
	return nil
}

// findWorker sets whether a run waits for a worker although none polls its task queue.
func (c *Stacks) findWorker(ctx context.Context, state *stackState, found *userRun) (err error) {
	run := state.run
	run.queue, run.again, run.attempt = found.queue, runPoll, found.attempt
	if found.attempt > 1 {
		run.again = workerGrace
	}
	if found.queued.IsZero() {
		return nil
	}
	if left := found.queued.Add(workerGrace).Sub(state.now); left > 0 {
		run.again = left
		return nil
	}
	polled, err := c.Runs.Polled(ctx, state.stack.Namespace, found.queue)
	run.idle, run.again = !polled, workerGrace
	return err
}

// findPlans finds the plans of the last run. It also finds whether another plan applied the stack's resources after the
// run.
func (c *Stacks) findPlans(ctx context.Context, state *stackState) error {
	run := state.run
	run.plans, run.applied = nil, false
	firstRun, done := c.firstRuns(ctx, state)
	defer done()
	for _, p := range c.plans.in(state.stack.Namespace) {
		if p.Status.Stack == nil && p.StackName() == state.stack.Name {
			made, known := run.made(p, "")
			if !known {
				first, err := firstRun(p)
				if err != nil {
					return err
				}
				made, _ = run.made(p, first)
			}
			if made {
				run.plans = append(run.plans, p)
			}
		}
		if run.EndedAt != nil && p.Status.FinishedAt != nil && p.Status.FinishedAt.After(run.EndedAt.Time) {
			reason, _ := readyOf(p)
			about := sameResources(p.Spec, state.spec) || equality.Semantic.DeepEqual(p.Spec,
				v1alpha1.PlanSpec{Refresh: p.Spec.Refresh, Approval: p.Spec.Approval})
			run.applied = run.applied || about && (reason == v1alpha1.ReasonApplied ||
				reason == v1alpha1.ReasonNoChanges)
		}
	}
	slices.SortFunc(run.plans, func(a, b *v1alpha1.Plan) int { return compareRequests(b, a) })
	if len(run.plans) > 0 {
		run.Plan = &v1alpha1.PlanReference{Name: run.plans[0].Name, UID: run.plans[0].UID}
	}
	return nil
}

// firstRuns returns a function that returns the first run of the workflow that made a plan, or "" if it is not known.
// It asks Temporal once for each run. done must be called after it.
func (c *Stacks) firstRuns(ctx context.Context, state *stackState) (of func(*v1alpha1.Plan) (string, error),
	done func()) {
	name := cache.MetaObjectToName(state.stack)
	c.mu.Lock()
	known, used := c.runs.first[name], map[string]string{}
	c.mu.Unlock()
	of = func(p *v1alpha1.Plan) (first string, err error) {
		by := p.Annotations[v1alpha1.AnnotationWorkflowRunID]
		first, ok := used[by]
		if !ok {
			first, ok = known[by]
		}
		if !ok && c.Runs != nil {
			first, err = c.Runs.First(ctx, state.stack.Namespace, state.run.WorkflowID, by)
		}
		if err == nil {
			used[by] = first
		}
		return first, err
	}
	return of, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.runs.first[name] = used; len(used) == 0 {
			delete(c.runs.first, name)
		}
	}
}

// awaitRun queues a stack when its run has ended.
func (c *Stacks) awaitRun(ctx context.Context, name cache.ObjectName, run v1alpha1.StackRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs.awaited[run.RunID] {
		return
	}
	c.runs.awaited[run.RunID] = true
	go func() {
		for {
			err := c.Runs.Await(ctx, name.Namespace, run.WorkflowID, run.RunID)
			if err == nil || ctx.Err() != nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(runRetry):
			}
		}
		c.mu.Lock()
		delete(c.runs.awaited, run.RunID)
		c.mu.Unlock()
		c.queue.work.Add(name)
	}()
}

// startRun starts the workflow of a stack, unless an earlier attempt did. If that is not possible now, it sets the step
// to the reason.
func (c *Stacks) startRun(ctx context.Context, state *stackState, next *stackStep, stacks []*v1alpha1.Stack) error {
	s := state.stack
	next.make = false
	if c.Runs == nil {
		next.stall(v1alpha1.ReasonWorkflowRefused,
			"The server uses an external Temporal cluster, and starts workflows of users only in an embedded one. Remove spec.workflow.")
		return nil
	}
	found, err := c.Runs.Read(ctx, s.Namespace, v1alpha1.WorkflowIDOfStack(s.Name), "")
	if err != nil {
		return err
	}
	if last := state.run; found != nil && found.stack == s.UID && (last == nil || found.Number > last.Number) &&
		state.adopt(found) {
		return c.followRun(ctx, state, next)
	}
	if found != nil && found.Outcome == "" {
		return c.awaitOther(ctx, s, found, next, stacks)
	}
	origin := v1alpha1.RunOrigin{Number: 1, StackGeneration: s.Generation, Contents: state.selected.Contents,
		Trigger: next.trigger, Request: next.request}
	if state.run != nil {
		origin.Number = state.run.Number + 1
	}
	spec := state.spec
	spec.Approval = "" // the workflow decides
	run, err := c.Runs.Start(ctx, s, origin, spec)
	switch status.Code(err) {
	case codes.OK:
	case codes.ResourceExhausted:
		*next = work(v1alpha1.ReasonWorkflowRefused,
			"Temporal does not start the workflow of the stack now, and the server tries again: %s.",
			status.Convert(err).Message())
		next.after = runRetry
		return nil
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented:
		next.stall(v1alpha1.ReasonWorkflowRefused,
			fmt.Sprintf("Temporal refused the workflow of the stack: %s. Change spec.workflow.",
				status.Convert(err).Message()))
		return nil
	default:
		return fmt.Errorf("start the workflow of stack %q: %w", s.Name, err)
	}
	c.noteMade(state, next)
	state.run = &stackRun{StackRun: run.StackRun, again: workerGrace}
	return c.followRun(ctx, state, next)
}

// followRun sets the step of a stack whose workflow was started.
func (c *Stacks) followRun(ctx context.Context, state *stackState, next *stackStep) error {
	if err := c.findPlans(ctx, state); err != nil {
		return err
	}
	discard := next.discard
	if *next = state.decide(); next.make { // the run that an earlier attempt started has ended
		next.make, next.after = false, time.Second
	}
	if next.discard == "" {
		next.discard = discard
	}
	if state.run.running() {
		c.awaitRun(ctx, cache.MetaObjectToName(state.stack), state.run.StackRun)
	}
	return nil
}

// awaitOther sets the step of a stack whose workflow ID another workflow has. It cancels the workflow of a deleted
// stack of the same name.
func (c *Stacks) awaitOther(ctx context.Context, s *v1alpha1.Stack, other *userRun, next *stackStep,
	stacks []*v1alpha1.Stack) error {
	owned := slices.ContainsFunc(stacks, func(o *v1alpha1.Stack) bool { return o.UID == other.stack })
	*next = work(v1alpha1.ReasonWorkflowRunning,
		"The stack did not start workflow %s, run %s, which is running. The stack starts its own workflow after the end of that run.", other.WorkflowID, other.RunID)
	next.after = runRetry
	if other.stack == "" || owned {
		return nil
	}
	return c.endRunOfDeleted(ctx, s.Namespace, other)
}

// endDeleted cancels the workflow of a deleted stack. A stack of the same name may exist.
func (c *Stacks) endDeleted(ctx context.Context, name cache.ObjectName, now types.UID) error {
	c.mu.Lock()
	if now == "" {
		delete(c.runs.first, name)
	}
	uid, going := c.runs.going[name]
	c.mu.Unlock()
	if !going || uid == now || c.Runs == nil {
		return nil
	}
	found, err := c.Runs.Read(ctx, name.Namespace, v1alpha1.WorkflowIDOfStack(name.Name), "")
	switch {
	case status.Code(err) == codes.NotFound: // the namespace is being deleted, with its workflows
	case err != nil:
		return err
	case found != nil && found.stack == uid && found.Outcome == "":
		if err := c.endRunOfDeleted(ctx, name.Namespace, found); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs.going[name] == uid {
		delete(c.runs.going, name)
	}
	return nil
}

// endOrphanRuns cancels the workflows of stacks that were deleted while the server was down. Call it when the cache has
// all stacks.
func (c *Stacks) endOrphanRuns(ctx context.Context) error {
	if c.Runs == nil {
		return nil
	}
	exists := map[types.UID]bool{}
	for _, s := range c.all() {
		exists[s.UID] = true
	}
	running, err := c.Runs.Running(ctx)
	if err != nil {
		return err
	}
	for namespace, found := range running {
		for _, run := range found {
			if run.stack == "" || exists[run.stack] {
				continue
			}
			if err := c.endRunOfDeleted(ctx, namespace, run); err != nil {
				return err
			}
		}
	}
	return nil
}

// CancelRun asks the running workflow of a stack to end, or terminates it if no worker has begun it. It returns false
// if no workflow of the stack runs. The status of the stack may show the end later.
func (c *Stacks) CancelRun(ctx context.Context, s *v1alpha1.Stack, reason string) (bool, error) {
	if c.Runs == nil || s.Status.Run == nil {
		return false, nil
	}
	run, err := c.Runs.Read(ctx, s.Namespace, v1alpha1.WorkflowIDOfStack(s.Name), "")
	if err != nil || run == nil || run.stack != s.UID || run.EndedAt != nil {
		return false, err
	}
	return true, c.Runs.End(ctx, s.Namespace, run, reason)
}

// endRunOfDeleted cancels the workflow of a deleted stack, and discards its plans that no user has decided on.
func (c *Stacks) endRunOfDeleted(ctx context.Context, namespace string, run *userRun) error {
	if err := c.Runs.End(ctx, namespace, run, "The stack was deleted."); err != nil {
		return err
	}
	for _, p := range c.plans.in(namespace) {
		if p.Status.Stack != nil || !p.Undecided() || p.Annotations[v1alpha1.AnnotationWorkflowRunID] != run.RunID ||
			p.Annotations[v1alpha1.AnnotationWorkflowID] != run.WorkflowID {
			continue
		}
		name, _ := v1alpha1.StackOfWorkflowID(run.WorkflowID)
		if err := c.plans.discard(ctx, p,
			fmt.Sprintf("Discarded, because the stack %s, whose workflow made it, was deleted.", name)); err != nil {
			return err
		}
	}
	return nil
}
