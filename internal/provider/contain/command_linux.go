//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hykube/hykube/internal/provider/contain/cgroup"
	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// Files that every provider may read: certificate authorities, the resolver's configuration and time zones. Every user
// of the machine may read them.
var (
	authorities = []string{
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
		"/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted", "/etc/ca-certificates", "/usr/share/ca-certificates",
		"/usr/local/share/ca-certificates",
	}
	resolver = []string{
		"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
		"/etc/protocols",
	}
	timeZones = []string{"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/localtime", "/etc/timezone"}
	devices   = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}
	// libraries are the directories of shared libraries, for programs that are not static.
	libraries = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib"}
	linking   = []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload"}
)

// Command returns a command that starts a program in its sandbox. The caller sets the environment and the streams.
func (p *Policy) Command(s *Sandbox, plugin Plugin) (*exec.Cmd, error) {
	_, script := interpreter(plugin.File)
	o := entry.Order{Path: plugin.Path, Script: script, Parent: os.Getpid()}
	files := []*os.File{plugin.File}
	if p.enforces(plugin.Grants) {
		o.Enforce, o.User, o.Limits = true, s.user, p.limits()
		if p.support.Seccomp {
			o.Filter = filter(s.user == 0, len(plugin.Grants.ConnectPorts) > 0)
		}
		if p.support.Landlock > 0 {
			r, err := p.rules(s, plugin)
			if err != nil {
				return nil, err
			}
			if s.ruleset, err = r.open(); err != nil {
				return nil, err
			}
			o.Ruleset = true
			files = append(files, s.ruleset)
		}
	}
	cmd := exec.Command(p.config.Program, entry.Command, o.Encode()) //nolint:noctx // its caller ends it
	cmd.ExtraFiles = files
	if p.tree != nil && s.contained {
		var err error
		if s.group, err = p.tree.New(filepath.Base(s.Dir)); err != nil {
			return nil, err
		}
		cmd.SysProcAttr = s.group.Attributes()
	}
	return cmd, nil
}

// probe reports why no process can start in a cgroup of a tree: an old kernel, or a missing right. It starts the
// server's program with an order that ends it at once.
func (p *Policy) probe(tree *cgroup.Tree) error {
	g, err := tree.New("probe")
	if err != nil {
		return err
	}
	defer g.Remove()
	cmd := exec.Command(p.config.Program, entry.Command, "probe") //nolint:noctx // it ends by itself
	cmd.SysProcAttr = g.Attributes()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process in it: %w", err)
	}
	_ = cmd.Wait()
	return nil
}

// rules returns the paths and ports that a process may access.
func (p *Policy) rules(s *Sandbox, plugin Plugin) (*rules, error) {
	g := plugin.Grants
	r := &rules{ports: g.ConnectPorts}
	r.fs, r.net, r.scoped = handled(p.support.Landlock, len(g.ConnectPorts) > 0)
	r.allow(writeFiles, false, s.Dir)
	r.allow(runFiles, false, filepath.Dir(plugin.Path))
	r.allow(readFiles, true, slices.Concat(authorities, resolver, timeZones)...)
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		r.allow(readFiles, true, filepath.SplitList(get(p.config.Environ, name))...)
	}
	r.allow(useDevice, true, devices...)
	loader, _ := interpreter(plugin.File)
	if loader != "" {
		r.allow(runFiles, true, loader)
	}
	if loader != "" || len(g.ExecutePaths) > 0 {
		r.allow(runFiles, true, libraries...)
		r.allow(readFiles, true, linking...)
	}
	for _, path := range g.WritePaths {
		if err := s.provide(path); err != nil {
			return nil, err
		}
	}
	for _, grant := range []struct {
		access uint64
		paths  []string
	}{{readFiles, g.ReadPaths}, {writeFiles, g.WritePaths}, {runFiles, g.ExecutePaths}} {
		for _, path := range grant.paths {
			resolved, err := p.resolve(path)
			if err != nil {
				return nil, err
			}
			r.paths = append(r.paths, rule{path: resolved, access: grant.access, optional: true, exact: true})
		}
	}
	return r, nil
}

// interpreter returns the path of the dynamic loader or, for a script, of its interpreter. It returns "" for a static
// program.
func interpreter(file *os.File) (path string, script bool) {
	head := make([]byte, 256)
	n, _ := file.ReadAt(head, 0)
	if line, ok := strings.CutPrefix(string(head[:n]), "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		if words := strings.Fields(line); len(words) > 0 {
			return words[0], true
		}
		return "", true
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return "", false
	}
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP && prog.Filesz > 1 && prog.Filesz < unix.PathMax {
			path := make([]byte, prog.Filesz-1) // without the terminating zero byte
			if _, err := prog.ReadAt(path, 0); err == nil {
				return string(path), false
			}
		}
	}
	return "", false
}

// limits returns the resource limits of a process. If a cgroup limits the memory that the process uses, that limit
// comes first, because its error is clear. The resource limit counts what the process reserves, so it is then twice as
// high.
func (p *Policy) limits() []entry.Limit {
	memory := p.memory()
	if slices.Contains(p.support.Controllers, "memory") {
		memory *= 2
	}
	return []entry.Limit{
		{Resource: unix.RLIMIT_CORE, Max: 0}, {Resource: unix.RLIMIT_MSGQUEUE, Max: 0},
		{Resource: unix.RLIMIT_RTPRIO, Max: 0},
		{Resource: unix.RLIMIT_NOFILE, Max: maxFiles}, {Resource: unix.RLIMIT_NPROC, Max: maxProcesses},
		{Resource: unix.RLIMIT_FSIZE, Max: maxFile}, {Resource: unix.RLIMIT_DATA, Max: memory},
	}
}

// memory returns the limit on the memory of a process in bytes. The default is at most half of the machine's memory.
func (p *Policy) memory() uint64 {
	if p.config.MaxMemory > 0 {
		return uint64(p.config.MaxMemory)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxMemory
	}
	return min(maxMemory, uint64(info.Totalram)*uint64(info.Unit)/2)
}
