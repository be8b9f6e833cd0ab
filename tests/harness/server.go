package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startLimit is the maximum time that a server on a busy machine has to become ready.
	startLimit = 90 * time.Second
	// stopLimit is the maximum time that a server has to stop. The product promises ten seconds.
	stopLimit = 15 * time.Second
)

// Server is a hykube server: the built binary in its own process.
type Server struct {
	// Binaries are the binaries to use; the zero value means those of Built.
	Binaries
	// Dir is the directory of the data and the log. It survives Stop and Kill, so that Start continues with the same
	// data.
	Dir string
	// Port is the port of the server; 0 means another free port at each start.
	Port int
	// Worker makes it a worker of another server.
	Worker bool
	// Args are further flags of `hykube server` or `hykube worker`, and Env further variables of its environment.
	Args, Env []string

	process *process
	client  rest.Interface
}

// Serve starts a server, waits until it is ready, and stops it when the test ends. A failed test prints the end of the
// log.
func (s *Server) Serve(t testing.TB) {
	t.Helper()
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log of the server ends:\n%s", s.Log())
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Start starts the server and waits until it is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitReady(ctx)
}

// Launch starts the server without waiting for it.
func (s *Server) Launch() (err error) {
	if s.Binaries == (Binaries{}) {
		if s.Binaries, err = Built(); err != nil {
			return err
		}
	}
	// The kubeconfig of an earlier start may name another port.
	if err := os.Remove(s.Kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := []string{"server", "--secure-port", strconv.Itoa(s.Port)}
	if s.Worker {
		args = []string{"worker"}
	}
	args = append(args, "--data-dir", s.Data(), "--provider-mirror", s.Mirror)
	cmd := exec.Command(s.Path("hykube"), slices.Concat(args, s.Args)...)
	cmd.Env = append(os.Environ(), s.Env...)
	if s.process, err = startProcess(cmd, s.LogFile()); err != nil {
		return fmt.Errorf("start hykube: %w", err)
	}
	s.client = nil
	return nil
}

// Standby launches a server on the database of another one, and waits until it answers as a standby. It stops the server when
// the test ends.
func (s *Server) Standby(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the server is a standby", func() error {
		client, err := s.connect()
		if err != nil {
			return err
		}
		if err := client.Get().AbsPath("/livez").Do(t.Context()).Error(); err != nil {
			return err
		}
		if err := client.Get().AbsPath("/readyz").Do(t.Context()).Error(); !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
}

// AwaitReady waits until a server that was launched is ready.
func (s *Server) AwaitReady(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	limited, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %s", startLimit))
	defer cancel()
	err := Poll(limited, 5*time.Millisecond, func() error {
		if err := s.process.alive(); err != nil {
			giveUp(err)
			return err
		}
		return s.ready(limited)
	})
	if err != nil {
		return fmt.Errorf("start hykube: %w\n%s", err, s.Log())
	}
	return nil
}

func (s *Server) ready(ctx context.Context) error {
	if s.client == nil {
		client, err := s.connect()
		if err != nil {
			return err
		}
		s.client = client
	}
	err := s.client.Get().AbsPath("/readyz").Do(ctx).Error()
	if err != nil {
		s.client = nil // a standby that takes over may get another authority
	}
	return err
}

// Client returns a client of the whole API, with the administrator's rights.
func (s *Server) Client() rest.Interface { return s.client }

func (s *Server) connect() (rest.Interface, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(config)
}

// Config returns the administrator's configuration, without a limit on requests.
func (s *Server) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Stop ends the server as an init system does. It returns an error if the server was slow, failed, or left a provider
// process.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	err := p.stop(stopLimit)
	if left := s.providerProcesses(); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("processes outlive the server:\n%s", strings.Join(left, "\n")))
	}
	return err
}

func (s *Server) providerProcesses() []string {
	return programsBelow(filepath.Join(s.Data(), "providers"))
}

// Kill ends the server with SIGKILL, as a crash does.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
}

// Signal sends a signal to the server.
func (s *Server) Signal(signal os.Signal) error {
	if s.process == nil {
		return errEnded
	}
	return s.process.Process.Signal(signal)
}

// Ended waits until the server has ended by itself, and returns its error.
func (s *Server) Ended(limit time.Duration) error {
	p := s.process
	select {
	case <-p.done:
		s.process = nil
		return p.alive()
	case <-time.After(limit):
		return fmt.Errorf("hykube still runs after %s", limit)
	}
}

// Remove stops the server and removes its directory. If HYKUBE_TEST_KEEP is set, the directory stays for inspection.
func (s *Server) Remove() error {
	err := s.Stop()
	if os.Getenv("HYKUBE_TEST_KEEP") != "" {
		fmt.Fprintln(os.Stderr, "HYKUBE_TEST_KEEP keeps", s.Dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}

// Pid returns the process ID of the server.
func (s *Server) Pid() int { return s.process.Process.Pid }

// Data returns the data directory.
func (s *Server) Data() string { return filepath.Join(s.Dir, "data") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *Server) Kubeconfig() string { return filepath.Join(s.Data(), "admin.kubeconfig") }

// LogFile returns the path of the log of all starts.
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "server.log") }

// Log returns the end of the log.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	return tail(string(text), 60)
}

// Command returns a built program that uses the administrator's kubeconfig.
func (s *Server) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Path(program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(s.Dir, "cache"))
	return cmd
}

// Kubectl runs the kubectl inside hykube as the administrator, and returns its standard output. Its error has the
// standard error.
func (s *Server) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := s.Command(ctx, "hykube-kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out, stderr.String())
	}
	return string(out), nil
}

// Provider is a provider in the mirror that a test installs.
type Provider struct {
	Name, Source, Version string
	// Environment names the variables of the server's environment that the provider's processes get.
	Environment []string
	// Open runs the provider's processes without a sandbox, because they share a directory with the tests.
	Open bool
}

// Install installs providers and waits until the server serves their kinds.
func (s *Server) Install(ctx context.Context, providers ...Provider) error {
	var manifest strings.Builder
	wait := []string{"wait", "--for=condition=Ready", "--timeout=120s"}
	for _, p := range providers {
		fmt.Fprintf(&manifest, "---\napiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: %s}\nspec:\n  source: %s\n  version: %q\n", p.Name, p.Source, p.Version)
		if len(p.Environment) > 0 {
			fmt.Fprintf(&manifest, "  environment: [%s]\n", strings.Join(p.Environment, ", "))
		}
		if p.Open {
			fmt.Fprintln(&manifest, "  sandbox: {mode: \"Off\"}")
		}
		wait = append(wait, "provider/"+p.Name)
	}
	_, err := s.Kubectl(ctx, manifest.String(), "apply", "-f", "-")
	if err == nil {
		_, err = s.Kubectl(ctx, "", wait...)
	}
	return err
}
