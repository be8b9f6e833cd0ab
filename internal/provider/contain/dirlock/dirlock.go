//go:build unix

// Package dirlock locks directories. A lock ends with its process, so a locked directory has a living owner. It imports
// only the standard library, and must not know what the directories are for.
package dirlock

import (
	"errors"
	"os"
	"syscall"
)

// ErrHeld is the error of Lock if another process holds the lock.
var ErrHeld = errors.New("another process holds it")

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
