package storage

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

func identifyFile(path string) (id fileID, err error) {
	var found unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &found); err != nil {
		return id, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	id.Inode = found.Ino
	if found.Mask&unix.STATX_BTIME != 0 {
		id.Born = fmt.Sprintf("%d.%09d", found.Btime.Sec, found.Btime.Nsec)
	}
	return id, nil
}
