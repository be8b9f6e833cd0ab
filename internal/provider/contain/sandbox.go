package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Plugin is a program to run.
type Plugin struct {
	// Source is the provider's address, which decides its user.
	Source string
	// Path of the program, and the open file that is executed: the one that was verified, whatever has the path by then.
	Path string
	File *os.File
	// Grants are those of its Provider object.
	Grants Grants
}

// Sandbox is the place of one process.
type Sandbox struct {
	// Dir is a directory of the process alone.
	Dir string
	// Env is the whole environment of the process.
	Env []string
	// user of the process; 0 is the server's.
	user int
	// ruleset is an open file for the start.
	ruleset *os.File
}

// Sandbox makes the place of a new process; Remove must follow its end. It returns an *UnavailableError or a *PathError when the process must not be started.
func (p *Policy) Sandbox(plugin Plugin) (*Sandbox, error) {
	if err := p.Check(plugin.Grants); err != nil {
		return nil, err
	}
	home, err := p.directory()
	if err != nil {
		return nil, err
	}
	s := &Sandbox{user: p.User(plugin.Source, plugin.Grants)}
	if s.Dir, err = os.MkdirTemp(home, "p"); err != nil {
		return nil, err
	}
	if !p.enforces(plugin.Grants) {
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

// directory is where the places of processes are made.
func (p *Policy) directory() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.home == nil {
		h, err := newHome()
		if err != nil {
			return "", fmt.Errorf("make directory of providers: %w", err)
		}
		p.home = h
	}
	return p.home.path, nil
}

// Close removes what the policy made, once no process is left.
func (p *Policy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.home != nil {
		p.home.close()
		p.home = nil
	}
}

// Own gives a directory to the user of the process.
func (s *Sandbox) Own(dir string) error {
	if s.user == 0 {
		return nil
	}
	return os.Chown(dir, s.user, s.user)
}

// provide makes a granted directory, for the user of the process, unless there is something at its path.
func (s *Sandbox) provide(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with it is said when the path is opened
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make the directory of spec.sandbox.writePaths: %w", err)
	}
	return s.Own(path)
}

// Remove removes the place.
func (s *Sandbox) Remove() {
	s.Started()
	_ = os.RemoveAll(s.Dir)
}

// Started closes what the start of the process needed.
func (s *Sandbox) Started() {
	if s.ruleset != nil {
		_ = s.ruleset.Close()
		s.ruleset = nil
	}
}
