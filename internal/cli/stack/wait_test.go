package stack_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

// TestStackWaitForNothing waits for Ready stacks with and without resources. It prints the message of the latter.
func TestStackWaitForNothing(t *testing.T) {
	f := clitest.New(t, cli.Command)
	for name, resources := range map[string]int32{"web": 2, "wbe": 0} {
		s := &v1alpha1.Stack{}
		s.Name, s.Namespace, s.Generation = name, "default", 1
		s.Status.Resources, s.Status.ObservedGeneration = resources, 1
		condition.Ready(&s.Status.Conditions, 1, v1alpha1.ReasonApplied, "The message of "+name+".")
		f.PutStack(s)
	}
	out, errOut, code := f.Run("stack", "wait", "web", "wbe")
	if code != 0 || out != "stack.hykube.io/web is ready\nstack.hykube.io/wbe is ready\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	if strings.Contains(errOut, "of web.") || !strings.Contains(errOut, "of wbe.") {
		t.Errorf("stderr: %s", errOut)
	}
}

// TestStackWaitForAnApproval ends a wait with --detailed-exitcode when a plan waits for a person, and not for a plan of an old spec.
func TestStackWaitForAnApproval(t *testing.T) {
	for why, tc := range map[string]struct {
		observed int64
		args     []string
		code     int
		says     string
	}{
		"a person must decide":               {2, []string{"--detailed-exitcode"}, exit.Changes, "Plan web-1 waits for approval."},
		"the plan is that of an old spec":    {1, []string{"--detailed-exitcode", "--timeout", "1s"}, exit.Failed, "not ready after 1s"},
		"the person may decide in that time": {2, []string{"--timeout", "1s"}, exit.Failed, "Plan web-1 waits for approval."},
	} {
		t.Run(why, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			s := &v1alpha1.Stack{}
			s.Name, s.Namespace, s.Generation, s.Status.ObservedGeneration = "web", "default", 2, tc.observed
			condition.Waiting(&s.Status.Conditions, tc.observed, v1alpha1.ReasonAwaitingApproval, "Plan web-1 waits for approval.")
			f.PutStack(s)
			_, errOut, code := f.Run(append([]string{"stack", "wait", "web"}, tc.args...)...)
			if code != tc.code || !strings.Contains(errOut, tc.says) {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, errOut)
			}
		})
	}
}

// TestStackWithoutAName runs the commands of stacks with a wrong number of names.
func TestStackWithoutAName(t *testing.T) {
	f := clitest.New(t, cli.Command)
	for _, args := range [][]string{{"status"}, {"history"}, {"outputs"}, {"wait"}, {"status", "web", "shop"}, {"outputs", "web", "url", "more"}} {
		_, errOut, code := f.Run(append([]string{"stack"}, args...)...)
		usage := "kubectl hykube stack " + args[0] + " STACK"
		if code != exit.Failed || !strings.Contains(errOut, usage) || (len(args) == 1) != strings.Contains(errOut, "kubectl hykube stack list") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut)
		}
	}
}

// TestPlanVerbsNameTheStack writes the name of a stack in place of that of a plan.
func TestPlanVerbsNameTheStack(t *testing.T) {
	f := clitest.New(t, cli.Command)
	s := &v1alpha1.Stack{Status: v1alpha1.StackStatus{Plan: &v1alpha1.StackPlan{Name: "shop-7"}}}
	s.Name, s.Namespace = "shop", "default"
	f.PutStack(s)
	for _, args := range [][]string{{"approve", "shop"}, {"status", "shop"}, {"show", "stack/shop"}} {
		if _, errOut, code := f.Run(args...); code != exit.Failed || !strings.Contains(errOut, "kubectl hykube stack status shop -n default") || !strings.Contains(errOut, "shop-7") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut)
		}
	}
	if _, errOut, code := f.Run("status", "web"); code != exit.Failed || strings.Contains(errOut, "stack status") {
		t.Errorf("without such a stack: exit code %d, %s", code, errOut)
	}
}
