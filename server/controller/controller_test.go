package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestQueueNeverGivesUp fails for an hour, which is longer than an outage of a store or of Temporal. The queue must
// forget no name.
func TestQueueNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		done := map[string]time.Duration{}
		tries := 0
		q := newQueue("thing", slog.New(slog.DiscardHandler), func(_ context.Context, name cache.ObjectName) error {
			mu.Lock()
			defer mu.Unlock()
			if tries++; time.Since(began) < time.Hour && name.Name == "unlucky" {
				return errors.New("not yet")
			}
			done[name.Name] = time.Since(began)
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.run(ctx, 2)
		}()
		q.work.Add(cache.ObjectName{Name: "lucky"})
		q.work.Add(cache.ObjectName{Name: "unlucky"})
		time.Sleep(time.Hour + 2*pause) // of the bubble's clock
		synctest.Wait()
		mu.Lock()
		if done["lucky"] != 0 || done["unlucky"] < time.Hour || tries > 80 {
			t.Errorf("done %v after %d tries", done, tries)
		}
		mu.Unlock()
		stop()
		<-ended
	})
}
