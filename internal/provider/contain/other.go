//go:build !cgo || !linux || !(amd64 || arm64)

package contain

import "os/exec"

// machine returns no support: only Linux on amd64 and arm64 has the required features.
func machine() Support { return Support{} }

func ownUsers() *users { return nil }

// Command returns a command that starts a program without a sandbox.
func (p *Policy) Command(_ *Sandbox, plugin Plugin) (*exec.Cmd, error) {
	return exec.Command(plugin.Path), nil //nolint:noctx // its caller ends it
}

// measureDeleted does nothing: only Linux shows the open files of other processes.
func measureDeleted([]*running) {}
