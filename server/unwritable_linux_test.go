package server_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hykube/hykube/server"
)

// TestUnwritableDataDir looks for the advice that a user without the right to write gets.
func TestUnwritableDataDir(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		asNobody(t, dir)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	c := server.Config{DataDir: dir, BindAddress: net.IPv4(127, 0, 0, 1)}
	if _, err := c.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied; make it writable") {
		t.Errorf("got %v", err)
	}
}

// asNobody removes root's right to write everywhere from the thread of the test, until the test ends. The user nobody
// gets the directory.
func asNobody(t *testing.T, dir string) {
	t.Helper()
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}
