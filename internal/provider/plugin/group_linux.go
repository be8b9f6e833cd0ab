package plugin

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the process in its own process group, so that a Ctrl-C for this process does not reach it. The kernel
// kills it when the thread that started it ends.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
