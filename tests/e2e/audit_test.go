package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/harness"
)

// TestAuditSurvivesKill kills a server while clients write. The log stays complete, while the server is down and after
// its next start.
func TestAuditSurvivesKill(t *testing.T) {
	s := &harness.Server{Dir: t.TempDir()}
	s.Serve(t)
	verify := func(when string) {
		t.Helper()
		out, err := s.Command(t.Context(), "hykube", "audit", "verify", "--data-dir", s.Data()).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "complete and unchanged: records 1 to ") {
			t.Errorf("%s: %v: %s", when, err, out)
		}
	}
	written := make(chan struct{})
	go func() {
		n := 0
		for ; ; n++ {
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"audited-%d"}}`, n)
			if s.Client().Post().AbsPath("/api/v1/namespaces/default/secrets").Body([]byte(body)).Do(t.Context()).Error() != nil {
				break
			}
			if n == 50 {
				written <- struct{}{}
			}
		}
		close(written)
	}()
	if _, ok := <-written; !ok {
		t.Fatal("a write failed before the server was killed")
	}
	s.Kill()
	<-written
	verify("while the server is down")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	verify("after the next start")
}
