package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// TestStackStatusReportsAProblemOnce prints stacks whose drift check has a message. A stack that is Ready has it in the
// condition, too.
func TestStackStatusReportsAProblemOnce(t *testing.T) {
	const problem = "A policy refuses the plan."
	check := func(outcome v1alpha1.DriftOutcome) *v1alpha1.DriftCheck {
		return &v1alpha1.DriftCheck{Message: problem, Outcome: outcome, EndedAt: &metav1.Time{Time: time.Now()}}
	}
	for why, tc := range map[string]struct {
		set     func(*[]metav1.Condition, int64, string, string)
		message string
		drift   v1alpha1.StackDriftStatus
	}{
		"Ready, and the last check failed":     {condition.Ready, "All matches. But the last drift check failed: " + problem, v1alpha1.StackDriftStatus{Last: check(v1alpha1.DriftFailed)}},
		"Ready, and a check waits":             {condition.Ready, "All matches. " + problem, v1alpha1.StackDriftStatus{Running: check("")}},
		"Ready, and the last check had a note": {condition.Ready, "All matches.", v1alpha1.StackDriftStatus{Last: check(v1alpha1.DriftNone)}},
		"not Ready, and the last check failed": {condition.Waiting, "Plan web-1 waits.", v1alpha1.StackDriftStatus{Last: check(v1alpha1.DriftFailed)}},
		"not Ready, and a check waits":         {condition.Waiting, "Plan web-1 waits.", v1alpha1.StackDriftStatus{Running: check("")}},
	} {
		s := &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{}}, Status: v1alpha1.StackStatus{Drift: &tc.drift}}
		tc.set(&s.Status.Conditions, 0, "Reason", tc.message)
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		o := &stackStatusOptions{stackArgument{session: &session{terminal: newTerminal(streams)}}}
		if err := o.print(s, nil); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), problem); n != 1 {
			t.Errorf("%s: the message is there %d times:\n%s", why, n, out)
		}
	}
}

// TestScheduleOfAStack prints the schedule of stacks. A suspended stack has no next time.
func TestScheduleOfAStack(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	at := func(change func(*v1alpha1.StackSpec)) *v1alpha1.Stack {
		s := &v1alpha1.Stack{}
		s.Spec.Plan.Schedule = "30 6 * * *"
		change(&s.Spec)
		return s
	}
	for why, tc := range map[string]struct {
		s    *v1alpha1.Stack
		want []string // parts of the lines
	}{
		"none":        {s: &v1alpha1.Stack{}},
		"in UTC":      {at(func(*v1alpha1.StackSpec) {}), []string{"30 6 * * *, UTC", "Next plan: 2026-11-25T06:30:00Z, or up to 5m0s later."}},
		"in a zone":   {at(func(s *v1alpha1.StackSpec) { s.Plan.TimeZone = "Europe/Berlin" }), []string{"Europe/Berlin", " 2026-11-25T05:30:00Z,"}},
		"of a run":    {at(func(s *v1alpha1.StackSpec) { s.Workflow = &v1alpha1.StackWorkflow{} }), []string{"UTC", "workflow: 2026-11-25T06:30:00Z,"}},
		"suspended":   {at(func(s *v1alpha1.StackSpec) { s.Suspend = true }), []string{"UTC"}},
		"not a valid": {at(func(s *v1alpha1.StackSpec) { s.Plan.Schedule = "at noon" }), []string{"at noon"}},
	} {
		lines := scheduleLines(tc.s, now)
		if len(lines) != len(tc.want) {
			t.Errorf("%s: %q", why, lines)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: %q, want %q", why, lines[i], want)
			}
		}
	}
}

// TestStatusListsStacks lists the stacks that need a person, with the command, and names the plan that waits for an object.
func TestStatusListsStacks(t *testing.T) {
	f := newFakeServer(t)
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	stack := func(name, reason, message string, change func(*v1alpha1.Stack)) {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stack": name}}
		s.Status.Author = &v1alpha1.Identity{Username: "eve"}
		condition.Waiting(&s.Status.Conditions, 0, reason, message)
		if change != nil {
			change(s)
		}
		f.putStack(s)
	}
	stack("outputs", v1alpha1.ReasonOutputsFailed, "The output url is unknown.", nil)
	stack("busy", v1alpha1.ReasonApplying, "Plan busy-1 is applied.", nil)
	stack("web", v1alpha1.ReasonAwaitingApproval, "Approve it: kubectl hykube approve plan-x7k2d", func(s *v1alpha1.Stack) { s.Status.Plan = &v1alpha1.StackPlan{Name: "plan-x7k2d"} })
	stack("checked", "", "", func(s *v1alpha1.Stack) {
		condition.Ready(&s.Status.Conditions, 0, v1alpha1.ReasonApplied, "All matches.")
		s.Status.Drift = &v1alpha1.StackDriftStatus{Last: &v1alpha1.DriftCheck{Outcome: v1alpha1.DriftFailed, EndedAt: &at, Message: "No network."}}
	})
	for name, stack := range map[string]string{"a": "web", "b": ""} {
		f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"stack": stack}}}}, "sim-networks")
	}
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.a", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	out, errOut, code := f.run("status")
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
	if out, _, _ := f.run("status", "-o", "json"); !strings.Contains(out, `"reason": "OutputsFailed"`) {
		t.Errorf("the stacks are missing: %s", out)
	}
	condition.Stalled(&f.plans["default/plan-x7k2d"].Status.Conditions, 0, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
	out, errOut, code = f.run("status")
	if !strings.Contains(out, "plan plan-x7k2d of stack web is refused by a policy: kubectl hykube show plan-x7k2d -n default;") || strings.Contains(out, "waits for an approval") {
		t.Errorf("a plan that a policy refuses: code %d %s %s", code, out, errOut)
	}
}
