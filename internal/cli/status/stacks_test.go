package status_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

// TestStatusListsStacks lists the stacks that need a person, with the command, and names the plan that waits for an object.
func TestStatusListsStacks(t *testing.T) {
	f := clitest.New(t, cli.Command)
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	stack := func(name, reason, message string, change func(*v1alpha1.Stack)) {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stack": name}}
		s.Status.Author = &v1alpha1.Identity{Username: "eve"}
		condition.Waiting(&s.Status.Conditions, 0, reason, message)
		if change != nil {
			change(s)
		}
		f.PutStack(s)
	}
	stack("outputs", v1alpha1.ReasonOutputsFailed, "The output url is unknown.", nil)
	stack("busy", v1alpha1.ReasonApplying, "Plan busy-1 is applied.", nil)
	stack("web", v1alpha1.ReasonAwaitingApproval, "Approve it: kubectl hykube approve plan-x7k2d", func(s *v1alpha1.Stack) { s.Status.Plan = &v1alpha1.StackPlan{Name: "plan-x7k2d"} })
	stack("checked", "", "", func(s *v1alpha1.Stack) {
		condition.Ready(&s.Status.Conditions, 0, v1alpha1.ReasonApplied, "All matches.")
		s.Status.Drift = &v1alpha1.StackDriftStatus{Last: &v1alpha1.DriftCheck{Outcome: v1alpha1.DriftFailed, EndedAt: &at, Message: "No network."}}
	})
	for name, stack := range map[string]string{"a": "web", "b": ""} {
		f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"stack": stack}}}}, "sim-networks")
	}
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.a", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	out, errOut, code := f.Run("status")
	for _, want := range []string{
		"2  AwaitingPlan (written, and not applied yet; plan plan-x7k2d of stack web waits for an approval: kubectl hykube show plan-x7k2d -n default; the others: kubectl hykube plan)\n",
		"stack/outputs: OutputsFailed: The output url is unknown. The stack acts for eve. To read more: kubectl hykube stack status outputs -n default\n",
		"stack/web: AwaitingApproval: Approve it: kubectl hykube approve plan-x7k2d The stack acts for eve.\n",
		"stack/checked: DriftCheckFailed: 2026-11-24T12:00:00Z: No network. The stack acts for eve.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing: code %d %s %s", want, code, out, errOut)
		}
	}
	if strings.Contains(out, "stack/busy") {
		t.Errorf("a stack that works needs attention: %s", out)
	}
	if out, _, _ := f.Run("status", "-o", "json"); !strings.Contains(out, `"reason": "OutputsFailed"`) {
		t.Errorf("the stacks are missing: %s", out)
	}
	condition.Stalled(&f.Plans["default/plan-x7k2d"].Status.Conditions, 0, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
	out, errOut, code = f.Run("status")
	if !strings.Contains(out, "plan plan-x7k2d of stack web is refused by a policy: kubectl hykube show plan-x7k2d -n default;") || strings.Contains(out, "waits for an approval") {
		t.Errorf("a plan that a policy refuses: code %d %s %s", code, out, errOut)
	}
}
