package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/sync/errgroup"

	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/session"
)

// floor makes the provider calls that create n networks, with nothing around them and as many at once as a plan, and
// returns how long they took. For each network that is a validation and a plan when it is planned, and a validation, a
// plan and an apply when it is applied. The time to start the provider does not count.
func floor(ctx context.Context, b *bench, n int) (took time.Duration, err error) {
	plugin, err := simPlugin(b.Mirror)
	if err != nil {
		return 0, err
	}
	sum, err := dirhash.HashDir(filepath.Dir(plugin), "", dirhash.Hash1)
	if err != nil {
		return 0, err
	}
	pool := provider.NewPool(provider.PoolConfig{
		MaxCalls:    6 * n,
		Containment: contain.New(contain.Config{Mode: contain.Off, Environ: []string{"SIMCLOUD_ADDRESS=" + b.cloud.Address}}),
	})
	defer func() { err = errors.Join(err, pool.Close(context.WithoutCancel(ctx))) }()
	l, err := pool.Acquire(ctx, provider.Package{
		Source: provider.Source{Hostname: "registry.terraform.io", Namespace: "hykube", Type: "sim"}, Version: "1.0.0", Executable: plugin, Checksum: sum,
		Grants: contain.Grants{Environment: []string{"SIMCLOUD_ADDRESS"}},
	}, provider.Configuration{Key: "floor"})
	if err != nil {
		return 0, err
	}
	defer l.Release()
	block := l.Schema.Resources["sim_network"].Block
	began := time.Now()
	for _, step := range []func(*rawNetwork, context.Context) error{(*rawNetwork).plan, (*rawNetwork).apply} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(session.Width)
		for i := range n {
			group.Go(func() error {
				r, err := newRawNetwork(l, block, fmt.Sprintf("floor-%d", i))
				if err != nil {
					return err
				}
				return step(r, ctx)
			})
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// rawNetwork is a network as the provider protocol has it.
type rawNetwork struct {
	provider            provider.Server
	null, config, asked *tfprotov6.DynamicValue
}

func newRawNetwork(p provider.Server, block *schema.Block, name string) (*rawNetwork, error) {
	ty := block.ImpliedType()
	values := map[string]cty.Value{}
	for name, attribute := range ty.AttributeTypes() {
		values[name] = cty.NullVal(attribute)
	}
	values["name"], values["cidr"] = cty.StringVal(name), cty.StringVal("10.0.0.0/16")
	config := cty.ObjectVal(values)
	r := &rawNetwork{provider: p}
	for value, to := range map[**tfprotov6.DynamicValue]cty.Value{
		&r.null: cty.NullVal(ty), &r.config: config, &r.asked: plan.ProposedNew(block, cty.NullVal(ty), config),
	} {
		encoded, err := schema.Encode(to, ty)
		if err != nil {
			return nil, err
		}
		*value = encoded
	}
	return r, nil
}

func (r *rawNetwork) plan(ctx context.Context) error {
	_, err := r.planned(ctx)
	return err
}

// planned validates and plans the create.
func (r *rawNetwork) planned(ctx context.Context) (*tfprotov6.PlanResourceChangeResponse, error) {
	valid, err := r.provider.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "sim_network", Config: r.config})
	if err == nil {
		err = refused(valid.Diagnostics)
	}
	if err != nil {
		return nil, err
	}
	planned, err := r.provider.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "sim_network", PriorState: r.null, ProposedNewState: r.asked, Config: r.config})
	if err == nil {
		err = refused(planned.Diagnostics)
	}
	return planned, err
}

func (r *rawNetwork) apply(ctx context.Context) error {
	planned, err := r.planned(ctx)
	if err != nil {
		return err
	}
	made, err := r.provider.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "sim_network", PriorState: r.null, PlannedState: planned.PlannedState, Config: r.config, PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
	})
	if err == nil {
		err = refused(made.Diagnostics)
	}
	return err
}

// refused returns the first error of a provider's answer.
func refused(all []*tfprotov6.Diagnostic) error {
	for _, d := range all {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	return nil
}
