package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dirLock keeps a second server away from the same files: SQLite would let it in, and both would run every workflow.
type dirLock struct{ file *os.File }

func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock engine directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock engine directory %q: another server uses it; stop that one, or set another --data-dir: %w", dir, err)
	}
	return &dirLock{file: file}, nil
}

// Close lets go of the directory. The file stays: removing it would race with whoever waits for it.
func (l *dirLock) Close() error { return l.file.Close() }
