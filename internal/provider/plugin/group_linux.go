package plugin

import "syscall"

// ownGroup puts the process into a group of its own, so that our Ctrl-C is not its, and has the kernel kill it when the
// thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
