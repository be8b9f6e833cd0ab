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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resourceset"
)

// ResourceSets writes the status of ResourceSets and Modules, which counts their instances by state.
type ResourceSets struct {
	Index *index.Index
	// Update changes the status of a set. It does nothing if there is no set with the UID.
	Update func(ctx context.Context, namespace, name string, uid types.UID,
		change func(*v1alpha1.ResourceSetStatus)) error
	// Release removes the finalizer of a set that is being deleted and has no records. The step of the last instance
	// may have failed to do it. Forget removes the statuses of the instances of a removed set.
	Release func(ctx context.Context, namespace, name string, uid types.UID) error
	Forget  func(ctx context.Context, namespace string, uid types.UID) error
	// UpdateModule and ReleaseModule are Update and Release for Modules.
	UpdateModule func(ctx context.Context, namespace, name string, uid types.UID,
		change func(*v1alpha1.ModuleStatus)) error
	ReleaseModule func(ctx context.Context, namespace, name string, uid types.UID) error
	// Outputs evaluates the outputs of a Module with the rights of a user. It returns a *query.OutputError if the
	// reason is one that a user can change.
	Outputs func(ctx context.Context, who v1alpha1.Identity,
		m *resourceset.Module) (map[string]v1alpha1.ModuleOutput, error)
	Logger *slog.Logger

	// plans has the Plans, by namespace; nil without any.
	plans cache.Indexer
	mu    sync.Mutex
	// rolled holds the sets whose rollout began, paused, continued or ended since the last update.
	rolled map[index.Touched]bool
	// ended holds the namespaces with a plan that ended since the last update, and the time of the end.
	ended map[string]time.Time
}

// follow updates the sets of the plans whose state changes.
func (c *ResourceSets) follow(plans *Plans) {
	c.plans, c.rolled, c.ended = plans.informer.GetIndexer(), map[index.Touched]bool{}, map[string]time.Time{}
	// AddEventHandler fails only on a stopped informer.
	_, _ = plans.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.planChanged,
		UpdateFunc: func(old, now any) {
			before, _ := readyOf(old.(*v1alpha1.Plan))
			if after, _ := readyOf(now.(*v1alpha1.Plan)); before != after {
				c.planChanged(now)
			}
		},
		DeleteFunc: c.planChanged,
	})
}

func (c *ResourceSets) planChanged(obj any) {
	if deleted, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = deleted.Obj
	}
	p, ok := obj.(*v1alpha1.Plan)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Ended() {
		c.ended[p.Namespace] = time.Now()
	}
	for _, r := range p.Status.Rollouts {
		c.rolled[index.Touched{NamespacedName: types.NamespacedName{Namespace: p.Namespace,
			Name: r.ResourceSet}}] = true
	}
}

// take adds the sets that changed, and the namespaces with a plan that ended, to a schedule.
func (c *ResourceSets) take(ctx context.Context, s *setSchedule) {
	c.mu.Lock()
	ended := len(c.ended) > 0
	maps.Copy(s.ended, c.ended)
	for namespace := range c.ended {
		c.Index.TouchOutputs(namespace)
	}
	for t := range c.rolled {
		s.add(t)
	}
	clear(c.ended)
	clear(c.rolled)
	c.mu.Unlock()
	if ended {
		_ = c.Index.Refresh(ctx) // the update of each set refreshes again, and returns the error
	}
	for _, t := range c.Index.Touched() {
		s.add(t)
	}
}

// rollingOut returns the plan that is applied and has a rollout of a set; nil if there is none.
func (c *ResourceSets) rollingOut(set *index.SetInstances) *v1alpha1.Plan {
	if c.plans == nil {
		return nil
	}
	for _, p := range inNamespace[*v1alpha1.Plan](c.plans, set.Namespace) {
		if !p.Ended() && p.Status.Cancel == nil && meta.IsStatusConditionTrue(p.Status.Conditions,
			v1alpha1.ConditionApproved) &&
			slices.ContainsFunc(p.Status.Rollouts, func(r v1alpha1.PlanRollout) bool { return r.UID == set.UID }) {
			return p
		}
	}
	return nil
}

// run updates the changed sets until ctx ends.
func (c *ResourceSets) run(ctx context.Context) {
	schedule := newSetSchedule()
	for {
		c.take(ctx, schedule)
		passBegan := time.Now()
		due := schedule.due(passBegan)
		for _, t := range due {
			_ = c.Index.Refresh(ctx) // the update returns the error; its time must not have the wait for the index
			began := time.Now()
			err := c.update(ctx, t)
			if err != nil && ctx.Err() == nil {
				c.Logger.Warn("update the status of a ResourceSet or Module; trying again", "module", t.Module,
					"namespace", t.Namespace, "name", t.Name, "error", err)
			}
			schedule.updated(t, began, time.Now(), err != nil)
		}
		if len(due) > 0 {
			schedule.pause(passBegan, time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(setInterval):
		}
	}
}

func (c *ResourceSets) update(ctx context.Context, t index.Touched) error {
	if t.Removed != "" {
		if err := c.Forget(ctx, t.Namespace, t.Removed); err != nil {
			return err
		}
	}
	if t.Module {
		return c.updateModule(ctx, t)
	}
	sets, err := c.Index.Sets(ctx, t.Namespace, t.Name)
	if err != nil || len(sets) == 0 {
		return err
	}
	set := sets[0]
	if set.Deleting != nil && set.Held {
		if err := c.Release(ctx, set.Namespace, set.Name, set.UID); err != nil {
			return err
		}
	}
	err = c.Update(ctx, set.Namespace, set.Name, set.UID, func(s *v1alpha1.ResourceSetStatus) {
		summarize(&s.InstancesStatus, membersOf(&set), c.rollingOut(&set))
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another write changed or removed the set, so the index will name it again
	}
	return err
}

// updateModule is update for a Module.
func (c *ResourceSets) updateModule(ctx context.Context, t index.Touched) error {
	modules, err := c.Index.Modules(ctx, t.Namespace, t.Name)
	if err != nil || len(modules) == 0 {
		return err
	}
	m := modules[0]
	if m.Deleting != nil && m.Held {
		if err := c.ReleaseModule(ctx, m.Namespace, m.Name, m.UID); err != nil {
			return err
		}
	}
	outputs, refused, err := c.outputsOf(ctx, &m)
	if err != nil {
		return err
	}
	err = c.UpdateModule(ctx, m.Namespace, m.Name, m.UID, func(s *v1alpha1.ModuleStatus) {
		s.Digest, s.Outputs = m.Digest, outputs
		summarize(&s.InstancesStatus, &members{Owner: &m.Owner, kind: "Module", instances: m.Instances,
			leaving: m.Leaving, contributors: m.Object.Status.Contributors}, nil)
		if len(m.Waiting) > 0 && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
			at := slices.Min(slices.Collect(maps.Keys(m.Waiting)))
			condition.Waiting(&s.Conditions, m.Generation, v1alpha1.ReasonAwaitingPlan,
				fmt.Sprintf("The instances of %s are not known: %s. Make a Plan.", at, m.Waiting[at]))
		}
		if refused != "" && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
			condition.Stalled(&s.Conditions, m.Generation, v1alpha1.ReasonOutputsFailed,
				"The resources are ready, but "+refused)
		}
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // as for a set
	}
	return err
}

// outputsOf returns the outputs of a Module, and the reason why one cannot be evaluated; "" if all can.
func (c *ResourceSets) outputsOf(ctx context.Context,
	m *index.ModuleInstances) (outputs map[string]v1alpha1.ModuleOutput, refused string, err error) {
	if len(m.Outputs) == 0 || m.Object.Status.Author == nil {
		return nil, "", nil
	}
	outputs, err = c.Outputs(ctx, *m.Object.Status.Author, m.Module)
	if problem, ok := errors.AsType[*query.OutputError](err); ok {
		return nil, problem.Problem, nil
	}
	return outputs, "", err
}

// members are the instances of a ResourceSet or a Module.
type members struct {
	*resourceset.Owner
	kind               string
	instances, leaving []index.Node
	contributors       []v1alpha1.Contributor
	// dormant is that of a ResourceSet.
	dormant bool
}

func membersOf(set *index.SetInstances) *members {
	return &members{Owner: &set.Owner, kind: "ResourceSet", instances: set.Instances, leaving: set.Leaving,
		contributors: set.Contributors, dormant: set.Dormant()}
}

// summarize sets the status of a ResourceSet or a Module from its instances. rollingOut is the plan whose rollout of
// the set is in progress; nil if there is none.
func summarize(s *v1alpha1.InstancesStatus, set *members, rollingOut *v1alpha1.Plan) {
	s.ObservedGeneration = set.Generation
	instances, leaving := set.instances, set.leaving
	if set.Problem != "" { // the recorded instances may be those that the set has, or not
		instances, leaving = set.leaving, nil
	} else {
		s.Instances = int32(len(instances))
	}
	s.Ready, s.Failed, s.Pending = 0, 0, 0
	s.Leaving = int32(len(leaving))
	applying, failed := 0, ""
	note := func(n index.Node, leaving bool) {
		switch o := n.Object; {
		case o.Instance.Stalled:
			s.Failed++
			if failed == "" {
				failed = o.Address().String()
			}
		case leaving:
		case o.Has(index.Good):
			s.Ready++
		default:
			s.Pending++
		}
		if o := n.Object; o.Instance.Applying || n.Record != nil && n.Record.Intent && !o.Instance.Stalled {
			applying++
		}
	}
	for _, n := range instances {
		note(n, false)
	}
	for _, n := range leaving {
		note(n, true)
	}
	g, c := set.Generation, &s.Conditions
	what, left, when, show := "instances", "the set", "its keys were", "kubectl hykube instances "+set.Name
	if set.kind == "Module" {
		what, left, when, show = "resources", "the Module", "they were", "kubectl get resources -n "+set.Namespace
	}
	progress := fmt.Sprintf("%d of %d %s are ready", s.Ready, s.Instances, what)
	if s.Leaving > 0 {
		progress += fmt.Sprintf(", and the next plan destroys %d that left %s", s.Leaving, left)
	}
	switch {
	case set.Problem != "":
		condition.Stalled(c, g, v1alpha1.ReasonKeysUnknown, fmt.Sprintf(
			"The %s are not known: %s. %s had %d when %s last known, and no plan changes or destroys one until they are known again.", what, set.Problem, capital(left), s.Instances, when))
	case applying > 0:
		condition.Reconciling(c, g, v1alpha1.ReasonApplying, progress+"; an apply is in progress.")
	case rollingOut != nil:
		reason := v1alpha1.ReasonApplying
		if now, _ := readyOf(rollingOut); now == v1alpha1.ReasonRolloutPaused {
			reason = now
		}
		condition.Reconciling(c, g, reason,
			fmt.Sprintf("%s; the rollout of plan %q is in progress.", progress, rollingOut.Name))
	case s.Failed > 0:
		condition.Stalled(c, g, v1alpha1.ReasonInstancesFailed,
			fmt.Sprintf("%s, and %d have a failure, such as %s. %s shows them.", progress, s.Failed, failed, show))
	case set.Deleting != nil:
		condition.Waiting(c, g, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
	case s.Pending+s.Leaving > 0:
		condition.Waiting(c, g, v1alpha1.ReasonAwaitingPlan, progress+"; make a Plan to apply the rest.")
	default:
		wasReady := meta.IsStatusConditionTrue(*c, v1alpha1.ConditionReady)
		condition.Ready(c, g, v1alpha1.ReasonApplied, progress+".")
		if appliedWrites(set) {
			s.Contributors = contributor.Without(s.Contributors, endedWrites(set.contributors, wasReady))
		}
	}
}

// capital returns a text with a capital letter at its beginning.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// endedWrites returns the contributors whose writes an apply ended. While the set stays ready, no plan applied
// anything, so those who wrote labels stay: because of the labels, a stack may select the set.
func endedWrites(list []v1alpha1.Contributor, wasReady bool) []v1alpha1.Contributor {
	if !wasReady {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list),
		func(c v1alpha1.Contributor) bool { return slices.Contains(c.Wrote, v1alpha1.WroteLabels) })
}

// appliedWrites reports whether a plan has applied what the contributors of a set wrote, if all its instances are
// ready. Without an instance, or if plans only found that the instances need no change, nobody has approved it yet. The
// same holds for an entry of an instance that the set does not have. An impure template may give another value later,
// which nobody has approved.
func appliedWrites(set *members) bool {
	if slices.ContainsFunc(set.instances, func(n index.Node) bool { return n.Object.Has(index.Impure) }) {
		return false
	}
	return !set.dormant && slices.ContainsFunc(set.instances,
		func(n index.Node) bool { return n.Record != nil && !n.Record.Unapplied })
}
