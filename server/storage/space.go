package storage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFreeBytes is the space that must be free on the disk of the database. It is reserved for the outcomes of running
// changes and for deletions, so that a full disk loses no outcome.
const minFreeBytes = 256 << 20

// SpaceError is the error if the disk of the database is nearly full. It is not an error of the request.
type SpaceError struct {
	Dir  string
	Free uint64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the disk of %s has %d MiB left, and the server needs %d MiB to record its changes: free some space, then try again",
		e.Dir, e.Free>>20, minFreeBytes>>20)
}

// disk is the file system of the database.
type disk struct {
	// dir is a directory on it. It is empty for a database server, whose disk is not known.
	dir string
	// free returns the bytes that are available in dir.
	free func(dir string) (uint64, error)
}

// hasSpace returns a *SpaceError if less than minFreeBytes are free. An error of the system counts as enough space,
// because the next write reports the same cause.
func (d disk) hasSpace() error {
	if d.dir == "" {
		return nil
	}
	if free, err := d.free(d.dir); err == nil && free < minFreeBytes {
		return &SpaceError{Dir: d.dir, Free: free}
	}
	return nil
}

func freeBytes(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}

// HasSpace returns a *SpaceError if the disk of an embedded database is nearly full.
func (s *Store) HasSpace() error { return s.disk.hasSpace() }

// HasSpace implements ledger.KV.
func (k *KV) HasSpace() error { return k.disk.hasSpace() }
