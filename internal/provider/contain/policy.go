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
)

// Config configures a Policy.
type Config struct {
	// Mode is that of the server; empty means Auto.
	Mode Mode
	// Protected are directories that no grant may open, such as the server's data directory.
	Protected []string
	// Program starts providers, as hykube does; empty means the program that runs.
	Program string
	// Environ is the environment that providers get a part of; nil means our own.
	Environ []string
}

// Policy contains the providers of a server. It is safe for concurrent use.
type Policy struct {
	config  Config
	support Support

	mu sync.Mutex
	// home holds the private directories of all processes; nil until the first is made.
	home *home
}

// New returns a policy. Close removes the directories that it made.
func New(c Config) *Policy {
	if c.Mode == "" {
		c.Mode = Auto
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Program == "" {
		c.Program = "/proc/self/exe" // it is the same program also after an upgrade replaced the file
	}
	return &Policy{config: c, support: machine()}
}

// Report says how processes of a provider, which its address identifies, are contained.
func (p *Policy) Report(source string, g Grants) Report {
	r := p.support.report(p.config.Mode, g, p.User(source, g))
	for _, path := range slices.Concat(g.ReadPaths, g.ExecutePaths) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			r.Message += fmt.Sprintf(" The granted path %s does not exist on this machine.", path)
		}
	}
	return r
}

// User is the user that processes of a provider have; 0 when that is the server's.
func (p *Policy) User(source string, g Grants) int {
	if !p.enforces(g) || !p.support.OwnUser {
		return 0
	}
	return ownUsers().of(source)
}

func (p *Policy) enforces(g Grants) bool { return p.config.Mode != Off && !g.Off && p.support.System }

// Check returns an *UnavailableError or a *PathError for a provider that the server must not start.
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

// resolve follows the symbolic links of a granted path. It returns a *PathError for one that opens a protected directory, and the path
// itself when it does not exist.
func (p *Policy) resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		resolved, err = path, nil
	}
	if err != nil {
		return "", err
	}
	if protected := Overlapping(resolved, p.config.Protected); protected != "" {
		return "", &PathError{Path: path, Resolved: resolved, Protected: protected}
	}
	return resolved, nil
}

// Overlapping returns the directory that contains the path, or that the path contains; empty when there is none.
func Overlapping(path string, directories []string) string {
	for _, dir := range directories {
		for _, d := range []string{dir, real(dir)} {
			if within(path, d) || within(d, path) {
				return dir
			}
		}
	}
	return ""
}

func real(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// within says whether a path is a directory, or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
