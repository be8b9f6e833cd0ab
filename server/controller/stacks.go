package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/stack"
	"github.com/hykube/hykube/internal/store"
)

// Stacks makes the plans of Stacks. It acts when an object, a record, a plan or a stack changes. The objects hold its
// state: a plan records the stack and the contents for which it was made.
type Stacks struct {
	StacksConfig

	plans    *Plans
	informer cache.SharedIndexInformer
	queue    *queue[cache.ObjectName]

	mu sync.Mutex
	// seen holds, by stack, the last known contents and the time at which they were first seen.
	seen map[types.UID]seenContents
	// updates holds the changes that the status of a stack may not show yet.
	updates map[cache.ObjectName]*update
	runs    knownRuns
	overdue overdue
}

// StacksConfig configures Stacks. Every field but Runs is required.
type StacksConfig struct {
	Client rest.Interface
	// Update changes the status of a stack. It does nothing if there is none with the UID.
	Update func(ctx context.Context, namespace, name string, uid types.UID, change func(*v1alpha1.StackStatus)) error
	// Select returns the resources that a stack selects; see planning.Select.
	Select func(ctx context.Context, who *v1alpha1.Identity, namespace string,
		selects func(labels.Set) bool) (*planning.Selection, error)
	// Outputs evaluates the outputs of a stack and writes them to the objects that its spec names.
	Outputs func(ctx context.Context, stack *v1alpha1.Stack) ([]v1alpha1.StackOutput, error)
	// Written returns a text that differs when an object to which Outputs writes was changed or deleted.
	Written func(ctx context.Context, stack *v1alpha1.Stack) (string, error)
	// Access checks the rights of the authors of stacks, and Users knows whether the server still knows them.
	Access store.Access
	Users  store.Users
	// Frozen reports whether the stacks of a namespace make no plans and no drift checks now; nil means never.
	Frozen func(namespace string) bool
	// Runs starts the workflows of stacks; nil with an external Temporal cluster.
	Runs *UserRuns
	// Schedules keeps the Temporal Schedules of the stacks.
	Schedules *Schedules
	Logger    *slog.Logger
}

// seenContents are contents of a stack, the time at which they were first seen, and the time that it took to find them.
type seenContents struct {
	contents string
	at       time.Time
	cost     time.Duration
	// changed is the time at which this process saw other contents than before; zero if it saw none.
	changed time.Time
	// after is the last plan of the stack, if it had ended when the contents changed; empty if it had not.
	after types.UID
	// coveredBy is the plan of a user that last covered the stack, and covered are the contents that it first covered.
	coveredBy types.UID
	covered   string
	// written is what users had written when this process made the last plan of the stack or started its workflow;
	// empty before.
	written string
	// made holds the times, for the last countedFor, at which this process made those plans that may follow from
	// applies of stacks.
	made []time.Time
}

const (
	// countedFor is the time for which a stack may make plansAtOnce plans without a pause. Its own outputs, or those of
	// another stack, may change its resources with each apply.
	countedFor  = 10 * time.Minute
	plansAtOnce = 10
	// firstPause is the pause before the next plan. Each further one is twice as long, up to countedFor.
	firstPause = 10 * time.Second
)

// recent returns the times that are not longer ago than countedFor.
func recent(made []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(made), func(at time.Time) bool { return now.Sub(at) > countedFor })
}

// noteMade notes that a stack made a plan or started its workflow.
func (c *Stacks) noteMade(state *stackState, next *stackStep) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.seen[state.stack.UID]
	known.made = recent(known.made, state.now)
	if state.mayLoop(known.written) && !timed(next.trigger, next.attempt) {
		known.made = append(known.made, state.now)
	}
	known.written = state.written()
	c.seen[state.stack.UID] = known
}

// notBefore returns the time before which a stack makes no plan that may follow from applies of stacks; zero if it may
// make one now.
func (c *Stacks) notBefore(state *stackState) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.seen[state.stack.UID]
	made := recent(known.made, state.now)
	excess := len(made) - plansAtOnce
	if excess < 0 || !state.mayLoop(known.written) {
		return time.Time{}
	}
	return made[len(made)-1].Add(min(countedFor, firstPause<<min(excess, 10)))
}

// NewStacks returns the controller of Stacks. Run starts it.
func NewStacks(config StacksConfig) *Stacks {
	c := &Stacks{StacksConfig: config, seen: map[types.UID]seenContents{}, updates: map[cache.ObjectName]*update{},
		runs: newKnownRuns()}
	c.queue = newQueue("stack", c.Logger, c.reconcile)
	c.informer = informer(c.Client, "stacks", &v1alpha1.Stack{}, c.queue)
	return c
}

func (c *Stacks) start(plans *Plans) {
	c.plans, plans.stacks = plans, c
	// A stack without a selector depends on the selectors of the others, and a stack depends on those that it names.
	follow(c.informer, c.noteRun)
	follow(c.informer, c.changedIn)
	follow(plans.informer, c.planChanged)
}

// planChanged queues the stack of a plan. When a plan ends or becomes stale, it queues all stacks of the namespace,
// because they may wait for it.
func (c *Stacks) planChanged(obj metav1.Object) {
	plan, ok := obj.(*v1alpha1.Plan)
	if !ok {
		return
	}
	if name := plan.StackName(); name != "" {
		c.queue.work.Add(cache.NewObjectName(plan.Namespace, name))
	}
	if plan.Ended() || waits(plan) && !awaitsApproval(plan) { // stacks may wait for it
		c.NamespaceChanged(plan.Namespace)
	}
}

func (c *Stacks) changedIn(obj metav1.Object) { c.NamespaceChanged(obj.GetNamespace()) }

// NamespaceChanged queues the stacks of a namespace, because something in it changed.
func (c *Stacks) NamespaceChanged(namespace string) {
	for _, s := range c.in(namespace) {
		c.mu.Lock()
		cost := c.seen[s.UID].cost
		c.mu.Unlock()
		name := cache.NewObjectName(s.Namespace, s.Name)
		c.noteUpdate(name)
		c.queue.work.AddAfter(name, pauseAfter(cost))
	}
}

// pauseAfter returns the pause before the server selects the resources of a stack again. An apply changes a large
// namespace every second, and the selections must not slow it down.
func pauseAfter(cost time.Duration) time.Duration {
	if cost < 50*time.Millisecond {
		return 0
	}
	return 10 * cost
}

// in returns the stacks of a namespace, sorted by name. Callers must not change them.
func (c *Stacks) in(namespace string) []*v1alpha1.Stack {
	out := inNamespace[*v1alpha1.Stack](c.informer.GetIndexer(), namespace)
	slices.SortFunc(out, func(a, b *v1alpha1.Stack) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (c *Stacks) reconcile(ctx context.Context, name cache.ObjectName) error {
	if c.Frozen != nil && c.Frozen(name.Namespace) {
		c.queue.work.AddAfter(name, heldPoll)
		return nil
	}
	defer c.beginUpdate(name)()
	stacks := c.in(name.Namespace)
	if err := c.endOrphans(ctx, name.Namespace, stacks); err != nil {
		return err
	}
	at := slices.IndexFunc(stacks, func(s *v1alpha1.Stack) bool { return s.Name == name.Name })
	if at < 0 {
		c.forgetDeleted()
		return errors.Join(c.endDeleted(ctx, name, ""), c.Schedules.DeleteKept(ctx, c.all))
	}
	s := stacks[at]
	if err := c.endDeleted(ctx, name, s.UID); err != nil {
		return err
	}
	err := c.plan(ctx, s, stacks)
	if err != nil && ctx.Err() == nil {
		c.reportError(ctx, s, err)
	}
	if len(wanted(s)) > 0 {
		c.queue.work.AddAfter(name, scheduleCheck)
	}
	return errors.Join(err, c.Schedules.Ensure(ctx, s), c.checkDrift(ctx, s, stacks))
}

// reportError sets the conditions of a stack whose state is unknown, so that it does not stay Ready.
func (c *Stacks) reportError(ctx context.Context, s *v1alpha1.Stack, err error) {
	step := work(v1alpha1.ReasonRetrying, "The server could not read the state of the stack, and tries again: %s", err)
	err = c.Update(ctx, s.Namespace, s.Name, s.UID, func(status *v1alpha1.StackStatus) {
		step.set(&status.Conditions, s.Generation, step.reason, step.message)
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.Logger.Warn("cannot report an error of a stack", "namespace", s.Namespace, "name", s.Name, "error", err)
	}
}

// plan takes the next step of a stack, and writes its status.
func (c *Stacks) plan(ctx context.Context, s *v1alpha1.Stack, stacks []*v1alpha1.Stack) error {
	plans := c.plansOf(s)
	if err := c.endReplaced(ctx, s, plans); err != nil {
		return err
	}
	state, err := c.read(ctx, s, plans, stacks)
	if err != nil {
		return err
	}
	next := state.decide()
	if next.make {
		if err := c.make(ctx, state, &next, stacks); err != nil {
			return err
		}
	}
	if next.discard != "" {
		if err := c.plans.discard(ctx, state.plan, next.discard); err != nil {
			return err
		}
	}
	if next.after > 0 {
		c.queue.work.AddAfter(cache.NewObjectName(s.Namespace, s.Name), next.after)
	}
	outputs := c.outputs(ctx, state, &next)
	err = c.Update(ctx, s.Namespace, s.Name, s.UID, func(status *v1alpha1.StackStatus) {
		state.write(status, next)
		outputs(status)
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the change of the stack queues it again
	}
	return err
}

// make makes the next plan of a stack, or starts its workflow.
func (c *Stacks) make(ctx context.Context, state *stackState, next *stackStep, stacks []*v1alpha1.Stack) error {
	if state.stack.Spec.Workflow != nil {
		return c.startRun(ctx, state, next, stacks)
	}
	return c.makePlan(ctx, state, next)
}

// plansOf returns the plans of a stack without those of drift checks, the latest first.
func (c *Stacks) plansOf(s *v1alpha1.Stack) (out []*v1alpha1.Plan) {
	for _, p := range c.plans.in(s.Namespace) {
		if p.Status.Stack != nil && p.Status.Stack.StackUID == s.UID && !isCheck(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Plan) int { return int(b.Status.Stack.Number - a.Status.Stack.Number) })
	return out
}

// endOrphans ends the plans of deleted stacks, unless they were approved.
func (c *Stacks) endOrphans(ctx context.Context, namespace string, stacks []*v1alpha1.Stack) error {
	for _, p := range c.plans.in(namespace) {
		origin := p.Status.Stack
		if origin == nil || !p.Undecided() ||
			slices.ContainsFunc(stacks, func(s *v1alpha1.Stack) bool { return s.UID == origin.StackUID }) {
			continue
		}
		if err := c.plans.discard(ctx, p,
			fmt.Sprintf("Discarded, because the stack %s, which made it, was deleted.", origin.Stack)); err != nil {
			return err
		}
	}
	return nil
}

// replacedBy returns the message of a plan of a stack after which the stack made another one.
func replacedBy(next *v1alpha1.Plan, s *v1alpha1.Stack) string {
	return fmt.Sprintf("Superseded by plan %s, which the stack %s made after a change. %s", next.Name, s.Name,
		toRead(next))
}

// endReplaced ends the waiting plans of a stack, except the latest.
func (c *Stacks) endReplaced(ctx context.Context, s *v1alpha1.Stack, plans []*v1alpha1.Plan) error {
	for _, p := range plans[min(1, len(plans)):] {
		if !waits(p) {
			continue
		}
		if err := c.plans.supersede(ctx, p, replacedBy(plans[0], s)); err != nil {
			return err
		}
	}
	return nil
}

// read reads the input of the decision about a stack.
func (c *Stacks) read(ctx context.Context, s *v1alpha1.Stack, plans []*v1alpha1.Plan,
	stacks []*v1alpha1.Stack) (*stackState, error) {
	state := &stackState{stack: s, last: s.Status.Plan, now: time.Now()}
	if len(plans) > 0 && (state.last == nil || plans[0].Status.Stack.Number >= state.last.Number) {
		state.plan = plans[0]
		state.last = snapshot(state.plan)
	}
	if state.plan == nil && state.last != nil && !state.last.Ended { // the cache may not have it yet
		fresh, err := c.plans.Status.Get(ctx, s.Namespace, state.last.Name, state.last.UID)
		if err == nil {
			state.plan, state.last = fresh, snapshot(fresh)
		} else if !errors.Is(err, store.ErrGone) {
			return nil, err
		}
	}
	if old := s.Status.Plan; old != nil && state.last != nil && state.last != old && old.UID == state.last.UID {
		state.last.UnknownCreates = old.UnknownCreates
	}
	if state.busy() {
		return state, nil // the selection matters when the plan has ended
	}
	state.allowed = state.plan != nil && c.plans.allows(state.plan)
	err := c.readRun(ctx, state)
	if err != nil || state.run.running() {
		return state, err
	}
	picks, overlaps := watchOverlap(s, stacks)
	if state.selected, err = c.Select(ctx, s.Status.Author, s.Namespace, picks); err != nil {
		return nil, fmt.Errorf("find the resources of stack %q: %w", s.Name, err)
	}
	state.overlaps = *overlaps
	c.noteContents(state)
	state.notBefore = c.notBefore(state)
	state.spec = planSpec(s, stacks, state.selected)
	if state.run != nil {
		if err := c.findPlans(ctx, state); err != nil {
			return state, err
		}
	}
	for _, p := range c.plans.in(s.Namespace) {
		if state.plan != nil && p.UID != state.plan.UID && !p.Ended() {
			state.others = append(state.others, p)
		}
	}
	if state.covering, err = c.covering(ctx, state); err != nil {
		return nil, err
	}
	if state.waits, err = c.waitsFor(ctx, s, stacks); err != nil {
		return nil, err
	}
	state.missing, err = c.missing(ctx, s)
	if author := s.Status.Author; state.missing != "" && author != nil && c.Users != nil {
		_, known := c.Users.Current(*author)
		state.unknown = !known
	}
	return state, err
}

// missing returns the right that the author of a stack lacks to make plans, or to start its workflow; "" if there is
// none.
func (c *Stacks) missing(ctx context.Context, s *v1alpha1.Stack) (string, error) {
	right := store.Right{Verb: store.VerbCreate, Namespace: s.Namespace, Group: v1alpha1.GroupName, Resource: "plans"}
	if s.Spec.Workflow != nil {
		right = store.StartsWorkflows(s.Namespace, s.Spec.Workflow.TaskQueue)
	}
	if s.Status.Author != nil {
		may, err := c.Access.May(ctx, *s.Status.Author, right)
		if err != nil || may {
			return "", err
		}
	}
	return right.String(), nil
}

// noteContents notes the contents of a stack, whose selection began at the time of the state. It sets since when they
// are seen, and after what they changed to them.
func (c *Stacks) noteContents(state *stackState) {
	s, contents, began := state.stack, state.selected.Contents, state.now
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.seen[s.UID]
	before := known.contents
	if known.at.IsZero() {
		before = s.Status.Contents
	}
	if before != contents && before != "" {
		known.changed, known.after = began, ""
		if state.plan != nil && state.plan.Ended() {
			known.after = state.plan.UID
		}
	}
	if known.contents != contents || known.at.IsZero() {
		known.contents, known.at = contents, began
	}
	known.cost = time.Since(began)
	c.seen[s.UID] = known
	state.changedAt, state.changedFrom = known.at, known.changed
	state.changedSince = state.plan != nil && known.after == state.plan.UID
}

// all returns all stacks. Callers must not change them.
func (c *Stacks) all() []*v1alpha1.Stack {
	var out []*v1alpha1.Stack
	for _, obj := range c.informer.GetStore().List() {
		out = append(out, obj.(*v1alpha1.Stack))
	}
	return out
}

// forgetDeleted forgets the contents of deleted stacks.
func (c *Stacks) forgetDeleted() {
	exists := map[types.UID]bool{}
	for _, s := range c.all() {
		exists[s.UID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.seen, func(uid types.UID, _ seenContents) bool { return !exists[uid] })
	maps.DeleteFunc(c.runs.read, func(uid types.UID, _ bool) bool { return !exists[uid] })
}

// selection returns the resources that a stack selects.
func (c *Stacks) selection(ctx context.Context, s *v1alpha1.Stack,
	stacks []*v1alpha1.Stack) (*planning.Selection, error) {
	selected, err := c.Select(ctx, s.Status.Author, s.Namespace, stack.Selects(s, stacks))
	if err != nil {
		return nil, fmt.Errorf("find the resources of stack %q: %w", s.Name, err)
	}
	return selected, nil
}
