//go:build !linux

package storage

import (
	"os"
	"syscall"
)

func identifyFile(path string) (id fileID, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return id, err
	}
	if found, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Inode = found.Ino
	}
	return id, nil
}
