package cgroup

import "errors"

// Auto is the place for Open that means the server's own cgroup.
const Auto = "auto"

// ErrNotDelegated is the error of Open with Auto if the server's cgroup is not delegated to it.
var ErrNotDelegated = errors.New("the cgroup of the server is not delegated to it")

// Limits are the limits of one cgroup. 0 means no limit.
type Limits struct {
	// Memory is in bytes. It includes the files in memory and the descendants of the process.
	Memory uint64
	// Processes counts processes and threads.
	Processes uint64
}

// Exhaustion reports whether the kernel killed a process of a cgroup because memory ran out.
type Exhaustion int

const (
	// NotExhausted means that the kernel killed no process.
	NotExhausted Exhaustion = iota
	// OwnLimit means that the cgroup reached its own limit.
	OwnLimit
	// OuterLimit means that a cgroup above or the machine ran out of memory.
	OuterLimit
)
