package contain

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestCheckDiskSearchesForDeletedFiles deletes a file that stays open. No space is lost since the last search, as when
// another process frees as much meanwhile. The check finds the file when a search is due, and not before.
func TestCheckDiskSearchesForDeletedFiles(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "provider")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "hidden"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	limits := diskLimits{process: usage{1 << 19, 100}, all: usage{1 << 30, 100}}
	for age, want := range map[time.Duration]bool{0: false, searchEvery: true} {
		ended := false
		r := &running{sandbox: &Sandbox{Dir: dir}, group: syscall.Getpgrp(), end: func(string) { ended = true }}
		checkDisk([]*running{r}, limits, home, deletedSearch{at: time.Now().Add(-age)})
		if ended != want {
			t.Errorf("%s after the last search, the process has ended: %t", age, ended)
		}
	}
}
