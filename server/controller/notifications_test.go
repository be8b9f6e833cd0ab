package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

func TestCurrentTransitionsOfANotification(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	plan := func(name, stack string, planned time.Time) *v1alpha1.Plan {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		p.Status.PlannedAt = &metav1.Time{Time: planned}
		if stack != "" {
			p.Status.Stack = &v1alpha1.PlanStack{Stack: stack}
		}
		condition.Waiting(&p.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "")
		return p
	}
	drifted := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web", Labels: map[string]string{"team": "a"}}}
	condition.Stalled(&drifted.Status.Conditions, 1, v1alpha1.ReasonDrifted, "")
	plain := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "plain", UID: "plain"}}
	plans := []*v1alpha1.Plan{
		plan("later", "", at.Add(time.Second)), plan("before", "", at.Add(-time.Second)), plan("same", "", at.Time), plan("web-1", "web", at.Add(2*time.Second)), plan("plain-1", "plain", at.Add(3*time.Second)),
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.NotificationSpec)
		want   []string
	}{
		"all since the spec was written, oldest first": {func(*v1alpha1.NotificationSpec) {}, []string{"same", "later", "web-1", "plain-1", "web"}},
		"one reason": {func(s *v1alpha1.NotificationSpec) { s.Reasons = []v1alpha1.NotificationReason{v1alpha1.NotifyDrifted} }, []string{"web"}},
		"stacks with labels, and their plans": {func(s *v1alpha1.NotificationSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		}, []string{"web-1", "web"}},
		"stacks without a label": {func(s *v1alpha1.NotificationSpec) {
			s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, []string{"plain-1"}},
	} {
		n := &v1alpha1.Notification{Status: v1alpha1.NotificationStatus{Since: &at}}
		n.Spec.Reasons = []v1alpha1.NotificationReason{v1alpha1.NotifyAwaitingApproval, v1alpha1.NotifyDrifted}
		tc.change(&n.Spec)
		var got []string
		for _, tr := range currentOf(n, plans, []*v1alpha1.Stack{plain, drifted}) {
			got = append(got, tr.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
