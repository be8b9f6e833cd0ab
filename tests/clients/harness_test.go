package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startLimit bounds how long a server may take to be ready on a busy machine, stopLimit how long to stop.
	startLimit, stopLimit = 90 * time.Second, 15 * time.Second
	// waitLimit bounds what a test waits for.
	waitLimit = 60 * time.Second
)

// harness is a server of its own, at an address that survives restarts.
type harness struct {
	bin, mirror, dir string
	port             int
	server           *exec.Cmd
	log              *bytes.Buffer
}

// newHarness starts a server that ends with the test.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{bin: os.Getenv("HYKUBE_BIN_DIR"), mirror: os.Getenv("HYKUBE_MIRROR_DIR"), dir: t.TempDir()}
	if h.bin == "" || h.mirror == "" {
		t.Skip("HYKUBE_BIN_DIR and HYKUBE_MIRROR_DIR are not set; make test sets them")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	h.start(t)
	t.Cleanup(func() {
		if h.server != nil {
			h.stop(t)
		}
		if t.Failed() {
			lines := strings.Split(h.log.String(), "\n")
			t.Logf("server:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})
	return h
}

// start starts the server and waits until its API server answers; it may not be ready yet.
func (h *harness) start(t *testing.T) {
	t.Helper()
	h.log = new(bytes.Buffer)
	h.server = exec.Command(filepath.Join(h.bin, "hykube"), "server",
		"--data-dir", filepath.Join(h.dir, "data"), "--secure-port", strconv.Itoa(h.port), "--provider-mirror", h.mirror)
	h.server.Stderr = h.log
	if err := h.server.Start(); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) ready(t *testing.T) {
	t.Helper()
	eventually(t, startLimit, "the server is ready", func() error { return h.kubectl(t, "", "get", "--raw", "/readyz") })
}

// stop ends the server as an init system does, and wants it to end in time and to leave no process behind.
func (h *harness) stop(t *testing.T) {
	t.Helper()
	children := children(h.server.Process.Pid)
	if err := h.server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.server.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(stopLimit):
		_ = h.server.Process.Kill()
		t.Errorf("the server has not stopped within %s", stopLimit)
	}
	h.server = nil
	for _, pid := range children {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d outlives the server", pid)
		}
	}
}

// children are the processes that a process started.
func children(pid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var out []int
	for _, f := range strings.Fields(string(data)) {
		if child, err := strconv.Atoi(f); err == nil {
			out = append(out, child)
		}
	}
	return out
}

func (h *harness) kubeconfig() string { return filepath.Join(h.dir, "data", "admin.kubeconfig") }

func (h *harness) config(t *testing.T) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

func (h *harness) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, "hykube"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig(), "HOME="+h.dir)
	return cmd
}

func (h *harness) kubectl(t *testing.T, stdin string, args ...string) error {
	t.Helper()
	cmd := h.command(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// install installs a provider of the mirror and waits until it serves its kinds.
func (h *harness) install(t *testing.T, name, source string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: %s}\nspec: {source: %s}\n", name, source)
	err := h.kubectl(t, manifest, "apply", "-f", "-")
	if err == nil {
		err = h.kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=60s", "provider/"+name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// spoil changes the installed files of a provider, as a bad disk does.
func (h *harness) spoil(t *testing.T, binary string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(filepath.Join(h.dir, "data", "providers"), func(path string, d fs.DirEntry, err error) error {
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

// eventually polls until there is no error.
func eventually(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	err := errors.New("not tried")
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %s: %v", limit, what, err)
}
