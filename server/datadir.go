package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dataFormat is the version of the layout of the data directory and of the database. A server rejects any other one. No
// version before 4 was released.
const dataFormat = 4

// bootIDFile has the ID of the machine's last start on Linux.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// DefaultDataDir returns the default data directory: below /var/lib for root, else below the home directory.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/hykube"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ".hykube"
	}
	return filepath.Join(home, ".hykube")
}

// dataDir is a data directory that this process has locked.
type dataDir struct {
	path string
	lock *os.File
	// worker is the name of the worker whose directory it is; empty for a server.
	worker string
}

// workerFile has the name of the worker in its data directory.
const workerFile = "worker"

// openDataDir creates the directory if necessary, locks it, and checks that this version can read it.
func openDataDir(path string) (_ *dataDir, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open data directory %q: %w", path, err)
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(path, 0o700); err != nil {
		return nil, cause(err)
	}
	if os.Geteuid() == 0 {
		// Providers run as other users and must read their own package below this directory. The modes of all other
		// entries exclude these users.
		info, err := os.Stat(path)
		if err != nil {
			return nil, cause(err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o011); err != nil {
			return nil, cause(err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w; make it writable or choose another with --data-dir", cause(err))
	}
	d := &dataDir{path: path, lock: lock}
	if err = d.take(); err == nil {
		err = d.checkFormat()
	}
	if err == nil {
		err = d.readWorker()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close unlocks the directory.
func (d *dataDir) Close() error { return d.lock.Close() }

// readWorker reads the name of the worker whose directory it is.
func (d *dataDir) readWorker() error {
	name, err := os.ReadFile(filepath.Join(d.path, workerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.worker = strings.TrimSpace(string(name))
	return err
}

// serve checks that the directory is that of a server, or makes it that of a worker. Each has records of its own in the
// database.
func (d *dataDir) serve(worker bool) error {
	if !worker && d.worker != "" {
		return fmt.Errorf("the data directory %q is that of a worker; choose another one with --data-dir", d.path)
	}
	if !worker || d.worker != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(d.path, "tls")); err == nil {
		return fmt.Errorf("the data directory %q is that of a server; choose another one with --data-dir", d.path)
	}
	d.worker = strings.ToLower(rand.Text())
	return os.WriteFile(filepath.Join(d.path, workerFile), []byte(d.worker+"\n"), 0o600)
}

// take locks the directory, so that two servers never use the same database.
func (d *dataDir) take() error {
	err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(d.lock.Name())
		return fmt.Errorf("another server uses it (process %s); stop that one or choose another directory with --data-dir", strings.TrimSpace(string(holder)))
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := d.lock.Truncate(0); err != nil {
		return cause(err)
	}
	_, err = d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// owner identifies the directory, as the running kernel of this machine knows it. Whoever has its lock is the only
// server that uses it. A copy of the directory has another owner, and so has the same disk on another machine.
func (d *dataDir) owner() (string, error) {
	info, err := d.lock.Stat()
	if err != nil {
		return "", fmt.Errorf("identify data directory: %w", err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	boot, err := os.ReadFile(bootIDFile)
	if errors.Is(err, fs.ErrNotExist) { // not Linux
		boot, err = []byte(rand.Text()), nil
	}
	if err != nil {
		return "", fmt.Errorf("identify this machine: %w", err)
	}
	return fmt.Sprintf("%d:%d@%s", stat.Dev, stat.Ino, strings.TrimSpace(string(boot))), nil
}

func (d *dataDir) checkFormat() error {
	path := filepath.Join(d.path, "version")
	data, err := os.ReadFile(path)
	current := []byte(strconv.Itoa(dataFormat) + "\n")
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, current, 0o600)
	}
	if err != nil {
		return cause(err)
	}
	format, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("file %q does not hold a number; restore it from a backup", path)
	}
	if format > dataFormat {
		return fmt.Errorf("a newer version of hykube wrote it (format %d, this version knows %d); run that version, or restore a backup made before the upgrade", format, dataFormat)
	}
	if format < dataFormat {
		return fmt.Errorf("a version of hykube that was not released wrote it (format %d, this version reads %d); use that version, or choose an empty directory and an empty database", format, dataFormat)
	}
	return nil
}

// cause returns an error of the os package without operation and path, since the caller adds the directory.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
