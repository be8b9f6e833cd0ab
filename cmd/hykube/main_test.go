package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
)

// TestMain lets the test binary be the command itself, so that tests see exit codes, stderr and signals.
func TestMain(m *testing.M) {
	if os.Getenv("HYKUBE_TEST_RUN") != "" {
		main()
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

// TestErrorsAreOneLine makes mistakes of users, and expects one line and exit code 1.
func TestErrorsAreOneLine(t *testing.T) {
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
		"unknown probe":        {[]string{"probe", "healthz"}, "healthz"},
		"no server to probe":   {[]string{"probe", "livez", "-d", t.TempDir()}, "read kubeconfig"},
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
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "hykube")); err != nil {
		t.Fatal(err)
	}
	s := &harness.Server{
		Binaries: harness.Binaries{Bin: bin, Mirror: t.TempDir()}, Env: []string{"HYKUBE_TEST_RUN=1", "HOME=" + t.TempDir()},
	}
	s.Serve(t)
	for _, check := range []string{"livez", "readyz"} {
		cmd, stderr := command(t, "probe", check, "--data-dir", s.Data())
		if out, err := cmd.Output(); err != nil || string(out) != "ok\n" {
			t.Errorf("probe %s: %q, %v\n%s", check, out, err, stderr)
		}
	}
	begun := time.Now()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	log, err := os.ReadFile(s.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	stopping := false
	for line := range strings.Lines(string(log)) {
		stopping = stopping || strings.Contains(line, "msg=stopping")
		// Temporal's errors while it stops do not count.
		if strings.Contains(line, "level=ERROR") && !(stopping && strings.Contains(line, "component=temporal")) {
			t.Errorf("log: %s", line)
		}
	}
}
