package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// cloudSchema has two types that the provider can turn into each other, and a third one with other arguments.
func cloudSchema() *schema.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "id", Type: cty.String, Computed: true}, {Name: "name", Type: cty.String, Required: true}, text("size"), text("uses")}}
	return &schema.Provider{
		Config: &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{text("token"), text("zone")}}}, MoveState: true,
		Resources: map[string]*schema.Schema{"test_thing": {Block: block}, "test_box": {Block: block}, "test_label": {Block: &schema.Block{Attributes: block.Attributes[:2]}}},
		Identities: map[string]*schema.Identity{"test_thing": {Attributes: []*schema.IdentityAttribute{
			{Name: "id", Type: cty.String, RequiredForImport: true}, {Name: "zone", Type: cty.String, OptionalForImport: true},
		}}},
	}
}

// cloud is a provider with its cloud: things with a name, which cannot change, a size, and the things that they use.
type cloud struct {
	tfprotov6.ProviderServer
	t        *testing.T
	injector *crashInjector

	mu     sync.Mutex
	things map[string]map[string]string
	last   int
	// made counts the creates by name.
	made map[string]int
	// faults holds the outcomes of the next creates or deletes of a name. The key is "create x" or "delete x". The
	// outcomes are "refused" (no effect), "broken" (the effect and an error), "throttled", "lost" (no effect and no
	// answer), and "says TEXT" (no effect and an error).
	faults map[string][]string
	log    []string
	// reads counts the reads.
	reads int
	// while is called during the next change.
	while func()
	// zone is in the identity of an import; "" means no identity.
	zone string
	// strict is true if the cloud deletes no thing that another one uses.
	strict bool
}

func (c *cloud) fault(call string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.faults[call]
	if len(next) == 0 {
		return ""
	}
	c.faults[call] = next[1:]
	return next[0]
}

func (c *cloud) type_() cty.Type { return cloudSchema().Resources["test_thing"].Block.ImpliedType() }

func (c *cloud) value(d *tfprotov6.DynamicValue) cty.Value {
	v, err := schema.Decode(d, c.type_())
	if err != nil {
		c.t.Error(err)
	}
	return v
}

func (c *cloud) wire(v cty.Value) *tfprotov6.DynamicValue {
	d, err := schema.Encode(v, c.type_())
	if err != nil {
		c.t.Error(err)
	}
	return d
}

func (c *cloud) shown(id string) cty.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	thing := c.things[id]
	if thing == nil {
		return cty.NullVal(c.type_())
	}
	vals := map[string]cty.Value{"id": cty.StringVal(id)}
	for _, name := range []string{"name", "size", "uses"} {
		vals[name] = cty.NullVal(cty.String)
		if text, ok := thing[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	return cty.ObjectVal(vals)
}

func textsOf(v cty.Value) map[string]string {
	out := map[string]string{}
	for name, a := range v.AsValueMap() {
		if a.IsKnown() && !a.IsNull() && name != "id" {
			out[name] = a.AsString()
		}
	}
	return out
}

// put creates or changes a thing outside of any provider.
func (c *cloud) put(id string, texts map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == "" {
		c.last++
		id = fmt.Sprintf("id-%d", c.last)
		c.made[texts["name"]]++
		c.log = append(c.log, "create "+texts["name"])
	} else {
		c.log = append(c.log, "update "+texts["name"])
	}
	c.things[id] = texts
	return id
}

func (c *cloud) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if thing := c.things[id]; thing != nil {
		c.log = append(c.log, "delete "+thing["name"])
	}
	delete(c.things, id)
}

func (c *cloud) used(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, thing := range c.things {
		if thing["uses"] == id {
			return true
		}
	}
	return false
}

// there lists the things, each as "name size".
func (c *cloud) there() []string {
	out := []string{}
	for _, thing := range c.things {
		out = append(out, strings.TrimSpace(thing["name"]+" "+thing["size"]))
	}
	slices.Sort(out)
	return out
}

func (c *cloud) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (c *cloud) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.RawState.JSON, c.type_())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: c.wire(v)}, nil
}

func (c *cloud) MoveResourceState(_ context.Context, r *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.SourceState.JSON, c.type_())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.MoveResourceStateResponse{TargetState: c.wire(v)}, nil
}

func (c *cloud) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return &tfprotov6.ReadResourceResponse{NewState: c.wire(c.shown(c.value(r.CurrentState).GetAttr("id").AsString())), Private: r.Private}, nil
}

func (c *cloud) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	imported := &tfprotov6.ImportedResource{TypeName: r.TypeName, State: c.wire(c.shown(r.ID))}
	if c.zone != "" {
		v := cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(r.ID), "zone": cty.StringVal(c.zone)})
		identity, err := schema.Encode(v, v.Type())
		if err != nil {
			return nil, err
		}
		imported.Identity = &tfprotov6.ResourceIdentityData{IdentityData: identity}
	}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{imported}}, nil
}

func (c *cloud) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, planned := c.value(r.PriorState), c.value(r.ProposedNewState)
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: r.PriorPrivate}
	vals := planned.AsValueMap()
	switch {
	case prior.IsNull():
		vals["id"] = cty.UnknownVal(cty.String)
	case !prior.GetAttr("name").RawEquals(vals["name"]):
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
	}
	resp.PlannedState = c.wire(cty.ObjectVal(vals))
	return resp, nil
}

func (c *cloud) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	prior, planned := c.value(r.PriorState), c.value(r.PlannedState)
	if while := c.while; while != nil {
		c.while = nil
		while()
	}
	var resp *tfprotov6.ApplyResourceChangeResponse
	err := c.injector.does(func() error {
		resp = c.answer(prior, planned)
		return nil
	})
	if err == nil && resp == nil {
		err = errors.New("the answer was lost")
	}
	return resp, err
}

func (c *cloud) answer(prior, planned cty.Value) *tfprotov6.ApplyResourceChangeResponse {
	failed := func(v cty.Value, summary string) *tfprotov6.ApplyResourceChangeResponse {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(v), Diagnostics: activitiestest.Refusal(summary)}
	}
	id, verb, name := "", "create", ""
	if !prior.IsNull() {
		id, verb, name = prior.GetAttr("id").AsString(), "update", prior.GetAttr("name").AsString()
	}
	if planned.IsNull() {
		verb = "delete"
	} else {
		name = planned.GetAttr("name").AsString()
	}
	fault := c.fault(verb + " " + name)
	switch {
	case fault == "refused":
		return failed(prior, "refused")
	case fault == "throttled":
		return failed(prior, "429 Too Many Requests")
	case fault == "lost":
		return nil
	case strings.HasPrefix(fault, "says "):
		return failed(prior, strings.TrimPrefix(fault, "says "))
	case verb == "delete" && c.strict && c.used(id):
		c.t.Errorf("%s is used, and to be destroyed; calls: %v", name, c.log)
		return failed(prior, "it is used")
	case verb == "delete":
		c.remove(id)
		return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(planned)}
	}
	v := c.shown(c.put(id, textsOf(planned)))
	if fault == "broken" {
		return failed(v, "it is there, but not well")
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(v)}
}
