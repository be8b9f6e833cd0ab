package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// A server that dies during an apply is reported once, and once when it is back. One that is back at once is not.
func TestServerThatStops(t *testing.T) {
	const lost, back = " does not answer. The command keeps trying for a minute. ", "The server answers again.\n"
	for reason, tc := range map[string]struct {
		down time.Duration
		told int
	}{
		"for a while":  {lostAfter + 900*time.Millisecond, 1},
		"for a moment": {lostAfter / 5, 0},
	} {
		t.Run(reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
				refuse := func(r func(*http.Request) *metav1.Status) {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.refuse = r
				}
				time.Sleep(100 * time.Millisecond) // the command watches the apply
				refuse(func(*http.Request) *metav1.Status {
					return status(503, metav1.StatusReasonServiceUnavailable, "it starts")
				})
				f.disconnect()
				time.Sleep(tc.down)
				refuse(nil)
				time.Sleep(300 * time.Millisecond)
				f.applying = nil
				f.apply(p)
			}
			out, errOut, code := f.run("apply", "-f", write(t, firstFiles), "--auto-approve")
			if code != ExitDone || strings.Count(errOut, lost) != tc.told || strings.Count(errOut, back) != tc.told {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
		})
	}
}
