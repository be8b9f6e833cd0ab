package entry

import (
	"strconv"
	"strings"
)

// Command is the first argument of a provider process. Only the server uses it.
const Command = "provider-exec"

// Exit codes of a process that failed before it executed the provider. Shells and other programs do not use them.
const (
	// ExitNotContained means that a step of the order failed.
	ExitNotContained = 214
	// ExitNotExecutable means that the file is not a program for this machine.
	ExitNotExecutable = 215
)

// File descriptors that the server passes to the process.
const (
	// Executable is the provider's program.
	Executable = 3
	// Ruleset is a Landlock ruleset, if Order.Ruleset is true.
	Ruleset = 4
)

// Order describes what a process does before it executes the provider. If a step fails, the process ends.
type Order struct {
	// Path is the argument 0 of the provider. The process executes the descriptor Executable, not the path, except for
	// a script.
	Path string
	// Script is true if the process must execute the path, because the interpreter of a script cannot read the
	// descriptor.
	Script bool
	// Parent is the process ID of the server. The provider ends with the server.
	Parent int
	// Enforce is false for a provider without a sandbox, which ignores the fields below.
	Enforce bool
	// User is the new user ID and group ID. 0 keeps those of the server.
	User int
	// Ruleset is true if the process enforces a Landlock ruleset.
	Ruleset bool
	// Limits are resource limits.
	Limits []Limit
	// Filter is a system call filter in classic BPF. An empty filter allows all calls.
	Filter []Instruction
}

// Limit is a resource limit. Resource is its number in the kernel.
type Limit struct {
	Resource int
	Max      uint64
}

// Instruction has the layout of struct sock_filter.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Encode encodes an order as one argument: words separated by spaces, with the path last. It needs no further imports.
func (o Order) Encode() string {
	words := []string{strconv.Itoa(o.Parent), flag(o.Script), flag(o.Enforce), strconv.Itoa(o.User), flag(o.Ruleset),
		strconv.Itoa(len(o.Limits)), strconv.Itoa(len(o.Filter))}
	for _, l := range o.Limits {
		words = append(words, strconv.Itoa(l.Resource), strconv.FormatUint(l.Max, 10))
	}
	for _, i := range o.Filter {
		packed := uint64(i.Code)<<48 | uint64(i.Jt)<<40 | uint64(i.Jf)<<32 | uint64(i.K)
		words = append(words, strconv.FormatUint(packed, 36))
	}
	return strings.Join(words, " ") + " " + o.Path
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
