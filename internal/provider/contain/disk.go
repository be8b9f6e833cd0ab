package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The private directory of a process may hold maxDirectory bytes and maxEntries files and directories. On a small file
// system it may hold less: a process may use a sixteenth of the file system, and all processes together a quarter.
const (
	maxDirectory   = 2 << 30
	maxEntries     = 100_000
	processShare   = 16
	processesShare = 4
)

// diskInterval is the time between two checks of the private directories.
const diskInterval = time.Second

// usage is the size of the files of a process.
type usage struct {
	bytes int64
	files int
}

func (u usage) plus(v usage) usage { return usage{u.bytes + v.bytes, u.files + v.files} }

func (u usage) exceeds(limit usage) bool { return u.bytes > limit.bytes || u.files > limit.files }

func (u usage) String() string {
	return fmt.Sprintf("%d MiB in %d files", u.bytes>>20, u.files)
}

// diskLimits are the limits for one process, and for all processes together.
type diskLimits struct{ process, all usage }

// limitsFor returns the limits for directories in a file system of a size; no inodes means that it does not limit them.
func limitsFor(c Config, size usage) diskLimits {
	l := diskLimits{process: usage{c.MaxBytes, c.MaxFiles},
		all: usage{size.bytes / processesShare, size.files / processesShare}}
	if l.process.bytes == 0 {
		l.process.bytes = min(maxDirectory, size.bytes/processShare)
	}
	if size.files == 0 {
		size.files, l.all.files = maxEntries*processShare, maxEntries*processesShare
	}
	if l.process.files == 0 {
		l.process.files = min(maxEntries, size.files/processShare)
	}
	return l
}

// running is a process whose files are checked.
type running struct {
	sandbox *Sandbox
	// group is the ID of its process group.
	group int
	// end ends the process for a reason.
	end func(reason string)
	// deleted is the usage of files that the process has deleted and still uses.
	deleted usage
}

// Watch checks the files in the private directory of a process until the sandbox is removed. group is the ID of the
// process group. If the files exceed the limit, Watch calls end with a reason.
func (p *Policy) Watch(s *Sandbox, group int, end func(reason string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil && s.contained {
		p.running[s] = &running{sandbox: s, group: group, end: end}
	}
}

// watchDisk checks the private directories until stop is closed.
func (p *Policy) watchDisk(home string, stop <-chan struct{}) {
	size, free := fileSystem(home)
	limits, last := limitsFor(p.config, size), deletedSearch{free, time.Now()}
	ticker := time.NewTicker(diskInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		p.mu.Lock()
		var processes []*running
		for _, r := range p.running {
			processes = append(processes, r)
		}
		p.mu.Unlock()
		if len(processes) > 0 {
			last = checkDisk(processes, limits, home, last)
		}
	}
}

// checkDisk searches for deleted files after this loss of free space, and at the latest after this time, because other
// processes may free space meanwhile. The search examines all processes of the machine, so it is expensive.
const (
	searchAfter = 16 << 20
	searchEvery = 10 * time.Second
)

// deletedSearch is the last search for deleted files.
type deletedSearch struct {
	// free is the most space that was free since then.
	free int64
	at   time.Time
}

// checkDisk ends the processes whose files exceed the limits. It searches for deleted files if that is due since the
// last search, and returns its own search or the last one.
func checkDisk(processes []*running, limits diskLimits, home string, last deletedSearch) deletedSearch {
	_, free := fileSystem(home)
	if free < last.free-searchAfter || time.Since(last.at) >= searchEvery {
		measureDeleted(processes)
		last = deletedSearch{free, time.Now()}
	}
	last.free = max(free, last.free)
	var all, most usage
	var largest *running
	for _, r := range processes {
		used, err := measure(r.sandbox.Dir, limits.process)
		used = used.plus(r.deleted)
		switch {
		case err != nil:
			r.end("the server cannot read its temporary directory: " + err.Error())
			continue
		case used.exceeds(limits.process):
			r.end(fmt.Sprintf("its temporary directory has %v, and the limit is %v", used, limits.process))
			continue
		}
		all = all.plus(used)
		if largest == nil || used.bytes > most.bytes {
			largest, most = r, used
		}
	}
	if largest != nil && all.exceeds(limits.all) {
		largest.end(fmt.Sprintf("the temporary directories of all providers have %v, and the limit is %v; its own is the largest", all, limits.all))
	}
	return last
}

// measure measures a directory until it exceeds the limit. A directory that cannot be read is an error, because files
// could hide there.
func measure(dir string, limit usage) (used usage, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if path != dir {
			used = used.plus(usage{allocated(info), 1})
		}
		if used.exceeds(limit) {
			return fs.SkipAll
		}
		return nil
	})
	return used, err
}

// allocated returns the bytes that a file takes on the disk.
func allocated(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// fileSystem returns the size of a file system and its free space.
func fileSystem(dir string) (size usage, free int64) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return usage{maxDirectory * processShare, 0}, 0
	}
	block := int64(st.Bsize)
	return usage{int64(st.Blocks) * block, int(st.Files)}, int64(st.Bavail) * block
}
