// Package exit decides the exit code of the error of a command, and prints the error. It imports nothing of the
// plugin.
package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes, on which scripts rely.
const (
	// Done means success, including no changes.
	Done = 0
	// Failed means that an operation failed.
	Failed = 1
	// Changes means that a plan has changes, or deferred ones; only with --detailed-exitcode.
	Changes = 2
	// Refused means that the user lacks a right, or that a plan may not be approved.
	Refused = 3
	// Stale means that objects or states changed after planning.
	Stale = 4
)

// Error is an error with its own exit code. With a nil cause, Print prints nothing.
type Error struct {
	Code  int
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// Unchanged is the error of a command that changed nothing.
type Unchanged struct {
	Problem, Advice string
	// Recorded is true if the command changed an object, but no infrastructure.
	Recorded bool
}

func (e *Unchanged) Error() string {
	what := "Nothing"
	if e.Recorded {
		what = "No infrastructure"
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n%s was changed. %s", e.Problem, what, e.Advice))
}

// Silent returns an error with an exit code for a command that has already printed the reason.
func Silent(code int) error { return &Error{Code: code} }

// IsSilent reports whether an error has only an exit code.
func IsSilent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Cause == nil
}

// Code returns the exit code for the error of a command. Only this function decides it.
func Code(err error) int {
	if err == nil {
		return Done
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if apierrors.IsForbidden(err) {
		return Refused
	}
	return Failed
}

// Print prints err, unless the command has already printed the reason.
func Print(w io.Writer, err error) {
	if err == nil || IsSilent(err) {
		return
	}
	fmt.Fprintf(w, "Error: %v\n", err)
}

// Join joins errors. The exit code is the most severe one: an error, then a refusal, then staleness.
func Join(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return errs[0]
	}
	code := 0
	var texts []error
	for _, e := range errs {
		c := Code(e)
		if code == 0 || c == Failed {
			code = c
		}
		if x, ok := errors.AsType[*Error](e); !ok || x.Cause != nil {
			texts = append(texts, e)
		}
	}
	return &Error{code, errors.Join(texts...)}
}
