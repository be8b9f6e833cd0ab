package applying

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// bugError is a panic of our own. To try again would only meet it again, without end and without a word.
type bugError struct{ cause any }

func (e *bugError) Error() string {
	return fmt.Sprintf("Hykube itself failed: %v. This is a bug; the server's log has the place. Please report it", e.cause)
}

// guard calls f, and turns a panic into a *bugError.
func guard(logger *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			logger.Error("panic", "while", what, "cause", cause, "stack", string(debug.Stack()))
			err = &bugError{cause}
		}
	}()
	return f()
}
