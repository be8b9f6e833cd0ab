//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// deletedSuffix marks the path of a deleted file in /proc.
const deletedSuffix = " (deleted)"

// measureDeleted measures the files that processes have deleted and still use, as open files or in memory. The server
// needs the right to see the open files of the processes: the same user, or CAP_SYS_PTRACE.
func measureDeleted(processes []*running) {
	groups := map[int]*running{}
	seen := map[uint64]bool{}
	for _, r := range processes {
		groups[r.group] = r
		r.deleted = usage{}
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		// The name of the program is in parentheses. The state, the parent and the process group follow.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) < 3 {
			continue
		}
		group, err := strconv.Atoi(fields[2])
		if r := groups[group]; err == nil && r != nil {
			r.deleted = r.deleted.plus(deletedOf(filepath.Dir(stat), r.sandbox.Dir, seen))
		}
	}
}

// deletedOf measures the deleted files of one process, which has the directory proc, below a directory. seen has the
// inodes of files that are counted already.
func deletedOf(proc, dir string, seen map[uint64]bool) usage {
	var used usage
	open, _ := os.ReadDir(filepath.Join(proc, "fd"))
	for _, fd := range open {
		name := filepath.Join(proc, "fd", fd.Name())
		path, err := os.Readlink(name)
		if err != nil || !strings.HasPrefix(path, dir+"/") || !strings.HasSuffix(path, deletedSuffix) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			used = used.plus(usage{st.Blocks * 512, 1})
		}
	}
	maps, err := os.Open(filepath.Join(proc, "maps"))
	if err != nil {
		return used
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // addresses, rights, offset, device, inode, path
		if len(fields) < 6 || !strings.HasPrefix(fields[5], dir+"/") ||
			!strings.HasSuffix(lines.Text(), deletedSuffix) {
			continue
		}
		// The server cannot see the size of a file that is only in memory, so the largest size counts.
		if inode, err := strconv.ParseUint(fields[4], 10, 64); err == nil && !seen[inode] {
			seen[inode] = true
			used = used.plus(usage{maxFile, 1})
		}
	}
	return used
}
