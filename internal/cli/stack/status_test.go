package stack

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
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
		o := &stackStatusOptions{stackArgument{Session: &session.Session{Terminal: terminal.New(streams)}}}
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
