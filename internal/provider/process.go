package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/provider/batch"
	"github.com/hykube/hykube/internal/provider/builtin"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/plugin"
	"github.com/hykube/hykube/internal/provider/protocol"
	"github.com/hykube/hykube/internal/schema"
)

// terraformVersion is the Terraform version that providers receive. Some require a minimum version, and some put it
// into the user agent. Hykube implements the behaviour of this version.
const terraformVersion = "1.11.4"

// stopGrace is the time that an idle process has to end by itself.
const stopGrace = 2 * time.Second

// stopCallTimeout is the maximum time of a StopProvider call.
const stopCallTimeout = 10 * time.Second

// process is a provider process in the pool. The pool's mutex guards the fields from leases on.
type process struct {
	pkg    Package
	key    processKey
	config cty.Value

	// ready is closed when the start has succeeded or failed. The following fields may be read only after that.
	ready  chan struct{}
	err    error
	plugin *plugin.Process
	server *protocol.Client
	schema *schema.Provider

	// retired is closed when the process must end; see end.
	retired chan struct{}
	// stopStart ends the context of the start; nil if the process was not started.
	stopStart context.CancelFunc

	// slot is the slot of a process with leases, which counts for namespace. It is nil while the leases wait for it.
	slot      *fair.Slot
	namespace string
	// granted is closed when the process gets its slot.
	granted chan struct{}
	leases  int
	// unwanted is the number of leases whose calls are no longer wanted.
	unwanted int
	// stopped is true after the pool asked the provider to stop.
	stopped  bool
	retiring bool
	idle     time.Time
	// idleSince changes with each lease, so that a timer can detect that it is obsolete.
	idleSince int
	// timer ends an idle process; nil until the process is idle for the first time.
	timer *time.Timer
}

// begun reports whether the process was started, perhaps without success.
func (proc *process) begun() bool { return proc.stopStart != nil }

// isReady reports whether the start has succeeded or failed.
func (proc *process) isReady() bool { return closed(proc.ready) }

// ended reports whether the process must end or has ended.
func (proc *process) ended() bool { return closed(proc.retired) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end makes the process end, also during its start.
func (proc *process) end() {
	if proc.ended() {
		return
	}
	close(proc.retired)
	if proc.begun() {
		proc.stopStart()
	}
}

// run starts a process and waits until it ends. ctx is the context of the start.
func (p *Pool) run(ctx context.Context, proc *process) {
	log := p.config.Logger.With("provider", proc.pkg.Source.String(), "version", proc.pkg.Version)
	proc.err = bug.Guard(log, "start a provider", func() error { return p.start(ctx, proc) })
	if proc.err != nil {
		if proc.plugin != nil {
			proc.plugin.Stop(0)
		}
		p.forget(proc)
		close(proc.ready)
		return
	}
	close(proc.ready)
	select {
	case <-proc.plugin.Exited():
		log.Warn("provider process ended by itself; it is started again when it is needed", "pid", proc.plugin.PID(),
			"reason", proc.plugin.ExitState())
		p.mu.Lock()
		p.retire(proc)
		p.mu.Unlock()
		proc.plugin.Stop(0)
	case <-proc.retired:
		proc.plugin.Stop(stopGrace)
		log.Debug("provider process stopped", "pid", proc.plugin.PID())
	}
	p.forget(proc)
}

func (p *Pool) forget(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire(proc)
	delete(p.all, proc)
}

// start starts and configures a process.
func (p *Pool) start(ctx context.Context, proc *process) error {
	name := proc.pkg.Source.String()
	if err := p.launch(ctx, proc, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.ConfigureTimeout)
	defer cancel()
	var limits batch.Limits
	if proc.plugin.Protocol == 6 {
		var err error
		if limits, err = batch.ReadLimits(ctx, proc.plugin); err != nil {
			return p.startError(proc.crashed(ctx, "announce its batches",
				fmt.Errorf("start provider %q: %w", name, err)))
		}
	}
	client, err := protocol.New(batch.NewConn(proc.plugin, limits), proc.plugin.Protocol)
	if err != nil {
		return fmt.Errorf("start provider %q: %w", name, err)
	}
	client.Hint = func(text string) string { return p.config.Containment.Hint(name, proc.pkg.Grants, text) }
	if p.config.Called != nil {
		client.Called = func(method string, took time.Duration) { p.config.Called(name, method, took) }
	}
	proc.server = client

	if err := p.readSchema(ctx, proc, limits); err != nil {
		return p.startError(proc.crashed(ctx, "read its schema", err))
	}
	if !proc.key.configured {
		return nil
	}
	if err := proc.configure(ctx); err != nil {
		return p.startError(proc.crashed(ctx, "configure it", err))
	}
	return nil
}

// launch runs the verified executable, or uses the provider that is a part of the server. It returns an error if the
// file was written after the verification. While the process runs, the kernel refuses writes to the file.
func (p *Pool) launch(ctx context.Context, proc *process, name string) error {
	if proc.pkg.Source.BuiltIn() {
		proc.plugin = plugin.BuiltIn(name, builtin.Conn{})
		return nil
	}
	exe, err := proc.pkg.open()
	if err != nil {
		return err
	}
	defer exe.Close()
	verified, err := exe.Stat()
	if err != nil {
		return err
	}
	proc.plugin, err = p.launcher.Start(ctx, plugin.Spec{
		Name:         name,
		Program:      contain.Plugin{Source: name, Path: proc.pkg.Executable, File: exe, Grants: proc.pkg.Grants},
		Debug:        p.config.Debug,
		MessageLimit: p.config.MessageLimit,
		StartTimeout: p.config.StartTimeout, Logger: p.config.Logger.With("provider", name),
	})
	if err != nil {
		return p.startError(err)
	}
	now, err := exe.Stat()
	if err == nil && (now.Size() != verified.Size() || !now.ModTime().Equal(verified.ModTime())) {
		err = proc.pkg.changed("of a file that changed while it was started")
	}
	return err
}

// startError returns ErrClosed if the start failed because the pool was closed.
func (p *Pool) startError(err error) error {
	if p.starts.Err() != nil {
		return ErrClosed
	}
	return err
}

// crashed converts the loss or timeout of a process during its start to a *CrashError.
func (proc *process) crashed(ctx context.Context, doing string, err error) error {
	crash := &CrashError{Provider: proc.pkg.Source.String()}
	if lost, ok := errors.AsType[*UnavailableError](err); ok {
		crash.Reason, crash.Stderr = fmt.Sprintf("it ended when asked to %s (%s)", doing, lost.Reason), lost.Stderr
		return crash
	}
	// The plugin has the same deadline and may notice its end first.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		status.Code(err) == codes.DeadlineExceeded {
		crash.Reason, crash.Stderr = "it did not answer in time when asked to "+doing, proc.plugin.LastLines()
		return crash
	}
	return err
}

// readSchema calls GetProviderSchema, unless the schema is cached and the plugin has the capability SchemaOptional.
// Other plugins initialize themselves in that call.
func (p *Pool) readSchema(ctx context.Context, proc *process, limits batch.Limits) error {
	p.mu.Lock()
	proc.schema = p.schemas[schemaKeyOf(proc.pkg)]
	p.mu.Unlock()
	if proc.schema != nil && proc.schema.SchemaOptional {
		return nil
	}
	r, err := proc.server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return fmt.Errorf("read schema of provider %q: %w", proc.pkg.Source, err)
	}
	if hasErrors(r.Diagnostics) {
		return fmt.Errorf("read schema of provider %q: %w", proc.pkg.Source, diagnosticsError(r.Diagnostics))
	}
	if proc.schema != nil {
		return nil
	}
	s, err := schema.FromProto(r)
	if err != nil {
		return fmt.Errorf("read schema of provider %q: %w; use another version of the provider", proc.pkg.Source, err)
	}
	if err := readRest(ctx, proc.server, s, len(r.Functions) == 0); err != nil {
		return fmt.Errorf("read schema of provider %q: %w; use another version of the provider", proc.pkg.Source, err)
	}
	s.Protocol, s.Batches, s.DeterministicPlans = proc.plugin.Protocol, limits.Types(), limits.Deterministic()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.schemas[schemaKeyOf(proc.pkg)]; known != nil {
		s = known
	}
	p.schemas[schemaKeyOf(proc.pkg)], proc.schema = s, s
	return nil
}

// readRest reads the schemas that GetProviderSchema lacks: those of identities and, if functions is true, of functions.
func readRest(ctx context.Context, server Server, s *schema.Provider, functions bool) error {
	ids, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return err
	}
	if hasErrors(ids.Diagnostics) {
		return fmt.Errorf("read identity schemas: %w", diagnosticsError(ids.Diagnostics))
	}
	if err := s.AddIdentities(ids); err != nil {
		return err
	}
	if !functions {
		return nil
	}
	fs, err := server.GetFunctions(ctx, &tfprotov6.GetFunctionsRequest{})
	if err != nil {
		return err
	}
	if hasErrors(fs.Diagnostics) {
		return fmt.Errorf("read functions: %w", diagnosticsError(fs.Diagnostics))
	}
	s.Functions, err = schema.FunctionsFromProto(fs.Functions)
	return err
}

// configure validates and sets the configuration, once per process, as Terraform does.
func (proc *process) configure(ctx context.Context) error {
	name := proc.pkg.Source.String()
	config, err := encodeConfig(proc.schema, proc.config)
	if err != nil {
		return fmt.Errorf("configure provider %q: %w", name, err)
	}
	v, err := proc.server.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: config})
	if err != nil {
		return fmt.Errorf("configure provider %q: %w", name, err)
	}
	if hasErrors(v.Diagnostics) {
		return configRefused(name, v.Diagnostics)
	}
	c, err := proc.server.ConfigureProvider(ctx,
		&tfprotov6.ConfigureProviderRequest{TerraformVersion: terraformVersion, Config: config})
	if err != nil {
		return fmt.Errorf("configure provider %q: %w", name, err)
	}
	if hasErrors(c.Diagnostics) {
		return configRefused(name, append(v.Diagnostics, c.Diagnostics...))
	}
	return nil
}

// stopGracefully tells a provider in use to stop its calls.
func (proc *process) stopGracefully(ctx context.Context) {
	select {
	case <-proc.ready:
	case <-ctx.Done():
		return
	}
	if proc.err == nil {
		// ignore the error, because the process is killed in any case
		_, _ = proc.server.StopProvider(ctx, &tfprotov6.StopProviderRequest{})
	}
}

// encodeConfig encodes a configuration for the protocol; cty.NilVal means an empty configuration.
func encodeConfig(s *schema.Provider, config cty.Value) (*tfprotov6.DynamicValue, error) {
	if config == cty.NilVal {
		config = emptyConfig(s.Config.Block)
	}
	config, _ = config.UnmarkDeep()
	return schema.Encode(config, s.Config.Block.ImpliedType())
}

// emptyConfig returns a configuration without arguments: attributes are null, and nested block collections are empty.
func emptyConfig(b *schema.Block) cty.Value {
	values := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	for _, a := range b.Attributes {
		values[a.Name] = cty.NullVal(a.Type)
	}
	for _, nb := range b.Blocks {
		elem := nb.Block.ImpliedType()
		switch nb.Nesting {
		case schema.NestingGroup:
			values[nb.TypeName] = emptyConfig(nb.Block)
		case schema.NestingSet:
			values[nb.TypeName] = cty.SetValEmpty(elem)
		case schema.NestingList:
			values[nb.TypeName] = cty.ListValEmpty(elem)
			if elem.HasDynamicTypes() {
				values[nb.TypeName] = cty.EmptyTupleVal
			}
		case schema.NestingMap:
			values[nb.TypeName] = cty.MapValEmpty(elem)
			if elem.HasDynamicTypes() {
				values[nb.TypeName] = cty.EmptyObjectVal
			}
		default:
			values[nb.TypeName] = cty.NullVal(elem)
		}
	}
	return cty.ObjectVal(values)
}
