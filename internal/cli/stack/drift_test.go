package stack_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// TestInterruptedWaits ends waits for a drift check and for a stack. The error says what goes on.
func TestInterruptedWaits(t *testing.T) {
	for why, tc := range map[string]struct {
		args      []string
		interrupt bool
		want      string
	}{
		"a check, and Ctrl-C":    {[]string{"drift", "web", "--now"}, true, "kubectl hykube drift web -n default"},
		"a check, and --timeout": {[]string{"drift", "web", "--now", "--timeout", "20ms"}, false, "kubectl hykube drift web -n default"},
		"a stack, and Ctrl-C":    {[]string{"stack", "wait", "web"}, true, "Not ready yet: web"},
	} {
		t.Run(why, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			s := &v1alpha1.Stack{Status: v1alpha1.StackStatus{Drift: &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "now"}}}}
			s.Name, s.Namespace = "web", "default"
			f.PutStack(s)
			f.Refuse = func(r *http.Request) *metav1.Status {
				if r.Method == http.MethodPost {
					time.Sleep(50 * time.Millisecond) // a slow answer is no part of the wait
				}
				return nil
			}
			if tc.interrupt {
				var cancel context.CancelFunc
				f.Ctx, cancel = context.WithCancel(t.Context())
				f.Refuse = func(r *http.Request) *metav1.Status {
					if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/stacks/web") {
						cancel()
					}
					return nil
				}
			}
			_, errOut, code := f.Run(tc.args...)
			if code != exit.Failed || strings.Contains(errOut, "context") || !strings.Contains(errOut, tc.want) {
				t.Errorf("exit code %d: %s", code, errOut)
			}
		})
	}
}

// TestDriftAfterAFailedCheck does not say that there is no drift if the last check could not read it.
func TestDriftAfterAFailedCheck(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	for outcome, want := range map[v1alpha1.DriftOutcome]string{
		v1alpha1.DriftFailed: "The last drift check failed at 2026-11-24T12:00:00Z, so it is not known whether there is drift: No network.\nNo drift was recorded before. Check again: kubectl hykube drift web -n default --now\n",
		v1alpha1.DriftNone:   "No recorded drift.\n",
	} {
		f := clitest.New(t, cli.Command)
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
		s.Status.Drift = &v1alpha1.StackDriftStatus{Last: &v1alpha1.DriftCheck{Outcome: outcome, EndedAt: &at, Message: "No network."}}
		f.PutStack(s)
		if out, errOut, code := f.Run("drift", "web"); code != exit.Done || out != want {
			t.Errorf("%s: code %d: %s %s", outcome, code, out, errOut)
		}
	}
}
