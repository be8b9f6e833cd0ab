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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startLimit bounds how long a server may take to be ready on a busy machine.
	startLimit = 90 * time.Second
	// stopLimit bounds how long it may take to stop; the promise is ten seconds.
	stopLimit = 15 * time.Second
)

// Server is a hykube server: the built binary in a process of its own.
type Server struct {
	// Binaries are the built ones when they are empty.
	Binaries
	// Dir keeps the data and the log. It survives Stop and Kill, so that Start continues with the same data.
	Dir string
	// Port is where the server listens; 0 means a free port, another one with each start.
	Port int
	// Args are more flags of `hykube server`, Env more variables of its environment.
	Args, Env []string

	process *process
	client  rest.Interface
}

// Serve starts a server, waits until it is ready, and stops it when the test ends. A test that fails shows the end of the log.
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
func (s *Server) Start(ctx context.Context) (err error) {
	if s.Binaries == (Binaries{}) {
		if s.Binaries, err = Built(); err != nil {
			return err
		}
	}
	// The kubeconfig of an earlier start may name another port.
	if err := os.Remove(s.Kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := []string{"server", "--data-dir", s.Data(), "--secure-port", strconv.Itoa(s.Port), "--provider-mirror", s.Mirror}
	cmd := exec.Command(s.Path("hykube"), slices.Concat(args, s.Args)...)
	cmd.Env = append(os.Environ(), s.Env...)
	if s.process, err = startProcess(cmd, s.LogFile()); err != nil {
		return fmt.Errorf("start hykube: %w", err)
	}
	s.client = nil
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	limited, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %s", startLimit))
	defer cancel()
	err = Poll(limited, 5*time.Millisecond, func() error {
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
	return s.client.Get().AbsPath("/readyz").Do(ctx).Error()
}

// Client is a client of the whole API, as the administrator.
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

// Config is the administrator's, for clients that set no limit on their requests.
func (s *Server) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Stop ends the server as an init system does. An error says that it was slow, ended badly, or left a provider's process behind.
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

// Remove stops the server and removes its directory. Where HYKUBE_TEST_KEEP is set, the directory stays, to be looked at.
func (s *Server) Remove() error {
	err := s.Stop()
	if os.Getenv("HYKUBE_TEST_KEEP") != "" {
		fmt.Fprintln(os.Stderr, "HYKUBE_TEST_KEEP keeps", s.Dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}

// Pid is the process ID of the server.
func (s *Server) Pid() int { return s.process.Process.Pid }

// Data is the data directory.
func (s *Server) Data() string { return filepath.Join(s.Dir, "data") }

// Kubeconfig is the administrator's.
func (s *Server) Kubeconfig() string { return filepath.Join(s.Data(), "admin.kubeconfig") }

// LogFile has the log of all starts.
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "server.log") }

// Log is the end of the log.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	return tail(string(text), 60)
}

// Command is a built program that talks to the server as the administrator.
func (s *Server) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Path(program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(s.Dir, "cache"))
	return cmd
}

// Kubectl runs the kubectl inside hykube as the administrator. It returns the standard output; an error has the standard error.
func (s *Server) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := s.Command(ctx, "hykube", slices.Concat([]string{"kubectl"}, args)...)
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

// Provider is a provider to install, which the mirror has.
type Provider struct {
	Name, Source, Version string
	// Environment names the variables of the server that its processes get.
	Environment []string
	// Open runs its processes without a sandbox: its cloud is a directory that it shares with the tests.
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
