package instance

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// DataSource is a data source with a provider process for it.
type DataSource struct {
	// Name is the Terraform type name, such as "sim_image".
	Name   string
	Schema *schema.Schema
	// Provider is configured, unless its configuration is unknown.
	Provider tfprotov6.ProviderServer
	// Meta and MetaBlock are as in Type.
	Meta      cty.Value
	MetaBlock *schema.Block
	// Deferral is true if the caller handles a *DeferredError. The provider receives it as the capability
	// DeferralAllowed.
	Deferral bool
}

// NewDataSource returns a data source of a provider. The caller sets the fields that depend on a process: Provider,
// Meta and Deferral.
func NewDataSource(p *schema.Provider, name string) DataSource {
	return DataSource{Name: name, Schema: p.DataSources[name], MetaBlock: metaBlock(p)}
}

// Validate makes the provider validate the configuration, which may hold unknown values.
func (d *DataSource) Validate(ctx context.Context, config cty.Value) (diag.Diagnostics, error) {
	c, err := encodeFor(d.Name, d.Schema, config)
	if err != nil {
		return nil, err
	}
	resp, err := d.Provider.ValidateDataResourceConfig(ctx,
		&tfprotov6.ValidateDataResourceConfigRequest{TypeName: d.Name, Config: c})
	if err != nil {
		return nil, fmt.Errorf("validate data source %s: %w", d.Name, err)
	}
	return diag.Answer("validate", resp.Diagnostics)
}

// Read makes the provider validate the configuration, which must be wholly known, and read the data source. The result
// has the configuration's marks.
func (d *DataSource) Read(ctx context.Context, config cty.Value) (cty.Value, diag.Diagnostics, error) {
	if !unmarked(config).IsWhollyKnown() {
		return cty.NilVal, nil, fmt.Errorf("read data source %s: its configuration is not known yet", d.Name)
	}
	diags, err := d.Validate(ctx, config)
	if err != nil {
		return cty.NilVal, diags, err
	}
	req := &tfprotov6.ReadDataSourceRequest{
		TypeName: d.Name, ClientCapabilities: &tfprotov6.ReadDataSourceClientCapabilities{DeferralAllowed: d.Deferral},
	}
	if req.Config, err = encodeFor(d.Name, d.Schema, config); err != nil {
		return cty.NilVal, diags, err
	}
	if req.ProviderMeta, err = encodeMeta(d.Meta, d.MetaBlock); err != nil {
		return cty.NilVal, diags, err
	}
	resp, err := d.Provider.ReadDataSource(ctx, req)
	if err != nil {
		return cty.NilVal, diags, fmt.Errorf("read data source %s: %w", d.Name, err)
	}
	more, err := diag.Answer("read", resp.Diagnostics)
	diags = append(diags, more...)
	if err != nil {
		return cty.NilVal, diags, err
	}
	if err := deferred("read data source", d.Name, resp.Deferred, d.Deferral); err != nil {
		return cty.NilVal, diags, err
	}
	v, err := schema.Decode(resp.State, d.Schema.Block.ImpliedType())
	if err != nil {
		return cty.NilVal, diags, fmt.Errorf(
			"read data source %s: the provider answered with a value that does not fit its schema: %w", d.Name, err)
	}
	if v.IsNull() || !v.IsWhollyKnown() {
		return cty.NilVal, diags, fmt.Errorf(
			"read data source %s: the provider answered with nothing, or with unknown values, which is a bug of the provider", d.Name)
	}
	if errs := plan.CheckWriteOnly(d.Schema.Block, v); len(errs) > 0 {
		return cty.NilVal, diags, inconsistentResult("read", d.Name,
			"returned write-only values, which must never be stored,", errs)
	}
	return restoreMarks(v, marksOf(config)), diags, nil
}

// Unread returns the value of a data source that cannot be read yet: its configuration, with computed attributes
// unknown.
func (d *DataSource) Unread(config cty.Value) cty.Value { return unread(d.Schema.Block, config) }

// unread sets null computed attributes to unknown. It keeps the marks.
func unread(b *schema.Block, config cty.Value) cty.Value {
	v, marks := config.UnmarkDeepWithPaths()
	if !v.IsKnown() || v.IsNull() {
		return config
	}
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if a := attributeAt(b, p); a != nil && a.Computed && v.IsNull() {
			return cty.UnknownVal(a.Type), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.UnknownVal(v.Type())
	}
	return out.MarkWithPaths(marks)
}
