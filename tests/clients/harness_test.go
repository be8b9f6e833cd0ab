package clients

import (
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/tests/harness"
)

// serve starts a server at an address that survives restarts.
func serve(t *testing.T) *harness.Server {
	t.Helper()
	s := &harness.Server{Port: freePort(t)}
	s.Serve(t)
	return s
}

// freePort returns a free port below those that the system gives to outgoing connections. While the server is down, its
// clients go on connecting to its port, and one of them could otherwise get that port for itself.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("there is no free port")
	return 0
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
