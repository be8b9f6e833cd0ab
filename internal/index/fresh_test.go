package index

import (
	"errors"
	"testing"
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
