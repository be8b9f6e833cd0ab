package entry

import (
	"errors"
	"strconv"
	"strings"
)

// Command is the argument with which a program becomes a contained provider. Only the server uses it.
const Command = "provider-exec"

// Exit codes of a start that did not come to the provider's own program. Shells and other programs do not use them.
const (
	// ExitNotContained says that a step of the order failed.
	ExitNotContained = 214
	// ExitNotExecutable says that the file is no program for this machine.
	ExitNotExecutable = 215
)

// Descriptors of the files that a process is started with.
const (
	// Executable is the provider's program.
	Executable = 3
	// Ruleset is a ruleset of Landlock, if the order has one.
	Ruleset = 4
)

// Order says what a process does before it executes the provider. It leaves no decision to the process: a step that fails ends it.
type Order struct {
	// Path is what the provider sees as its path. The descriptor Executable is executed.
	Path string
	// Script says that the path is executed: the interpreter of a script cannot read the descriptor.
	Script bool
	// Parent is the server's process, which the provider must not outlive.
	Parent int
	// Enforce is false for a provider without a sandbox. Then the fields below do not count.
	Enforce bool
	// User is the user and the group to change to; 0 keeps those of the server.
	User int
	// Ruleset says whether there is a ruleset of Landlock.
	Ruleset bool
	// Limits are resource limits.
	Limits []Limit
	// Filter is a filter of system calls in classic BPF; empty for none.
	Filter []Instruction
}

// Limit is a resource limit, by its number.
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

// Encode writes an order as an argument. The form is as plain as this package's imports: words between spaces, and the path at the end.
func (o Order) Encode() string {
	words := []string{strconv.Itoa(o.Parent), flag(o.Script), flag(o.Enforce), strconv.Itoa(o.User), flag(o.Ruleset), strconv.Itoa(len(o.Limits)), strconv.Itoa(len(o.Filter))}
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

var errOrder = errors.New("the order is damaged")

// Decode reads what Encode wrote.
func Decode(s string) (o Order, err error) {
	next := func(base int) uint64 {
		word, rest, found := strings.Cut(s, " ")
		n, perr := strconv.ParseUint(word, base, 64)
		if !found || perr != nil {
			err = errOrder
		}
		s = rest
		return n
	}
	o.Parent, o.Script, o.Enforce, o.User, o.Ruleset = int(next(10)), next(10) == 1, next(10) == 1, int(next(10)), next(10) == 1
	limits, instructions := next(10), next(10)
	for range limits {
		if err != nil {
			break
		}
		o.Limits = append(o.Limits, Limit{int(next(10)), next(10)})
	}
	for range instructions {
		if err != nil {
			break
		}
		packed := next(36)
		o.Filter = append(o.Filter, Instruction{uint16(packed >> 48), uint8(packed >> 40), uint8(packed >> 32), uint32(packed)})
	}
	if o.Path = s; s == "" {
		err = errOrder
	}
	return o, err
}
