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

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities/notifying"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/notification"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/workflows"
)

// Notifications signals the workflows of Notifications with the current transitions of their namespaces, such as plans
// that wait for approval. The workflow knows for which transitions it has sent a message. So a restarted server signals
// all of them again, and no message is lost or sent twice.
type Notifications struct {
	Client   rest.Interface
	Temporal client.Client
	Secrets  notifying.Secrets
	// Frozen reports whether no message of a namespace is sent now; nil means never.
	Frozen func(namespace string) bool
	Logger *slog.Logger

	plans    *Plans
	stacks   *Stacks
	informer cache.SharedIndexInformer
	queue    *queue[cache.ObjectName]

	mu sync.Mutex
	// signaled holds, by the ID of a workflow, the transitions in the last signal of this process. signaledAt holds the
	// time of that signal.
	signaled   map[string]map[string]bool
	signaledAt map[string]time.Time
	// ids holds the workflows by the names of their Notifications.
	ids map[cache.ObjectName]string
}

const (
	// maxCurrent is the maximum number of transitions in a signal. It has the latest ones.
	maxCurrent = 100
	// signalInterval is the minimum time between two signals to a workflow, so that its history stays small.
	signalInterval = 2 * time.Second
)

func (c *Notifications) start(plans *Plans, stacks *Stacks, secrets cache.SharedIndexInformer) {
	c.plans, c.stacks = plans, stacks
	c.signaled, c.signaledAt, c.ids = map[string]map[string]bool{}, map[string]time.Time{},
		map[cache.ObjectName]string{}
	c.queue = newQueue("notification", c.Logger, c.reconcile)
	c.informer = informer(c.Client, "notifications", &v1alpha1.Notification{}, c.queue)
	changed := func(obj any) {
		if o, err := meta.Accessor(obj); err == nil {
			c.enqueue(o.GetNamespace(), func(*v1alpha1.Notification) bool { return true })
		}
	}
	for _, inf := range []cache.SharedIndexInformer{plans.informer, stacks.informer} {
		// AddEventHandler fails only on a stopped informer.
		_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed,
			UpdateFunc: func(_, obj any) { changed(obj) }})
	}
	follow(secrets, c.secretChanged)
}

// secretChanged queues the Notifications that name a Secret.
func (c *Notifications) secretChanged(secret metav1.Object) {
	c.enqueue(secret.GetNamespace(), func(n *v1alpha1.Notification) bool {
		return slices.ContainsFunc(n.Spec.Webhook.SecretKeys(),
			func(k v1alpha1.SecretKey) bool { return k.Name == secret.GetName() })
	})
}

// enqueue queues the Notifications of a namespace that are concerned.
func (c *Notifications) enqueue(namespace string, concerned func(*v1alpha1.Notification) bool) {
	found, _ := c.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, obj := range found {
		if n := obj.(*v1alpha1.Notification); concerned(n) {
			c.queue.work.Add(cache.MetaObjectToName(n))
		}
	}
}

// noteSecrets sets the conditions of a Notification by its Secrets, because a user must know of a missing Secret before
// the first message is due.
func (c *Notifications) noteSecrets(ctx context.Context, n *v1alpha1.Notification) error {
	reason, text, err := notifying.CheckSecrets(ctx, c.Secrets, n)
	if err != nil || !notifying.NoteSecrets(n.DeepCopy(), reason, text) {
		return err
	}
	note := func(fresh *v1alpha1.Notification) error {
		if fresh.UID == n.UID && fresh.Generation == n.Generation {
			notifying.NoteSecrets(fresh, reason, text)
		}
		return nil
	}
	return ignoreNotFound(loopback.Update(ctx, c.Client, "notifications", n.Namespace, n.Name, "status", note))
}

func (c *Notifications) reconcile(ctx context.Context, name cache.ObjectName) error {
	if c.Frozen != nil && c.Frozen(name.Namespace) {
		c.queue.work.AddAfter(name, heldPoll)
		return nil
	}
	n, ok, err := lookup[*v1alpha1.Notification](c.informer, name)
	if err != nil {
		return err
	}
	id := ""
	if ok {
		id = refOfNotification(n).WorkflowID()
	}
	c.mu.Lock()
	old := c.ids[name]
	c.mu.Unlock()
	if old != "" && old != id {
		if err := c.cancel(ctx, old); err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.signaled, old)
		delete(c.signaledAt, old)
		delete(c.ids, name)
		c.mu.Unlock()
	}
	if !ok || n.Spec.Suspend || n.DeletionTimestamp != nil {
		return nil
	}
	if err := c.noteSecrets(ctx, n); err != nil {
		return err
	}
	current := c.current(n)
	c.mu.Lock()
	c.ids[name] = id
	signaled, rest := c.signaled[id], signalInterval-time.Since(c.signaledAt[id])
	c.mu.Unlock()
	if !slices.ContainsFunc(current, func(t notification.Transition) bool { return !signaled[t.ID] }) {
		return nil
	}
	if rest > 0 {
		c.queue.work.AddAfter(name, rest)
		return nil
	}
	if err := c.signal(ctx, n, current); err != nil {
		return err
	}
	signaled = map[string]bool{}
	for _, t := range current {
		signaled[t.ID] = true
	}
	c.mu.Lock()
	c.signaled[id], c.signaledAt[id] = signaled, time.Now()
	c.mu.Unlock()
	return nil
}

func refOfNotification(n *v1alpha1.Notification) workflows.Notification {
	return workflows.Notification{Namespace: n.Namespace, Name: n.Name, UID: string(n.UID)}
}

// current returns the transitions of the namespace that a Notification asks for, oldest first.
func (c *Notifications) current(n *v1alpha1.Notification) []notification.Transition {
	return currentOf(n, c.plans.in(n.Namespace), c.stacks.in(n.Namespace))
}

func currentOf(n *v1alpha1.Notification, plans []*v1alpha1.Plan,
	stacks []*v1alpha1.Stack) (out []notification.Transition) {
	selects := func(labels.Set) bool { return true }
	if n.Spec.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(n.Spec.Selector)
		if err != nil {
			return nil // the validation refuses it
		}
		selects = func(set labels.Set) bool { return set != nil && selector.Matches(set) }
	}
	add := func(t notification.Transition, ok bool, of labels.Set) {
		since := n.Status.Since
		if ok && selects(of) && slices.Contains(n.Spec.Reasons, t.Reason) && since != nil && !t.At.Before(since.Time) {
			out = append(out, t)
		}
	}
	byName := map[string]labels.Set{}
	for _, s := range stacks {
		byName[s.Name] = labels.Set{}
		if len(s.Labels) > 0 {
			byName[s.Name] = s.Labels
		}
		t, ok := notification.OfStack(s)
		add(t, ok, byName[s.Name])
	}
	for _, p := range plans {
		t, ok := notification.OfPlan(p)
		var of labels.Set // nil for a plan without a stack
		if name := p.StackName(); name != "" {
			of = byName[name]
		}
		add(t, ok, of)
	}
	slices.SortFunc(out, func(a, b notification.Transition) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID))
	})
	return out[max(0, len(out)-maxCurrent):]
}

// signal signals the workflow of a Notification, and starts it if it does not run.
func (c *Notifications) signal(ctx context.Context, n *v1alpha1.Notification, current []notification.Transition) error {
	ref := refOfNotification(n)
	_, err := c.Temporal.SignalWithStartWorkflow(ctx, ref.WorkflowID(), workflows.SignalTransitions,
		workflows.Transitions{Current: current}, client.StartWorkflowOptions{
			ID: ref.WorkflowID(), TaskQueue: workflows.TaskQueue,
			TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword(workflows.SearchNamespace).ValueSet(n.Namespace)),
			Priority:      temporal.Priority{FairnessKey: n.Namespace},
			StaticSummary: fmt.Sprintf("Notification %s/%s", n.Namespace, n.Name),
		}, workflows.NotifyName, workflows.NotifyState{Notification: ref})
	if err != nil {
		return fmt.Errorf("signal workflow %q: %w", ref.WorkflowID(), err)
	}
	return nil
}

func (c *Notifications) cancel(ctx context.Context, id string) error {
	err := c.Temporal.CancelWorkflow(ctx, id, "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); err != nil && !none {
		return fmt.Errorf("cancel workflow %q: %w", id, err)
	}
	return nil
}

// cancelOrphans cancels the workflows of Notifications that were deleted while the server was down.
func (c *Notifications) cancelOrphans(ctx context.Context) error {
	exists := map[string]bool{}
	for _, obj := range c.informer.GetStore().List() {
		exists[refOfNotification(obj.(*v1alpha1.Notification)).WorkflowID()] = true
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflows.NotifyName)}
	for {
		page, err := c.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows of Notifications: %w", err)
		}
		for _, w := range page.GetExecutions() {
			if id := w.GetExecution().GetWorkflowId(); !exists[id] {
				if err := c.cancel(ctx, id); err != nil {
					return err
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}
