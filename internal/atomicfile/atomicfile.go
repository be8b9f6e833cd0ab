// Package atomicfile replaces files atomically. It imports only the standard library.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file atomically and syncs it to disk. A reader, also after a crash, finds either the complete old
// file or the complete new one.
func Write(path string, data []byte, mode fs.FileMode) error {
	return Fill(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Fill is Write with what fill writes. It keeps the old file if fill returns an error.
func Fill(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err = errors.Join(fill(f), f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close()) // syncs the new name
}
