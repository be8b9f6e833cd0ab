package contain

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A process may use little of a small file system, and all processes together a quarter.
func TestDiskLimits(t *testing.T) {
	for reason, tc := range map[string]struct {
		config Config
		size   usage
		want   diskLimits
	}{
		"a large disk":          {size: usage{1 << 40, 1 << 30}, want: diskLimits{usage{maxDirectory, maxEntries}, usage{1 << 38, 1 << 28}}},
		"a small disk":          {size: usage{16 << 30, 160_000}, want: diskLimits{usage{1 << 30, 10_000}, usage{4 << 30, 40_000}}},
		"a disk without inodes": {size: usage{1 << 40, 0}, want: diskLimits{usage{maxDirectory, maxEntries}, usage{1 << 38, 4 * maxEntries}}},
		"configured limits":     {config: Config{MaxBytes: 1, MaxFiles: 2}, size: usage{1 << 40, 1 << 30}, want: diskLimits{usage{1, 2}, usage{1 << 38, 1 << 28}}},
	} {
		if got := limitsFor(tc.config, tc.size); got != tc.want {
			t.Errorf("%s: got %v, want %v", reason, got, tc.want)
		}
	}
}

// The check ends the process whose files exceed the limit of one process. If all together exceed theirs, it ends the
// one with the largest files.
func TestCheckDiskEndsTheLargest(t *testing.T) {
	home := t.TempDir()
	dir := func(name string, files, size int) string {
		for i := range files {
			path := filepath.Join(home, name, "tmp", strconv.Itoa(i))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(home, name)
	}
	small, many, large := dir("small", 1, 4096), dir("many", 9, 1), dir("large", 1, 1<<20)
	plenty := usage{1 << 30, 1000}
	for reason, tc := range map[string]struct {
		limits diskLimits
		want   string
	}{
		"all is well":       {diskLimits{plenty, plenty}, ""},
		"many files":        {diskLimits{usage{1 << 30, 5}, plenty}, many},
		"many bytes":        {diskLimits{usage{1 << 19, 1000}, plenty}, large},
		"all together much": {diskLimits{plenty, usage{1 << 19, 1000}}, large},
	} {
		var ended []string
		var processes []*running
		for _, dir := range []string{small, many, large} {
			processes = append(processes, &running{sandbox: &Sandbox{Dir: dir}, end: func(reason string) {
				ended = append(ended, dir)
				if !strings.Contains(reason, "temporary director") {
					t.Errorf("reason %q", reason)
				}
			}})
		}
		checkDisk(processes, tc.limits, home, deletedSearch{at: time.Now()})
		if got := strings.Join(ended, " "); got != tc.want {
			t.Errorf("%s: ended %q, want %q", reason, got, tc.want)
		}
	}
}
