package plugin

import (
	"fmt"
	"strings"
	"time"
)

// CrashError says that a plugin died, or hung, before it could be used. Starting it again will most likely end the
// same way.
type CrashError struct {
	// Provider is the name of the provider.
	Provider string
	// Reason is what happened, such as "exit status 2".
	Reason string
	// Stderr holds the last lines that the plugin wrote; a panic comes whole.
	Stderr []string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("start provider %q: %s%s; check that the package is meant for this machine and that the provider runs on it, or use another version",
		e.Provider, e.Reason, said(e.Stderr))
}

// UnavailableError says that a plugin was lost while it was answering a call. Whether the call took effect is not known;
// the process is started again by whoever needs it next, so the caller may retry what is safe to retry.
type UnavailableError struct {
	// Provider is the name of the provider.
	Provider string
	// Reason is what happened, such as "signal: killed".
	Reason string
	// Stderr holds the last lines that the plugin wrote; a panic comes whole.
	Stderr []string
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("provider %q ended while it was answering: %s%s; it is started again when it is needed next, so try again",
		e.Provider, e.Reason, said(e.Stderr))
}

func said(lines []string) string {
	if len(lines) == 0 {
		return ", and it said nothing"
	}
	return ", and the last it said was:\n  " + strings.Join(lines, "\n  ") + "\n"
}

func timeoutReason(d time.Duration) string { return fmt.Sprintf("it was not ready after %v", d) }
