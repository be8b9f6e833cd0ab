package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hykube/hykube/internal/provider/contain/dirlock"
)

const (
	// serverName is the name of the cgroup of the server.
	serverName = "hykube-server"
	// treePattern is the pattern for the name of the cgroup with all processes that one server starts.
	treePattern = "hykube-providers-*"
	// weight is the share of the processors of a tree. The server has 100, so it gets two thirds of them if all have
	// work.
	weight = 50
)

// controllers are the controllers that this package uses.
var controllers = []string{"cpu", "memory", "pids"}

// Tree is the cgroup of all processes that one server starts. The server locks it while it runs, so that another server
// can detect the tree of a killed server.
type Tree struct {
	// Root is the delegated cgroup.
	Root string
	// Controllers are the controllers that limit the processes. Missing are the others.
	Controllers, Missing []string

	dir    string
	lock   *os.File
	limits Limits
}

// Open prepares a delegated cgroup, and removes what a killed server left there. If the server is in this cgroup, Open
// moves it to a child. The place is Auto or a directory. With Auto, Open returns ErrNotDelegated if the server's own
// cgroup is not delegated to it. Open has then changed nothing. The caller must call Close.
func Open(place string, limits Limits) (*Tree, error) {
	root, err := find(place)
	if err != nil {
		return nil, err
	}
	dirlock.Sweep(root, treePattern, remove)
	if err := vacate(root); err != nil {
		return nil, err
	}
	t := &Tree{Root: root, limits: limits}
	enabled := enable(root, controllers)
	if t.dir, t.lock, err = dirlock.Make(root, treePattern); err != nil {
		return nil, err
	}
	t.Controllers = enable(t.dir, enabled)
	for _, c := range controllers {
		if !slices.Contains(t.Controllers, c) {
			t.Missing = append(t.Missing, c)
		}
	}
	if slices.Contains(t.Controllers, "cpu") {
		if err := write(t.dir, "cpu.weight", strconv.Itoa(weight)); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// Close kills all processes of the tree and removes it.
func (t *Tree) Close() {
	_ = remove(t.dir)
	_ = t.lock.Close()
}

// vacate moves the processes of a cgroup to its child for the server. A process may start others meanwhile.
func vacate(root string) error {
	for range 10 {
		processes, err := processesIn(root)
		if err != nil || len(processes) == 0 {
			return err
		}
		server := filepath.Join(root, serverName)
		if err := os.Mkdir(server, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		for _, id := range processes {
			if err := write(server, "cgroup.procs", strconv.Itoa(id)); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("move process %d: %w", id, err)
			}
		}
	}
	return fmt.Errorf("move the processes of %s to its child %s: new ones appear all the time", root, serverName)
}

// enable enables controllers for the children of a cgroup, and returns those that it could enable.
func enable(dir string, wanted []string) []string {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	available := strings.Fields(string(content))
	return slices.DeleteFunc(slices.Clone(wanted), func(c string) bool {
		return !slices.Contains(available, c) || write(dir, "cgroup.subtree_control", "+"+c) != nil
	})
}

// write writes a file of a cgroup. It does not create the file.
func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
