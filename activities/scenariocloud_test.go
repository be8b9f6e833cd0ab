package activities

//lint:file-ignore SA1019 a provider of the legacy SDK sets the field

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func scenarioSchema() *schema.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	computed := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Computed: true}
	}
	of := func(attrs ...*schema.Attribute) *schema.Schema {
		return &schema.Schema{Block: &schema.Block{Attributes: attrs}}
	}
	key := text("key")
	key.WriteOnly = true
	server := of(computed("id"), text("name"), text("size"), text("uses"), key, computed("seal"), computed("zone"), computed("etag"))
	return &schema.Provider{
		Config: of(text("zone")), MoveState: true,
		Resources:   map[string]*schema.Schema{"test_server": server, "test_legacy": server},
		DataSources: map[string]*schema.Schema{"test_image": of(text("of"), computed("text"))},
		Ephemerals:  map[string]*schema.Schema{"test_token": of(text("audience"), computed("value"))},
	}
}

// scenarioCloud is the simulated cloud behind a scenarioProvider.
type scenarioCloud struct {
	t        *testing.T
	injector *crashInjector

	mu     sync.Mutex
	things map[string]map[string]string
	last   int
	// faults are the outcomes of the next changing calls: "refused" (no effect), "partial" (a partial effect), or
	// empty.
	faults []string
	// echo makes a read return the recorded value.
	echo bool
	// reads counts the reads by name.
	reads map[string]int
	// while is called during the next change.
	while func()
	// region is the zone for a configuration without one.
	region string
}

func (s *scenarioCloud) number() string {
	s.last++
	return fmt.Sprint(s.last)
}

func (s *scenarioCloud) fault() string {
	if len(s.faults) == 0 {
		return ""
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

// scenarioProvider is a provider with scenarioSchema and a configuration. Its things have a name, which cannot change,
// a size, the things that they use, a seal from a write-only key, the zone of the configuration, and an etag that every
// change renews.
type scenarioProvider struct {
	tfprotov6.ProviderServer
	cloud *scenarioCloud
	conf  cty.Value
}

var serverType = scenarioSchema().Resources["test_server"].Block.ImpliedType()

func (g scenarioProvider) value(d *tfprotov6.DynamicValue, ty cty.Type) cty.Value {
	v, err := schema.Decode(d, ty)
	if err != nil {
		g.cloud.t.Error(err)
	}
	return v
}

func (g scenarioProvider) wire(v cty.Value, ty cty.Type) *tfprotov6.DynamicValue {
	d, err := schema.Encode(v, ty)
	if err != nil {
		g.cloud.t.Error(err)
	}
	return d
}

func (g scenarioProvider) zone() cty.Value {
	zone := cty.NullVal(cty.String)
	if g.conf != cty.NilVal && !g.conf.IsNull() {
		zone = g.conf.GetAttr("zone")
	}
	if zone.IsNull() && g.cloud.region != "" {
		zone = cty.StringVal(g.cloud.region)
	}
	return zone
}

func sealOf(key cty.Value) cty.Value {
	if !key.IsKnown() {
		return cty.UnknownVal(cty.String)
	}
	if key.IsNull() {
		return cty.NullVal(cty.String)
	}
	h := fnv.New32()
	h.Write([]byte(key.AsString()))
	return cty.StringVal(fmt.Sprintf("seal-%x", h.Sum32()))
}

func (s *scenarioCloud) shown(id string) cty.Value {
	thing := s.things[id]
	if thing == nil {
		return cty.NullVal(serverType)
	}
	vals := map[string]cty.Value{}
	for name := range serverType.AttributeTypes() {
		vals[name] = cty.NullVal(cty.String)
		if text, ok := thing[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	return cty.ObjectVal(vals)
}

func (g scenarioProvider) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (g scenarioProvider) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (g scenarioProvider) ValidateEphemeralResourceConfig(context.Context, *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
}

func (g scenarioProvider) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.RawState.JSON, serverType)
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: g.wire(v, serverType)}, nil
}

func (g scenarioProvider) MoveResourceState(_ context.Context, r *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.SourceState.JSON, serverType)
	if err != nil {
		return nil, err
	}
	return &tfprotov6.MoveResourceStateResponse{TargetState: g.wire(v, serverType)}, nil
}

func (g scenarioProvider) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	g.cloud.mu.Lock()
	defer g.cloud.mu.Unlock()
	v := g.value(r.CurrentState, serverType)
	id := v.GetAttr("id").AsString()
	g.cloud.reads[id]++
	if !g.cloud.echo {
		v = g.cloud.shown(id)
	}
	return &tfprotov6.ReadResourceResponse{NewState: g.wire(v, serverType), Private: r.Private}, nil
}

func (g scenarioProvider) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	g.cloud.mu.Lock()
	defer g.cloud.mu.Unlock()
	if g.cloud.things[r.ID] == nil {
		return &tfprotov6.ImportResourceStateResponse{Diagnostics: activitiestest.Refusal("there is no " + r.ID)}, nil
	}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: r.TypeName, State: g.wire(g.cloud.shown(r.ID), serverType)}}}, nil
}

func (g scenarioProvider) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, planned := g.value(r.PriorState, serverType), g.value(r.ProposedNewState, serverType)
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: r.PriorPrivate, PlannedState: r.ProposedNewState, UnsafeToUseLegacyTypeSystem: r.TypeName == "test_legacy"}
	if planned.IsNull() {
		return resp, nil
	}
	vals := planned.AsValueMap()
	vals["zone"], vals["seal"] = g.zone(), sealOf(g.value(r.Config, serverType).GetAttr("key"))
	vals["key"] = cty.NullVal(cty.String)
	switch {
	case prior.IsNull():
		vals["id"], vals["etag"] = cty.UnknownVal(cty.String), cty.UnknownVal(cty.String)
	default:
		if !prior.GetAttr("name").RawEquals(vals["name"]) {
			resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
		}
		if !prior.RawEquals(cty.ObjectVal(vals)) && r.TypeName != "test_legacy" {
			vals["etag"] = cty.UnknownVal(cty.String)
		}
	}
	resp.PlannedState = g.wire(cty.ObjectVal(vals), serverType)
	return resp, nil
}

func (g scenarioProvider) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if while := g.cloud.while; while != nil {
		g.cloud.while = nil
		while()
	}
	resp := &tfprotov6.ApplyResourceChangeResponse{UnsafeToUseLegacyTypeSystem: r.TypeName == "test_legacy"}
	err := g.cloud.injector.does(func() error {
		g.cloud.mu.Lock()
		defer g.cloud.mu.Unlock()
		v, failure := g.cloud.change(r.TypeName, g.value(r.PriorState, serverType), g.value(r.PlannedState, serverType), g.value(r.Config, serverType), g.zone())
		resp.NewState = g.wire(v, serverType)
		if failure != "" {
			resp.Diagnostics = activitiestest.Refusal(failure)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// change makes the planned change, or another one, and returns the result.
func (s *scenarioCloud) change(typeName string, prior, planned, config, zone cty.Value) (v cty.Value, failure string) {
	verb, id := "create", ""
	if !prior.IsNull() {
		verb, id = "update", prior.GetAttr("id").AsString()
	}
	if planned.IsNull() {
		verb = "delete"
	}
	fault := s.fault()
	if fault == "refused" {
		return prior, "refused"
	}
	if verb == "delete" {
		if fault == "partial" && s.things[id] != nil {
			s.things[id]["size"] = "0"
			return s.shown(id), "it is still there"
		}
		delete(s.things, id)
		return planned, ""
	}
	thing := map[string]string{}
	for name, a := range planned.AsValueMap() {
		if a.IsKnown() && !a.IsNull() {
			thing[name] = a.AsString()
		}
	}
	if fault == "partial" && verb == "update" && s.things[id] != nil {
		old := s.things[id]
		thing = maps.Clone(old)
		if size := planned.GetAttr("size"); !size.IsNull() {
			thing["size"] = size.AsString()
		}
	} else {
		for name, a := range map[string]cty.Value{"zone": zone, "seal": sealOf(config.GetAttr("key"))} {
			if delete(thing, name); !a.IsNull() {
				thing[name] = a.AsString()
			}
		}
	}
	if id == "" {
		id = "id-" + s.number()
	}
	thing["id"], thing["etag"] = id, "e"+s.number()
	if _, sized := thing["size"]; sized && typeName == "test_legacy" {
		thing["size"] = strings.TrimSuffix(thing["size"], "!") // the legacy provider returns another value
	}
	s.things[id] = thing
	if fault == "partial" {
		return s.shown(id), "it is there, but not well"
	}
	return s.shown(id), ""
}

func (g scenarioProvider) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	g.cloud.mu.Lock()
	defer g.cloud.mu.Unlock()
	ty := scenarioSchema().DataSources["test_image"].Block.ImpliedType()
	c := g.value(r.Config, ty)
	text := "nothing"
	if of := c.GetAttr("of"); !of.IsNull() {
		if text = of.AsString(); g.cloud.things[text] != nil {
			text = "size-" + g.cloud.things[text]["size"]
		}
	}
	return &tfprotov6.ReadDataSourceResponse{State: g.wire(cty.ObjectVal(map[string]cty.Value{"of": c.GetAttr("of"), "text": cty.StringVal(text)}), ty)}, nil
}

func (g scenarioProvider) OpenEphemeralResource(_ context.Context, r *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	ty := scenarioSchema().Ephemerals["test_token"].Block.ImpliedType()
	audience := g.value(r.Config, ty).GetAttr("audience")
	value := cty.StringVal("for-nobody")
	if !audience.IsNull() {
		value = cty.StringVal("for-" + audience.AsString())
	}
	return &tfprotov6.OpenEphemeralResourceResponse{Result: g.wire(cty.ObjectVal(map[string]cty.Value{"audience": audience, "value": value}), ty)}, nil
}

func (g scenarioProvider) CloseEphemeralResource(context.Context, *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return &tfprotov6.CloseEphemeralResourceResponse{}, nil
}
