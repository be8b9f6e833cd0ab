package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the command itself, so that tests see exit codes, stderr and signals.
func TestMain(m *testing.M) {
	if os.Getenv("HYKUBE_TEST_RUN") != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	stderr := new(bytes.Buffer)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "HYKUBE_TEST_RUN=1", "HOME="+t.TempDir())
	cmd.Stderr = stderr
	return cmd, stderr
}

// TestMistakesAreOneLine makes mistakes that a person makes, and wants one clear line and exit code 1.
func TestMistakesAreOneLine(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte("999"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"busy port":            {[]string{"server", "-d", t.TempDir(), "--secure-port", port}, "the port is in use"},
		"newer data directory": {[]string{"server", "-d", dir, "--secure-port", "0"}, "a newer version of hykube wrote it"},
		"not a directory":      {[]string{"server", "-d", filepath.Join(dir, "version"), "--secure-port", "0"}, "not a directory"},
		"unwritable directory": {[]string{"server", "-d", "/proc/hykube", "--secure-port", "0"}, "/proc/hykube"},
		"unknown flag":         {[]string{"server", "--prot", "1"}, "unknown flag: --prot"},
		"flag of a wrong type": {[]string{"server", "--secure-port", "https"}, "secure-port"},
		"bad address":          {[]string{"server", "--bind-address", "here"}, "--bind-address"},
		"bad log level":        {[]string{"server", "--log-level", "loud"}, "--log-level"},
		"unknown command":      {[]string{"serve"}, `unknown command "serve"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := command(t, test.args...)
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("exit code %d (%v), want 1", cmd.ProcessState.ExitCode(), err)
			}
			if text := stderr.String(); !strings.HasPrefix(text, "hykube: ") || !strings.Contains(text, test.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("stderr %q, want one line that says %q", text, test.want)
			}
		})
	}
}

// TestTermination starts a server, waits until it is ready, and ends it as an init system would.
func TestTermination(t *testing.T) {
	dir := t.TempDir()
	cmd, stderr := command(t, "server", "-d", dir, "--secure-port", "0")
	cmd.Stderr = nil
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		seen := false
		for {
			n, err := log.Read(buf)
			stderr.Write(buf[:n])
			if !seen && strings.Contains(stderr.String(), "msg=serving") {
				seen = true
				close(serving)
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-serving:
	case <-read:
		t.Fatalf("the server ended: %s", stderr)
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not serve within 30 s")
	}
	if _, err := os.Stat(filepath.Join(dir, "admin.kubeconfig")); err != nil {
		t.Error(err)
	}
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-read
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, stderr)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	for line := range strings.Lines(stderr.String()) {
		// What Temporal calls an error while it is being stopped is its own affair.
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "component=temporal") {
			t.Errorf("log: %s", line)
		}
	}
}
