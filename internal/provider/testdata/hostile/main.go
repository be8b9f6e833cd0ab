// Command hostile is a provider that attacks the machine that it runs on. Its data source hostile_attempt makes one
// attempt, and returns whether it succeeded. See ../../hostile_test.go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return hostile{} },
		providerserver.ServeOpts{Address: "example.com/test/hostile", ProtocolVersion: 6})
	if err != nil {
		log.Fatal(err)
	}
}

type hostile struct{}

func (hostile) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "hostile"
}

func (hostile) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (hostile) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (hostile) Resources(context.Context) []func() resource.Resource { return nil }

func (hostile) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return attempt{} }}
}

// attempt is hostile_attempt.
type attempt struct{}

type model struct {
	Name   types.String `tfsdk:"name"`
	Target types.String `tfsdk:"target"`
	Result types.String `tfsdk:"result"`
}

func (attempt) Metadata(_ context.Context, _ datasource.MetadataRequest, r *datasource.MetadataResponse) {
	r.TypeName = "hostile_attempt"
}

func (attempt) Schema(_ context.Context, _ datasource.SchemaRequest, r *datasource.SchemaResponse) {
	r.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"name": schema.StringAttribute{Required: true}, "target": schema.StringAttribute{Optional: true}, "result": schema.StringAttribute{Computed: true},
	}}
}

// Read makes the attempt. Its result begins with "escaped" or "contained".
func (attempt) Read(ctx context.Context, req datasource.ReadRequest, r *datasource.ReadResponse) {
	var m model
	if r.Diagnostics.Append(req.Config.Get(ctx, &m)...); r.Diagnostics.HasError() {
		return
	}
	switch m.Name.ValueString() {
	case "answer with 1 GiB":
		m.Result = types.StringValue(strings.Repeat("x", 1<<30))
	case "hang":
		time.Sleep(time.Hour) // whatever the context says
	case "flood the log":
		line := "[ERROR] " + strings.Repeat("x", 1000) + "\n"
		for range 64 << 10 {
			fmt.Fprint(os.Stderr, line)
		}
		m.Result = types.StringValue("contained: it ended")
	default:
		do, ok := attempts[m.Name.ValueString()]
		if !ok {
			r.Diagnostics.AddError("Unknown attempt", m.Name.ValueString())
			return
		}
		m.Result = types.StringValue("escaped")
		if err := do(m.Target.ValueString()); err != nil {
			m.Result = types.StringValue("contained: " + err.Error())
		}
	}
	r.Diagnostics.Append(r.State.Set(ctx, m)...)
}
