//go:build linux

package cgrouptest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// NewRoot returns a new cgroup without processes, and removes it with all of its processes at the end of the test. It
// uses the cgroup v2 of the machine or, if there is none, mounts one for the test. It skips the test where that is
// impossible.
func NewRoot(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a cgroup; run this test as root")
	}
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if err := unix.Statfs(top, &st); err != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		if dir, err := os.MkdirTemp(top, "hykube-test-*"); err == nil {
			t.Cleanup(func() { remove(t, dir) })
			return dir
		}
	}
	top := t.TempDir()
	if err := unix.Mount("none", top, "cgroup2", 0, ""); err != nil {
		t.Skip("this process may not write a cgroup v2, nor mount one: " + err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir, err := os.MkdirTemp(top, "hykube-test-*")
	if err != nil {
		t.Skip("this process may not make a cgroup: " + err.Error())
	}
	t.Cleanup(func() { remove(t, dir) })
	return dir
}

// remove removes a cgroup and those below it.
func remove(t testing.TB, dir string) {
	t.Helper()
	var err error
	for range 200 {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		var below []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for i := len(below) - 1; i >= 0; i-- {
			err = os.Remove(below[i])
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("remove cgroup: %v", err)
}
