// Package conform5 is a Terraform provider of protocol 5 with the legacy type system, on terraform-plugin-sdk. The SDK
// itself breaks many rules of newer providers; server.go breaks more.
package conform5

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// Address is the provider's source address.
const Address = "registry.terraform.io/hykube/conform5"

func honest() *schema.Provider {
	return &schema.Provider{
		Schema: map[string]*schema.Schema{"directory": {Type: schema.TypeString, Optional: true}},
		ResourcesMap: map[string]*schema.Resource{
			"conform5_thing": thing(),
		},
		DataSourcesMap: map[string]*schema.Resource{"conform5_lookup": lookup()},
		ConfigureContextFunc: func(_ context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
			c, err := cloud.Open(cmp.Or(d.Get("directory").(string), os.Getenv(cloud.DirectoryEnv)))
			if err != nil {
				return nil, diag.FromErr(err)
			}
			return c, nil
		},
	}
}

func thing() *schema.Resource {
	upper := func(v any) string { return strings.ToUpper(v.(string)) }
	return &schema.Resource{
		SchemaVersion: 1,
		StateUpgraders: []schema.StateUpgrader{{
			Version: 0, Type: thingSchemaV0().CoreConfigSchema().ImpliedType(),
			Upgrade: func(_ context.Context, raw map[string]any, _ any) (map[string]any, error) {
				raw["note"] = raw["remark"]
				delete(raw, "remark")
				return raw, nil
			},
		}},
		Schema: map[string]*schema.Schema{
			"name":      {Type: schema.TypeString, Required: true},
			"behaviour": {Type: schema.TypeString, Optional: true},
			"note":      {Type: schema.TypeString, Optional: true},
			"shout":     {Type: schema.TypeString, Optional: true, StateFunc: upper, Description: "Kept in capitals, whatever the configuration says."},
			"level":     {Type: schema.TypeString, Optional: true, Default: "info", Description: "Has a default although it is not computed."},
			"address": {Type: schema.TypeString, Optional: true, Description: "Differences in case are none.",
				DiffSuppressFunc: func(_, old, anew string, _ *schema.ResourceData) bool { return strings.EqualFold(old, anew) }},
			"zone":     {Type: schema.TypeString, Optional: true, ForceNew: true},
			"size":     {Type: schema.TypeInt, Optional: true, Computed: true},
			"serial":   {Type: schema.TypeString, Computed: true},
			"flag":     {Type: schema.TypeBool, Optional: true},
			"ratio":    {Type: schema.TypeFloat, Optional: true},
			"password": {Type: schema.TypeString, Optional: true, Sensitive: true},
			"token":    {Type: schema.TypeString, Optional: true, WriteOnly: true},
			"tags":     {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"bag":      {Type: schema.TypeSet, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"rule": {Type: schema.TypeList, Optional: true, Elem: &schema.Resource{Schema: map[string]*schema.Schema{
				"port": {Type: schema.TypeInt, Required: true},
				"id":   {Type: schema.TypeString, Computed: true},
			}}},
			"member": {Type: schema.TypeSet, Optional: true, Elem: &schema.Resource{Schema: map[string]*schema.Schema{
				"key":   {Type: schema.TypeString, Optional: true},
				"value": {Type: schema.TypeString, Optional: true, Default: "member"},
			}}},
		},
		Timeouts: &schema.ResourceTimeout{
			Create: new(10 * time.Minute), Read: new(5 * time.Minute), Update: new(10 * time.Minute), Delete: new(10 * time.Minute),
		},
		CustomizeDiff: func(_ context.Context, d *schema.ResourceDiff, _ any) error {
			if d.Id() != "" && d.HasChange("note") {
				return d.SetNewComputed("serial")
			}
			return nil
		},
		CreateContext: create, ReadContext: read, UpdateContext: update, DeleteContext: remove,
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
	}
}

// thingSchemaV0 is the first version of the type's schema.
func thingSchemaV0() *schema.Resource {
	return &schema.Resource{Schema: map[string]*schema.Schema{
		"name":   {Type: schema.TypeString, Required: true},
		"remark": {Type: schema.TypeString, Optional: true},
	}}
}

func text(d *schema.ResourceData, name string) string { s, _ := d.Get(name).(string); return s }

func object(d *schema.ResourceData) cloud.Object {
	o := cloud.Object{}
	for _, name := range []string{"name", "behaviour", "note", "shout", "level", "address", "zone", "serial"} {
		if s := text(d, name); s != "" {
			o[name] = s
		}
	}
	// If the text did not change, the SDK passes the configured text to an update.
	if s, ok := o["shout"]; ok {
		o["shout"] = strings.ToUpper(s)
	}
	return o
}

// logged returns facts of an operation for the log: its timeout, which the SDK reads only from private data.
func logged(c *cloud.Cloud, d *schema.ResourceData, operation string) error {
	name := text(d, "name")
	if i := strings.LastIndex(d.Id(), "-"); name == "" && i > 0 {
		name = d.Id()[:i] // an import has nothing else
	}
	return c.Log(cloud.Call{RPC: "Timeout", Type: "conform5_thing", Name: name, Action: operation, Detail: d.Timeout(strings.ToLower(operation)).String()})
}

func create(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	c := meta.(*cloud.Cloud)
	b := c.Behaviours(text(d, "name"), text(d, "behaviour"))
	if err := logged(c, d, "Create"); err != nil {
		return diag.FromErr(err)
	}
	id, err := c.Create("conform5_thing", text(d, "name"), object(d))
	if err != nil {
		return diag.FromErr(err)
	}
	d.SetId(id)
	if diags := store(c, d, b, 1); diags.HasError() {
		return diags
	}
	if b.Has("partial-create") {
		return diag.Errorf("Failed on command")
	}
	return nil
}

// store sets the computed values and writes the others to the cloud.
func store(c *cloud.Cloud, d *schema.ResourceData, b cloud.Behaviours, n int) diag.Diagnostics {
	set := map[string]any{"serial": "serial-" + strconv.Itoa(n)}
	if d.Get("size") == 0 {
		set["size"] = 3
	}
	if b.Has("sets-another-note") {
		set["note"] = "another note"
	}
	if rules, ok := d.Get("rule").([]any); ok {
		for i, r := range rules {
			r.(map[string]any)["id"] = "rule-" + strconv.Itoa(i)
		}
		set["rule"] = rules
	}
	for name, v := range set {
		if err := d.Set(name, v); err != nil {
			return diag.FromErr(err)
		}
	}
	return diag.FromErr(c.Put("conform5_thing", d.Id(), object(d)))
}

func read(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	c := meta.(*cloud.Cloud)
	if err := logged(c, d, "Read"); err != nil {
		return diag.FromErr(err)
	}
	o, err := c.Get("conform5_thing", d.Id())
	if err != nil {
		return diag.FromErr(err)
	}
	if o == nil {
		d.SetId("")
		return nil
	}
	for name, v := range o {
		if err := d.Set(name, v); err != nil {
			return diag.FromErr(err)
		}
	}
	return nil
}

func update(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	c := meta.(*cloud.Cloud)
	b := c.Behaviours(text(d, "name"), text(d, "behaviour"))
	if err := logged(c, d, "Update"); err != nil {
		return diag.FromErr(err)
	}
	if diags := store(c, d, b, 2); diags.HasError() {
		return diags
	}
	if b.Has("partial-update") {
		return diag.Errorf("Failed on command")
	}
	if b.Has("failed-update") {
		d.Partial(true) // the provider did nothing
		return diag.Errorf("Failed on command")
	}
	return nil
}

func remove(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	c := meta.(*cloud.Cloud)
	if err := logged(c, d, "Delete"); err != nil {
		return diag.FromErr(err)
	}
	if c.Behaviours(text(d, "name"), text(d, "behaviour")).Has("delete-fails") {
		return diag.Errorf("Failed on command")
	}
	return diag.FromErr(c.Remove("conform5_thing", d.Id()))
}

// lookup is the data source conform5_lookup.
func lookup() *schema.Resource {
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true},
			"note": {Type: schema.TypeString, Computed: true},
		},
		ReadContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			c := meta.(*cloud.Cloud)
			ids, err := c.IDs("conform5_thing")
			if err != nil {
				return diag.FromErr(err)
			}
			for _, id := range ids {
				if o, err := c.Get("conform5_thing", id); err == nil && o["name"] == text(d, "name") {
					d.SetId(id)
					return diag.FromErr(d.Set("note", o["note"]))
				}
			}
			return diag.Errorf("Nothing has that name.")
		},
	}
}
