package server_test

import (
	"os"
	"path/filepath"
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

// TestOlderVersionsRefuseCompressedRows starts a server on the directory of a version that compressed no rows. That version
// refuses a directory with a higher number.
func TestOlderVersionsRefuseCompressedRows(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "version")
	if err := os.WriteFile(file, []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startT(t, server.Config{DataDir: dir})
	if got, err := os.ReadFile(file); err != nil || string(got) != "3\n" {
		t.Errorf("the format is %q, %v; want 3", got, err)
	}
}
