package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// Spec defines the plugin to start.
type Spec struct {
	// Name is the provider's name in messages and logs.
	Name string
	// Program is the program to run.
	Program contain.Plugin
	// Debug enables the plugin's own log.
	Debug bool
	// MessageLimit is the maximum size of a response in bytes; 0 means 16 MiB.
	MessageLimit int
	// StartTimeout is the maximum time from the start to the finished handshake; 0 means a minute.
	StartTimeout time.Duration
	// Logger receives the plugin's log; it must not be nil.
	Logger *slog.Logger
}

// defaultMessageLimit is the maximum size of a provider's response. The server needs many times its size to read, plan
// and store it.
const defaultMessageLimit = 16 << 20

// Launcher starts plugins. On Linux, the kernel kills a plugin when the thread that started it ends, even if this
// process is killed. So a launcher keeps one thread for all starts, and Close must follow the end of the last process.
type Launcher struct {
	policy    *contain.Policy
	starts    chan func()
	closeOnce sync.Once
}

// NewLauncher returns a launcher whose plugins the policy restricts. The caller must call Close.
func NewLauncher(policy *contain.Policy) *Launcher {
	l := &Launcher{policy: policy, starts: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the launcher
		for f := range l.starts {
			f()
		}
	}()
	return l
}

// Close ends the launcher. Start must not be called afterwards.
func (l *Launcher) Close() { l.closeOnce.Do(func() { close(l.starts) }) }

func (l *Launcher) onThread(f func() error) error {
	result := make(chan error, 1)
	l.starts <- func() { result <- f() }
	return <-result
}

// Process is a running plugin, or a provider that is a part of the server. It is a grpc.ClientConnInterface: calls that
// fail because the plugin was lost return an *UnavailableError.
type Process struct {
	spec Spec
	// client is nil for a provider that is a part of the server.
	client *goplugin.Client
	conn   grpc.ClientConnInterface
	child  *child
	// sandbox holds the private directory, with the connection's socket.
	sandbox *contain.Sandbox
	// Protocol is the negotiated major version of the provider protocol: 5 or 6.
	Protocol int
}

// handshake returns the handshake of all Terraform providers, the same in all versions of the protocol.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
		MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
	}
}

// Start starts a plugin and performs the handshake. If it fails, no process remains. The error is then a *CrashError,
// an error of package contain, or the error of ctx.
func (l *Launcher) Start(ctx context.Context, spec Spec) (*Process, error) {
	if spec.StartTimeout == 0 {
		spec.StartTimeout = time.Minute
	}
	if spec.MessageLimit == 0 {
		spec.MessageLimit = defaultMessageLimit
	}
	p, err := l.prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("start provider %q: %w", spec.Name, err)
	}
	startCtx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	// A plugin that hangs blocks go-plugin as well. Without the process, go-plugin fails at once.
	stopWatching := context.AfterFunc(startCtx, p.child.kill)
	err = p.connect()
	p.sandbox.Started()
	watching := stopWatching()
	if err == nil && watching {
		spec.Logger.Debug("provider process started", "pid", p.PID(), "protocol", p.Protocol)
		return p, nil
	}
	p.end(0)
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("start provider %q: %w", spec.Name, cause)
	}
	crash := &CrashError{Provider: spec.Name, Reason: fmt.Sprintf("it was not ready after %v", spec.StartTimeout),
		Stderr: p.child.lastLines()}
	if startCtx.Err() == nil {
		crash.Reason = p.startFailure(err)
	}
	return nil, crash
}

// BuiltIn returns the process of a provider that is a part of the server. It ends only by Stop.
func BuiltIn(name string, conn grpc.ClientConnInterface) *Process {
	child := &child{name: name, cmd: &exec.Cmd{}, tail: newLineTail(slog.New(slog.DiscardHandler)),
		exited: make(chan struct{})}
	return &Process{spec: Spec{Name: name, MessageLimit: defaultMessageLimit}, conn: conn, child: child, Protocol: 6}
}

// prepare creates the sandbox and go-plugin's client of a process. The first call of connect starts the process.
func (l *Launcher) prepare(spec Spec) (*Process, error) {
	sandbox, err := l.policy.Sandbox(spec.Program)
	if err != nil {
		return nil, err
	}
	cmd, err := l.policy.Command(sandbox, spec.Program)
	if err != nil {
		sandbox.Remove()
		return nil, err
	}
	var child *child
	start := func(f func() error) error {
		err := l.onThread(f)
		if err == nil {
			l.policy.Watch(sandbox, cmd.Process.Pid, child.killFor)
		}
		return err
	}
	child, err = newChild(spec, cmd, start, sandbox.Ended)
	if err != nil {
		sandbox.Remove()
		return nil, err
	}
	p := &Process{spec: spec, child: child, sandbox: sandbox}
	plugins := goplugin.PluginSet{"provider": connPlugin{}}
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{5: plugins, 6: plugins},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     spec.StartTimeout,
		SyncStdout:       child.tail,
		SyncStderr:       child.tail,
		Logger:           hclog.NewNullLogger(), // child reads the log itself
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: sandbox.Dir},
		RunnerFunc: func(_ hclog.Logger, like *exec.Cmd, socketDir string) (runner.Runner, error) {
			cmd.Env = slices.Concat(quiet(spec.Debug, spec.Program.Source), sandbox.Env, tuning(spec.Debug), like.Env)
			return child, sandbox.Own(socketDir)
		},
	})
	return p, nil
}

func (p *Process) connect() error {
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense("provider")
	if err != nil {
		return err
	}
	p.conn = raw.(*grpc.ClientConn)
	p.Protocol = p.client.NegotiatedVersion()
	return nil
}

const notExecutable = "it is not an executable for this machine"

// startFailure returns the reason for go-plugin's error in terms of the provider process.
func (p *Process) startFailure(err error) string {
	if !p.child.started() {
		if errors.Is(err, syscall.ENOEXEC) {
			return notExecutable
		}
		return err.Error()
	}
	switch p.child.exitCode() {
	case entry.ExitNotExecutable:
		return notExecutable
	case entry.ExitNotContained:
		return "its sandbox could not be created"
	}
	// go-plugin has no type for the error of a handshake.
	if line, ok := strings.CutPrefix(firstLine(err.Error()), "Unrecognized remote plugin message: "); ok && line != "" {
		return fmt.Sprintf("it does not behave like a Terraform provider: it answered the handshake with %q", line)
	}
	// go-plugin kills the process after any failure. Only another exit state is the process's own.
	if state := p.child.exitState(); state != "signal: killed" || !p.child.wasKilled() {
		return "it ended before it was ready (" + state + ")"
	}
	return "it does not behave like a Terraform provider: " + firstLine(err.Error())
}

func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' || i > 200 {
			return s[:i]
		}
	}
	return s
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.child.exited }

// ExitState returns how the process ended, or "" while it runs.
func (p *Process) ExitState() string { return p.child.exitState() }

// PID returns the process ID; 0 for a part of the server.
func (p *Process) PID() int {
	if p.client == nil {
		return 0
	}
	return p.child.cmd.Process.Pid
}

// Stop stops the process and its children: gracefully within grace, then by force. When it returns, the process group
// and the cgroup are empty.
func (p *Process) Stop(grace time.Duration) { p.end(grace) }

func (p *Process) end(grace time.Duration) {
	if p.client == nil {
		p.child.kill()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.client.Kill() // closes the connection, tells go-plugin's server to stop, waits two seconds
	}()
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
	p.child.kill()
	<-p.child.exited
	<-done
	p.sandbox.Remove()
}

// connPlugin is the go-plugin client of a provider. It only returns the connection.
type connPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (connPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func (connPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this end is the client")
}

// LastLines returns the last lines that the plugin wrote to stderr.
func (p *Process) LastLines() []string { return p.child.lastLines() }
