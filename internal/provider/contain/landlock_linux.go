//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"errors"
	"fmt"
	"os"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Access rights. The kernel accepts rights for directories only on directories.
const (
	readFiles  = landlock.AccessFSReadFile | landlock.AccessFSReadDir
	runFiles   = readFiles | landlock.AccessFSExecute
	writeFiles = readFiles | landlock.AccessFSWriteFile | landlock.AccessFSTruncate | landlock.AccessFSRemoveDir |
		landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo |
		landlock.AccessFSMakeSym |
		landlock.AccessFSRefer | landlock.AccessFSResolveUnix
	useDevice = landlock.AccessFSReadFile | landlock.AccessFSWriteFile

	ofFiles = landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile |
		landlock.AccessFSTruncate |
		landlock.AccessFSIoctlDev | landlock.AccessFSResolveUnix
)

// handled returns the access rights that Landlock restricts, by the version of its ABI. It restricts connections only
// if ports is true.
func handled(abi int, ports bool) (fs, net, scoped uint64) {
	fs = 1<<13 - 1
	for version, right := range map[int]uint64{
		2: landlock.AccessFSRefer, 3: landlock.AccessFSTruncate, 5: landlock.AccessFSIoctlDev,
		9: landlock.AccessFSResolveUnix,
	} {
		if abi >= version {
			fs |= right
		}
	}
	if abi >= 4 && ports {
		net = landlock.AccessNetConnectTCP
	}
	if abi >= 6 {
		scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	return fs, net, scoped
}

// abi returns the version of Landlock's ABI; 0 if the kernel does not support Landlock.
func abi() int {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// rules are the accesses that a Landlock ruleset permits. fs, net and scoped are the restricted rights.
type rules struct {
	fs, net, scoped uint64
	paths           []rule
	ports           []uint16
}

// rule permits access to a path and everything below it.
type rule struct {
	path   string
	access uint64
	// optional is true if the rule is ignored for a missing path.
	optional bool
	// exact is true if the path must not contain symbolic links.
	exact bool
}

// allow adds a rule for each path.
func (r *rules) allow(access uint64, optional bool, paths ...string) {
	for _, path := range paths {
		r.paths = append(r.paths, rule{path: path, access: access, optional: optional})
	}
}

// open opens all paths and returns a Landlock ruleset. The caller must close it.
func (r *rules) open() (_ *os.File, err error) {
	fd, err := landlock.LandlockCreateRuleset(&landlock.RulesetAttr{HandledAccessFS: r.fs, HandledAccessNet: r.net,
		Scoped: r.scoped}, 0)
	if err != nil {
		return nil, fmt.Errorf("create Landlock ruleset: %w", err)
	}
	ruleset := os.NewFile(uintptr(fd), "landlock-ruleset")
	defer func() {
		if err != nil {
			_ = ruleset.Close()
		}
	}()
	for _, p := range r.paths {
		if err := p.add(fd, r.fs); err != nil {
			return nil, fmt.Errorf("allow %s: %w", p.path, err)
		}
	}
	for _, port := range r.ports {
		if r.net == 0 {
			break
		}
		if err := landlock.LandlockAddNetPortRule(fd,
			&landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(port)}, 0); err != nil {
			return nil, fmt.Errorf("allow port %d: %w", port, err)
		}
	}
	return ruleset, nil
}

func (r rule) add(ruleset int, handled uint64) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if r.exact {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, r.path, &how)
	if r.optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	access := r.access & handled
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles
	}
	if access == 0 {
		return nil
	}
	return landlock.LandlockAddPathBeneathRule(ruleset, &landlock.PathBeneathAttr{AllowedAccess: access, ParentFd: fd},
		0)
}
