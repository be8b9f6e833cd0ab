package activities

//lint:file-ignore SA1019 a provider of the legacy SDK says so with it

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// scenario is a crashScenario over a provider in which one object can follow another in every way that there is: test_plant and test_weed,
// which a provider of the legacy SDK makes, data sources, ephemeral resources, and what the provider is configured with.
type scenario struct {
	*crashScenario
	backend *scenarioCloud
	kv      *ledgertest.KV
	// born counts the objects, so that each has a UID of its own.
	born int
}

func newScenario(t *testing.T) *scenario {
	// Not NewWorld: a long run makes more of them than the test could keep until it ends.
	w := &activitiestest.World{T: t, Stored: map[string]*unstructured.Unstructured{}, ProviderConfigs: map[string]*v1alpha1.ProviderConfig{}, Data: map[string]map[string][]byte{}}
	tn := &crashScenario{World: w, injector: &crashInjector{}, plans: map[string]*v1alpha1.Plan{}}
	g := &scenario{crashScenario: tn, kv: ledgertest.New(), backend: &scenarioCloud{t: t, injector: tn.injector, things: map[string]map[string]string{}, reads: map[string]int{}}}
	tn.provides = func(conf provider.Configuration) tfprotov6.ProviderServer {
		return scenarioProvider{cloud: g.backend, conf: conf.Config}
	}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: scenarioSchema()})
	w.Sources = &scope.Sources{
		Objects: crashObjects{activitiestest.FakeObjects{World: w}, tn}, Configs: activitiestest.FakeConfigs{World: w}, Access: activitiestest.FakeAccess{World: w}, Catalog: c,
		Ledger: ledger.New(crashStore{g.kv, tn.injector}),
	}
	tn.restart()
	return g
}

// put writes an object as kubectl apply does: a generation is new when something in it is.
func (g *scenario) put(name string, spec, lifecycle m) {
	old := g.Stored["team:"+name]
	if old != nil && sameJSON(old.Object["spec"], spec) && sameJSON(old.Object["lifecycle"], lifecycle) {
		return
	}
	if len(lifecycle) == 0 {
		lifecycle = nil
	}
	g.crashScenario.put(name, spec, lifecycle)
	obj := g.Stored["team:"+name]
	if old == nil {
		g.born++
		obj.SetUID(types.UID(fmt.Sprintf("uid-%d", g.born)))
		obj.SetLabels(map[string]string{"name": obj.GetName()})
	}
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y) || len(x) <= 4 && len(y) <= 4 // null and {}
}

// configure writes a ProviderConfig.
func (g *scenario) configure(name, zone string) {
	raw := runtime.RawExtension{Raw: []byte(`{}`)}
	if zone != "" {
		raw.Raw, _ = json.Marshal(map[string]string{"zone": zone})
	}
	cfg := g.ProviderConfigs["team/"+name]
	if cfg == nil {
		g.born++
		cfg = &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
		cfg.Name, cfg.Namespace, cfg.UID = name, "team", types.UID(fmt.Sprintf("uid-%d", g.born))
		g.ProviderConfigs["team/"+name] = cfg
	}
	if cfg.Spec.Config == nil || string(cfg.Spec.Config.Raw) != string(raw.Raw) {
		cfg.Spec.Config = &raw
		cfg.Generation++
	}
}

// snapshot is all that outlasts a server.
type snapshot struct {
	entries map[string]ledger.Entry
	rev     int64
	objects map[string]*unstructured.Unstructured
	plans   map[string]*v1alpha1.Plan
}

func (g *scenario) save() snapshot {
	k := snapshot{maps.Clone(g.kv.Entries), g.kv.Revision, map[string]*unstructured.Unstructured{}, map[string]*v1alpha1.Plan{}}
	for name, obj := range g.Stored {
		k.objects[name] = obj.DeepCopy()
	}
	for name, po := range g.plans {
		k.plans[name] = po.DeepCopy()
	}
	return k
}

func (g *scenario) restore(k snapshot) {
	g.kv.Entries, g.kv.Revision = maps.Clone(k.entries), k.rev
	clear(g.Stored)
	for name, obj := range k.objects {
		g.Stored[name] = obj.DeepCopy()
	}
	clear(g.plans)
	for name, po := range k.plans {
		g.plans[name] = po.DeepCopy()
	}
	g.restart()
}

// planted is what a plan says of one object, as far as an apply would do something about it.
type planted struct {
	Action                               v1alpha1.Action
	First, Forget, Checks                bool
	State                                v1alpha1.ChangeState
	Import                               *v1alpha1.PlanImport
	From, Config                         string
	Before, After, Unknown, Paths, Drift string
}

// viewed is a plan that was made, and is not applied.
type viewed struct {
	failed bool
	does   map[string]planted
	// visited are all objects that it looked at, and rests those of them that are as they should be.
	visited, rests map[string]bool
	// deps are the objects that a visited one refers to and that are visited, too.
	deps  map[string][]string
	diags diag.Diagnostics
}

// planWith makes a plan.
func (g *scenario) planWith(refresh v1alpha1.RefreshMode) viewed {
	g.T.Helper()
	was := g.spec
	g.spec = v1alpha1.PlanSpec{Refresh: refresh}
	po := g.until(g.newRun(), approving)
	g.spec = was
	v := viewed{failed: po.PlanFailed(), does: map[string]planted{}, visited: map[string]bool{}, rests: map[string]bool{}, deps: map[string][]string{}, diags: po.Status.Diagnostics}
	var names []string
	for c, err := range g.Ledger.Changes(g.T.Context(), po.UID, 0) {
		if err != nil {
			g.T.Fatal(err)
		}
		name := strings.TrimSpace(c.Address + " " + c.Deposed)
		names = append(names, name)
		for _, d := range c.DependsOn {
			v.deps[name] = append(v.deps[name], names[d]) // they come first
		}
		v.visited[name] = true
		if changes.HasNoSteps(c) && c.State != v1alpha1.ChangeSkipped {
			v.rests[name] = true
			continue
		}
		text := func(x any) string {
			raw, err := json.Marshal(x)
			if err != nil {
				g.T.Fatal(err)
			}
			return string(raw)
		}
		v.does[name] = planted{
			c.Action, c.CreateBeforeDestroy, c.Forget, c.Checks, c.State, c.Importing, c.PreviousAddress, c.ProviderConfig,
			text(c.Before), text(c.After), text(c.AfterUnknown), text(c.ReplacePaths), text(c.Drift),
		}
	}
	return v
}

// both makes a default plan and a full one of the same state, in a cloud in which nothing drifted: it says of each thing what is
// recorded of it. What is stored is as before then.
func (g *scenario) both() (changed, all viewed) {
	g.T.Helper()
	before := g.save()
	g.backend.echo = true
	defer func() { g.backend.echo = false }()
	changed = g.planWith(v1alpha1.RefreshChanged)
	g.restore(before)
	all = g.planWith(v1alpha1.RefreshAll)
	g.restore(before)
	return changed, all
}

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
	plant := of(computed("id"), text("name"), text("size"), text("uses"), key, computed("seal"), computed("zone"), computed("etag"))
	return &schema.Provider{
		Config: of(text("zone")), MoveState: true,
		Resources:   map[string]*schema.Schema{"test_plant": plant, "test_weed": plant},
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
	// faults are what comes of the next calls that change something: "refused" (nothing is done), "partial" (some of it is), or empty.
	faults []string
	// echo makes a read say what is recorded.
	echo bool
	// reads counts the reads by name.
	reads map[string]int
	// while is called in the middle of the next change.
	while func()
	// region is the zone of what the provider is configured with no zone for.
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

// scenarioProvider is a provider of scenarioSchema under a configuration: things with a name, which cannot be changed, a size, what they
// use, a seal that is made of a write-only key, the zone that the provider is configured with, and an etag that every change makes anew.
type scenarioProvider struct {
	tfprotov6.ProviderServer
	cloud *scenarioCloud
	conf  cty.Value
}

var plantType = scenarioSchema().Resources["test_plant"].Block.ImpliedType()

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
		return cty.NullVal(plantType)
	}
	vals := map[string]cty.Value{}
	for name := range plantType.AttributeTypes() {
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
	v, err := ctyjson.Unmarshal(r.RawState.JSON, plantType)
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: g.wire(v, plantType)}, nil
}

func (g scenarioProvider) MoveResourceState(_ context.Context, r *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.SourceState.JSON, plantType)
	if err != nil {
		return nil, err
	}
	return &tfprotov6.MoveResourceStateResponse{TargetState: g.wire(v, plantType)}, nil
}

func (g scenarioProvider) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	g.cloud.mu.Lock()
	defer g.cloud.mu.Unlock()
	v := g.value(r.CurrentState, plantType)
	id := v.GetAttr("id").AsString()
	g.cloud.reads[id]++
	if !g.cloud.echo {
		v = g.cloud.shown(id)
	}
	return &tfprotov6.ReadResourceResponse{NewState: g.wire(v, plantType), Private: r.Private}, nil
}

func (g scenarioProvider) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	g.cloud.mu.Lock()
	defer g.cloud.mu.Unlock()
	if g.cloud.things[r.ID] == nil {
		return &tfprotov6.ImportResourceStateResponse{Diagnostics: activitiestest.Refusal("there is no " + r.ID)}, nil
	}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: r.TypeName, State: g.wire(g.cloud.shown(r.ID), plantType)}}}, nil
}

func (g scenarioProvider) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, planned := g.value(r.PriorState, plantType), g.value(r.ProposedNewState, plantType)
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: r.PriorPrivate, PlannedState: r.ProposedNewState, UnsafeToUseLegacyTypeSystem: r.TypeName == "test_weed"}
	if planned.IsNull() {
		return resp, nil
	}
	vals := planned.AsValueMap()
	vals["zone"], vals["seal"] = g.zone(), sealOf(g.value(r.Config, plantType).GetAttr("key"))
	vals["key"] = cty.NullVal(cty.String)
	switch {
	case prior.IsNull():
		vals["id"], vals["etag"] = cty.UnknownVal(cty.String), cty.UnknownVal(cty.String)
	default:
		if !prior.GetAttr("name").RawEquals(vals["name"]) {
			resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
		}
		if !prior.RawEquals(cty.ObjectVal(vals)) && r.TypeName != "test_weed" {
			vals["etag"] = cty.UnknownVal(cty.String)
		}
	}
	resp.PlannedState = g.wire(cty.ObjectVal(vals), plantType)
	return resp, nil
}

func (g scenarioProvider) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if while := g.cloud.while; while != nil {
		g.cloud.while = nil
		while()
	}
	resp := &tfprotov6.ApplyResourceChangeResponse{UnsafeToUseLegacyTypeSystem: r.TypeName == "test_weed"}
	err := g.cloud.injector.does(func() error {
		g.cloud.mu.Lock()
		defer g.cloud.mu.Unlock()
		v, failure := g.cloud.change(r.TypeName, g.value(r.PriorState, plantType), g.value(r.PlannedState, plantType), g.value(r.Config, plantType), g.zone())
		resp.NewState = g.wire(v, plantType)
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

// change does what was planned, or something else, and says what is there then.
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
	if _, sized := thing["size"]; sized && typeName == "test_weed" {
		thing["size"] = strings.TrimSuffix(thing["size"], "!") // it thinks it knows better
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
