package server_test

import (
	"os"
	"testing"

	"github.com/hykube/hykube/server"
)

// TestOtherUsersReachPackagesAlone checks the entries of a data directory that other users may enter: providers run as
// users of their own.
func TestOtherUsersReachPackagesAlone(t *testing.T) {
	dir := t.TempDir()
	startT(t, server.Config{DataDir: dir})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("entries %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "providers" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("other users may use %s: %v", e.Name(), info.Mode())
		}
	}
}
