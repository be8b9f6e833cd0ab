// Command gotest runs `go test` with its arguments and prints the output. Its last line counts the skipped tests by
// reason. Its exit code is that of `go test`. It imports only the standard library.
//
//	go run ./hack/gotest -timeout 30m ./...
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(code)
}

// run returns the exit code of `go test`. With an error, the code does not come from `go test`.
func run(args []string, out, errOut io.Writer) (int, error) {
	// The terminal sends an interrupt to `go test`, too. Thus gotest ignores it and waits for `go test` to end.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = errOut
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := &report{out: out, packages: map[string]*pkg{}, reasons: map[string]int{}}
	read := r.readAll(pipe)
	// If readAll failed, the tests must not block on a full pipe.
	_, drained := io.Copy(io.Discard, pipe)
	err = cmd.Wait()
	r.close()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && exit.ExitCode() > 0:
		return exit.ExitCode(), read
	case err != nil || read != nil || drained != nil:
		return 1, errors.Join(err, read, drained)
	}
	return 0, nil
}

// readAll reads a stream with one event in each line. It prints a line that is not an event unchanged.
func (r *report) readAll(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case line[0] != '{' || json.Unmarshal(line, &e) != nil:
			r.print(string(line))
		default:
			r.add(e)
		}
		if errors.Is(err, io.EOF) {
			return r.err
		}
		if err != nil {
			return err
		}
	}
}
