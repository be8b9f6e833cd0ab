package simprovider_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
	"github.com/hykube/hykube/tests/simprovider"
)

// wire uses the provider protocol with a provider in this process, as Hykube does with one in another process.
type wire struct {
	t      *testing.T
	server tfprotov6.ProviderServer
	schema *schema.Provider
	cloud  *simcloud.Client
}

type vals = map[string]cty.Value

func newWire(t *testing.T, config vals) *wire {
	t.Helper()
	cloud := harness.NewCloud(t, simcloud.Config{})
	w := &wire{t: t, cloud: cloud.Client, server: serverOf(t)}
	w.schema = schemaOf(t, w.server)
	all := vals{"endpoint": cty.StringVal(cloud.Address)}
	maps.Copy(all, config)
	resp, err := w.server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: encode(t, w.schema.Config.Block, object(w.schema.Config.Block, all))})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, resp.Diagnostics)
	return w
}

func serverOf(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()
	s, err := providerserver.NewProtocol6WithError(simprovider.New("1.2.3")())()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func schemaOf(t *testing.T, s tfprotov6.ProviderServer) *schema.Provider {
	t.Helper()
	resp, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, resp.Diagnostics)
	p, err := schema.FromProto(resp)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func noErrors(t *testing.T, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	for _, d := range diags {
		t.Fatalf("%s: %s: %s", d.Severity, d.Summary, d.Detail)
	}
}

// object adds null attributes and empty blocks for what is not set.
func object(b *schema.Block, set vals) cty.Value {
	all := vals{}
	for _, a := range b.Attributes {
		all[a.Name] = cty.NullVal(a.Type)
	}
	for _, nb := range b.Blocks {
		switch ty := nb.ImpliedType(); nb.Nesting {
		case schema.NestingList:
			all[nb.TypeName] = cty.ListValEmpty(ty.ElementType())
		case schema.NestingSet:
			all[nb.TypeName] = cty.SetValEmpty(ty.ElementType())
		default:
			all[nb.TypeName] = cty.NullVal(ty)
		}
	}
	maps.Copy(all, set)
	return cty.ObjectVal(all)
}

func encode(t *testing.T, b *schema.Block, v cty.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := schema.Encode(v, b.ImpliedType())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// apply plans and applies one change; a nil prior means a create.
func (w *wire) apply(typeName string, prior *cty.Value, set vals) (cty.Value, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	b := w.schema.Resources[typeName].Block
	before := cty.NullVal(b.ImpliedType())
	config := object(b, set)
	if prior != nil {
		before = *prior
	}
	proposed := config
	if prior != nil { // computed values that are not configured stay
		merged := config.AsValueMap()
		for _, a := range b.Attributes {
			if a.Computed && merged[a.Name].IsNull() {
				merged[a.Name] = before.GetAttr(a.Name)
			}
		}
		proposed = cty.ObjectVal(merged)
	}
	plan, err := w.server.PlanResourceChange(w.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: typeName, PriorState: encode(w.t, b, before), ProposedNewState: encode(w.t, b, proposed), Config: encode(w.t, b, config),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	noErrors(w.t, plan.Diagnostics)
	return w.change(typeName, encode(w.t, b, before), plan.PlannedState, encode(w.t, b, config))
}

func (w *wire) destroy(typeName string, prior cty.Value) (cty.Value, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	b := w.schema.Resources[typeName].Block
	null := encode(w.t, b, cty.NullVal(b.ImpliedType()))
	return w.change(typeName, encode(w.t, b, prior), null, null)
}

func (w *wire) change(typeName string, prior, planned, config *tfprotov6.DynamicValue) (cty.Value, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	resp, err := w.server.ApplyResourceChange(w.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: typeName, PriorState: prior, PlannedState: planned, Config: config,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.decode(typeName, resp.NewState), resp.Diagnostics
}

func (w *wire) decode(typeName string, d *tfprotov6.DynamicValue) cty.Value {
	w.t.Helper()
	v, err := schema.Decode(d, w.schema.Resources[typeName].Block.ImpliedType())
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *wire) made(typeName string, set vals) cty.Value {
	w.t.Helper()
	v, diags := w.apply(typeName, nil, set)
	noErrors(w.t, diags)
	return v
}

func (w *wire) read(typeName string, v cty.Value) cty.Value {
	w.t.Helper()
	resp, err := w.server.ReadResource(w.t.Context(), &tfprotov6.ReadResourceRequest{TypeName: typeName, CurrentState: encode(w.t, w.schema.Resources[typeName].Block, v)})
	if err != nil {
		w.t.Fatal(err)
	}
	noErrors(w.t, resp.Diagnostics)
	return w.decode(typeName, resp.NewState)
}

func (w *wire) fault(f simcloud.Fault) {
	w.t.Helper()
	if _, err := w.cloud.Fault(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) count(f simcloud.Filter) int {
	w.t.Helper()
	n, err := w.cloud.CountCalls(w.t.Context(), f)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func str(s string) cty.Value { return cty.StringVal(s) }

// TestProtocol tests the provider without Terraform.
func TestProtocol(t *testing.T) {
	t.Run("a resource lives and dies", func(t *testing.T) {
		w := newWire(t, nil)
		v := w.made("sim_network", vals{"name": str("main")})
		if id := v.GetAttr("id").AsString(); !strings.HasPrefix(id, "net-") {
			t.Errorf("id %q", id)
		}
		if got := w.read("sim_network", v); !got.RawEquals(v) {
			t.Errorf("read after create differs: %#v", got)
		}
		next, diags := w.apply("sim_network", &v, vals{"name": str("other")})
		noErrors(t, diags)
		if next.GetAttr("name").AsString() != "other" || !next.GetAttr("id").RawEquals(v.GetAttr("id")) {
			t.Errorf("after the update: %#v", next)
		}
		gone, diags := w.destroy("sim_network", next)
		noErrors(t, diags)
		if !gone.IsNull() {
			t.Errorf("after the delete: %#v", gone)
		}
		if got := w.read("sim_network", next); !got.IsNull() {
			t.Errorf("a read of what is gone tells %#v", got)
		}
		// The delete of a missing object is not an error.
		if _, diags := w.destroy("sim_network", next); len(diags) > 0 {
			t.Errorf("the second delete: %s", diags[0].Summary)
		}
	})
	t.Run("a create that fails after its first call keeps the object", func(t *testing.T) {
		w := newWire(t, nil)
		w.fault(simcloud.Fault{Kind: "disk", Op: "attach", Status: 500})
		n := w.made("sim_network", vals{"name": str("n")})
		s := w.made("sim_subnet", vals{"name": str("s"), "network_id": n.GetAttr("id"), "cidr": str("10.0.1.0/24")})
		i := w.made("sim_instance", vals{"name": str("i"), "subnet_id": s.GetAttr("id"), "image": str("debian-13")})
		v, diags := w.apply("sim_disk", nil, vals{"name": str("d"), "size_gb": cty.NumberIntVal(5), "instance_id": i.GetAttr("id")})
		if len(diags) == 0 || v.IsNull() || !v.IsWhollyKnown() || !v.GetAttr("instance_id").IsNull() {
			t.Errorf("got %#v and %d diagnostics, want the detached disk and an error", v, len(diags))
		}
	})
	t.Run("a create that is refused keeps nothing", func(t *testing.T) {
		w := newWire(t, nil)
		w.fault(simcloud.Fault{Op: "create", Status: 500, Message: "no room"})
		v, diags := w.apply("sim_network", nil, vals{"name": str("n")})
		if len(diags) != 1 || !v.IsNull() || !strings.Contains(diags[0].Detail, "no room") {
			t.Errorf("got %#v and %v, want nothing and what the cloud said", v, diags)
		}
	})
	t.Run("an error is told at its attribute", func(t *testing.T) {
		w := newWire(t, nil)
		_, diags := w.apply("sim_subnet", nil, vals{"name": str("s"), "network_id": str("net-0"), "cidr": str("10.0.1.0/24")})
		if len(diags) != 1 || diags[0].Attribute == nil || diags[0].Attribute.String() != `AttributeName("network_id")` {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("throttling is waited out, and the cloud says how long", func(t *testing.T) {
		w := newWire(t, vals{"max_retries": cty.NumberIntVal(0)})
		w.fault(simcloud.Fault{Kind: "network", Op: "create", Status: 429, RetryAfter: millis(150), Count: 2})
		start := time.Now()
		w.made("sim_network", vals{"name": str("n")})
		if took := time.Since(start); took < 300*time.Millisecond {
			t.Errorf("took %s, want at least twice the 150ms that the cloud asked for", took)
		}
		if n := w.count(simcloud.Filter{Op: "create"}); n != 3 {
			t.Errorf("%d creates, want 3", n)
		}
	})
	t.Run("what may be repeated is, up to a bound", func(t *testing.T) {
		w := newWire(t, vals{"max_retries": cty.NumberIntVal(2)})
		v := w.made("sim_network", vals{"name": str("n")})
		w.fault(simcloud.Fault{Op: "update", Status: 503, Count: 2})
		v, diags := w.apply("sim_network", &v, vals{"name": str("m")})
		noErrors(t, diags)
		w.fault(simcloud.Fault{Op: "delete", Status: 503})
		if _, diags := w.destroy("sim_network", v); len(diags) != 1 {
			t.Errorf("got %v, want an error after the third refusal", diags)
		}
		if n := w.count(simcloud.Filter{Op: "delete"}); n != 3 {
			t.Errorf("%d deletes, want 3", n)
		}
	})
	t.Run("a timeout ends the wait and keeps the object", func(t *testing.T) {
		w := newWire(t, nil)
		if err := w.cloud.Change(t.Context(), func(s *simcloud.Settings) {
			s.Provisioning = map[string]simcloud.Duration{"instance": simcloud.Duration(time.Hour)}
		}); err != nil {
			t.Fatal(err)
		}
		n := w.made("sim_network", vals{"name": str("n")})
		s := w.made("sim_subnet", vals{"name": str("s"), "network_id": n.GetAttr("id"), "cidr": str("10.0.1.0/24")})
		timeouts := cty.ObjectVal(vals{"create": str("60ms"), "update": cty.NullVal(cty.String), "delete": cty.NullVal(cty.String)})
		v, diags := w.apply("sim_instance", nil, vals{"name": str("i"), "subnet_id": s.GetAttr("id"), "image": str("debian-13"), "timeouts": timeouts})
		if len(diags) != 1 || v.IsNull() || !strings.Contains(diags[0].Detail, "its timeout of 60ms") {
			t.Errorf("got %#v and %v", v, diags)
		}
	})
}

func TestEveryAttributeHasADescription(t *testing.T) {
	p := schemaOf(t, serverOf(t))
	var walk func(path string, b *schema.Block)
	attrs := func(path string, all []*schema.Attribute) {
		for _, a := range all {
			if a.Description == "" {
				t.Errorf("%s.%s has no description", path, a.Name)
			}
			if a.Nested != nil {
				for _, n := range a.Nested.Attributes {
					if n.Description == "" {
						t.Errorf("%s.%s.%s has no description", path, a.Name, n.Name)
					}
				}
			}
		}
	}
	walk = func(path string, b *schema.Block) {
		if b.Description == "" {
			t.Errorf("%s has no description", path)
		}
		attrs(path, b.Attributes)
		for _, nb := range b.Blocks {
			walk(path+"."+nb.TypeName, nb.Block)
		}
	}
	walk("provider", p.Config.Block)
	for name, s := range p.Resources {
		walk(name, s.Block)
	}
	for prefix, all := range map[string]map[string]*schema.Schema{"data.": p.DataSources, "ephemeral.": p.Ephemerals, "list.": p.ListResources, "action.": p.Actions} {
		if len(all) == 0 {
			t.Errorf("the provider has nothing of the sort %q", prefix)
		}
		for name, s := range all {
			walk(prefix+name, s.Block)
		}
	}
	for name, f := range p.Functions {
		if f.Summary == "" {
			t.Errorf("the function %s is not described", name)
		}
	}
	if len(p.Resources) != 10 {
		t.Errorf("%d resource types, want 10", len(p.Resources))
	}
}

// TestExamplesFitTheSchema finds manifests of examples that do not fit the provider's schema.
func TestExamplesFitTheSchema(t *testing.T) {
	p := schemaOf(t, serverOf(t))
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	seen := map[string]int{}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(b), "\n---\n") {
			var o struct {
				APIVersion, Kind string
				Metadata         struct{ Name, Namespace string }
				Spec             map[string]any
			}
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if o.APIVersion != "sim.hykube.io/v1" {
				continue
			}
			seen[folder]++
			s := schemaOfKind(p, o.Kind)
			if s == nil || o.Metadata.Namespace != folder {
				t.Errorf("%s: %s/%s is of no type of the provider, or not in the namespace %s", file, o.Kind, o.Metadata.Name, folder)
				continue
			}
			for field := range o.Spec {
				if a := s.Block.Attribute(field); s.Block.NestedBlock(field) == nil && (a == nil || !a.Configurable()) {
					t.Errorf("%s: %s/%s: spec.%s can't be set", file, o.Kind, o.Metadata.Name, field)
				}
			}
			missing := slices.DeleteFunc(slices.Clone(s.Block.Attributes), func(a *schema.Attribute) bool { return !a.Required || o.Spec[a.Name] != nil })
			for _, a := range missing {
				t.Errorf("%s: %s/%s: spec.%s is required", file, o.Kind, o.Metadata.Name, a.Name)
			}
		}
	}
	for folder, least := range map[string]int{"first": 8, "replace": 5, "secrets": 2, "lookup": 5, "import": 3, "shared": 1, "tenant": 1} {
		if seen[folder] < least {
			t.Errorf("%d objects of the provider's kinds in examples/%s, want at least %d", seen[folder], folder, least)
		}
	}
}

// schemaOfKind returns the schema of a kind such as "sim-network" or "data-sim-image"; nil if there is none.
func schemaOfKind(p *schema.Provider, kind string) *schema.Schema {
	mode, typeName := v1alpha1.ParseKind(kind)
	return map[v1alpha1.Mode]map[string]*schema.Schema{
		v1alpha1.ModeManaged: p.Resources, v1alpha1.ModeData: p.DataSources, v1alpha1.ModeEphemeral: p.Ephemerals, v1alpha1.ModeAction: p.Actions,
	}[mode][typeName]
}
