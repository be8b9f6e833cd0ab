package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/resourceset"
)

func TestStatusOfASet(t *testing.T) {
	instance := func(i index.Instance, flags index.Flags) index.Node {
		return index.Node{Object: &index.Object{Kind: &index.Kind{Type: "sim_instance"}, Name: "web[0]", Flags: flags, Instance: &i}}
	}
	ready, pending := instance(index.Instance{}, index.Good), instance(index.Instance{}, 0)
	failed, applying := instance(index.Instance{Stalled: true}, 0), instance(index.Instance{Applying: true}, 0)
	leaving := instance(index.Instance{Leaving: true}, index.Deleting)
	called, unknown := instance(index.Instance{}, 0), instance(index.Instance{Stalled: true}, 0)
	called.Record, unknown.Record = &index.Record{Intent: true}, &index.Record{Intent: true}
	now := metav1.NewTime(time.Unix(1, 0))
	for why, tc := range map[string]struct {
		set                             index.SetInstances
		ready, failed, pending, leaving int32
		reason, stalled, message        string
	}{
		"all are applied": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{ready, ready}}, ready: 2,
			reason: v1alpha1.ReasonApplied,
		},
		"none": {set: index.SetInstances{Set: &resourceset.Set{}}, reason: v1alpha1.ReasonApplied},
		"one waits for a plan": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{ready, pending}}, ready: 1, pending: 1,
			reason: v1alpha1.ReasonAwaitingPlan,
		},
		"one left the set": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{ready}, Leaving: []index.Node{leaving}}, ready: 1, leaving: 1,
			reason: v1alpha1.ReasonAwaitingPlan,
		},
		"one failed": {
			set: index.SetInstances{Set: &resourceset.Set{Owner: resourceset.Owner{Name: "fleet"}}, Instances: []index.Node{ready, failed, pending}}, ready: 1, failed: 1, pending: 1,
			reason: v1alpha1.ReasonInstancesFailed, stalled: "True", message: "sim_instance.web[0]",
		},
		"one failed and another is applied": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{failed, applying}}, failed: 1, pending: 1,
			reason: v1alpha1.ReasonApplying,
		},
		"one is being created": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{called, pending}}, pending: 2,
			reason: v1alpha1.ReasonApplying,
		},
		"the create of one has an unknown outcome": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{unknown, ready}}, ready: 1, failed: 1,
			reason: v1alpha1.ReasonInstancesFailed, stalled: "True",
		},
		"it is marked for deletion": {
			set: index.SetInstances{Set: &resourceset.Set{Owner: resourceset.Owner{Deleting: &now}}, Instances: []index.Node{pending}}, pending: 1,
			reason: v1alpha1.ReasonDeleting,
		},
		"its keys are not known": {
			set: index.SetInstances{Set: &resourceset.Set{Owner: resourceset.Owner{Problem: "there is no ConfigMap"}}, Leaving: []index.Node{ready, leaving}}, ready: 1, pending: 1,
			reason: v1alpha1.ReasonKeysUnknown, stalled: "True", message: "there is no ConfigMap. The set had 2 when",
		},
	} {
		t.Run(why, func(t *testing.T) {
			tc.set.Generation = 7
			s := v1alpha1.InstancesStatus{Instances: 2}
			summarize(&s, membersOf(&tc.set), nil)
			if s.Ready != tc.ready || s.Failed != tc.failed || s.Pending != tc.pending || s.Leaving != tc.leaving || s.ObservedGeneration != 7 {
				t.Errorf("status %+v", s)
			}
			stalled := ""
			for _, c := range s.Conditions {
				switch c.Type {
				case v1alpha1.ConditionReady:
					if c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
						t.Errorf("reason %s: %s", c.Reason, c.Message)
					}
				case v1alpha1.ConditionStalled:
					stalled = string(c.Status)
				}
			}
			if (stalled == "True") != (tc.stalled == "True") {
				t.Errorf("stalled is %q", stalled)
			}
		})
	}
}

// TestContributorsOfASetEnd ends what users wrote of a set with the apply of all its instances. A write that the index has not
// read yet stays, and so does what plans only found to need no change.
func TestContributorsOfASetEnd(t *testing.T) {
	by := func(name string, second int64) v1alpha1.Contributor {
		return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}, Wrote: []string{"spec"}, At: metav1.NewMicroTime(time.Unix(second, 0))}
	}
	instance := func(flags index.Flags, rec index.Record) index.Node {
		return index.Node{Object: &index.Object{Kind: &index.Kind{Type: "sim_instance"}, Name: "web[0]", Flags: flags, Instance: &index.Instance{}}, Record: &rec}
	}
	done, unchanged := instance(index.Good, index.Record{Exists: true}), instance(index.Good, index.Record{Exists: true, Unapplied: true})
	imports := v1alpha1.ResourceSetSpec{Count: new(int32(1)), Imports: []v1alpha1.InstanceImport{{Key: "7", ID: "net-1"}}}
	dormant, err := resourceset.New(&v1alpha1.ResourceSet{Spec: imports}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for why, tc := range map[string]struct {
		set       *resourceset.Set
		instances []index.Node
		now       []v1alpha1.Contributor
		left      int
	}{
		"eve wrote labels, and nothing was applied": {&resourceset.Set{}, []index.Node{done}, []v1alpha1.Contributor{labelled(by("eve", 1))}, 1},
		"all are applied":               {&resourceset.Set{}, []index.Node{done, unchanged}, []v1alpha1.Contributor{by("eve", 1)}, 0},
		"its values depend on the time": {&resourceset.Set{}, []index.Node{instance(index.Good|index.Impure, index.Record{Exists: true})}, []v1alpha1.Contributor{by("eve", 1)}, 1},
		"eve wrote again meanwhile":     {&resourceset.Set{}, []index.Node{done}, []v1alpha1.Contributor{by("eve", 2)}, 1},
		"another user wrote meanwhile":  {&resourceset.Set{}, []index.Node{done}, []v1alpha1.Contributor{by("eve", 1), by("mallory", 2)}, 1},
		"one waits for a plan":          {&resourceset.Set{}, []index.Node{done, instance(0, index.Record{})}, []v1alpha1.Contributor{by("eve", 1)}, 1},
		"no instance needed a change":   {&resourceset.Set{}, []index.Node{unchanged}, []v1alpha1.Contributor{by("eve", 1)}, 1},
		"it has no instance":            {&resourceset.Set{}, nil, []v1alpha1.Contributor{by("eve", 1)}, 1},
		"it imports a later instance":   {dormant, []index.Node{done}, []v1alpha1.Contributor{by("eve", 1)}, 1},
	} {
		s := v1alpha1.InstancesStatus{Contributors: tc.now}
		set := index.SetInstances{Set: tc.set, Instances: tc.instances, Contributors: []v1alpha1.Contributor{by("eve", 1)}}
		if tc.now[0].Wrote[0] == v1alpha1.WroteLabels {
			set.Contributors = tc.now
			condition.Ready(&s.Conditions, 0, v1alpha1.ReasonApplied, "")
		}
		summarize(&s, membersOf(&set), nil)
		if len(s.Contributors) != tc.left {
			t.Errorf("%s: the contributors are %+v, want %d", why, s.Contributors, tc.left)
		}
		if s.Conditions = nil; tc.left == 1 && len(tc.instances) > 0 && len(tc.now) == 1 && tc.now[0].Wrote[0] == v1alpha1.WroteLabels {
			if summarize(&s, membersOf(&set), nil); len(s.Contributors) != 0 {
				t.Errorf("%s: after an apply, the contributors are %+v", why, s.Contributors)
			}
		}
	}
}

// labelled returns a contributor who wrote labels.
func labelled(c v1alpha1.Contributor) v1alpha1.Contributor {
	c.Wrote = []string{v1alpha1.WroteLabels}
	return c
}

// A rollout in progress is the reason of its set, also while it pauses. A cancelled or ended plan is not.
func TestStatusOfASetInARollout(t *testing.T) {
	plan := func(reason string, change func(*v1alpha1.PlanStatus)) *v1alpha1.Plan {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "roll", Namespace: "default"}}
		p.Status.Rollouts = []v1alpha1.PlanRollout{{ResourceSet: "fleet", UID: "fleet-uid"}}
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, "")
		condition.Reconciling(&p.Status.Conditions, 1, reason, "")
		if change != nil {
			change(&p.Status)
		}
		return p
	}
	pending := index.Node{Object: &index.Object{Kind: &index.Kind{Type: "sim_instance"}, Name: "fleet[0]", Instance: &index.Instance{}}}
	for why, tc := range map[string]struct {
		plan   *v1alpha1.Plan
		reason string
	}{
		"it goes on":       {plan(v1alpha1.ReasonApplying, nil), v1alpha1.ReasonApplying},
		"it pauses":        {plan(v1alpha1.ReasonRolloutPaused, nil), v1alpha1.ReasonRolloutPaused},
		"it is cancelled":  {plan(v1alpha1.ReasonCancelling, func(s *v1alpha1.PlanStatus) { s.Cancel = &v1alpha1.PlanCancel{} }), v1alpha1.ReasonAwaitingPlan},
		"it has ended":     {plan(v1alpha1.ReasonApplying, func(s *v1alpha1.PlanStatus) { s.FinishedAt = new(metav1.Now()) }), v1alpha1.ReasonAwaitingPlan},
		"of another set":   {plan(v1alpha1.ReasonApplying, func(s *v1alpha1.PlanStatus) { s.Rollouts[0].UID = "other" }), v1alpha1.ReasonAwaitingPlan},
		"not approved yet": {plan(v1alpha1.ReasonPlanning, func(s *v1alpha1.PlanStatus) { s.Conditions = s.Conditions[1:] }), v1alpha1.ReasonAwaitingPlan},
	} {
		t.Run(why, func(t *testing.T) {
			plans := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if err := plans.Add(tc.plan); err != nil {
				t.Fatal(err)
			}
			c := &ResourceSets{plans: plans, rolled: map[index.Touched]bool{}, ended: map[string]time.Time{}}
			c.planChanged(tc.plan)
			if fleet := (types.NamespacedName{Namespace: "default", Name: "fleet"}); len(c.rolled) != 1 || !c.rolled[index.Touched{NamespacedName: fleet}] {
				t.Errorf("the plan changes the sets %v", c.rolled)
			}
			if _, ended := c.ended["default"]; ended != tc.plan.Ended() {
				t.Errorf("the namespaces of ended plans are %v", c.ended)
			}
			set := index.SetInstances{Set: &resourceset.Set{Owner: resourceset.Owner{Name: "fleet", UID: "fleet-uid"}}, Instances: []index.Node{pending}}
			set.Namespace = "default"
			s := v1alpha1.InstancesStatus{}
			summarize(&s, membersOf(&set), c.rollingOut(&set))
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != tc.reason || strings.Contains(ready.Message, `the rollout of plan "roll"`) != (tc.reason != v1alpha1.ReasonAwaitingPlan) {
				t.Errorf("got %+v", ready)
			}
		})
	}
}
