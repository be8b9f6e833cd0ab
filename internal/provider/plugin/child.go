package plugin

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

var _ runner.Runner = (*child)(nil)

// child is the operating system's part of a plugin: a process group with pipes. It implements go-plugin's
// runner.Runner. go-plugin's own runner does not use process groups, and would wait forever for a pipe that a
// grandchild holds.
type child struct {
	name           string
	cmd            *exec.Cmd
	start          func(func() error) error
	ended          func() string // called after the end; see contain.Sandbox.Ended
	stdout, stderr *os.File      // this process's ends of the pipes
	theirs         []*os.File
	tail           *lineTail
	logging        sync.WaitGroup
	exited         chan struct{} // closed when the process has ended or will never start
	state          string        // exit state; valid once exited is closed

	mu     sync.Mutex
	pid    int  // 0 until started
	killed bool // by kill
	// reason is the reason for which the process was killed. "" means that its exit state is the reason.
	reason string
}

// drainTime is the time for which output is read after the process has ended. Only a process that left the group can
// hold the pipes open for so long.
const drainTime = time.Second

func newChild(spec Spec, cmd *exec.Cmd, start func(func() error) error, ended func() string) (*child, error) {
	c := &child{name: spec.Name, cmd: cmd, start: start, ended: ended, exited: make(chan struct{}),
		tail: newLineTail(spec.Logger)}
	stdout, stdoutTheirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, stderrTheirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdout.Close(), stdoutTheirs.Close())
	}
	c.stdout, c.stderr, c.theirs = stdout, stderr, []*os.File{stdoutTheirs, stderrTheirs}
	cmd.Stdout, cmd.Stderr = stdoutTheirs, stderrTheirs
	ownGroup(cmd)
	return c, nil
}

// Start starts the process.
func (c *child) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return os.ErrProcessDone
	}
	if err := c.start(c.cmd.Start); err != nil {
		return err
	}
	for _, f := range c.theirs {
		_ = f.Close()
	}
	c.pid = c.cmd.Process.Pid
	c.logging.Go(func() { c.tail.readFrom(c.stderr) })
	go c.watch(c.pid)
	return nil
}

// watch waits for the end of the process and cleans up.
func (c *child) watch(pid int) {
	_ = c.cmd.Wait()
	killGroup(pid) // kill the process's own children
	exhausted := c.ended()
	deadline := time.Now().Add(drainTime)
	_ = c.stdout.SetReadDeadline(deadline)
	_ = c.stderr.SetReadDeadline(deadline)
	c.logging.Wait()
	_ = c.stderr.Close()
	c.mu.Lock()
	c.state = cmp.Or(c.reason, exhausted, c.cmd.ProcessState.String())
	c.mu.Unlock()
	close(c.exited)
}

// Wait waits for the end of the process.
func (c *child) Wait(context.Context) error {
	<-c.exited
	return nil
}

// Kill kills the process group.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// kill kills the process group. A process that has not started yet will not start.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return
	}
	c.killed = true
	if c.pid == 0 {
		for _, f := range append(c.theirs, c.stdout, c.stderr) {
			_ = f.Close()
		}
		close(c.exited)
		return
	}
	select {
	case <-c.exited: // another process may have its ID now
	default:
		killGroup(c.pid)
	}
}

// killFor kills the process group for a reason, which is then the exit state.
func (c *child) killFor(reason string) {
	c.mu.Lock()
	if !c.killed {
		c.reason = reason
	}
	c.mu.Unlock()
	c.kill()
}

func (c *child) started() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid != 0
}

func (c *child) wasKilled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// exitState returns how the process ended, or "" while it runs.
func (c *child) exitState() string {
	select {
	case <-c.exited:
		return c.state
	default:
		return ""
	}
}

// exitCode returns the exit code of a process that has ended, or -1 while it runs.
func (c *child) exitCode() int {
	select {
	case <-c.exited:
		return c.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

func (c *child) lastLines() []string { return c.tail.lines() }

// Stdout returns the output with the handshake.
func (c *child) Stdout() io.ReadCloser { return c.stdout }

// Stderr returns an empty reader for go-plugin: lineTail reads the log.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(eof{}) }

// Name returns the provider's name for messages.
func (c *child) Name() string { return c.name }

// ID returns the process ID, or "" before the start.
func (c *child) ID() string {
	if !c.started() {
		return ""
	}
	return strconv.Itoa(c.cmd.Process.Pid)
}

// Diagnose returns "": there is nothing to add.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address unchanged, because the plugin runs on the same host.
func (c *child) PluginToHost(network, addr string) (string, string, error) { return network, addr, nil }

// HostToPlugin returns the address unchanged, like PluginToHost.
func (c *child) HostToPlugin(network, addr string) (string, string, error) { return network, addr, nil }

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
