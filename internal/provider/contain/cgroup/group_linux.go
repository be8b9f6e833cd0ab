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
	"time"
)

// Group is the cgroup of one process and its descendants. A process cannot leave it without rights on the cgroups.
type Group struct {
	dir string
	// file is the open directory; nil after the start of the process.
	file *os.File
}

// New makes a cgroup with the limits of the tree. The caller must call Remove.
func (t *Tree) New(name string) (*Group, error) {
	g := &Group{dir: filepath.Join(t.dir, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	err := t.limit(g)
	if err == nil {
		g.file, err = os.Open(g.dir)
	}
	if err != nil {
		_ = g.Remove()
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	return g, nil
}

// limit writes the limits of a new group.
func (t *Tree) limit(g *Group) error {
	var errs []error
	if n := t.limits.Processes; n > 0 && slices.Contains(t.Controllers, "pids") {
		errs = append(errs, write(g.dir, "pids.max", strconv.FormatUint(n, 10)))
	}
	if n := t.limits.Memory; n > 0 && slices.Contains(t.Controllers, "memory") {
		errs = append(errs, write(g.dir, "memory.max", strconv.FormatUint(n, 10)),
			write(g.dir, "memory.oom.group", "1"))
		// The limit would move memory to the swap space before it ends a process. Not every kernel has this file.
		if err := write(g.dir, "memory.swap.max", "0"); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Attributes starts a process directly in the group.
func (g *Group) Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.file.Fd())}
}

// Started closes the directory, which only the start of a process needs.
func (g *Group) Started() {
	if g.file != nil {
		_ = g.file.Close()
		g.file = nil
	}
}

// Kill kills all processes of the group.
func (g *Group) Kill() { kill(g.dir) }

// Exhausted reports whether the kernel has killed a process of the group because memory ran out.
func (g *Group) Exhausted() Exhaustion {
	events, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return NotExhausted
	}
	return exhaustion(string(events))
}

// exhaustion evaluates memory.events. It counts oom for the cgroup that reached its limit, and oom_kill for that of the
// killed process.
func exhaustion(events string) Exhaustion {
	counts := map[string]string{}
	for line := range strings.Lines(events) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		counts[name] = count
	}
	happened := func(name string) bool { return counts[name] != "" && counts[name] != "0" }
	switch {
	case !happened("oom_kill"):
		return NotExhausted
	case happened("oom"):
		return OwnLimit
	default:
		return OuterLimit
	}
}

// Remove kills all processes of the group and removes it.
func (g *Group) Remove() error {
	g.Started()
	return remove(g.dir)
}

// removeTime is the time that killed processes have to end.
const removeTime = 2 * time.Second

// remove kills all processes of a cgroup and those below it, and removes these cgroups.
func remove(dir string) error {
	deadline := time.Now().Add(removeTime)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if time.Now().After(deadline) {
			return err
		}
		kill(dir)
		below, _ := os.ReadDir(dir)
		for _, entry := range below {
			if entry.IsDir() {
				_ = remove(filepath.Join(dir, entry.Name()))
			}
		}
		time.Sleep(pause)
	}
}

// kill kills all processes of a cgroup. Before Linux 5.14, it does not kill those of the cgroups below.
func kill(dir string) {
	if err := write(dir, "cgroup.kill", "1"); errors.Is(err, fs.ErrNotExist) {
		killEach(dir)
	}
}

// killEach kills the processes of a cgroup one by one, until no new ones appear.
func killEach(dir string) {
	for range 100 {
		processes, err := processesIn(dir)
		if err != nil || len(processes) == 0 {
			return
		}
		for _, id := range processes {
			if id > 0 { // kill(0) would kill the server's own process group
				_ = syscall.Kill(id, syscall.SIGKILL)
			}
		}
		time.Sleep(time.Millisecond)
	}
}
