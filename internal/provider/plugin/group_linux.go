package plugin

import "syscall"

// ownGroup starts the process in its own process group, so that a Ctrl-C for this process does not reach it. The kernel
// kills it when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
