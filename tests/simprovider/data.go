package simprovider

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// dataSource has the common parts of the data sources.
type dataSource struct{ cloud *cloud }

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.cloud, _ = req.ProviderData.(*cloud)
}

func (d *dataSource) ready(diags *diag.Diagnostics) bool {
	return configuredCloud(d.cloud, diags)
}

type networkData struct{ dataSource }

func newNetworkData() datasource.DataSource { return &networkData{} }

func (d *networkData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "sim_network"
}

func (d *networkData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A network that exists, found by its name.",
		Attributes: map[string]schema.Attribute{
			"name":       schema.StringAttribute{Required: true, Description: "Name of the network; only one may have it."},
			"id":         schema.StringAttribute{Computed: true, Description: "Identifier that the cloud gave."},
			"cidr":       schema.StringAttribute{Computed: true, Description: "Address block of the network."},
			"tags":       schema.MapAttribute{Computed: true, ElementType: types.StringType, Description: "Tags, as key and value."},
			"created_at": schema.StringAttribute{Computed: true, Description: "When it was created, in RFC 3339."},
		},
	}
}

func (d *networkData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m networkModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() || !d.ready(&resp.Diagnostics) {
		return
	}
	ctx = withModule(ctx, req.ProviderMeta, &resp.Diagnostics)
	found, err := d.cloud.named(ctx, "networks", m.Name.ValueString())
	switch {
	case err != nil:
		resp.Diagnostics.AddError("Can't read networks", err.Error())
		return
	case len(found) != 1:
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Not exactly one network has this name",
			fmt.Sprintf("%d networks are named %q.", len(found), m.Name.ValueString()))
		return
	}
	m.decode(ctx, found[0], &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

type imageData struct{ dataSource }

func newImageData() datasource.DataSource { return &imageData{} }

func (d *imageData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "sim_image"
}

func (d *imageData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "An image that instances can be made from, found by its name or as the latest of a family.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{stringvalidator.ExactlyOneOf(path.MatchRoot("name"), path.MatchRoot("family"))},
				Description: "Name of the image, as an instance's image wants it. Either it or family is set.",
			},
			"family":      schema.StringAttribute{Optional: true, Computed: true, Description: "Family, such as debian; its latest image is found."},
			"id":          schema.StringAttribute{Computed: true, Description: "Identifier of the image."},
			"min_disk_gb": schema.Int64Attribute{Computed: true, Description: "Smallest disk that the image fits on, in GB."},
		},
	}
}

func (d *imageData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m imageModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() || !d.ready(&resp.Diagnostics) {
		return
	}
	var list struct{ Items []object }
	if err := d.cloud.do(withModule(ctx, req.ProviderMeta, &resp.Diagnostics), http.MethodGet, "/v1/images", nil, &list, repeatable); err != nil {
		resp.Diagnostics.AddError("Can't read images", err.Error())
		return
	}
	// The cloud sorts them by name, so the last one of a family is its latest.
	for _, i := range slices.Backward(list.Items) {
		if m.Name.ValueString() == text(i["name"]) || m.Family.ValueString() == text(i["family"]) {
			m = imageOf(i)
			resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
			return
		}
	}
	at, wanted := path.Root("name"), "the name "+m.Name.String()
	if m.Name.IsNull() {
		at, wanted = path.Root("family"), "the family "+m.Family.String()
	}
	resp.Diagnostics.AddAttributeError(at, "There is no such image", fmt.Sprintf("No image has %s. The data source sim_images lists what there is.", wanted))
}

func imageOf(o object) imageModel {
	return imageModel{ID: stringOf(o["id"]), Name: stringOf(o["name"]), Family: stringOf(o["family"]), MinDiskGB: intOf(o["min_disk_gb"])}
}

type imagesData struct{ dataSource }

type imagesModel struct {
	Family types.String `tfsdk:"family"`
	Images []imageModel `tfsdk:"images"`
}

type imageModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Family    types.String `tfsdk:"family"`
	MinDiskGB types.Int64  `tfsdk:"min_disk_gb"`
}

func newImagesData() datasource.DataSource { return &imagesData{} }

func (d *imagesData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "sim_images"
}

func (d *imagesData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Images that instances can be made from.",
		Attributes: map[string]schema.Attribute{
			"family": schema.StringAttribute{Optional: true, Description: "Only images of this family, such as debian."},
			"images": schema.ListNestedAttribute{
				Computed: true, Description: "The images, by name.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":          schema.StringAttribute{Computed: true, Description: "Identifier of the image."},
					"name":        schema.StringAttribute{Computed: true, Description: "Name, as an instance's image wants it."},
					"family":      schema.StringAttribute{Computed: true, Description: "Family, such as debian."},
					"min_disk_gb": schema.Int64Attribute{Computed: true, Description: "Smallest disk that the image fits on, in GB."},
				}},
			},
		},
	}
}

func (d *imagesData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m imagesModel
	if resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("family"), &m.Family)...); resp.Diagnostics.HasError() || !d.ready(&resp.Diagnostics) {
		return
	}
	var list struct{ Items []object }
	if err := d.cloud.do(ctx, http.MethodGet, "/v1/images", nil, &list, repeatable); err != nil {
		resp.Diagnostics.AddError("Can't read images", err.Error())
		return
	}
	m.Images = []imageModel{}
	for _, i := range list.Items {
		if m.Family.IsNull() || m.Family.ValueString() == text(i["family"]) {
			m.Images = append(m.Images, imageOf(i))
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
