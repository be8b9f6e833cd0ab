package cli

import (
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes. Scripts rely on them.
const (
	// ExitDone says that everything is done, or that there was nothing to do.
	ExitDone = 0
	// ExitError says that something failed.
	ExitError = 1
	// ExitChanges says that a plan has changes that wait for approval; only with --detailed-exitcode.
	ExitChanges = 2
	// ExitRefused says that a policy refuses it: the caller lacks a right, or a plan may not be approved.
	ExitRefused = 3
	// ExitStale says that objects or states moved after the plan was made.
	ExitStale = 4
)

// exitError is an error with an exit code of its own. A nil cause prints nothing: everything was said already.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// silent ends a command with a code after it has said what there is to say.
func silent(code int) error { return &exitError{code: code} }

// ExitCode is the exit code of a command that returned err. It is the one place where that is decided.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if apierrors.IsForbidden(err) {
		return ExitRefused
	}
	return ExitError
}

// PrintError writes err for a person, unless the command has said everything already.
func PrintError(w io.Writer, err error) {
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.cause == nil {
		return
	}
	fmt.Fprintf(w, "Error: %v\n", err)
}
