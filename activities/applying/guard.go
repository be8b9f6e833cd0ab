package applying

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// bugError is a recovered panic. A retry would only cause it again.
type bugError struct{ cause any }

func (e *bugError) Error() string {
	return fmt.Sprintf("Hykube itself failed: %v. This is a bug. Please report it with the stack trace from the server's log", e.cause)
}

// guard calls f and converts a panic to a *bugError.
func guard(logger *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			logger.Error("panic", "while", what, "cause", cause, "stack", string(debug.Stack()))
			err = &bugError{cause}
		}
	}()
	return f()
}
