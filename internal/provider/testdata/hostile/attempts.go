package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts are the actions that a sandbox must prevent. The target is a path, a process or an address. An attempt that
// succeeds returns nil.
var attempts = map[string]func(target string) error{
	// Files.
	"read a file":               read,
	"list a directory":          list,
	"read through a symlink":    throughSymlink,
	"link a file":               func(t string) error { return os.Link(t, filepath.Join(os.TempDir(), "linked")) },
	"write a file":              func(t string) error { return os.WriteFile(t, []byte("x"), 0o600) },
	"change a mode":             func(t string) error { return os.Chmod(t, 0o777) },
	"remove a file":             os.Remove,
	"rename a file":             func(t string) error { return os.Rename(t, t+".moved") },
	"truncate a file":           func(t string) error { return os.Truncate(t, 0) },
	"rewrite its own program":   func(string) error { return rewrite("/proc/self/exe") },
	"rewrite its package":       func(t string) error { return os.WriteFile(filepath.Join(t, "added"), nil, 0o600) },
	"open a file by its handle": openByHandle,
	"execute a program":         func(t string) error { return exec.Command(t).Run() },

	// Processes.
	"read an environment":   func(t string) error { return read("/proc/" + t + "/environ") },
	"read memory":           func(t string) error { return read("/proc/" + t + "/mem") },
	"read a memory map":     func(t string) error { return read("/proc/" + t + "/maps") },
	"list open files":       func(t string) error { return list("/proc/" + t + "/fd") },
	"list a root":           func(t string) error { return list(filepath.Join("/proc", t, "root")) },
	"list a work directory": func(t string) error { return list(filepath.Join("/proc", t, "cwd")) },
	"ptrace":                func(t string) error { return unix.PtraceSeize(pid(t)) },
	"copy memory":           copyMemory,
	"signal":                func(t string) error { return syscall.Kill(pid(t), syscall.SIGURG) },
	"signal by descriptor":  signalByDescriptor,
	"limit a process": func(t string) error {
		return unix.Prlimit(pid(t), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	},
	"take a descriptor": func(t string) error {
		fd, err := unix.PidfdOpen(pid(t), 0)
		if err != nil {
			return err
		}
		return call(unix.SYS_PIDFD_GETFD, uintptr(fd), 1, 0)
	},
	"pin a process to a processor": func(t string) error {
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(pid(t), &set)
	},
	"leave the process group": func(string) error { return call(unix.SYS_SETSID) },

	// Sockets.
	"connect":             func(t string) error { return dial("tcp", t) },
	"connect to a socket": func(t string) error { return dial("unix", t) },
	"raw sockets":         func(string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"the hypervisor":      func(string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"kernel crypto":       func(string) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"netfilter":           func(string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) },

	// Rights and the kernel.
	"become root": func(string) error {
		if os.Getuid() == 0 {
			return nil
		}
		return call(unix.SYS_SETUID, 0)
	},
	"a group of root": func(string) error {
		groups, err := os.Getgroups()
		if err == nil && os.Getgid() != 0 && !slices.Contains(groups, 0) {
			err = errors.New("none")
		}
		return err
	},
	"capabilities":      capabilities,
	"raise its limits":  func(string) error { return raise(unix.RLIMIT_NPROC) },
	"mount":             func(t string) error { return unix.Mount("tmpfs", t, "tmpfs", 0, "") },
	"a user namespace":  func(string) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"cloned namespaces": cloneNamespace,
	"enter a namespace": func(t string) error {
		fd, err := unix.PidfdOpen(pid(t), 0)
		if err != nil {
			return err
		}
		return call(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUTS)
	},
	"chroot": unix.Chroot,
	"keys":   func(string) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
	"bpf":    func(string) error { return call(unix.SYS_BPF, 0, 0, 0) },
	"io_uring": func(string) error {
		var p [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)))
	},
	"perf":         func(string) error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) },
	"userfaultfd":  func(string) error { return call(unix.SYS_USERFAULTFD, 0) },
	"kexec":        func(string) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) },
	"a module":     func(string) error { return call(unix.SYS_INIT_MODULE, 0, 0, 0) },
	"the hostname": func(string) error { return call(unix.SYS_SETHOSTNAME, 0, 1<<20) },
	"shared memory": func(string) error {
		return call(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT)
	},

	// Floods, up to their limit.
	"a large file": func(string) error {
		signal.Ignore(unix.SIGXFSZ)
		f, err := os.CreateTemp("", "large")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		return f.Truncate(64 << 30)
	},
	"much memory": func(string) error {
		_, err := unix.Mmap(-1, 0, 64<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		return err
	},
	"use private memory": func(string) error { return use(unix.MAP_PRIVATE) },
	"use shared memory":  func(string) error { return use(unix.MAP_SHARED) },
	"fill its directory": func(string) error {
		return fill(func(f *os.File) error { return nil })
	},
	"fill its directory with deleted files": func(string) error {
		return fill(func(f *os.File) error { return os.Remove(f.Name()) })
	},
	"fill its directory with deleted files in memory": func(string) error {
		return fill(func(f *os.File) error {
			_, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ, unix.MAP_SHARED)
			return errors.Join(err, os.Remove(f.Name()), f.Close())
		})
	},
	"fill its directory with small files": func(string) error {
		for range 2000 {
			f, err := os.CreateTemp("", "small")
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		time.Sleep(patience)
		return nil
	},
	"hide files":       func(string) error { return hide(4096) },
	"fork without end": forkWithoutEnd,
	"a core dump":      func(string) error { return raise(unix.RLIMIT_CORE) },

	// The server's environment.
	"a variable": func(t string) error {
		if _, ok := os.LookupEnv(t); !ok {
			return errors.New("not set")
		}
		return nil
	},
}

func pid(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func read(path string) error {
	f, err := os.Open(path)
	if err == nil {
		err = f.Close()
	}
	return err
}

func list(path string) error { _, err := os.ReadDir(path); return err }

func throughSymlink(target string) error {
	link := filepath.Join(os.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	defer os.Remove(link)
	return read(link)
}

func rewrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, unix.ETXTBSY) {
		return nil // only because it runs
	}
	if err == nil {
		err = f.Close()
	}
	return err
}

func openByHandle(path string) error {
	h, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	_ = mount
	dir, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, h, unix.O_RDONLY)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func copyMemory(target string) error {
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid(target), local, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // the right is there, and the address is not
	}
	return err
}

func signalByDescriptor(target string) error {
	fd, err := unix.PidfdOpen(pid(target), 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGURG, nil, 0)
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		err = c.Close()
	}
	return err
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func capabilities(string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	if have[0].Permitted == 0 && have[1].Permitted == 0 {
		return errors.New("none")
	}
	return nil
}

func raise(resource int) error {
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
}

func cloneNamespace(string) error {
	child, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.CLONE_NEWUSER|unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

// call makes a system call. An error about its arguments means that the right to make it is there.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	switch errno {
	case 0, unix.EINVAL, unix.EFAULT, unix.EBADF, unix.ENOENT, unix.E2BIG:
		return nil
	}
	return fmt.Errorf("system call %d: %w", number, errno)
}

// use writes to all pages of 4 GiB of new memory.
func use(kind int) error {
	for range 4096 {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, kind|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return nil
}

// patience is the time in which the server must end a process that has too many files.
const patience = 15 * time.Second

// fill writes files of a megabyte.
func fill(then func(*os.File) error) error {
	block := make([]byte, 1<<20)
	for range 128 {
		f, err := os.CreateTemp("", "fill")
		if err != nil {
			return err
		}
		if _, err := f.Write(block); err != nil {
			return err
		}
		if err := then(f); err != nil {
			return err
		}
	}
	time.Sleep(patience)
	return nil
}

// hide makes nested directories. The path of the last one is longer than the kernel allows in one call.
func hide(depth int) error {
	dir, err := unix.Open(os.TempDir(), unix.O_DIRECTORY, 0)
	for range depth {
		if err != nil {
			return err
		}
		if err := unix.Mkdirat(dir, "deeper", 0o700); err != nil {
			return err
		}
		below, err := unix.Openat(dir, "deeper", unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(dir)); err != nil {
			return err
		}
		dir = below
	}
	time.Sleep(patience)
	return err
}

// forkWithoutEnd starts processes that never end by themselves, until the kernel refuses another one.
func forkWithoutEnd(string) error {
	for range 1 << 14 {
		child, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		for child == 0 { // a forked Go program can make only raw system calls
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return nil
}
