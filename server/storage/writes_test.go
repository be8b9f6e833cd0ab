package storage

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/internal/fair"
)

// TestAWritePrecedesEarlierOnesOfAnotherNamespace holds the database while many writes of one namespace wait for a slot. A
// later write of another namespace gets its slot at once.
func TestAWritePrecedesEarlierOnesOfAnotherNamespace(t *testing.T) {
	const hostile = 100
	s := openQuiet(t)
	slots := s.backend.(pausing).Backend.(lists).Backend.(sqliteBackend).slots
	for name, of := range map[string]context.Context{
		"plan":    fair.WithKey(t.Context(), "quiet"),
		"request": request.WithRequestInfo(t.Context(), &request.RequestInfo{Namespace: "quiet"}),
		"server":  t.Context(),
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			defer all.Wait()
			s.table.write.Lock()
			defer s.table.write.Unlock()
			write := func(ctx context.Context, key string) {
				all.Go(func() {
					if _, ok, err := putAt(ctx, s.client.KV, key, []byte("x"), 0); err != nil || !ok {
						t.Errorf("put %s: %v", key, err)
					}
				})
			}
			for i := range hostile {
				write(fair.WithKey(t.Context(), "hostile"), fmt.Sprintf("/%s/hostile/%d", name, i))
			}
			wait := func() bool { return slots.Waiting() >= hostile-sqliteWriters }
			eventually(t, "the writes of the other namespace wait", wait)
			key := "/" + name + "/quiet"
			write(of, key)
			eventually(t, "the write has a slot", func() bool {
				s.latest.mu.Lock()
				defer s.latest.mu.Unlock()
				return s.latest.writing[key] == 1
			})
			if !wait() {
				t.Error("the other writes do not wait any more")
			}
		})
	}
}
