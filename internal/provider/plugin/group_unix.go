//go:build unix && !linux

package plugin

import "syscall"

// ownGroup puts the process into a group of its own, so that our Ctrl-C is not its.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
