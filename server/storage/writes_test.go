package storage

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/internal/fair"
)

// TestAWritePrecedesEarlierOnesOfAnotherNamespace holds the database while many writes of one namespace wait. A later write of
// another namespace precedes nearly all of them.
func TestAWritePrecedesEarlierOnesOfAnotherNamespace(t *testing.T) {
	const hostile = 100
	s := openQuiet(t)
	queue := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend).inserts.queue
	for name, of := range map[string]context.Context{
		"plan":    fair.WithKey(t.Context(), "quiet"),
		"request": request.WithRequestInfo(t.Context(), &request.RequestInfo{Namespace: "quiet"}),
		"server":  t.Context(),
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			var mu sync.Mutex
			revisions := map[string]int64{}
			write := func(ctx context.Context, key string) {
				all.Go(func() {
					revision, ok, err := putAt(ctx, s.client.KV, key, []byte("x"), 0)
					if err != nil || !ok {
						t.Errorf("put %s: %v", key, err)
					}
					mu.Lock()
					defer mu.Unlock()
					revisions[key] = revision
				})
			}
			wait := func(writes int) {
				eventually(t, "the writer has the first write, and the others wait", func() bool {
					s.latest.mu.Lock()
					defer s.latest.mu.Unlock()
					return len(s.latest.writing) == writes && queue.Len() == writes-1
				})
			}
			hostileKey := func(i int) string { return fmt.Sprintf("/%s/hostile/%d", name, i) }
			func() {
				s.table.write.Lock()
				defer s.table.write.Unlock()
				for i := range hostile {
					write(fair.WithKey(t.Context(), "hostile"), hostileKey(i))
					if i == 0 {
						wait(1)
					}
				}
				wait(hostile)
				write(of, "/"+name+"/quiet")
				wait(hostile + 1)
			}()
			all.Wait()
			before := 0
			for i := range hostile {
				if revisions[hostileKey(i)] < revisions["/"+name+"/quiet"] {
					before++
				}
			}
			if before > 2 {
				t.Errorf("%d earlier writes of the other namespace precede the write, want at most 2", before)
			}
		})
	}
}
