package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hykube/hykube/internal/provider/contain/cgroup"
)

// Plugin is a program to run.
type Plugin struct {
	// Source is the provider's address. It determines the user of the process.
	Source string
	// Path is the path of the program. File is the open, verified file that the process executes, even if another file
	// now has the path.
	Path string
	File *os.File
	// Grants are the grants of the Provider object.
	Grants Grants
}

// Sandbox is the prepared sandbox of one process.
type Sandbox struct {
	// Dir is the private directory of the process.
	Dir string
	// Env is the complete environment of the process.
	Env []string
	// user is the user ID of the process; 0 means the server's user.
	user   int
	policy *Policy
	// contained is false for a process without a sandbox. It uses the system's temporary directory.
	contained bool
	// ruleset is the open Landlock ruleset for the start.
	ruleset *os.File
	// group is the cgroup of the process; nil if it has none.
	group *cgroup.Group
}

// Sandbox prepares the sandbox of a new process. The caller must call Remove after the process has ended. It returns an
// *UnavailableError or a *PathError if the process must not start.
func (p *Policy) Sandbox(plugin Plugin) (*Sandbox, error) {
	if err := p.Check(plugin.Grants); err != nil {
		return nil, err
	}
	home, err := p.directory()
	if err != nil {
		return nil, err
	}
	s := &Sandbox{user: p.User(plugin.Source, plugin.Grants), policy: p, contained: p.enforces(plugin.Grants)}
	if s.Dir, err = os.MkdirTemp(home, "p"); err != nil {
		return nil, err
	}
	if !s.contained {
		names := append([]string{"HOME", "TMPDIR", "USER", "LOGNAME"}, plugin.Grants.Environment...)
		s.Env = environment(p.config.Environ, names)
		return s, nil
	}
	s.Env = environment(p.config.Environ, plugin.Grants.Environment)
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp"} {
		if err := os.Mkdir(filepath.Join(s.Dir, dir), 0o700); err != nil {
			s.Remove()
			return nil, err
		}
		s.Env = withDefaults(s.Env, name+"="+filepath.Join(s.Dir, dir))
	}
	s.Env = withDefaults(s.Env, "USER=hykube-provider", "LOGNAME=hykube-provider")
	for _, dir := range []string{"home", "tmp", ""} {
		if err := s.Own(filepath.Join(s.Dir, dir)); err != nil {
			s.Remove()
			return nil, err
		}
	}
	return s, nil
}

// directory returns the directory for the private directories of processes. It creates the directory before the first
// process.
func (p *Policy) directory() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.home == nil {
		h, err := newHome()
		if err != nil {
			return "", fmt.Errorf("make directory of providers: %w", err)
		}
		p.home, p.running, p.stop = h, map[*Sandbox]*running{}, make(chan struct{})
		go p.watchDisk(h.path, p.stop)
	}
	return p.home.path, nil
}

// Close removes the policy's directory and its cgroup. No process may be running.
func (p *Policy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.home != nil {
		close(p.stop)
		p.home.close()
		p.home, p.running, p.stop = nil, nil, nil
	}
	if p.tree != nil {
		p.tree.Close()
		p.tree = nil
	}
}

// Own makes the user of the process the owner of a directory.
func (s *Sandbox) Own(dir string) error {
	if s.user == 0 {
		return nil
	}
	return os.Chown(dir, s.user, s.user)
}

// provide creates a granted directory for the user of the process, if nothing exists at the path.
func (s *Sandbox) provide(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // the open of the path reports other errors
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make the directory of spec.sandbox.writePaths: %w", err)
	}
	return s.Own(path)
}

// Remove removes the private directory and the cgroup.
func (s *Sandbox) Remove() {
	s.Started()
	if s.group != nil {
		_ = s.group.Remove() // Close, or the next start of the server, tries again
	}
	s.policy.mu.Lock()
	delete(s.policy.running, s)
	s.policy.mu.Unlock()
	_ = os.RemoveAll(s.Dir)
}

// Started closes the files that only the start of the process needs.
func (s *Sandbox) Started() {
	if s.ruleset != nil {
		_ = s.ruleset.Close()
		s.ruleset = nil
	}
	if s.group != nil {
		s.group.Started()
	}
}
