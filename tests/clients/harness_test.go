package clients

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/tests/harness"
)

// serve starts a server at an address that survives restarts.
func serve(t *testing.T) *harness.Server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	s := &harness.Server{Port: free.Addr().(*net.TCPAddr).Port}
	s.Serve(t)
	return s
}

func config(t *testing.T, s *harness.Server) *rest.Config {
	t.Helper()
	c, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts the server again, and stop stops it.
func start(t *testing.T, s *harness.Server) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, s *harness.Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func install(t *testing.T, s *harness.Server, name, source string) {
	t.Helper()
	if err := s.Install(t.Context(), harness.Provider{Name: name, Source: source}); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, s *harness.Server, stdin string, args ...string) {
	t.Helper()
	if _, err := s.Kubectl(t.Context(), stdin, args...); err != nil {
		t.Fatal(err)
	}
}

// spoil changes the installed files of a provider, as a defective disk does.
func spoil(t *testing.T, s *harness.Server, binary string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(filepath.Join(s.Data(), "providers"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), binary) {
			return err
		}
		found++
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.WriteFile(path, []byte("#!/bin/false\n"), 0o700)
	})
	if err != nil || found == 0 {
		t.Fatalf("spoil %s: %d files, %v", binary, found, err)
	}
}
