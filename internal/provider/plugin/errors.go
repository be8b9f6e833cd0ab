package plugin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	// Stderr holds the plugin's last lines of output; a panic is complete. The lines can hold secrets of any call of
	// the process, also of other users. So Error has only the stack trace.
	Stderr []string
}

func (e *UnavailableError) Error() string {
	text := fmt.Sprintf("provider %q ended during a call: %s; the server's log has its output. The next call starts it again, so try again", e.Provider, e.Reason)
	if frames := stackTrace(e.Stderr); len(frames) > 0 {
		text += ". Its stack trace:\n  " + strings.Join(frames, "\n  ") + "\n"
	}
	return text
}

// frame matches a line of a Go stack trace: a goroutine, a function with its arguments as numbers, or a source line.
var frame = regexp.MustCompile(
	`^(goroutine \d+ \[[a-z ]+\]:|(created by )?[\w./*()\[\]·-]+(\([0-9a-fx, .{}?]*\)| in goroutine \d+)|\s*[\w./@+-]+\.go:\d+( \+0x[0-9a-f]+)?)$`)

// stackTrace returns the lines of a Go stack trace. It leaves out the panic's message and all other lines.
func stackTrace(lines []string) []string {
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "goroutine ") })
	if i < 0 {
		return nil
	}
	var frames []string
	for _, l := range lines[i:] {
		if frame.MatchString(l) {
			frames = append(frames, l)
		}
	}
	return frames
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
