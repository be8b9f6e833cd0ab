package server_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
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

// TestAnotherFormatIsRefused opens directories of versions with other layouts.
func TestAnotherFormatIsRefused(t *testing.T) {
	for format, want := range map[string]string{"3": "that was not released wrote it (format 3", "999": "a newer version of hykube wrote it (format 999"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "version"), []byte(format+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config := server.Config{DataDir: dir, BindAddress: net.IPv4(127, 0, 0, 1)}
		if _, err := config.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestAWorkerHasADirectoryOfItsOwn starts a server in the directory of a worker, and a worker in that of a server.
func TestAWorkerHasADirectoryOfItsOwn(t *testing.T) {
	for file, test := range map[string]struct {
		worker bool
		want   string
	}{
		"worker": {false, "is that of a worker; choose another one with --data-dir"},
		"tls":    {true, "is that of a server; choose another one with --data-dir"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte("a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config := server.Config{DataDir: dir, BindAddress: net.IPv4(127, 0, 0, 1), Worker: test.worker}
		if _, err := config.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
