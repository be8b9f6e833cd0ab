package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/provider/plugin"
	"github.com/hykube/hykube/internal/schema"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	// Logger gets what happens to processes, and their own log lines; nil means nobody does.
	Logger *slog.Logger
	// IdleTimeout is how long a configured process lives on unused; 0 means five minutes.
	IdleTimeout time.Duration
	// StartTimeout bounds a start, up to the finished handshake; 0 means a minute.
	StartTimeout time.Duration
	// ConfigureTimeout bounds the configuration of a process, in which many providers log in; 0 means two minutes.
	ConfigureTimeout time.Duration
	// StopTimeout is how long Close waits for calls in flight, once the providers have been asked to stop; 0 means five seconds.
	StopTimeout time.Duration
	// MaxProcesses bounds the processes that exist at once; 0 means 64. Who needs one more waits for one to become idle, so a
	// caller must not hold a lease while it waits for another.
	MaxProcesses int
	// MaxCalls is the number of calls after which a process is replaced by a fresh one, once its leases are released; 0 means
	// 10,000. Plugins built on HashiCorp's framework keep some 11 KiB of every call for as long as they live.
	MaxCalls int
	// Environ is the environment that plugins get a part of, see plugin.Environment; nil means our own.
	Environ []string
	// Debug turns the providers' own logging on. It is slow, and what they log may hold secrets.
	Debug bool
}

// briefIdle is how long a process lives on unused that was started for a schema or a validation, or under an ephemeral configuration.
const briefIdle = 15 * time.Second

// Pool runs providers: one process for each package and configuration, shared by all who need it, started on first use,
// stopped when idle, started again when it has died. It is safe for concurrent use.
type Pool struct {
	config   PoolConfig
	launcher *plugin.Launcher
	// starts is cancelled by Close, so that nothing waits for a slow start.
	starts     context.Context
	stopStarts context.CancelFunc
	running    sync.WaitGroup // the goroutines of all processes

	mu sync.Mutex
	// changed is closed, and replaced, whenever a process ends or falls idle.
	changed chan struct{}
	// current are the processes that Acquire may return, by key; all also holds those that are ending.
	current map[processKey]*process
	all     map[*process]struct{}
	// schemas are kept by package checksum; a schema never changes under the same checksum.
	schemas map[string]*schema.Provider
	closed  bool
}

// processKey says which process can serve whom.
type processKey struct {
	checksum   string
	configured bool
	key        string
	// brief processes are not kept for long.
	brief bool
}

// Configuration is a provider's configuration and its name.
type Configuration struct {
	// Key names the configuration; equal keys share a process as long as their values are equal.
	Key string
	// Config conforms to the schema of the provider's configuration; cty.NilVal sets nothing. Marks are removed.
	Config cty.Value
	// Ephemeral is true when nobody will ask for it again, as it holds a value that is another each time. Its process does not
	// wait for long when it is idle.
	Ephemeral bool
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
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	p := &Pool{
		config: c, launcher: plugin.NewLauncher(), changed: make(chan struct{}),
		current: map[processKey]*process{}, all: map[*process]struct{}{}, schemas: map[string]*schema.Provider{},
	}
	p.starts, p.stopStarts = context.WithCancel(context.Background())
	return p
}

// Server is a provider with all that the protocol has: terraform-plugin-go keeps lists and actions apart for now, and lacks a
// field.
type Server interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
	// PlanAgain is PlanResourceChange of a change that was planned before; planned is the private data of that plan.
	PlanAgain(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest, planned []byte) (*tfprotov6.PlanResourceChangeResponse, error)
}

// Lease is the right to use a provider until Release. Calls that fail because the process was lost return an
// *UnavailableError; the next Acquire starts it again.
type Lease struct {
	Server
	// Schema is the provider's schema.
	Schema *schema.Provider

	pool    *Pool
	process *process
	once    sync.Once
	// unwanted is set by Stop, released by Release; the pool's mutex guards them.
	unwanted, released bool
}

// Release gives the process back. More than once does nothing.
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

// Stop says that nobody wants any more what is done under the lease. A stop concerns everything that runs in a process, so
// the provider is asked to stop only once that holds for every lease of its process; until then, and from then on, calls
// under way return what they return. The process gets no other lease: some providers work no more after a stop.
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

// Stopped says whether the provider was asked to stop what it does: by Stop, or because the pool closes.
func (l *Lease) Stopped() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.process.stopped
}

// Schema returns the schema of a package, from memory when it is known.
func (p *Pool) Schema(ctx context.Context, pkg Package) (*schema.Provider, error) {
	p.mu.Lock()
	known := p.schemas[pkg.Checksum]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	l, err := p.acquire(ctx, pkg, processKey{checksum: pkg.Checksum}, cty.NilVal)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	return l.Schema, nil
}

// ValidateConfig asks the provider what it thinks of a configuration, without configuring it. The error is about the
// asking; what the provider objects to are the diagnostics.
func (p *Pool) ValidateConfig(ctx context.Context, pkg Package, config cty.Value) ([]*tfprotov6.Diagnostic, error) {
	l, err := p.acquire(ctx, pkg, processKey{checksum: pkg.Checksum}, cty.NilVal)
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

// Acquire returns the process of a package under a configuration, and starts and configures it when there is none. It returns
// a *diag.Failure with diagnostics when the provider refuses the configuration, a *CrashError when the process cannot be started,
// a *ChecksumError when its files were changed, and ErrClosed after Close.
func (p *Pool) Acquire(ctx context.Context, pkg Package, c Configuration) (*Lease, error) {
	return p.acquire(ctx, pkg, processKey{checksum: pkg.Checksum, configured: true, key: c.Key, brief: c.Ephemeral}, c.Config)
}

// Unconfigured returns a process of a package that was not configured: enough for a schema, a validation or a function. It
// returns the errors of Acquire.
func (p *Pool) Unconfigured(ctx context.Context, pkg Package) (*Lease, error) {
	return p.acquire(ctx, pkg, processKey{checksum: pkg.Checksum}, cty.NilVal)
}

func (p *Pool) acquire(ctx context.Context, pkg Package, key processKey, config cty.Value) (*Lease, error) {
	if config != cty.NilVal {
		config, _ = config.UnmarkDeep()
	}
	for {
		proc, changed, err := p.take(pkg, key, config)
		if err != nil {
			return nil, err
		}
		if proc == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, fmt.Errorf("wait for a free provider process (all %d are in use): %w", p.config.MaxProcesses, context.Cause(ctx))
			}
		}
		select {
		case <-proc.ready:
		case <-ctx.Done():
			p.giveBack(proc)
			return nil, fmt.Errorf("wait for provider %q to start: %w", pkg.Source, context.Cause(ctx))
		}
		if proc.err != nil {
			p.giveBack(proc)
			return nil, proc.err
		}
		select {
		case <-proc.plugin.Exited(): // its own goroutine may not have noticed yet
			p.mu.Lock()
			p.retire(proc)
			p.release(proc)
			p.mu.Unlock()
			continue
		default:
		}
		return &Lease{Server: proc.server, Schema: proc.schema, pool: p, process: proc}, nil
	}
}

// take finds the process for a key, or starts it, and counts one more lease. Without room for another it returns nil and a
// channel that tells when to try again.
func (p *Pool) take(pkg Package, key processKey, config cty.Value) (*process, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	if proc := p.current[key]; proc != nil {
		if sameConfig(proc.config, config) && !p.worn(proc) {
			proc.leases++
			proc.idleSince++
			return proc, nil, nil
		}
		p.retire(proc) // it ends when those who have it release it; the next is started beside it
	}
	if len(p.all) >= p.config.MaxProcesses {
		p.evict()
		return nil, p.changed, nil
	}
	proc := &process{pkg: pkg, key: key, config: config, leases: 1, ready: make(chan struct{}), retired: make(chan struct{})}
	p.current[key] = proc
	p.all[proc] = struct{}{}
	p.running.Go(func() { p.run(proc) })
	return proc, nil, nil
}

// worn says whether a process has done its share of calls.
func (p *Pool) worn(proc *process) bool {
	select {
	case <-proc.ready:
		return proc.err == nil && proc.server.Made() >= p.config.MaxCalls
	default:
		return false
	}
}

func sameConfig(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == cty.NilVal && b == cty.NilVal
	}
	return a.RawEquals(b)
}

// evict ends the process that has been idle for longest, if there is one.
func (p *Pool) evict() {
	var oldest *process
	for _, proc := range p.current {
		if proc.leases == 0 && (oldest == nil || proc.idle.Before(oldest.idle)) {
			oldest = proc
		}
	}
	if oldest != nil {
		p.retire(oldest)
	}
}

// retire takes a process out of circulation; it ends with its last lease.
func (p *Pool) retire(proc *process) {
	if p.current[proc.key] == proc {
		delete(p.current, proc.key)
	}
	proc.retiring = true
	if proc.leases == 0 {
		proc.retireOnce.Do(func() { close(proc.retired) })
	}
}

// stopUnwanted asks a provider to stop when nothing of what it does is wanted any more.
func (p *Pool) stopUnwanted(proc *process) {
	if proc.stopped || proc.unwanted == 0 || proc.unwanted < proc.leases {
		return
	}
	proc.stopped = true
	p.config.Logger.Info("provider is asked to stop what it does", "provider", proc.pkg.Source.String(), "pid", proc.plugin.PID())
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		proc.stopGracefully(ctx)
	})
}

func (p *Pool) giveBack(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(proc)
}

// release counts one lease less.
func (p *Pool) release(proc *process) {
	proc.leases--
	if proc.leases > 0 {
		p.stopUnwanted(proc)
		return
	}
	proc.idle = time.Now()
	proc.idleSince++
	p.notify()
	if proc.retiring || p.closed || p.worn(proc) {
		p.retire(proc)
		return
	}
	after, mark := p.config.IdleTimeout, proc.idleSince
	if !proc.key.configured || proc.key.brief {
		after = min(after, briefIdle)
	}
	if proc.timer != nil {
		proc.timer.Stop() // calls that follow each other must not pile timers up
	}
	proc.timer = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if proc.leases == 0 && proc.idleSince == mark {
			p.retire(proc)
		}
	})
}

func (p *Pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close ends all processes and waits for that: providers are asked to stop, calls in flight get until the stop timeout or
// the end of ctx to answer, and then every process group is killed. No child is left when it returns.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	var open []*process
	for proc := range p.all {
		open = append(open, proc)
		// From here on an error may only say that the call was cut off. Who makes the call must see that before the answer comes.
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
		err = errors.New("stop providers: some calls did not end in time and were cut off; what they changed is looked up at the next start")
		p.mu.Lock()
		for proc := range p.all {
			proc.retireOnce.Do(func() { close(proc.retired) })
		}
		p.mu.Unlock()
		<-done
	}
	if !already {
		p.launcher.Close()
	}
	return err
}
