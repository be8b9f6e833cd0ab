package changes

import (
	"sync"
	"testing"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
)

// TestReadAhead reads the changes of a plan concurrently, roughly in their order. It lists them in few pages, and returns a change
// that was written since.
func TestReadAhead(t *testing.T) {
	const n, together = 1000, 256
	kv := ledgertest.New()
	l := ledger.New(kv)
	for i := range int32(n) {
		c := &ledger.Change{}
		c.Index = i
		if err := l.SaveChange(t.Context(), "p", c); err != nil {
			t.Fatal(err)
		}
	}
	before, ahead := kv.Lists, NewReadAhead(l, "p")
	for from := 0; from < n; from += together {
		var wait sync.WaitGroup
		for i := min(from+together, n) - 1; i >= from; i-- {
			wait.Go(func() {
				if c, err := ahead.Change(t.Context(), int32(i)); err != nil || c.Index != int32(i) {
					t.Errorf("change %d: %v, %v", i, c, err)
				}
			})
		}
		wait.Wait()
	}
	if got := kv.Lists - before; got > 3*n/aheadPage {
		t.Errorf("%d changes with %d lists", n, got)
	}

	ahead = NewReadAhead(l, "p")
	if _, err := ahead.Change(t.Context(), 0); err != nil { // it reads the next one, too
		t.Fatal(err)
	}
	edited, err := l.Change(t.Context(), "p", 1)
	if err != nil {
		t.Fatal(err)
	}
	edited.Message = "edited"
	ahead.Forget(t.Context(), 1)
	if err := l.SaveChange(t.Context(), "p", edited); err != nil {
		t.Fatal(err)
	}
	if c, err := ahead.Change(t.Context(), 1); err != nil || c.Message != "edited" {
		t.Errorf("after a write: %+v, %v", c, err)
	}
	if c, err := ahead.Change(t.Context(), n+9); err == nil {
		t.Errorf("a change that does not exist: %+v", c)
	}
}
