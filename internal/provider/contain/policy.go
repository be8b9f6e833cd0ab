package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/internal/provider/contain/cgroup"
)

const (
	// maxFiles, maxProcesses, maxFile and maxMemory limit a provider's process. maxFile and maxMemory are in bytes.
	// maxProcesses counts threads. It applies to all processes of the provider's user together, and to a cgroup.
	maxFiles     = 1 << 16
	maxProcesses = 4096
	maxFile      = 1 << 30
	maxMemory    = 4 << 30
)

// Config configures a Policy.
type Config struct {
	// Mode is the server's mode. The default is Auto.
	Mode Mode
	// Protected are directories that no grant may include, such as the server's data directory.
	Protected []string
	// Program is the path of the hykube binary that starts providers. The default is the running binary.
	Program string
	// Environ is the environment from which providers get variables. The default is the server's environment.
	Environ []string
	// MaxBytes and MaxFiles limit the private directory of a process. 0 means 2 GiB and 100,000 files, or less on a
	// small file system.
	MaxBytes int64
	MaxFiles int
	// MaxMemory limits the memory of a process in bytes. 0 means 4 GiB, or half of the machine's memory if that is
	// less.
	MaxMemory int64
	// MaxProcesses limits the processes and threads in a cgroup. 0 means 4096.
	MaxProcesses int
}

// Policy restricts the provider processes of a server. It is safe for concurrent use.
type Policy struct {
	config  Config
	support Support
	// tree has the cgroups of the processes; nil if they have none.
	tree *cgroup.Tree

	mu sync.Mutex
	// home holds the private directories of all processes. It is nil before the first process.
	home *home
	// running holds the processes whose files are checked. stop ends the checks. Both are nil without home.
	running map[*Sandbox]*running
	stop    chan struct{}
}

// New returns a policy. The caller must call Close.
func New(c Config) *Policy {
	if c.Mode == "" {
		c.Mode = Auto
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Program == "" {
		c.Program = "/proc/self/exe" // remains valid after an upgrade replaces the file
	}
	return &Policy{config: c, support: machine()}
}

// Report describes the restrictions for the processes of a provider. source is the provider's address.
func (p *Policy) Report(source string, g Grants) Report {
	r := p.support.report(p.config.Mode, g, p.User(source, g))
	for _, path := range slices.Concat(g.ReadPaths, g.ExecutePaths) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			r.Message += fmt.Sprintf(" The granted path %s does not exist on this machine.", path)
		}
	}
	return r
}

// User returns the user ID of a provider's processes; 0 means the server's user.
func (p *Policy) User(source string, g Grants) int {
	if !p.enforces(g) || !p.support.OwnUser {
		return 0
	}
	return ownUsers().idOf(source)
}

func (p *Policy) enforces(g Grants) bool { return p.config.Mode != Off && !g.Off && p.support.System }

// Check returns an *UnavailableError or a *PathError if the server must not start the provider.
func (p *Policy) Check(g Grants) error {
	switch {
	case p.config.Mode == Require && g.Off:
		return &UnavailableError{}
	case p.config.Mode == Require && !p.support.enough():
		return &UnavailableError{Missing: p.support.essential()}
	}
	for _, path := range g.paths() {
		if _, err := p.resolve(path); err != nil {
			return err
		}
	}
	return nil
}

// resolve returns a granted path without symbolic links, or the path itself if it does not exist. It returns a
// *PathError if the path includes or is in a protected directory or one of System.
func (p *Policy) resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		resolved, err = path, nil
	}
	if err != nil {
		return "", err
	}
	if protected := Overlapping(resolved, slices.Concat(p.config.Protected, System)); protected != "" {
		return "", &PathError{Path: path, Resolved: resolved, Protected: protected}
	}
	return resolved, nil
}

// System lists directories that no grant may include, because they show other processes and the machine.
var System = []string{"/proc", "/sys"}

// Overlapping returns the directory that contains the path or is below it; "" if there is none.
func Overlapping(path string, directories []string) string {
	for _, dir := range directories {
		for _, d := range []string{dir, resolveSymlinks(dir)} {
			if within(path, d) || within(d, path) {
				return dir
			}
		}
	}
	return ""
}

func resolveSymlinks(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
