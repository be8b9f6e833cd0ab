//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// refused are the system calls that no provider needs. They access other processes, change the machine or its mounts,
// or use parts of the kernel with many past vulnerabilities. A refused call fails with EPERM, as for a user without the
// right.
var refused = []uint32{
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	// A process in a process group or session of its own would survive the end of the provider.
	unix.SYS_SETPGID, unix.SYS_SETSID,
	// Mounts and namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	// Parts of the kernel.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_MEMFD_SECRET,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_PERSONALITY, unix.SYS_VHANGUP, unix.SYS_SYSLOG,
	// The machine.
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY,
	unix.SYS_CLOCK_SETTIME,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_NFSSERVCTL,
	// Shared memory and message queues, which other processes of the same user can use.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MSGGET,
	unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// byPath are calls that change the mode, the owner, the times or the attributes of a file by its path. Landlock does
// not restrict them, so the filter refuses them for a provider with the server's user. It allows those on open files,
// because Landlock restricts which files can be opened.
var byPath = []uint32{
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
}

// ofOthers are calls that change the scheduling or the limits of the process in an argument. 0 means the calling
// process.
var ofOthers = []struct {
	number   uint32
	argument int
}{
	{unix.SYS_SCHED_SETAFFINITY, 0}, {unix.SYS_SCHED_SETSCHEDULER, 0}, {unix.SYS_SCHED_SETPARAM, 0},
	{unix.SYS_SCHED_SETATTR, 0},
	{unix.SYS_SETPRIORITY, 1}, {unix.SYS_IOPRIO_SET, 1},
}

// families are the socket families that providers need.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

const mptcp = 262 // IPPROTO_MPTCP; Landlock restricts only the ports of TCP

// program is a classic BPF filter over struct seccomp_data: the call number, the architecture and six arguments.
type program []entry.Instruction

const (
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	anyBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	answer  = unix.BPF_RET | unix.BPF_K

	numberAt = 0
	archAt   = 4
)

// argumentAt returns the offset of the lower half of an argument. It holds a complete int on these architectures.
func argumentAt(i int) uint32 { return uint32(16 + 8*i) }

func errno(e unix.Errno) entry.Instruction {
	return entry.Instruction{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

// test returns a jump: it skips holds instructions if the test succeeds, and fails instructions otherwise.
func test(code uint16, k uint32, holds, fails int) entry.Instruction {
	return entry.Instruction{Code: code, K: k, Jt: uint8(holds), Jf: uint8(fails)}
}

func fetch(at uint32) entry.Instruction { return entry.Instruction{Code: load, K: at} }

// refuse makes a call fail with an error, for all arguments.
func (p *program) refuse(number uint32, with unix.Errno) {
	*p = append(*p, fetch(numberAt), test(equal, number, 0, 1), errno(with))
}

// when adds a body for one call. The body must continue after its end, or return.
func (p *program) when(number uint32, body ...entry.Instruction) {
	*p = append(*p, fetch(numberAt), test(equal, number, 0, len(body)))
	*p = append(*p, body...)
}

// filter returns the filter for a provider. sameUser is true if the provider has the server's user. ports is true if
// its ports are restricted.
func filter(sameUser, ports bool) program {
	denied := errno(unix.EPERM)
	p := program{fetch(archAt), test(equal, architecture, 1, 0), denied}
	if x32 != 0 {
		p = append(p, fetch(numberAt), test(atLeast, x32, 0, 1), denied)
	}
	calls := slices.Concat(refused, refusedHere)
	if sameUser {
		calls = slices.Concat(calls, byPath, byPathHere)
	}
	for _, number := range calls {
		p.refuse(number, unix.EPERM)
	}
	// A filter cannot read the flags of clone3. After ENOSYS, programs call clone instead.
	p.refuse(unix.SYS_CLONE3, unix.ENOSYS)
	p.when(unix.SYS_CLONE, fetch(argumentAt(0)), test(anyBit, namespaces, 0, 1), denied)
	p.when(unix.SYS_PRLIMIT64, fetch(argumentAt(0)), test(equal, 0, 1, 0), denied)
	for _, call := range ofOthers {
		if sameUser {
			p.when(call.number, fetch(argumentAt(call.argument)), test(equal, 0, 1, 0), denied)
		}
	}
	for _, request := range []uint32{unix.TIOCSTI, tioclinux} {
		p.when(unix.SYS_IOCTL, fetch(argumentAt(1)), test(equal, request, 0, 1), denied)
	}
	known := program{fetch(argumentAt(0))}
	for i, family := range families {
		known = append(known, test(equal, family, len(families)-i, 0))
	}
	p.when(unix.SYS_SOCKET, append(known, denied)...)
	p.when(unix.SYS_SOCKET, fetch(argumentAt(0)), test(equal, unix.AF_NETLINK, 0, 3), fetch(argumentAt(2)),
		test(equal, unix.NETLINK_ROUTE, 1, 0), denied)
	if ports {
		p.when(unix.SYS_SOCKET, fetch(argumentAt(2)), test(equal, mptcp, 0, 1), denied)
	}
	return append(p, entry.Instruction{Code: answer, K: unix.SECCOMP_RET_ALLOW})
}

// tioclinux is TIOCLINUX, which x/sys lacks.
const tioclinux = 0x541c
