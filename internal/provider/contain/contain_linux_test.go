//go:build cgo && linux && (amd64 || arm64)

package contain

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/provider/contain/cgroup/cgrouptest"
	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// trivial is a program that does nothing.
const trivial = "/bin/true"

// TestMain ends a process that the entry should have handled: it would run the tests, which start such processes
// without end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == entry.Command {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// run starts a program under a policy, and waits for its end.
func run(tb testing.TB, p *Policy, g Grants, path string) error {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Skip(err)
	}
	defer f.Close()
	plugin := Plugin{Source: "example.com/test/trivial", Path: path, File: f, Grants: g}
	s, err := p.Sandbox(plugin)
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Remove()
	cmd, err := p.Command(s, plugin)
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Env, cmd.Stderr = s.Env, os.Stderr
	return cmd.Run()
}

// TestEntryRunsBeforeGo runs damaged orders. Each one ends the process before Go initializes a single package: the Go
// runtime and the server's packages would make each start of a provider slow.
func TestEntryRunsBeforeGo(t *testing.T) {
	t.Setenv("GODEBUG", "inittrace=1")
	for _, tc := range []struct {
		args []string
		exit int
		in   bool // Go
	}{
		{args: []string{"-test.run=^$"}, in: true}, // proves that inittrace shows the initialization
		{args: []string{"-test.run=^$", entry.Command, "x"}, in: true},
		{args: []string{entry.Command, "x"}, exit: entry.ExitNotContained},
		{args: []string{entry.Command, "1 2 3"}, exit: entry.ExitNotContained},
		{args: []string{entry.Command, "1 0 1 0 0 0 999999 /a"}, exit: entry.ExitNotContained},
		{args: []string{entry.Command, "1 0 0 0 0 0 0 "}, exit: entry.ExitNotContained},
		{args: []string{entry.Command, entry.Order{Path: "/bin/true", Parent: 1}.Encode()}, exit: entry.ExitNotContained}, // another server
		{args: []string{entry.Command, entry.Order{Path: "/etc/hosts", Parent: os.Getpid()}.Encode()}, exit: entry.ExitNotExecutable},
	} {
		var stderr strings.Builder
		cmd := exec.Command(os.Args[0], tc.args...)
		cmd.Stderr = &stderr
		if f, err := os.Open("/etc/hosts"); err == nil { // no program
			defer f.Close()
			cmd.ExtraFiles = []*os.File{f}
		}
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); !tc.in && code != tc.exit {
			t.Errorf("%q: exit code %d, want %d: %s", tc.args, code, tc.exit, stderr.String())
		}
		if got := strings.Contains(stderr.String(), "init "); got != tc.in {
			t.Errorf("%q: Go initialized packages: %v, want %v: %s", tc.args, got, tc.in, stderr.String())
		}
	}
}

// TestCgroupsAreProtected grants the directory of the cgroups, which may be mounted anywhere.
func TestCgroupsAreProtected(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	p := New(Config{})
	t.Cleanup(p.Close)
	if err := p.UseCgroup(root, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if Overlapping(filepath.Join(root, "below"), p.config.Protected) == "" {
		t.Errorf("a Provider may grant a path in %s: only %v is protected", root, p.config.Protected)
	}
}

// TestUseCgroup names cgroups that cannot be used.
func TestUseCgroup(t *testing.T) {
	for place, want := range map[string]string{"": "", NoCgroup: "", t.TempDir(): "use --provider-cgroup"} {
		p := New(Config{})
		err := p.UseCgroup(place, slog.New(slog.DiscardHandler))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", place, err)
		}
		if p.support.Cgroup || p.support.NoCgroup != "" {
			t.Errorf("%q: %+v", place, p.support)
		}
	}
	for place, valid := range map[string]bool{"auto": true, "off": true, "/sys/fs/cgroup/a": true, "a": false, "": false} {
		if err := CheckCgroup(place); (err == nil) != valid {
			t.Errorf("%q: %v", place, err)
		}
	}
}

// BenchmarkStart measures a start without a sandbox, with one, and with one in a cgroup, through the hykube binary in
// HYKUBE_BIN_DIR.
func BenchmarkStart(b *testing.B) {
	bin := os.Getenv("HYKUBE_BIN_DIR")
	if bin == "" {
		b.Skip("HYKUBE_BIN_DIR is not set")
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(trivial).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	contained := func(b *testing.B, cgroup string) {
		p := New(Config{Program: filepath.Join(bin, "hykube")})
		b.Cleanup(p.Close)
		if err := p.UseCgroup(cgroup, slog.New(slog.DiscardHandler)); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := run(b, p, Grants{}, trivial); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("contained", func(b *testing.B) { contained(b, NoCgroup) })
	b.Run("contained in a cgroup", func(b *testing.B) { contained(b, cgrouptest.NewRoot(b)) })
}
