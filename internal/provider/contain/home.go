package contain

import (
	"os"
	"path/filepath"

	"github.com/hykube/hykube/internal/provider/contain/dirlock"
)

// homePattern is the pattern for the name of a server's directory for its providers.
const homePattern = "hykube-plugins-*"

// home is a server's directory for its providers. The server locks it while it runs. So another server can detect the
// directory of a killed server.
type home struct {
	path string
	lock *os.File
}

// longestHome is the maximum length of the path of the temporary directory. The path of a socket has at most 104 bytes
// on some systems, and go-plugin and this package append
// "/hykube-plugins-0123456789/p0123456789/plugin-dir0123456789/plugin0123456789".
const longestHome = 104 - 77

// temporary returns the directory for new homes. It is the system's temporary directory or, if its path is too long or
// other users cannot enter it, /tmp.
func temporary() string {
	if dir := os.TempDir(); len(dir) <= longestHome && open(dir) {
		return dir
	}
	return "/tmp"
}

// open reports whether all users may enter a directory and its parents.
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
	dirlock.Sweep(temporary(), homePattern, os.RemoveAll)
	path, lock, err := dirlock.Make(temporary(), homePattern)
	if err != nil {
		return nil, err
	}
	h := &home{path: path, lock: lock}
	// Providers get the path of their own directory. They cannot list the others.
	if err := os.Chmod(path, 0o711); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *home) close() {
	_ = os.RemoveAll(h.path)
	_ = h.lock.Close()
}
