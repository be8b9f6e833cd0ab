// Package bug turns a panic into an error of the work that caused it, so that it does not end the server. Whoever
// starts a goroutine for a plan, a request to a provider or the index calls Catch or Guard in it. The package imports
// nothing of Hykube, and knows no plans.
package bug

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Error is a recovered panic. A retry would only cause it again.
type Error struct {
	Cause any
	// Stack is the stack of the goroutine. It belongs in the log, and not in a message.
	Stack string
}

func (e *Error) Error() string {
	return fmt.Sprintf("Hykube itself failed: %v. This is a bug. Please report it with the stack trace from the server's log", e.Cause)
}

// Is reports whether an error is a recovered panic.
func Is(err error) bool {
	_, is := errors.AsType[*Error](err)
	return is
}

// Catch calls f and returns a panic as an *Error. The caller, or whoever gets the error, logs it.
func Catch(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Error{Cause: cause, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// Log logs the stack of an error if it is a recovered panic.
func Log(logger *slog.Logger, what string, err error) {
	if e, is := errors.AsType[*Error](err); is {
		logger.Error("panic", "while", what, "cause", e.Cause, "stack", e.Stack)
	}
}

// Guard calls f, and returns and logs a panic.
func Guard(logger *slog.Logger, what string, f func() error) error {
	err := Catch(f)
	Log(logger, what, err)
	return err
}

// Group is an errgroup.Group in which a panic of a function is its error.
type Group struct{ *errgroup.Group }

// NewGroup returns a group. Its functions do not end when one fails.
func NewGroup() Group { return Group{new(errgroup.Group)} }

// GroupOf returns a group, and the context of its functions, which ends when one fails.
func GroupOf(ctx context.Context) (Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return Group{g}, ctx
}

// Go calls f in a goroutine of its own.
func (g Group) Go(f func() error) { g.Group.Go(func() error { return Catch(f) }) }
