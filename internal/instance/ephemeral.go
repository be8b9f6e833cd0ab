package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

const (
	// renewEarly is the time by which a renewal precedes the provider's deadline, so that a slow one is not late.
	renewEarly = time.Minute
	// ephemeralTimeout limits a renewal, and a close whose context has no earlier deadline.
	ephemeralTimeout = 2 * time.Minute
)

// Ephemeral is an ephemeral resource type with a provider process for it.
type Ephemeral struct {
	// Name is the Terraform type name, such as "sim_token".
	Name   string
	Schema *schema.Schema
	// Provider is configured.
	Provider tfprotov6.ProviderServer
	// Deferral is true if the caller handles a *DeferredError. The provider receives it as the capability
	// DeferralAllowed.
	Deferral bool
	// Audit records each opening; nil records nothing.
	Audit RecordFunc
}

// Validate makes the provider validate the configuration, which may hold unknown values.
func (e *Ephemeral) Validate(ctx context.Context, config cty.Value) (diag.Diagnostics, error) {
	c, err := encodeFor(e.Name, e.Schema, config)
	if err != nil {
		return nil, err
	}
	resp, err := e.Provider.ValidateEphemeralResourceConfig(ctx,
		&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: e.Name, Config: c})
	if err != nil {
		return nil, fmt.Errorf("validate ephemeral resource %s: %w", e.Name, err)
	}
	return diag.Answer("validate", resp.Diagnostics)
}

// Unopened returns the value of an ephemeral resource that cannot be opened yet: its configuration, with computed
// attributes unknown.
func (e *Ephemeral) Unopened(config cty.Value) cty.Value { return unread(e.Schema.Block, config) }

// Open makes the provider validate the configuration, which must be wholly known, and open the resource. If Open
// returns an Opened, the caller must close it.
func (e *Ephemeral) Open(ctx context.Context, config cty.Value) (*Opened, diag.Diagnostics, error) {
	if !unmarked(config).IsWhollyKnown() {
		return nil, nil, fmt.Errorf("open ephemeral resource %s: its configuration is not known yet", e.Name)
	}
	diags, err := e.Validate(ctx, config)
	if err != nil {
		return nil, diags, err
	}
	c, err := encodeFor(e.Name, e.Schema, config)
	if err != nil {
		return nil, diags, err
	}
	end, err := e.Audit.begin(audit.Open, e.Name)
	if err != nil {
		return nil, diags, err
	}
	resp, err := e.Provider.OpenEphemeralResource(ctx, &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: e.Name, Config: c,
		ClientCapabilities: &tfprotov6.OpenEphemeralResourceClientCapabilities{DeferralAllowed: e.Deferral},
	})
	if err != nil {
		end(unanswered(err))
		return nil, diags, fmt.Errorf("open ephemeral resource %s: %w", e.Name, err)
	}
	more, err := diag.Answer("open", resp.Diagnostics)
	end(err)
	diags = append(diags, more...)
	if err != nil {
		return nil, diags, err
	}
	if err := deferred("open ephemeral resource", e.Name, resp.Deferred, e.Deferral); err != nil {
		return nil, diags, err
	}
	o := &Opened{of: *e, private: resp.Private, stop: make(chan struct{})}
	if o.Value, err = e.result(config, resp.Result); err != nil {
		// The provider has opened it nevertheless.
		return nil, diags, errors.Join(err, o.Close(ctx))
	}
	if !resp.RenewAt.IsZero() {
		o.renewals.Go(func() { o.keepOpen(resp.RenewAt) })
	}
	return o, diags, nil
}

// result decodes the provider's result and adds the marks of the configuration.
func (e *Ephemeral) result(config cty.Value, d *tfprotov6.DynamicValue) (cty.Value, error) {
	v, err := schema.Decode(d, e.Schema.Block.ImpliedType())
	if err != nil {
		return cty.NilVal, fmt.Errorf(
			"open ephemeral resource %s: the provider answered with a value that does not fit its schema: %w", e.Name,
			err)
	}
	if v.IsNull() || !v.IsWhollyKnown() {
		return cty.NilVal, fmt.Errorf(
			"open ephemeral resource %s: the provider answered with nothing, or with unknown values, which is a bug of the provider", e.Name)
	}
	if errs := plan.CheckPlanned(e.Schema.Block, cty.NullVal(v.Type()), config, v); len(errs) > 0 {
		return cty.NilVal, inconsistentResult("open", e.Name, "returned another value than the configuration sets",
			errs)
	}
	return restoreMarks(v, marksOf(config)), nil
}

// Opened is an open ephemeral resource. It renews itself until Close.
type Opened struct {
	// Value conforms to the type's schema. It must never be stored or leave the process.
	Value cty.Value

	of       Ephemeral
	stop     chan struct{}
	renewals sync.WaitGroup
	once     sync.Once
	closed   error

	mu      sync.Mutex
	private []byte
	renewal error
}

// keepOpen renews the resource at the times that the provider sets, until Close or until a renewal fails.
func (o *Opened) keepOpen(at time.Time) {
	for !at.IsZero() {
		timer := time.NewTimer(renewIn(time.Until(at)))
		select {
		case <-o.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		err := bug.Catch(func() (err error) {
			at, err = o.renew()
			return err
		})
		if err != nil {
			o.mu.Lock()
			o.renewal = err
			o.mu.Unlock()
			return
		}
	}
}

// renewIn returns the delay before a renewal that is due within left: a minute early, or half of left if left is short.
// The minimum is a second.
func renewIn(left time.Duration) time.Duration { return max(left-renewEarly, left/2, time.Second) }

func (o *Opened) renew() (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), ephemeralTimeout)
	defer cancel()
	o.mu.Lock()
	private := o.private
	o.mu.Unlock()
	resp, err := o.of.Provider.RenewEphemeralResource(ctx,
		&tfprotov6.RenewEphemeralResourceRequest{TypeName: o.of.Name, Private: private})
	if err != nil {
		return time.Time{}, fmt.Errorf("renew ephemeral resource %s: %w", o.of.Name, err)
	}
	if _, err := diag.Answer("renew", resp.Diagnostics); err != nil {
		return time.Time{}, err
	}
	o.mu.Lock()
	if resp.Private != nil {
		o.private = resp.Private
	}
	o.mu.Unlock()
	return resp.RenewAt, nil
}

// Close stops the renewals and closes the resource, even if ctx is cancelled. It returns all errors since Open,
// including that of a failed renewal. Further calls only return the same errors.
func (o *Opened) Close(ctx context.Context) error {
	o.once.Do(func() {
		close(o.stop)
		o.renewals.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ephemeralTimeout)
		defer cancel()
		resp, err := o.of.Provider.CloseEphemeralResource(ctx,
			&tfprotov6.CloseEphemeralResourceRequest{TypeName: o.of.Name, Private: o.private})
		if err != nil {
			err = fmt.Errorf("close ephemeral resource %s: %w", o.of.Name, err)
		} else {
			_, err = diag.Answer("close", resp.Diagnostics)
		}
		o.closed = errors.Join(o.renewal, err)
	})
	return o.closed
}
