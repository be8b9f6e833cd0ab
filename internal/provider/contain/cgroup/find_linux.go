package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// find returns the delegated cgroup at a place for Open.
func find(place string) (string, error) {
	if place != Auto {
		return named(place)
	}
	own, err := ownCgroup()
	if err != nil {
		return "", err
	}
	// A server that was started again in its child, or by systemd with DelegateSubgroup, is in the child already.
	for _, dir := range []string{own, filepath.Dir(own)} {
		if delegated(dir) && (dir == own || filepath.Base(own) == serverName) {
			return dir, nil
		}
	}
	return "", ErrNotDelegated
}

// named checks a directory that the administrator named.
func named(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", err
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return "", errors.New("it is not a directory of cgroup v2")
	}
	// Only the root of the machine has no type. Its processes must stay where they are.
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err != nil {
		return "", errors.New("it is the root of all cgroups; name a directory below it")
	}
	processes, err := processesIn(dir)
	if err != nil {
		return "", err
	}
	if len(processes) > 0 && !slices.Contains(processes, os.Getpid()) {
		return "", fmt.Errorf("it has processes (such as %d), and the server is not one of them; name an empty cgroup",
			processes[0])
	}
	return dir, nil
}

// delegated reports whether systemd has delegated a cgroup, and the server may write it. In a container, it is often
// read-only. Systemd writes the first attribute, which all users may read, since version 251.
func delegated(dir string) bool {
	if unix.Access(dir, unix.W_OK) != nil {
		return false
	}
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var value [1]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// ownCgroup returns the directory of the cgroup of this process.
func ownCgroup() (string, error) {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for _, dir := range candidates(string(cgroups), string(mounts)) {
		if processes, err := processesIn(dir); err == nil && slices.Contains(processes, os.Getpid()) {
			return dir, nil
		}
	}
	return "", ErrNotDelegated // no cgroup v2, or it is not mounted
}

// candidates returns the directories where the cgroup v2 of a process may be. The arguments have the formats of
// /proc/PID/cgroup and /proc/PID/mountinfo.
func candidates(cgroups, mounts string) []string {
	var own string
	for line := range strings.Lines(cgroups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = path
		}
	}
	var dirs []string
	for line := range strings.Lines(mounts) {
		// The fields are ID, parent, device, root, mount point, options, and after a dash the file system.
		mount, fs, ok := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if !ok || len(fields) < 5 || !strings.HasPrefix(fs, "cgroup2 ") {
			continue
		}
		root := unescape(fields[3])
		below, err := filepath.Rel(root, own)
		switch {
		case own == "" || strings.HasPrefix(own, "/..") || strings.HasPrefix(root, "/.."):
			continue // it is outside of the cgroup namespace of this process
		case err != nil || below == ".." || strings.HasPrefix(below, "../"):
			continue // the mount does not show this cgroup
		}
		dirs = append(dirs, filepath.Join(unescape(fields[4]), below))
	}
	return dirs
}

// unescape replaces the octal escapes of mountinfo, such as \040 for a space.
func unescape(path string) string {
	parts := strings.Split(path, `\`)
	for i, part := range parts[1:] {
		if len(part) < 3 {
			continue
		}
		if n, err := strconv.ParseUint(part[:3], 8, 8); err == nil {
			parts[i+1] = string([]byte{byte(n)}) + part[3:]
		}
	}
	return strings.Join(parts, "")
}

// processesIn returns the IDs of the processes in a cgroup. The ID of a process in another PID namespace is 0.
func processesIn(dir string) ([]int, error) {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, word := range strings.Fields(string(content)) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("read processes of %s: %w", dir, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
