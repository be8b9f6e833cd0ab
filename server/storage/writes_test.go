package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/internal/fair"
)

// TestWritesOfANamespaceWaitForFewOfAnother writes from one namespace without a pause. Each write of another namespace
// then waits for few of those, instead of for all earlier ones.
func TestWritesOfANamespaceWaitForFewOfAnother(t *testing.T) {
	const writers, writes, most = 100, 20, 30
	s := openStore(t)
	write := func(ctx context.Context, key string) error {
		_, _, err := putAt(ctx, s.client.KV, key, []byte("x"), 0)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_ = write(fair.WithKey(ctx, "hostile"), fmt.Sprintf("/hostile/%d/%d", i, n))
				made.Add(1)
			}
		})
	}
	defer all.Wait()
	defer cancel()
	for made.Load() < writers {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]context.Context{
		"plan":    fair.WithKey(t.Context(), "quiet"),
		"request": request.WithRequestInfo(t.Context(), &request.RequestInfo{Namespace: "quiet"}),
		"server":  t.Context(),
	} {
		waited := int64(0)
		for i := range writes {
			before := made.Load()
			if err := write(of, fmt.Sprintf("/%s/%d", name, i)); err != nil {
				t.Fatal(err)
			}
			waited += made.Load() - before
		}
		if mean := waited / writes; mean > most {
			t.Errorf("a write of a %s waited for %d writes of another namespace, want at most %d", name, mean, most)
		}
	}
}
