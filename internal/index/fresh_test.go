package index

import (
	"errors"
	"testing"

	"github.com/hykube/hykube/internal/bug"
)

func TestCallersShareARefresh(t *testing.T) {
	var s refreshCount
	refreshes := 0
	refresh := func() error { refreshes++; return nil }
	run := func(asked int64, want int) {
		t.Helper()
		if err := s.run(asked, refresh); err != nil || refreshes != want {
			t.Errorf("%d refreshes, want %d: %v", refreshes, want, err)
		}
	}
	before := s.begun.Load()
	run(before, 1)
	run(before, 1) // it asked before that refresh began
	run(s.begun.Load(), 2)

	// Two callers ask while a refresh runs, which may have read before their writes. They need another one, and share it.
	var during int64
	if err := s.run(s.begun.Load(), func() error { during = s.begun.Load(); return refresh() }); err != nil {
		t.Fatal(err)
	}
	run(during, 4)
	run(during, 4)

	// A refresh that failed serves nobody.
	before = s.begun.Load()
	if err := s.run(before, func() error { return errors.New("the database is gone") }); err == nil {
		t.Error("the error is gone")
	}
	run(before, 5)
}

// TestAPanicEndsNoRefreshForGood panics while the index has half of the changes, and refreshes again.
func TestAPanicEndsNoRefreshForGood(t *testing.T) {
	x := New(nil, nil, nil)
	x.namespaces["team"], x.objectsAt = &namespace{}, 7
	err := x.guarded(func() error { panic("half") })
	if !bug.Is(err) || len(x.namespaces) != 0 || x.objectsAt != 0 {
		t.Errorf("%d namespaces at revision %d are left: %v", len(x.namespaces), x.objectsAt, err)
	}
	if err := x.guarded(func() error { return nil }); err != nil {
		t.Error(err)
	}
}
