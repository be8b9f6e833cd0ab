//go:build linux && (amd64 || arm64)

package entry

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Constants of the kernel that package syscall lacks.
const (
	prSetNoNewPrivs    = 38
	prCapBsetDrop      = 24
	prCapAmbient       = 47
	prCapAmbientClear  = 4
	prSetSeccomp       = 22
	seccompModeFilter  = 2
	prSetPdeathsig     = 1
	capabilityVersion3 = 0x20080522
	atEmptyPath        = 0x1000
	closeRangeCloexec  = 4

	sysCloseRange           = 436
	sysLandlockRestrictSelf = 446
)

// Restrictions of a thread persist across execve, so it is enough to restrict one locked thread.
func init() {
	if len(os.Args) != 3 || os.Args[1] != Command {
		return
	}
	runtime.LockOSThread()
	o, err := Decode(os.Args[2])
	if err == nil {
		err = o.carryOut()
	}
	os.Stderr.WriteString("[ERROR] hykube " + Command + ": " + err.Error() + "\n")
	if errors.Is(err, syscall.ENOEXEC) {
		os.Exit(ExitNotExecutable)
	}
	os.Exit(ExitNotContained)
}

// stepError is the error of a failed step.
type stepError struct {
	step  string
	errno syscall.Errno
}

func (e *stepError) Error() string { return e.step + ": " + e.errno.Error() }

func (e *stepError) Unwrap() error { return e.errno }

// step makes one system call on this thread.
//
//go:uintptrescapes
func step(what string, number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return &stepError{what, errno}
	}
	return nil
}

// carryOut executes the order. It returns only if a step fails. It sets the filter last, because the filter refuses the
// system calls of the other steps.
func (o Order) carryOut() error {
	if o.Enforce {
		for _, do := range []func() error{killFirst, o.limit, o.changeUser, dropCapabilities} {
			if err := do(); err != nil {
				return err
			}
		}
	}
	if err := o.dieWithServer(); err != nil {
		return err
	}
	if o.Enforce {
		if err := o.lock(); err != nil {
			return err
		}
	}
	return o.execute(os.Environ())
}

// killFirst makes the kernel kill a provider before the server if memory runs out.
func killFirst() error {
	return os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
}

// limit sets the resource limits. It never raises an existing limit.
func (o Order) limit() error {
	for _, l := range o.Limits {
		what := "set resource limit " + strconv.Itoa(l.Resource)
		var have, want struct{ cur, max uint64 }
		if err := step(what, syscall.SYS_PRLIMIT64, 0, uintptr(l.Resource), 0, uintptr(unsafe.Pointer(&have))); err != nil {
			return err
		}
		want.cur = min(l.Max, have.max)
		want.max = want.cur
		if err := step(what, syscall.SYS_PRLIMIT64, 0, uintptr(l.Resource), uintptr(unsafe.Pointer(&want)), 0); err != nil {
			return err
		}
	}
	return nil
}

// changeUser changes the user and the group. It removes all other groups.
func (o Order) changeUser() error {
	// Without CAP_SETPCAP the bounding set remains, but no_new_privs makes it harmless.
	for c := uintptr(0); step("", syscall.SYS_PRCTL, prCapBsetDrop, c) == nil; c++ {
	}
	if o.User == 0 {
		return nil
	}
	id := uintptr(o.User)
	if err := step("drop groups", syscall.SYS_SETGROUPS, 0, 0); err != nil {
		return err
	}
	if err := step("change to group "+strconv.Itoa(o.User), syscall.SYS_SETRESGID, id, id, id); err != nil {
		return err
	}
	return step("change to user "+strconv.Itoa(o.User), syscall.SYS_SETRESUID, id, id, id)
}

// dropCapabilities drops all capabilities, and prevents the process from gaining new ones.
func dropCapabilities() error {
	if err := step("clear ambient capabilities", syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClear); err != nil {
		return err
	}
	header := struct{ version, pid uint32 }{version: capabilityVersion3}
	var none [6]uint32
	if err := step("drop capabilities", syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none))); err != nil {
		return err
	}
	return step("set no_new_privs", syscall.SYS_PRCTL, prSetNoNewPrivs, 1)
}

// dieWithServer makes the kernel kill this process when the server ends. It must follow changeUser, because a change of
// the user clears this setting.
func (o Order) dieWithServer() error {
	if err := step("set the signal for the end of the server", syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL)); err != nil {
		return err
	}
	if os.Getppid() != o.Parent {
		return errors.New("the server has ended")
	}
	return nil
}

// lock enforces the Landlock ruleset and the system call filter.
func (o Order) lock() error {
	if o.Ruleset {
		if err := step("enforce Landlock", sysLandlockRestrictSelf, Ruleset, 0); err != nil {
			return err
		}
	}
	if len(o.Filter) == 0 {
		return nil
	}
	program := struct {
		length uint16
		first  *Instruction
	}{uint16(len(o.Filter)), &o.Filter[0]}
	return step("filter system calls", syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)))
}

// execute replaces this process with the program of the descriptor Executable. It returns only an error.
func (o Order) execute(env []string) error {
	// The server may have inherited open files at its own start.
	if err := step("close files", sysCloseRange, Executable, 1<<31-1, closeRangeCloexec); err != nil {
		syscall.CloseOnExec(Executable) // Linux before 5.11
		syscall.CloseOnExec(Ruleset)
	}
	argv, err := syscall.SlicePtrFromStrings([]string{o.Path})
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	if o.Script {
		path, err := syscall.BytePtrFromString(o.Path)
		if err != nil {
			return err
		}
		return step("execute "+o.Path, syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
			uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	}
	var empty [1]byte
	return step("execute "+o.Path, sysExecveat, Executable, uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), atEmptyPath)
}
