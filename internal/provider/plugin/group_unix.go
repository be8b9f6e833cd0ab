//go:build unix && !linux

package plugin

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the process in its own process group, so that a Ctrl-C for this process does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
