package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
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
			set: index.SetInstances{Set: &resourceset.Set{Name: "fleet"}, Instances: []index.Node{ready, failed, pending}}, ready: 1, failed: 1, pending: 1,
			reason: v1alpha1.ReasonInstancesFailed, stalled: "True", message: "sim_instance.web[0]",
		},
		"one failed and another is applied": {
			set: index.SetInstances{Set: &resourceset.Set{}, Instances: []index.Node{failed, applying}}, failed: 1, pending: 1,
			reason: v1alpha1.ReasonApplying,
		},
		"it is marked for deletion": {
			set: index.SetInstances{Set: &resourceset.Set{Deleting: &now}, Instances: []index.Node{pending}}, pending: 1,
			reason: v1alpha1.ReasonDeleting,
		},
		"its keys are not known": {
			set: index.SetInstances{Set: &resourceset.Set{Problem: "there is no ConfigMap"}, Leaving: []index.Node{leaving}}, leaving: 1,
			reason: v1alpha1.ReasonKeysUnknown, stalled: "True", message: "there is no ConfigMap",
		},
	} {
		t.Run(why, func(t *testing.T) {
			tc.set.Generation = 7
			s := v1alpha1.ResourceSetStatus{}
			summarize(&s, &tc.set)
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
