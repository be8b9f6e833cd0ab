package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
)

// Spec says what to start.
type Spec struct {
	// Name of the provider, for messages and logs.
	Name string
	// Path of the executable.
	Path string
	// Env is the whole environment, but for what the handshake adds; see Environment.
	Env []string
	// StartTimeout bounds the time from the start to the finished handshake; 0 means a minute.
	StartTimeout time.Duration
	// Logger gets the plugin's log lines; never nil.
	Logger *slog.Logger
}

// Launcher starts plugins. On Linux the kernel kills them when our own process dies in whatever way, which holds for the
// thread that started them: so a launcher keeps one thread for that, and Close must come after the last process.
type Launcher struct {
	starts    chan func()
	closeOnce sync.Once
}

// NewLauncher returns a launcher; Close ends it.
func NewLauncher() *Launcher {
	l := &Launcher{starts: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the launcher
		for f := range l.starts {
			f()
		}
	}()
	return l
}

// Close ends the launcher. It must not start anything any more.
func (l *Launcher) Close() { l.closeOnce.Do(func() { close(l.starts) }) }

func (l *Launcher) onThread(f func() error) error {
	result := make(chan error, 1)
	l.starts <- func() { result <- f() }
	return <-result
}

// Process is a running plugin. It is a grpc.ClientConnInterface: calls that fail because the plugin is lost return an
// *UnavailableError.
type Process struct {
	spec   Spec
	client *goplugin.Client
	conn   *grpc.ClientConn
	child  *child
	// socketDir holds the socket that we talk through.
	socketDir string
	// Protocol is the major version of the provider protocol that was agreed on: 5 or 6.
	Protocol int
}

// handshake is the same for all Terraform providers, in all versions of the protocol.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
		MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
	}
}

// Start starts a plugin and shakes hands with it. When that fails, nothing is left running and the error is a
// *CrashError, or ctx's own.
func (l *Launcher) Start(ctx context.Context, spec Spec) (*Process, error) {
	if spec.StartTimeout == 0 {
		spec.StartTimeout = time.Minute
	}
	cmd := exec.Command(spec.Path) //nolint:noctx // its life ends with Stop
	child, err := newChild(spec, cmd, l.onThread)
	if err != nil {
		return nil, fmt.Errorf("start provider %q: %w", spec.Name, err)
	}
	p := &Process{spec: spec, child: child}
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
		Logger:           hclog.NewNullLogger(), // the child reads its own log lines
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: socketBase(os.TempDir())},
		RunnerFunc: func(_ hclog.Logger, like *exec.Cmd, socketDir string) (runner.Runner, error) {
			cmd.Env = slices.Concat(spec.Env, like.Env)
			p.socketDir = socketDir
			return child, nil
		},
	})

	startCtx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	// A plugin that hangs holds up go-plugin as well; without its process it gives up at once.
	stopWatching := context.AfterFunc(startCtx, child.kill)
	err = p.connect()
	watching := stopWatching()
	if err == nil && watching {
		spec.Logger.Debug("provider process started", "pid", p.PID(), "protocol", p.Protocol)
		return p, nil
	}
	p.end(0)
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("start provider %q: %w", spec.Name, cause)
	}
	crash := &CrashError{Provider: spec.Name, Reason: timeoutReason(spec.StartTimeout), Stderr: child.lastLines()}
	if startCtx.Err() == nil {
		crash.Reason = p.startFailure(err)
	}
	return nil, crash
}

// longestBase is how long the directory may be that sockets are made under: the whole path, with what go-plugin puts after it
// ("/plugin-dir0123456789/plugin0123456789"), has to fit into the 104 bytes that the least generous system has for one.
const longestBase = 64

// socketBase is where the directories of sockets are made: in the temporary directory, unless its path is too long for one.
func socketBase(temp string) string {
	if len(temp) <= longestBase {
		return temp
	}
	return "/tmp"
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

// startFailure puts what go-plugin says of a failed start in our words.
func (p *Process) startFailure(err error) string {
	if !p.child.started() {
		if errors.Is(err, syscall.ENOEXEC) {
			return "it is not a program for this machine"
		}
		return err.Error()
	}
	if line, ok := strings.CutPrefix(firstLine(err.Error()), "Unrecognized remote plugin message: "); ok && line != "" {
		return fmt.Sprintf("it does not behave like a Terraform provider: it answered the handshake with %q", line)
	}
	// go-plugin kills it after any failure, so only another end is its own.
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

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.child.exited }

// PID is the process's id.
func (p *Process) PID() int { return p.child.cmd.Process.Pid }

// Stop ends the process and all that it started: in good order within grace, then by force. It returns when no process
// of the group is left.
func (p *Process) Stop(grace time.Duration) { p.end(grace) }

func (p *Process) end(grace time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.client.Kill() // closes the connection, asks go-plugin's server to end, waits two seconds
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
	if p.socketDir != "" {
		_ = os.RemoveAll(p.socketDir) // go-plugin leaves it behind when the process could not be started
	}
}

// connPlugin is the go-plugin side of a provider: all we want is the connection.
type connPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (connPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func (connPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this end is the client")
}

// LastLines are the last lines that the plugin wrote to stderr.
func (p *Process) LastLines() []string { return p.child.lastLines() }
