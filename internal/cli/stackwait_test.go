package cli

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// TestStackVerdict decides for each kind of state whether a wait goes on. Only a state that needs a person ends it early.
func TestStackVerdict(t *testing.T) {
	for why, tc := range map[string]struct {
		set      func(*[]metav1.Condition, int64, string, string)
		reason   string
		observed int64
		ready    bool
		code     int
	}{
		"all matches the specs":         {condition.Ready, v1alpha1.ReasonApplied, 2, true, 0},
		"the status is of an old spec":  {condition.Ready, v1alpha1.ReasonApplied, 1, false, 0},
		"a plan is applied":             {condition.Reconciling, v1alpha1.ReasonApplying, 2, false, 0},
		"a person must approve":         {condition.Waiting, v1alpha1.ReasonAwaitingApproval, 2, false, 0},
		"an apply failed":               {condition.Stalled, v1alpha1.ReasonApplyFailed, 2, false, ExitError},
		"an old spec failed":            {condition.Stalled, v1alpha1.ReasonApplyFailed, 1, false, 0},
		"preventDestroy blocks a plan":  {condition.Stalled, v1alpha1.ReasonBlocked, 2, false, ExitRefused},
		"the author lost a right":       {condition.Stalled, v1alpha1.ReasonMissingRights, 2, false, ExitRefused},
		"a policy denies the next plan": {condition.Stalled, v1alpha1.ReasonPolicyDenied, 2, false, ExitRefused},
	} {
		t.Run(why, func(t *testing.T) {
			s := &v1alpha1.Stack{}
			s.Name, s.Generation, s.Status.ObservedGeneration = "web", 2, tc.observed
			tc.set(&s.Status.Conditions, tc.observed, tc.reason, "The message.")
			ready, _, err := stackVerdict(s)
			code := 0
			if exit, ok := errors.AsType[*exitError](err); ok {
				code = exit.code
			}
			if ready != tc.ready || code != tc.code {
				t.Errorf("ready %t, exit code %d, want %t and %d: %v", ready, code, tc.ready, tc.code, err)
			}
		})
	}
}

// TestStackName takes the name of a stack with and without its kind, and no other prefix for a kind.
func TestStackName(t *testing.T) {
	for arg, want := range map[string]string{"web": "web", "stack/web": "web", "stacks.hykube.io/web": "web", "stk/web": "web", "shop/web": "", "plan/web": ""} {
		if got, err := stackName(arg); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", arg, got, err, want)
		}
	}
}

// TestStackWaitForNothing waits for Ready stacks with and without resources. It prints the message of the latter.
func TestStackWaitForNothing(t *testing.T) {
	f := newFakeServer(t)
	for name, resources := range map[string]int32{"web": 2, "wbe": 0} {
		s := &v1alpha1.Stack{}
		s.Name, s.Namespace, s.Generation = name, "default", 1
		s.Status.Resources, s.Status.ObservedGeneration = resources, 1
		condition.Ready(&s.Status.Conditions, 1, v1alpha1.ReasonApplied, "The message of "+name+".")
		f.putStack(s)
	}
	out, errOut, code := f.run("stack", "wait", "web", "wbe")
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
		"a person must decide":               {2, []string{"--detailed-exitcode"}, ExitChanges, "Plan web-1 waits for approval."},
		"the plan is that of an old spec":    {1, []string{"--detailed-exitcode", "--timeout", "1s"}, ExitError, "not ready after 1s"},
		"the person may decide in that time": {2, []string{"--timeout", "1s"}, ExitError, "Plan web-1 waits for approval."},
	} {
		t.Run(why, func(t *testing.T) {
			f := newFakeServer(t)
			s := &v1alpha1.Stack{}
			s.Name, s.Namespace, s.Generation, s.Status.ObservedGeneration = "web", "default", 2, tc.observed
			condition.Waiting(&s.Status.Conditions, tc.observed, v1alpha1.ReasonAwaitingApproval, "Plan web-1 waits for approval.")
			f.putStack(s)
			_, errOut, code := f.run(append([]string{"stack", "wait", "web"}, tc.args...)...)
			if code != tc.code || !strings.Contains(errOut, tc.says) {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, errOut)
			}
		})
	}
}

// putStack records a stack.
func (f *fakeServer) putStack(s *v1alpha1.Stack) {
	f.t.Helper()
	s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "Stack"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		f.t.Fatal(err)
	}
	f.put(&unstructured.Unstructured{Object: object}, stacksResource)
}

// TestStackWithoutAName runs the commands of stacks with a wrong number of names.
func TestStackWithoutAName(t *testing.T) {
	f := newFakeServer(t)
	for _, args := range [][]string{{"status"}, {"history"}, {"outputs"}, {"wait"}, {"status", "web", "shop"}, {"outputs", "web", "url", "more"}} {
		_, errOut, code := f.run(append([]string{"stack"}, args...)...)
		usage := "kubectl hykube stack " + args[0] + " STACK"
		if code != ExitError || !strings.Contains(errOut, usage) || (len(args) == 1) != strings.Contains(errOut, "kubectl hykube stack list") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut)
		}
	}
}

// TestPlanVerbsNameTheStack writes the name of a stack in place of that of a plan.
func TestPlanVerbsNameTheStack(t *testing.T) {
	f := newFakeServer(t)
	s := &v1alpha1.Stack{Status: v1alpha1.StackStatus{Plan: &v1alpha1.StackPlan{Name: "shop-7"}}}
	s.Name, s.Namespace = "shop", "default"
	f.putStack(s)
	for _, args := range [][]string{{"approve", "shop"}, {"status", "shop"}, {"show", "stack/shop"}} {
		if _, errOut, code := f.run(args...); code != ExitError || !strings.Contains(errOut, "kubectl hykube stack status shop -n default") || !strings.Contains(errOut, "shop-7") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut)
		}
	}
	if _, errOut, code := f.run("status", "web"); code != ExitError || strings.Contains(errOut, "stack status") {
		t.Errorf("without such a stack: exit code %d, %s", code, errOut)
	}
}
