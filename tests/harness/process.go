package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a background program that writes its log to a file.
type process struct {
	*exec.Cmd
	done chan struct{}
	// ended is the program's exit error. It is valid after done is closed.
	ended error
}

func startProcess(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Cmd: cmd, done: make(chan struct{})}
	go func() {
		p.ended = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// alive returns an error if the program has ended.
func (p *process) alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w", filepath.Base(p.Path), errors.Join(p.ended, errEnded))
	default:
		return nil
	}
}

// errEnded is the error of a program that ended and should run.
var errEnded = errors.New("the process is gone")

// stop asks the program to end, as an init system does, and kills it if it takes too long.
func (p *process) stop(limit time.Duration) error {
	name := filepath.Base(p.Path)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		<-p.done // a process that has ended accepts no signal
		return fmt.Errorf("stop %s: %w", name, errors.Join(err, p.ended))
	}
	select {
	case <-p.done:
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("stop %s: it took longer than %s", name, limit)
	}
	if p.ended != nil {
		return fmt.Errorf("stop %s: %w", name, p.ended)
	}
	return nil
}

// kill ends the program at once.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.done
}

// programsBelow lists the processes whose program is in a directory, if the system has /proc.
func programsBelow(dir string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), dir+string(filepath.Separator)) {
			out = append(out, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}
