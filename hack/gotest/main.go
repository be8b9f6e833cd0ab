// Command gotest runs `go test` with its arguments and prints the output. Its last line counts the skipped tests by
// reason. It exits with the code of `go test`. It imports the standard library alone.
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

// run returns the exit code of `go test`. The error says that the code is not from there.
func run(args []string, out, errOut io.Writer) (int, error) {
	// An interrupt from the terminal reaches go test as well, which then ends by itself.
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
	r := newReport(out)
	read := r.readAll(pipe)
	// A reader that gave up must not block the tests.
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

// readAll reports on a stream of events, one in each line. A line that is no event is printed as it is.
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
