package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/plugin"
	"github.com/hykube/hykube/internal/schema"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	// Logger logs events of processes and their own log lines; nil discards them.
	Logger *slog.Logger
	// IdleTimeout is the time after which an idle configured process is stopped; 0 means five minutes.
	IdleTimeout time.Duration
	// StartTimeout is the maximum time for a start with its handshake; 0 means a minute.
	StartTimeout time.Duration
	// ConfigureTimeout is the maximum time for the configuration of a process, during which many providers log in; 0
	// means two minutes.
	ConfigureTimeout time.Duration
	// StopTimeout is the time that Close waits for running calls after it asked the providers to stop; 0 means
	// five seconds.
	StopTimeout time.Duration
	// MaxProcesses is the maximum number of processes with leases; 0 means 64. The namespaces share them fairly, and
	// further callers wait. So a caller must not hold a lease while it waits for another of its namespace. The pool
	// ends idle processes to stay within the number.
	MaxProcesses int
	// MaxCalls is the number of calls after which a process is replaced once its leases are released; 0 means 10,000.
	// Plugins built with HashiCorp's framework leak some 11 KiB per call.
	MaxCalls int
	// Containment restricts the processes. Nil means all restrictions that the machine supports. Close closes it.
	Containment *contain.Policy
	// MessageLimit is the maximum size of a provider's response in bytes; 0 means 16 MiB.
	MessageLimit int
	// Called is called after each call of a provider, with the method of the protocol; nil calls nothing.
	Called func(provider, method string, took time.Duration)
	// Debug enables the providers' own logging. It is slow, and the log may contain secrets.
	Debug bool
}

// briefIdle is the idle timeout of a process for a schema or validation, or with an ephemeral configuration.
const briefIdle = 15 * time.Second

// Pool runs provider processes. It has one process per package and configuration, which all callers share. A process
// starts on first use, stops when it is idle, and is restarted after it died. It is safe for concurrent use.
type Pool struct {
	config   PoolConfig
	launcher *plugin.Launcher
	// starts is the context of all starts. Close cancels it, so that nothing waits for a slow start.
	starts     context.Context
	stopStarts context.CancelFunc
	running    sync.WaitGroup // goroutines of all processes

	// slots limits the processes with leases.
	slots *fair.Slots

	mu sync.Mutex
	// current maps keys to the processes that Acquire may return, including those that wait for a slot. all contains
	// the processes that were started, including those that are ending.
	current map[processKey]*process
	all     map[*process]struct{}
	schemas map[schemaKey]*schema.Provider
	closed  bool
}

// processKey identifies the process that serves a request.
type processKey struct {
	checksum string
	// grants is the result of contain.Grants.Key, because the rights of a running process cannot change.
	grants     string
	configured bool
	key        string
	// brief selects the short idle timeout.
	brief bool
}

// schemaKey identifies the schema of a package. A plugin may announce other batches in another environment.
type schemaKey struct{ checksum, environment string }

func schemaKeyOf(pkg Package) schemaKey {
	return schemaKey{pkg.Checksum, strings.Join(pkg.Grants.Environment, "\n")}
}

// unconfigured returns the key of a process without a configuration.
func unconfigured(pkg Package) processKey {
	return processKey{checksum: pkg.Checksum, grants: pkg.Grants.Key()}
}

// Configuration is a provider's configuration with a key.
type Configuration struct {
	// Key identifies the configuration. Requests with equal keys share a process while their values are equal.
	Key string
	// Digest identifies the arguments that are set.
	Digest Digest
	// SecretDigest identifies the values of spec.secretRefs that do not rotate. It is empty without such values.
	SecretDigest string
	// Namespace is the namespace whose share of the pool the request uses; "" means that of the server itself.
	Namespace string
	// Config conforms to the schema of the provider's configuration; cty.NilVal means an empty configuration. Acquire
	// removes the marks.
	Config cty.Value
	// Secrets are the texts in Config that the schema declares sensitive.
	Secrets []string
	// Ephemeral is true if the configuration contains ephemeral values, so that no later request has the same values.
	// Its process has a short idle timeout.
	Ephemeral bool
	// Public are the known arguments in Config that hold no secret, for users who must see which account the provider
	// reaches.
	Public []Argument
}

// Argument is one argument of a provider's configuration that is a text, a number or a bool.
type Argument struct{ Path, Value string }

// Digest identifies the arguments of a provider. Unlike a Configuration's Key, it stays the same if a new version of
// the provider has further arguments.
type Digest struct {
	// Arguments is the digest of all arguments without ephemeral values and those that rotate. It is empty if one of
	// them is unknown.
	Arguments string `json:"arguments,omitempty"`
	// Rotating is the digest of the arguments that rotate; see v1alpha1.SecretArgument. It is empty without such
	// arguments.
	Rotating string `json:"rotating,omitempty"`
	// Ephemeral is true if an argument has an ephemeral value. Two configurations with the same digest may then differ.
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// NewPool returns an empty pool.
func NewPool(c PoolConfig) *Pool {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 5 * time.Minute
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.ConfigureTimeout == 0 {
		c.ConfigureTimeout = 2 * time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 5 * time.Second
	}
	if c.MaxProcesses == 0 {
		c.MaxProcesses = 64
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = 10_000
	}
	if c.Containment == nil {
		c.Containment = contain.New(contain.Config{})
	}
	p := &Pool{
		config: c, launcher: plugin.NewLauncher(c.Containment), slots: fair.New(c.MaxProcesses),
		current: map[processKey]*process{}, all: map[*process]struct{}{}, schemas: map[schemaKey]*schema.Provider{},
	}
	p.starts, p.stopStarts = context.WithCancel(context.Background())
	return p
}

// Server is the complete protocol: terraform-plugin-go has separate interfaces for lists and actions, and lacks a field
// of PlanResourceChange.
type Server interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
	// PlanAgain is PlanResourceChange for a change that was planned before. planned is the private data of that plan.
	PlanAgain(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
		planned []byte) (*tfprotov6.PlanResourceChangeResponse, error)
}

// Lease is the right to use a provider process until Release. Calls that fail because the process was lost return an
// *UnavailableError. The next Acquire starts another process.
type Lease struct {
	Server
	// Schema is the provider's schema.
	Schema *schema.Provider

	pool    *Pool
	process *process
	once    sync.Once
	// Stop sets unwanted, and Release sets released. The pool's mutex guards them.
	unwanted, released bool
	// answered is called with the diagnostics of each answer; nil before Observe.
	answered func([]*tfprotov6.Diagnostic)
}

// Release releases the process. Further calls do nothing.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		l.released = true
		if l.unwanted {
			l.process.unwanted--
		}
		l.pool.release(l.process)
	})
}

// Stop declares that the lease's calls are no longer wanted. A provider's stop affects all calls of its process, so the
// pool stops the provider only when all leases of the process are unwanted. Running calls still return their results.
// The process gets no further lease, because some providers do not work after a stop.
func (l *Lease) Stop() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.unwanted || l.released {
		return
	}
	l.unwanted = true
	l.process.unwanted++
	l.pool.retire(l.process)
	l.pool.stopUnwanted(l.process)
}

// Stopped reports whether the pool asked the provider to stop, because of Stop or because the pool closes.
func (l *Lease) Stopped() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.process.stopped
}

// Schema returns the schema of a package, from the cache if possible.
func (p *Pool) Schema(ctx context.Context, pkg Package) (*schema.Provider, error) {
	p.mu.Lock()
	known := p.schemas[schemaKeyOf(pkg)]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	l, err := p.acquire(ctx, pkg, unconfigured(pkg), "", cty.NilVal)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	return l.Schema, nil
}

// ValidateConfig makes the provider validate a configuration without configuring the provider. The diagnostics are the
// provider's; err means that the validation itself failed.
func (p *Pool) ValidateConfig(ctx context.Context, pkg Package, config cty.Value) ([]*tfprotov6.Diagnostic, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.ConfigureTimeout)
	defer cancel()
	l, err := p.acquire(ctx, pkg, unconfigured(pkg), "", cty.NilVal)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	value, err := encodeConfig(l.Schema, config)
	if err != nil {
		return nil, fmt.Errorf("validate configuration of provider %q: %w", pkg.Source, err)
	}
	r, err := l.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: value})
	if err != nil {
		return nil, fmt.Errorf("validate configuration of provider %q: %w", pkg.Source, err)
	}
	return r.Diagnostics, nil
}

// Acquire returns a lease of the process with a package and configuration, and starts and configures a process if there
// is none. It returns a *diag.Failure with diagnostics if the provider rejects the configuration. It returns a
// *CrashError if the process cannot be started, a *ChecksumError if its files changed, and ErrClosed after Close.
func (p *Pool) Acquire(ctx context.Context, pkg Package, c Configuration) (*Lease, error) {
	return p.acquire(ctx, pkg, processKey{checksum: pkg.Checksum, grants: pkg.Grants.Key(), configured: true,
		key: c.Key, brief: c.Ephemeral}, c.Namespace, c.Config)
}

// Unconfigured returns a lease of an unconfigured process, which suffices for schemas, validation and functions. It
// returns the errors of Acquire. All namespaces use the same process, which counts for the server itself. So a caller
// with a lease may wait for it, as for a function in the arguments of a resource.
func (p *Pool) Unconfigured(ctx context.Context, pkg Package) (*Lease, error) {
	return p.acquire(ctx, pkg, unconfigured(pkg), "", cty.NilVal)
}

// Processes returns the number of processes by provider, with those that start or end.
func (p *Pool) Processes() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for proc := range p.all {
		out[proc.pkg.Source.String()]++
	}
	return out
}

// stopUnwanted tells a provider to stop if all its leases are unwanted.
func (p *Pool) stopUnwanted(proc *process) {
	if proc.stopped || proc.unwanted == 0 || proc.unwanted < proc.leases {
		return
	}
	proc.stopped = true
	p.config.Logger.Info("the server asks a provider to stop", "provider", proc.pkg.Source.String(), "pid",
		proc.plugin.PID())
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopCallTimeout)
		defer cancel()
		proc.stopGracefully(ctx)
	})
}

// Close stops all providers and ends their processes. Running calls may finish until the stop timeout or the end of
// ctx. Then Close kills every process group. No child process remains when it returns.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	var open []*process
	for proc := range p.all {
		open = append(open, proc)
		// From now on, an error may only mean that the stop interrupted the call. The caller must see stopped before
		// the answer.
		proc.stopped = true
		p.retire(proc)
	}
	p.mu.Unlock()
	p.stopStarts()

	ctx, cancel := context.WithTimeout(ctx, p.config.StopTimeout)
	defer cancel()
	var stops sync.WaitGroup
	for _, proc := range open {
		stops.Go(func() { proc.stopGracefully(ctx) })
	}
	stops.Wait()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.New("stop providers: some calls did not end in time and were interrupted; after the next start, Hykube reads the resources that they changed")
		p.mu.Lock()
		for proc := range p.all {
			proc.end()
		}
		p.mu.Unlock()
		<-done
	}
	if !already {
		p.launcher.Close()
		p.config.Containment.Close()
	}
	return err
}
