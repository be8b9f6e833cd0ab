package operation_test

import (
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

// A server that dies during an apply is reported once, and once when it is back. One that is back at once is not.
func TestServerThatStops(t *testing.T) {
	const lost, back = " does not answer. The command keeps trying for a minute. ", "The server answers again.\n"
	for reason, tc := range map[string]struct {
		down time.Duration
		told int
	}{
		"for a while":  {time.Second + 900*time.Millisecond, 1},
		"for a moment": {time.Second / 5, 0},
	} {
		t.Run(reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				refuse := func(r func(*http.Request) *metav1.Status) {
					f.Mu.Lock()
					defer f.Mu.Unlock()
					f.Refuse = r
				}
				time.Sleep(100 * time.Millisecond) // the command watches the apply
				refuse(func(*http.Request) *metav1.Status {
					return clitest.Status(503, metav1.StatusReasonServiceUnavailable, "it starts")
				})
				f.Disconnect()
				time.Sleep(tc.down)
				refuse(nil)
				time.Sleep(300 * time.Millisecond)
				f.Applying = nil
				f.Apply(p)
			}
			out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
			if code != exit.Done || strings.Count(errOut, lost) != tc.told || strings.Count(errOut, back) != tc.told {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
		})
	}
}
