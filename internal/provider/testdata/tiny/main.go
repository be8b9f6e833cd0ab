// Command tiny is a provider for the tests of the pool. The environment variable TINY_MODE selects protocol 5 instead
// of 6, or a kind of misbehavior.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
)

func main() {
	switch os.Getenv("TINY_MODE") {
	case "hang":
		fmt.Fprintln(os.Stderr, "waiting for the moon")
		time.Sleep(time.Hour)
	case "crash":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(3)
	case "panic":
		panic("the sky fell down")
	case "garbage":
		fmt.Println("hello, I am not a plugin")
		time.Sleep(time.Hour)
	case "protocol4":
		fmt.Println("1|4|unix|/nowhere|grpc|")
		time.Sleep(time.Hour)
	case "child": // starts a child process that can outlive the provider
		if err := exec.Command("sleep", "3600").Start(); err != nil {
			log.Fatal(err)
		}
	}
	protocol := 6
	if os.Getenv("TINY_MODE") == "protocol5" {
		protocol = 5
	}
	log.Printf("[INFO] starting up")
	err := providerserver.Serve(context.Background(), func() provider.Provider { return tiny{} },
		providerserver.ServeOpts{Address: "example.com/test/tiny", ProtocolVersion: protocol})
	if err != nil {
		log.Fatal(err)
	}
}

type tiny struct{}

type config struct {
	Region types.String `tfsdk:"region"`
	Retry  []retry      `tfsdk:"retry"`
}

type retry struct {
	Times types.Int64 `tfsdk:"times"`
}

func (tiny) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "tiny"
}

func (tiny) Schema(_ context.Context, _ provider.SchemaRequest, r *provider.SchemaResponse) {
	r.Schema = schema.Schema{
		Attributes: map[string]schema.Attribute{"region": schema.StringAttribute{Optional: true}},
		Blocks: map[string]schema.Block{"retry": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{
			Attributes: map[string]schema.Attribute{"times": schema.Int64Attribute{Required: true}},
		}}},
	}
}

func (tiny) Configure(ctx context.Context, req provider.ConfigureRequest, r *provider.ConfigureResponse) {
	var c config
	r.Diagnostics.Append(req.Config.Get(ctx, &c)...)
	switch c.Region.ValueString() {
	case "nowhere":
		r.Diagnostics.AddError("No such region", `There is no region "nowhere".`)
	case "crash":
		panic("that region kills me")
	case "hang":
		time.Sleep(time.Hour)
	}
	r.ResourceData = c.Region.ValueString() + "/" + req.TerraformVersion
}

func (tiny) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &thing{} }, func() resource.Resource { return &host{} }}
}

func (tiny) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return where{} }}
}

// thing is the resource tiny_thing. It exists only in its state.
type thing struct{ configured string }

type model struct {
	ID      types.String `tfsdk:"id"`
	Name    types.String `tfsdk:"name"`
	Where   types.String `tfsdk:"where"`
	Process types.Int64  `tfsdk:"process"`
	Secret  types.String `tfsdk:"secret"`
	Token   types.String `tfsdk:"token"`
}

func (*thing) Metadata(_ context.Context, _ resource.MetadataRequest, r *resource.MetadataResponse) {
	r.TypeName = "tiny_thing"
}

func (*thing) Schema(_ context.Context, _ resource.SchemaRequest, r *resource.SchemaResponse) {
	r.Schema = rschema.Schema{Attributes: map[string]rschema.Attribute{
		"id":      rschema.StringAttribute{Computed: true},
		"name":    rschema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
		"where":   rschema.StringAttribute{Computed: true},
		"process": rschema.Int64Attribute{Computed: true},
		"secret":  rschema.StringAttribute{Optional: true, Sensitive: true},
		"token":   rschema.StringAttribute{Optional: true, WriteOnly: true},
	}}
}

func (t *thing) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	t.configured, _ = req.ProviderData.(string)
}

func (t *thing) Create(ctx context.Context, req resource.CreateRequest, r *resource.CreateResponse) {
	var m, given model
	r.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	r.Diagnostics.Append(req.Config.Get(ctx, &given)...)
	switch m.Name.ValueString() {
	case "slow":
		log.Printf("[INFO] creating slowly")
		<-ctx.Done()
		r.Diagnostics.AddWarning("Stopped", "Asked to stop, and did.")
	case "suicide":
		panic(errors.New("create went wrong"))
	}
	tflog.Debug(ctx, "creating in detail")
	tflog.Info(ctx, "creating")
	m.ID = types.StringValue("id-" + m.Name.ValueString() + given.Token.ValueString())
	m.Where = types.StringValue(t.configured)
	m.Process = types.Int64Value(int64(os.Getpid()))
	m.Token = types.StringNull()
	r.Diagnostics.Append(r.Private.SetKey(ctx, "kept", []byte(strconv.Quote(m.Name.ValueString())))...)
	r.Diagnostics.Append(r.State.Set(ctx, m)...)
}

func (t *thing) Read(ctx context.Context, req resource.ReadRequest, r *resource.ReadResponse) {
	kept, diags := req.Private.GetKey(ctx, "kept")
	r.Diagnostics.Append(diags...)
	if len(kept) == 0 {
		r.State.RemoveResource(ctx) // without its private data, the resource does not exist
	}
}

func (t *thing) Update(ctx context.Context, req resource.UpdateRequest, r *resource.UpdateResponse) {
	r.State.Raw = req.Plan.Raw
}

func (t *thing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
