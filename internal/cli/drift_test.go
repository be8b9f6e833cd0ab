package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
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
			f := newFakeServer(t)
			s := &v1alpha1.Stack{Status: v1alpha1.StackStatus{Drift: &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "now"}}}}
			s.Name, s.Namespace = "web", "default"
			f.putStack(s)
			if tc.interrupt {
				var cancel context.CancelFunc
				f.ctx, cancel = context.WithCancel(t.Context())
				f.refuse = func(r *http.Request) *metav1.Status {
					if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/stacks/web") {
						cancel()
					}
					return nil
				}
			}
			_, errOut, code := f.run(tc.args...)
			if code != ExitError || strings.Contains(errOut, "context") || !strings.Contains(errOut, tc.want) {
				t.Errorf("exit code %d: %s", code, errOut)
			}
		})
	}
}
