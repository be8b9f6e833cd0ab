//go:build !cgo || !linux || !(amd64 || arm64)

package contain

import (
	"os/exec"

	"github.com/hykube/hykube/internal/provider/contain/cgroup"
)

// machine returns no support: only Linux on amd64 and arm64 has the required features.
func machine() Support { return Support{} }

func ownUsers() *users { return nil }

// Command returns a command that starts a program without a sandbox.
func (p *Policy) Command(_ *Sandbox, plugin Plugin) (*exec.Cmd, error) {
	return exec.Command(plugin.Path), nil //nolint:noctx // its caller ends it
}

// measureDeleted does nothing: only Linux shows the open files of other processes.
func measureDeleted([]*running) {}

// probe is not called, because there is no sandbox.
func (p *Policy) probe(*cgroup.Tree) error { return nil }

// memory returns 0: nothing limits the memory.
func (p *Policy) memory() uint64 { return 0 }
