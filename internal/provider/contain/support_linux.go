//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machine returns the features of this machine. It detects them once.
var machine = sync.OnceValue(func() Support {
	return Support{System: true, Landlock: abi(), Seccomp: filters(), OwnUser: changesUsers() && ownUsers() != nil}
})

// filters reports whether the kernel supports filters that refuse system calls with an errno.
func filters() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// changesUsers reports whether the server may run processes as other users. This requires rights to own their
// directories, to connect to their sockets, and to kill them.
func changesUsers() bool {
	if os.Geteuid() != 0 {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return false
	}
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE |
		1<<unix.CAP_KILL
	groups, err := os.ReadFile("/proc/self/setgroups")
	return have[0].Effective&needed == needed && (err != nil || string(groups) != "deny\n")
}

// ownUsers returns the user IDs for providers; nil if the server's user namespace has too few.
var ownUsers = sync.OnceValue(func() *users {
	uids, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return nil
	}
	defer uids.Close()
	gids, err := os.Open("/proc/self/gid_map")
	if err != nil {
		return nil
	}
	defer gids.Close()
	return newUsers(uids, gids)
})
