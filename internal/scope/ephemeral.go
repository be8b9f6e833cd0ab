package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
)

// closeTimeout is the maximum time for closing one ephemeral resource.
const closeTimeout = time.Minute

// ephemeral returns the value of an ephemeral resource and opens it if necessary. The value is unknown if the
// resource's configuration is.
func (s *Scope) ephemeral(ctx context.Context, addr lang.Address) (cty.Value, bool, error) {
	if slices.Contains(s.openChain, addr) {
		return cty.NilVal, false, fmt.Errorf(
			"ephemeral resources depend on each other in a cycle: %s; remove one of the references",
			cycleText(s.openChain, addr))
	}
	if len(s.openChain) == 0 { // otherwise the outermost call holds the lock
		fair.Lock(ctx, &s.opening)
		defer s.opening.Unlock()
	}
	s.mu.Lock()
	v, open := s.open[addr]
	s.mu.Unlock()
	if open {
		return v, true, nil
	}
	for r, err := range s.Resources(ctx, addr) {
		if err != nil {
			return cty.NilVal, false, err
		}
		v, opened, err := s.inside(addr).openResource(ctx, r, addr)
		if err != nil {
			return cty.NilVal, false, within(addr, err)
		}
		if !opened {
			return v, true, nil // its configuration may be known in a later call
		}
		s.mu.Lock()
		s.open[addr] = v
		s.mu.Unlock()
		return v, true, nil
	}
	return cty.NilVal, false, nil
}

func cycleText(openChain []lang.Address, back lang.Address) string {
	var names []string
	for _, addr := range append(openChain[slices.Index(openChain, back):], back) {
		names = append(names, addr.String())
	}
	return strings.Join(names, " -> ")
}

// inside returns the scope in which the expressions of the ephemeral resource with an address are evaluated.
func (s *Scope) inside(addr lang.Address) *Scope {
	inner := *s
	inner.Home, inner.openChain = addr.Namespace, append(slices.Clone(s.openChain), addr)
	return &inner
}

// openResource opens an ephemeral resource and registers its close. If the resource must wait for a planned change, it
// returns a value with unknown computed attributes and opened false.
func (s *Scope) openResource(ctx context.Context, r *resource.Resource,
	addr lang.Address) (v cty.Value, opened bool, err error) {
	l := &Evaluator{Ctx: ctx, Scope: s}
	config, _, err := l.Arguments(r)
	if err != nil {
		return cty.NilVal, false, err
	}
	p, err := s.Acquire(ctx, r, session.RateOnly)
	if err != nil {
		return cty.NilVal, false, err
	}
	defer func() {
		if !opened {
			p.Release()
		}
	}()
	e := &instance.Ephemeral{Name: r.Address.Type, Schema: r.Schema, Provider: p.ProviderServer,
		Deferral: s.planned != nil, Audit: s.Recorder(r, p.ConfigName())}
	mark := func(v cty.Value) cty.Value { return lang.MarkSensitive(r.Schema.Block, v).Mark(lang.Ephemeral) }
	later := mark(e.Unopened(config))
	if !Known(config) {
		_, err := e.Validate(ctx, config)
		return later, false, err
	}
	if waits, err := s.waits(r); err != nil || waits {
		return later, false, err
	}
	o, _, err := e.Open(ctx, config)
	if _, put := errors.AsType[*instance.DeferredError](err); put && s.planned != nil {
		return later, false, nil
	}
	if err != nil {
		return cty.NilVal, false, err
	}
	s.mu.Lock()
	s.closers = append(s.closers, func(ctx context.Context) error {
		defer p.Release()
		if err := o.Close(ctx); err != nil {
			return fmt.Errorf("close %s: %w", addr, err)
		}
		return nil
	})
	s.mu.Unlock()
	v = mark(o.Value)
	_, err = l.Holds(r, resource.Postconditions, v)
	return v, true, err
}

// waits reports whether the plan has yet to create or change a resource in lifecycle.dependsOn, as shown by unknown
// values.
func (s *Scope) waits(r *resource.Resource) (bool, error) {
	if s.planned == nil {
		return false, nil
	}
	for _, text := range r.Lifecycle.DependsOn {
		addr, err := lang.ParseAddress(text)
		if err != nil {
			return false, fmt.Errorf("lifecycle.dependsOn: %w", err)
		}
		if addr.Namespace != "" || s.Home != "" {
			continue // no plan of this namespace changes it
		}
		if v, ok := s.planned(addr); ok && !Known(v) {
			return true, nil
		}
	}
	return false, nil
}

// within adds the address of the ephemeral resource to an error. It keeps the provider's diagnostics complete.
func within(addr lang.Address, err error) error {
	if f, ok := errors.AsType[*diag.Failure](err); ok && len(f.Diagnostics) > 0 {
		return &diag.Failure{Kind: f.Kind, Operation: f.Operation, Cause: f.Cause,
			Diagnostics: lang.WithAddress(f.Diagnostics, addr)}
	}
	return fmt.Errorf("%s: %w", addr, err)
}

// Unclosed returns a warning that an ephemeral resource was not closed, so that the user may have to close it.
func Unclosed(err error) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Ephemeral resource was not closed",
		Detail: fmt.Sprintf("%v. It may expire by itself; otherwise close it yourself.", err)}
}

// Opened reports whether ephemeral resources are open, so that Close calls their providers.
func (s *Scope) Opened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.closers) > 0
}

// Close closes the ephemeral resources in reverse order, even after an error or the end of ctx. A resource that cannot
// be closed may expire by itself.
func (s *Scope) Close(ctx context.Context) error {
	s.mu.Lock()
	undo := s.closers
	s.closers, s.open = nil, map[lang.Address]cty.Value{}
	s.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(undo) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		errs = append(errs, f(ctx))
		cancel()
	}
	return errors.Join(errs...)
}
