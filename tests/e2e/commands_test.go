package e2e

import (
	"errors"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// exits runs a command that must end with the given exit code: exits CODE CMD [ARG...]
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ee, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
		}
		got = ee.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// capture keeps what the last command printed in a variable, of "plan.hykube.io/plan-x" only the name: capture NAME
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if text == "" || strings.ContainsAny(text, " \n") {
		ts.Fatalf("capture %s: %q is not one word", args[0], text)
	}
	ts.Setenv(args[0], path.Base(text))
}
