package controller

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestReadsOfStacksWaitForChanges reads stacks after changes. The read returns when a reconcile that began after the last
// change has ended, and waits for no other namespace.
func TestReadsOfStacksWaitForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewStacks(StacksConfig{Logger: slog.New(slog.DiscardHandler)})
		defer c.queue.work.ShutDown()
		web := cache.NewObjectName("prod", "web")
		read := func(namespace string) <-chan struct{} {
			done := make(chan struct{})
			go func() { defer close(done); c.Current(t.Context(), namespace) }()
			synctest.Wait()
			return done
		}
		waits := func(why string, done <-chan struct{}, want bool) {
			t.Helper()
			synctest.Wait()
			select {
			case <-done:
				if want {
					t.Errorf("%s: the read did not wait", why)
				}
			default:
				if !want {
					t.Errorf("%s: the read waits", why)
				}
			}
		}
		waits("nothing changed", read("prod"), false)

		c.noteUpdate(web)
		first := read("prod")
		waits("a change", first, true)
		waits("a change in another namespace", read("dev"), false)
		end := c.beginUpdate(web)
		waits("the reconcile has only begun", first, true)
		waits("another read meanwhile", read(""), true)
		c.noteUpdate(web) // the reconcile that runs may have missed this one
		second := read("prod")
		end()
		waits("the reconcile has ended", first, false)
		waits("a change during the reconcile", second, true)
		c.beginUpdate(web)()
		waits("the next reconcile has ended", second, false)
		waits("nothing is left", read(""), false)

		c.noteUpdate(web)
		began := time.Now()
		if c.Current(context.Background(), "prod"); time.Since(began) != currentLimit {
			t.Errorf("a read waited %s for a reconcile that never ends, want %s", time.Since(began), currentLimit)
		}
	})
}
