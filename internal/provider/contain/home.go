package contain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// homePattern is the name of the directory that a server makes for its providers.
const homePattern = "hykube-plugins-*"

// home is a directory in the machine's temporary directory. Its owner locks it for as long as it lives, so that another server can tell
// a directory that was left behind by a killed one.
type home struct {
	path string
	lock *os.File
}

// longestHome is how long the temporary directory's path may be: the name of a socket below it has at most 104 bytes on some systems, and go-plugin
// and this package add "/hykube-plugins-0123456789/p0123456789/plugin-dir0123456789/plugin0123456789".
const longestHome = 104 - 77

// temporary is where private directories are made: in the temporary directory, unless its path is too long, or providers of other
// users cannot get there.
func temporary() string {
	if dir := os.TempDir(); len(dir) <= longestHome && open(dir) {
		return dir
	}
	return "/tmp"
}

// open says whether all users may go through a directory, and through those that contain it.
func open(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return true
	}
}

func newHome() (*home, error) {
	sweep(temporary())
	for {
		path, err := os.MkdirTemp(temporary(), homePattern)
		if err != nil {
			return nil, err
		}
		// Providers find their own directory by its name; they cannot list the others.
		if err := os.Chmod(path, 0o711); err != nil {
			return nil, err
		}
		lock, err := lockDir(path)
		if errors.Is(err, errLocked) {
			continue // another server sweeps, and took it for one that was left
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if _, err := os.Stat(path); err == nil {
			return &home{path: path, lock: lock}, nil
		}
		_ = lock.Close()
	}
}

// errLocked says that another process holds a lock.
var errLocked = errors.New("another process holds it")

// sweep removes directories whose servers ended without removing them.
func sweep(temporary string) {
	left, err := filepath.Glob(filepath.Join(temporary, homePattern))
	if err != nil {
		return
	}
	for _, path := range left {
		if lock, err := lockDir(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

func (h *home) close() {
	_ = os.RemoveAll(h.path)
	_ = h.lock.Close()
}
