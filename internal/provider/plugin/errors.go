package plugin

import (
	"fmt"
	"strings"
	"time"
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

func lastOutput(lines []string) string {
	if len(lines) == 0 {
		return ", and it wrote nothing"
	}
	return ", and its last output was:\n  " + strings.Join(lines, "\n  ") + "\n"
}

func timeoutReason(d time.Duration) string { return fmt.Sprintf("it was not ready after %v", d) }
