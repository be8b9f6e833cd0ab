//go:build linux && (amd64 || arm64)

package contain

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// trivial is a program that does nothing.
const trivial = "/bin/true"

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

// BenchmarkStart measures a start with and without a sandbox, through the hykube binary in HYKUBE_BIN_DIR.
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
	b.Run("contained", func(b *testing.B) {
		p := New(Config{Program: filepath.Join(bin, "hykube")})
		b.Cleanup(p.Close)
		for b.Loop() {
			if err := run(b, p, Grants{}, trivial); err != nil {
				b.Fatal(err)
			}
		}
	})
}
