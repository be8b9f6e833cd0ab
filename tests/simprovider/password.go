package simprovider

import (
	"context"
	"crypto/rand"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type passwordModel struct {
	ID      types.String `tfsdk:"id"`
	Length  types.Int64  `tfsdk:"length"`
	Special types.Bool   `tfsdk:"special"`
	Keepers types.Map    `tfsdk:"keepers"`
	Result  types.String `tfsdk:"result"`
}

// passwordResource is sim_password. The provider generates the value, and the cloud does not have it.
type passwordResource struct{}

func newPassword() resource.Resource { return passwordResource{} }

func (passwordResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "sim_password"
}

func (passwordResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A random password, kept in the state. No call of the cloud is made for it.",
		Attributes: map[string]schema.Attribute{
			"id": idAttribute(),
			"length": schema.Int64Attribute{
				Required: true, Validators: []validator.Int64{int64validator.Between(1, 1024)}, PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
				Description: "Number of characters, from 1 to 1024. Another one replaces the password.",
			},
			"special": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true), PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
				Description: "Whether other characters than letters and digits are used; true when it is not set. Another value replaces the password.",
			},
			"keepers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Map{mapplanmodifier.RequiresReplace()},
				Description: "Values that make a new password when one of them changes.",
			},
			"result": schema.StringAttribute{
				Computed: true, Sensitive: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Description: "The password.",
			},
		},
	}
}

func (passwordResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m passwordModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	result, err := password(int(m.Length.ValueInt64()), m.Special.ValueBool())
	if err != nil {
		resp.Diagnostics.AddError("Can't make a password", err.Error())
		return
	}
	m.ID, m.Result = types.StringValue("pwd-"+rand.Text()), types.StringValue(result)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Read does nothing, because only the state has the value.
func (passwordResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// ImportState takes the password itself as the ID, as random_password does.
func (passwordResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	m := passwordModel{
		ID: types.StringValue("pwd-" + rand.Text()), Length: types.Int64Value(int64(len(req.ID))), Result: types.StringValue(req.ID),
		Special: types.BoolValue(strings.ContainsAny(req.ID, specials)), Keepers: types.MapNull(types.StringType),
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update does nothing, because every change of an argument forces a replace. The framework requires the method.
func (passwordResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m passwordModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (passwordResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// specials are the characters of a password that are neither letters nor digits.
const specials = "!#%&*()-_=+[]{}:?"

func password(length int, special bool) (string, error) {
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if special {
		letters += specials
	}
	out := make([]byte, length)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", err
		}
		out[i] = letters[n.Int64()]
	}
	return string(out), nil
}
