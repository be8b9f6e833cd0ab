package conform6

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// object is a resource type with any schema. It fills in unknown values, and keeps its top-level strings in the cloud.
type object struct {
	typeName   string
	collection string // in the cloud; empty means the type's own name
	schema     schema.Schema
	cloud      *cloud.Cloud
}

// identified is an object with an identity: its ID.
type identified struct{ object }

// common returns the attributes of every type.
func common(more map[string]schema.Attribute) map[string]schema.Attribute {
	out := map[string]schema.Attribute{
		"id":        schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"name":      schema.StringAttribute{Required: true},
		"behaviour": schema.StringAttribute{Optional: true, Description: "In what the provider misbehaves, separated by commas."},
	}
	maps.Copy(out, more)
	return out
}

func newThing() resource.Resource {
	return &identified{object{typeName: "conform6_thing", schema: schema.Schema{
		Attributes: common(map[string]schema.Attribute{
			"note":     schema.StringAttribute{Optional: true},
			"label":    schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
			"size":     schema.Int64Attribute{Optional: true, Computed: true, PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}},
			"serial":   schema.StringAttribute{Computed: true, Description: "Another one after each update."},
			"zone":     schema.StringAttribute{Optional: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
			"password": schema.StringAttribute{Optional: true, Sensitive: true},
			"token":    schema.StringAttribute{Optional: true, WriteOnly: true},
			"tags":     schema.MapAttribute{Optional: true, ElementType: types.StringType},
			"bag":      schema.SetAttribute{Optional: true, Computed: true, ElementType: types.StringType},
		}),
		Blocks: map[string]schema.Block{"rule": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
			"port": schema.Int64Attribute{Required: true},
			"id":   schema.StringAttribute{Computed: true},
		}}}},
	}}}
}

func (r *object) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName
}

func (r *object) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.schema
}

func (r *object) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.cloud, _ = req.ProviderData.(*cloud.Cloud)
}

func (r *identified) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true},
	}}
}

func (r *object) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	id, err := r.cloud.Create(cmp.Or(r.collection, r.typeName), textOf(req.Plan.Raw, "name"), kept(req.Plan.Raw))
	if err != nil {
		resp.Diagnostics.AddError("Can't create", err.Error())
		return
	}
	resp.State.Raw = complete(req.Plan.Raw, id)
	identify(ctx, resp.Identity, id, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "made", []byte(`{"by":"create"}`))...)
	if err := r.cloud.Put(cmp.Or(r.collection, r.typeName), id, kept(resp.State.Raw)); err != nil {
		resp.Diagnostics.AddError("Can't create", err.Error())
	}
}

func (r *object) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	id := textOf(req.State.Raw, "id")
	resp.State.Raw = complete(req.Plan.Raw, id)
	identify(ctx, resp.Identity, id, &resp.Diagnostics)
	if err := r.cloud.Put(cmp.Or(r.collection, r.typeName), id, kept(resp.State.Raw)); err != nil {
		resp.Diagnostics.AddError("Can't update", err.Error())
	}
}

func (r *object) Delete(_ context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	if err := r.cloud.Remove(cmp.Or(r.collection, r.typeName), textOf(req.State.Raw, "id")); err != nil {
		resp.Diagnostics.AddError("Can't delete", err.Error())
	}
}

func (r *object) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	id := textOf(req.State.Raw, "id")
	o, err := r.cloud.Get(cmp.Or(r.collection, r.typeName), id)
	switch {
	case err != nil:
		resp.Diagnostics.AddError("Can't read", err.Error())
	case o == nil:
		resp.State.RemoveResource(ctx)
	default:
		resp.State.Raw = found(req.State.Raw, o)
		identify(ctx, resp.Identity, id, &resp.Diagnostics)
	}
}

func (r *identified) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("id"), &id)...)
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	identify(ctx, resp.Identity, id, &resp.Diagnostics)
}

func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, id string, diags *diag.Diagnostics) {
	if identity == nil || identity.Schema == nil {
		return
	}
	if _, ok := identity.Schema.GetAttributes()["path"]; ok {
		diags.Append(identity.SetAttribute(ctx, path.Root("path"), "old/"+id)...)
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("id"), id)...)
}

// fields returns the attributes of an object; nil if the object is null or unknown.
func fields(v tftypes.Value) map[string]tftypes.Value {
	var m map[string]tftypes.Value
	if v.IsNull() || !v.IsKnown() || v.As(&m) != nil {
		return nil
	}
	return m
}

// textOf returns a top-level string; "" if there is none.
func textOf(v tftypes.Value, name string) string {
	var s string
	if f, ok := fields(v)[name]; ok && f.IsKnown() && !f.IsNull() && f.Type().Is(tftypes.String) {
		_ = f.As(&s) // it is a string
	}
	return s
}

// kept returns the part of a value that the cloud stores.
func kept(v tftypes.Value) cloud.Object {
	o := cloud.Object{}
	for name, f := range fields(v) {
		if f.Type().Is(tftypes.String) && f.IsKnown() && !f.IsNull() {
			o[name] = textOf(v, name)
		}
	}
	return o
}

// found returns a state with the current values of the cloud.
func found(v tftypes.Value, o cloud.Object) tftypes.Value {
	m := fields(v)
	for name, s := range o {
		if f, ok := m[name]; ok && f.Type().Is(tftypes.String) {
			m[name] = tftypes.NewValue(tftypes.String, s)
		}
	}
	return tftypes.NewValue(v.Type(), m)
}

// complete replaces unknown values: the ID, and placeholders for the others.
func complete(v tftypes.Value, id string) tftypes.Value {
	// The function returns no error, so neither does Transform.
	out, _ := tftypes.Transform(v, func(p *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if v.IsKnown() {
			return v, nil
		}
		n := place(p)
		switch {
		case p.Equal(tftypes.NewAttributePath().WithAttributeName("id")):
			return tftypes.NewValue(tftypes.String, id), nil
		case v.Type().Is(tftypes.String):
			return tftypes.NewValue(tftypes.String, fmt.Sprintf("made-%s-%d", p.LastStep(), n)), nil
		case v.Type().Is(tftypes.Number):
			return tftypes.NewValue(tftypes.Number, big.NewFloat(float64(n))), nil
		case v.Type().Is(tftypes.Bool):
			return tftypes.NewValue(tftypes.Bool, true), nil
		default:
			return tftypes.NewValue(v.Type(), nil), nil
		}
	})
	return out
}

// place returns a number for a path. It is the same in every run, so that two clouds return the same for the same plan.
// Elements of a set share one number, because their path has their value.
func place(p *tftypes.AttributePath) uint32 {
	h := fnv.New32a()
	for _, step := range p.Steps() {
		if _, ok := step.(tftypes.ElementKeyValue); !ok {
			fmt.Fprint(h, step, "/")
		}
	}
	return h.Sum32() % 1000
}
