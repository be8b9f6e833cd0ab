//go:build unix

// Package dirlock makes directories that their process locks, and removes those of processes that have ended. A lock
// ends with its process, so a locked directory has a running owner. The package imports only the standard library, and
// must not know the purpose of the directories.
package dirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld is the error of Lock if another process holds the lock.
var ErrHeld = errors.New("another process holds it")

// Make makes a new directory, as os.MkdirTemp does, and locks it until the returned file is closed.
func Make(parent, pattern string) (path string, lock *os.File, err error) {
	for {
		if path, err = os.MkdirTemp(parent, pattern); err != nil {
			return "", nil, err
		}
		lock, err = Lock(path)
		if errors.Is(err, ErrHeld) || errors.Is(err, fs.ErrNotExist) {
			continue // the Sweep of another process is about to remove it, or has removed it
		}
		if err != nil {
			return "", nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if _, err := os.Stat(path); err == nil {
			return path, lock, nil
		}
		_ = lock.Close()
	}
}

// Sweep removes the directories of Make whose process ended without removing them.
func Sweep(parent, pattern string, remove func(path string) error) {
	left, err := filepath.Glob(filepath.Join(parent, pattern))
	if err != nil {
		return
	}
	for _, path := range left {
		if lock, err := Lock(path); err == nil {
			_ = remove(path)
			_ = lock.Close()
		}
	}
}

// Lock locks a directory until the returned file is closed. It returns ErrHeld if another process holds the lock.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, err
	}
	return f, nil
}
