package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServerSurvivesKill kills a server with a running provider. The data survive, and the provider's processes do not.
func TestServerSurvivesKill(t *testing.T) {
	t.Parallel()
	s := &Server{}
	s.Serve(t)
	if err := s.Install(t.Context(), Provider{Name: "sim", Source: "hykube/sim"}); err != nil {
		t.Fatal(err)
	}
	if len(s.providerProcesses()) == 0 {
		t.Error("no process of the provider runs, so that none can be left behind")
	}
	s.Kill()
	Eventually(t, "the provider's processes end with the server", func() error {
		if left := s.providerProcesses(); len(left) > 0 {
			return errors.New(strings.Join(left, "\n"))
		}
		return nil
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "--timeout=60s", "provider/sim"); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a server that is stopped twice: %v", err)
	}
}

// TestServerThatEnds starts a server that ends at once. Start returns without waiting, and prints the end of its log.
func TestServerThatEnds(t *testing.T) {
	t.Parallel()
	s := &Server{Dir: t.TempDir(), Args: []string{"--log-level", "loud"}}
	begun := time.Now()
	err := s.Start(t.Context())
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "hykube: ") || time.Since(begun) > startLimit/2 {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}

// TestMissingBinaries expects one sentence with the command that makes the missing binaries.
func TestMissingBinaries(t *testing.T) {
	t.Parallel()
	bin, mirror := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "hykube"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string]Binaries{
		"HYKUBE_BIN_DIR is not set":    {Mirror: mirror},
		"HYKUBE_MIRROR_DIR is not set": {Bin: bin},
		"run make build":               {Bin: mirror, Mirror: mirror},
		"run make mirror":              {Bin: bin, Mirror: mirror},
	} {
		if _, err := b.Complete(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
}
