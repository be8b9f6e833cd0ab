package plugin

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/status"
)

// CrashError is the error if a plugin died or hung before it could be used. Another start would probably fail in the
// same way.
type CrashError struct {
	// Provider is the name of the provider.
	Provider string
	// Reason describes the failure, such as "exit status 2".
	Reason string
	// Stderr holds the plugin's last lines of output; a panic is complete.
	Stderr []string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("start provider %q: %s%s; check that the package is meant for this machine and that the provider runs on it, or use another version",
		e.Provider, e.Reason, lastOutput(e.Stderr))
}

// UnavailableError is the error if a plugin was lost during a call. It is unknown whether the call took effect. The
// next use starts the plugin again, so the caller may retry a call that is safe to repeat.
type UnavailableError struct {
	// Provider is the name of the provider.
	Provider string
	// Reason describes the failure, such as "signal: killed".
	Reason string
	// Stderr holds the plugin's last lines of output; a panic is complete.
	Stderr []string
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("provider %q ended during a call: %s%s; the next call starts it again, so try again",
		e.Provider, e.Reason, lastOutput(e.Stderr))
}

// TooLargeError is the error of a response that exceeds the limit on messages. The call's effect is unknown.
type TooLargeError struct {
	// Provider is the name of the provider.
	Provider string
	// Cause has the sizes.
	Cause error
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the response of provider %q is too large: %s; read less at once, or raise --provider-message-limit of the server",
		e.Provider, status.Convert(e.Cause).Message())
}

func (e *TooLargeError) Unwrap() error { return e.Cause }

func lastOutput(lines []string) string {
	if len(lines) == 0 {
		return ", and it wrote nothing"
	}
	return ", and its last output was:\n  " + strings.Join(lines, "\n  ") + "\n"
}

func timeoutReason(d time.Duration) string { return fmt.Sprintf("it was not ready after %v", d) }
