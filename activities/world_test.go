package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"
)

// world is all that the activities touch, in memory: objects, configurations, rights, a ledger and one provider, "test".
// What a test does not set is as an honest world would have it.
type world struct {
	*Activities
	t *testing.T

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	configs map[string]*v1alpha1.ProviderConfig
	// data are ConfigMaps and Secrets, by resource, namespace and name.
	data map[string]map[string][]byte
	// forbidden are objects that nobody may read, written as NAMESPACE/RESOURCE/NAME; asked are those that were asked about.
	forbidden map[string]bool
	asked     []string

	// terminating is true while the namespace is being deleted.
	terminating bool

	provider *fake
	lent     int
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, objects: map[string]*unstructured.Unstructured{}, configs: map[string]*v1alpha1.ProviderConfig{},
		data: map[string]map[string][]byte{}, forbidden: map[string]bool{}, provider: newFake(t),
	}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: testSchema()})
	w.Activities = New(Config{
		Objects: fakeObjects{w}, Configs: fakeConfigs{w}, Access: fakeAccess{w}, Catalog: c,
		Ledger: ledger.New(&store{entries: map[string]ledger.Entry{}}), Logger: slog.New(slog.DiscardHandler),
	})
	w.source = func(context.Context, catalog.Entry, provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lent++
		return w.provider, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lent--
		}, nil
	}
	t.Cleanup(func() {
		if w.lent != 0 {
			t.Errorf("%d processes were not given back", w.lent)
		}
	})
	return w
}

// testSchema has one type of everything.
func testSchema() *schema.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	computed := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Computed: true}
	}
	secret := func(a *schema.Attribute) *schema.Attribute {
		a.Sensitive = true
		return a
	}
	writeOnly := func(a *schema.Attribute) *schema.Attribute {
		a.WriteOnly = true
		return a
	}
	of := func(attrs ...*schema.Attribute) *schema.Schema {
		return &schema.Schema{Block: &schema.Block{Attributes: attrs}}
	}
	return &schema.Provider{
		Config:        of(),
		Resources:     map[string]*schema.Schema{"test_thing": of(computed("id"), secret(text("password")), text("uses"))},
		DataSources:   map[string]*schema.Schema{"test_image": of(computed("id"), text("name"), secret(computed("token")))},
		Ephemerals:    map[string]*schema.Schema{"test_token": of(text("audience"), secret(computed("value")))},
		Actions:       map[string]*schema.Schema{"test_reboot": of(writeOnly(text("password")), text("target"))},
		ListResources: map[string]*schema.Schema{"test_thing": of(text("prefix"))},
		Identities: map[string]*schema.Identity{"test_thing": {Attributes: []*schema.IdentityAttribute{
			{Name: "id", Type: cty.String, RequiredForImport: true},
		}}},
		Functions: map[string]*schema.Function{"upper": {Parameters: []*schema.Parameter{{Name: "s", Type: cty.String}}, Return: cty.String}},
	}
}

// put stores an object, written as KIND/NAME or NAMESPACE:KIND/NAME, and reads it as a resource.
func (w *world) put(name string, spec map[string]any, lifecycle map[string]any) *resource {
	w.t.Helper()
	namespace, rest, ok := strings.Cut(name, ":")
	if !ok {
		namespace, rest = "team", name
	}
	kind, objName, _ := strings.Cut(rest, "/")
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.hykube.io/v1", "kind": kind, "spec": spec}}
	if lifecycle != nil {
		obj.Object["lifecycle"] = lifecycle
	}
	obj.SetName(objName)
	obj.SetNamespace(namespace)
	obj.SetUID(types.UID(name))
	obj.SetGeneration(1)
	w.objects[namespace+":"+rest] = obj
	r, err := resourceOf(obj, w.Catalog)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// record writes what the ledger knows of a managed resource.
func (w *world) record(r *resource, attributes string) {
	w.t.Helper()
	rec := &ledger.Instance{Object: r.ref, Provider: "test", State: ledger.State{Type: r.addr.Type, Attributes: []byte(attributes)}}
	if err := w.Ledger.Save(w.t.Context(), rec); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) instance(r *resource) *ledger.Instance {
	w.t.Helper()
	rec, err := w.Ledger.Instance(w.t.Context(), r.ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// config makes a ProviderConfig that is used by default.
func (w *world) config(limits *v1alpha1.Limits) {
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test", Limits: limits}}
	cfg.Name = v1alpha1.DefaultProviderConfig
	w.configs["team/default"] = cfg
}

func (w *world) plan() *v1alpha1.Plan {
	po := &v1alpha1.Plan{}
	po.Name, po.Namespace, po.UID = "p", "team", "plan-1"
	po.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	return po
}

// proposal is the planning of a plan in which some resources were planned already.
func (w *world) proposal(planned map[lang.Address]cty.Value) *proposal {
	pr := &proposal{Activities: w.Activities, plan: w.plan(), forced: map[string]bool{}, expected: map[lang.Address]expected{}}
	for addr, v := range planned {
		pr.expected[addr] = expected{planned: v}
	}
	pr.scope = w.newScope(pr.plan, "team", pr.plannedValue)
	w.t.Cleanup(func() {
		if err := pr.scope.close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return pr
}

// changeOf is an open change of a resource.
func changeOf(r *resource, index int32, dependsOn ...int32) *ledger.Change {
	c := &ledger.Change{}
	c.Index, c.Address, c.Type, c.Object, c.DependsOn = index, r.addr.String(), r.addr.Type, r.ref, dependsOn
	if r.mode != v1alpha1.ModeManaged {
		c.Mode, c.ReadAfter = r.mode, dependsOn
	}
	return c
}

func (w *world) save(c *ledger.Change) {
	w.t.Helper()
	if err := w.Ledger.SaveChange(w.t.Context(), "plan-1", c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stepOf(r *resource, c *ledger.Change) *stepRun {
	return &stepRun{Activities: w.Activities, plan: w.plan(), change: c, resource: r}
}

type fakeObjects struct{ w *world }

func (o fakeObjects) key(ref v1alpha1.ObjectReference) string {
	return ref.Namespace + ":" + ref.Kind + "/" + ref.Name
}

func (o fakeObjects) List(_ context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		o.w.mu.Lock()
		defer o.w.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(o.w.objects)) {
			if obj := o.w.objects[key]; obj.GetNamespace() == namespace && !yield(obj.DeepCopy(), nil) {
				return
			}
		}
	}
}

func (o fakeObjects) Get(_ context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	obj := o.w.objects[o.key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, ErrGone
	}
	return obj.DeepCopy(), nil
}

func (o fakeObjects) Plural(ref v1alpha1.ObjectReference) (string, error) { return ref.Kind + "s", nil }

func (o fakeObjects) UpdateStatus(_ context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	obj := o.w.objects[o.key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return ErrGone
	}
	obj.Object["status"] = change(obj.DeepCopy())
	return nil
}

func (o fakeObjects) Hold(context.Context, *unstructured.Unstructured) error { return nil }

func (o fakeObjects) Release(context.Context, v1alpha1.ObjectReference) error { return nil }

type fakeConfigs struct{ w *world }

func (c fakeConfigs) Get(_ context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	return c.w.configs[namespace+"/"+name], nil
}

func (c fakeConfigs) Leaving(_ context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	if cfg.DeletionTimestamp != nil {
		return fmt.Sprintf("the ProviderConfig %q", cfg.Name), nil
	}
	return "", nil
}

func (c fakeConfigs) Terminating(context.Context, string) (bool, error) { return c.w.terminating, nil }

func (c fakeConfigs) Secret(context.Context, string, string, string) ([]byte, error) {
	return nil, errors.New("not asked for in these tests")
}

func (c fakeConfigs) ConfigMap(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.w.data["configmaps/"+namespace+"/"+name], nil
}

func (c fakeConfigs) ConfigMapNames(_ context.Context, namespace string) ([]string, error) {
	var names []string
	for key := range c.w.data {
		if name, ok := strings.CutPrefix(key, "configmaps/"+namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (c fakeConfigs) SecretData(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.w.data["secrets/"+namespace+"/"+name], nil
}

type fakeAccess struct{ w *world }

func (a fakeAccess) MayUse(_ context.Context, _ v1alpha1.Identity, namespace, name string) (bool, error) {
	return !a.w.forbidden[namespace+"/providerconfigs/"+name], nil
}

func (a fakeAccess) MayRead(_ context.Context, _ v1alpha1.Identity, namespace, _, resource, name string) (bool, error) {
	key := namespace + "/" + resource + "/" + name
	a.w.asked = append(a.w.asked, key)
	return !a.w.forbidden[key], nil
}

// store is a KV in memory.
type store struct {
	mu       sync.Mutex
	entries  map[string]ledger.Entry
	revision int64
}

func (s *store) Get(_ context.Context, key string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return nil, 0, ledger.ErrNotFound
	}
	return e.Value, e.Revision, nil
}

func (s *store) Put(_ context.Context, key string, value []byte, revision int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key].Revision != revision {
		return 0, ledger.ErrConflict
	}
	s.revision++
	s.entries[key] = ledger.Entry{Key: key, Value: slices.Clone(value), Revision: s.revision}
	return s.revision, nil
}

func (s *store) Delete(_ context.Context, key string, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && e.Revision != revision {
		return ledger.ErrConflict
	}
	delete(s.entries, key)
	return nil
}

func (s *store) List(_ context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ledger.Entry
	for key, e := range s.entries {
		if strings.HasPrefix(key, prefix) && key > after {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out[:min(len(out), limit)], nil
}

// fake is a provider of testSchema. It writes down what it is asked for.
type fake struct {
	tfprotov6.ProviderServer
	t      *testing.T
	schema *schema.Provider

	mu    sync.Mutex
	calls []string
	// fails are the answers to the calls that shall fail, by what is written down of them.
	fails map[string][]*tfprotov6.Diagnostic
	// deferred are the calls that the provider puts off.
	deferred map[string]bool
	// while is called in the middle of an invocation.
	while func()
	// lost ends an invocation without an answer, and broken with an error of its stream.
	lost, broken bool
	// things are what can be listed, by ID. The list holds all there is to say about the one called "whole".
	things []string
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, schema: testSchema(), fails: map[string][]*tfprotov6.Diagnostic{}, deferred: map[string]bool{}}
}

func (f *fake) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fake) note(format string, args ...any) ([]*tfprotov6.Diagnostic, *tfprotov6.Deferred) {
	call := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	if f.deferred[call] {
		return nil, &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return f.fails[call], nil
}

func refusal(summary string) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: summary}}
}

// decode reads a configuration as texts.
func (f *fake) decode(d *tfprotov6.DynamicValue, s *schema.Schema) map[string]string {
	v, err := schema.Decode(d, s.Block.ImpliedType())
	if err != nil {
		f.t.Error(err)
		return nil
	}
	out := map[string]string{}
	for name, a := range v.AsValueMap() {
		if a.IsKnown() && !a.IsNull() {
			out[name] = a.AsString()
		}
	}
	return out
}

func (f *fake) encode(ty cty.Type, texts map[string]string) *tfprotov6.DynamicValue {
	vals := map[string]cty.Value{}
	for name, t := range ty.AttributeTypes() {
		vals[name] = cty.NullVal(t)
		if text, ok := texts[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	d, err := schema.Encode(cty.ObjectVal(vals), ty)
	if err != nil {
		f.t.Error(err)
	}
	return d
}

func (f *fake) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (f *fake) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	s := f.schema.DataSources[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.note("read %s", c["name"])
	c["id"], c["token"] = "id-"+c["name"], "token-"+c["name"]
	return &tfprotov6.ReadDataSourceResponse{State: f.encode(s.Block.ImpliedType(), c), Diagnostics: diags, Deferred: deferred}, nil
}

func (f *fake) ValidateEphemeralResourceConfig(context.Context, *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
}

func (f *fake) OpenEphemeralResource(_ context.Context, r *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	s := f.schema.Ephemerals[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.note("open %s", c["audience"])
	c["value"] = "value-for-" + c["audience"]
	return &tfprotov6.OpenEphemeralResourceResponse{
		Result: f.encode(s.Block.ImpliedType(), c), Private: []byte(c["audience"]), Diagnostics: diags, Deferred: deferred,
	}, nil
}

func (f *fake) CloseEphemeralResource(_ context.Context, r *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	diags, _ := f.note("close %s", r.Private)
	return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: diags}, nil
}

func (f *fake) ValidateActionConfig(context.Context, *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	return &tfprotov6.ValidateActionConfigResponse{}, nil
}

func (f *fake) PlanAction(_ context.Context, r *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	diags, deferred := f.note("plan %s", f.decode(r.Config, f.schema.Actions[r.ActionType])["target"])
	return &tfprotov6.PlanActionResponse{Diagnostics: diags, Deferred: deferred}, nil
}

func (f *fake) InvokeAction(_ context.Context, r *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	c := f.decode(r.Config, f.schema.Actions[r.ActionType])
	diags, _ := f.note("invoke %s %s", c["target"], c["password"])
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for _, text := range []string{"half way", "almost"} {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{Message: text}})
		}
		if f.while != nil {
			f.while()
		}
		if f.broken {
			yield(tfprotov6.InvokeActionEvent{Type: struct {
				tfprotov6.InvokeActionEventType
				error
			}{error: errors.New("the stream broke")}})
			return
		}
		if !f.lost {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: diags}})
		}
	}}, nil
}

func (f *fake) CallFunction(_ context.Context, r *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	v, err := schema.Decode(r.Arguments[0], cty.String)
	if err != nil {
		return nil, err
	}
	f.note("call %s", r.Name)
	d, err := schema.Encode(cty.StringVal(strings.ToUpper(v.AsString())), cty.String)
	return &tfprotov6.CallFunctionResponse{Result: d}, err
}

func (f *fake) identity(id string) *tfprotov6.ResourceIdentityData {
	return &tfprotov6.ResourceIdentityData{IdentityData: f.encode(f.schema.Identities["test_thing"].ImpliedType(), map[string]string{"id": id})}
}

func (f *fake) thing(id string) *tfprotov6.DynamicValue {
	return f.encode(f.schema.Resources["test_thing"].Block.ImpliedType(), map[string]string{"id": id, "password": "secret-of-" + id, "uses": "${of " + id + "}"})
}

func (f *fake) ValidateListResourceConfig(context.Context, *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return &tfprotov6.ValidateListResourceConfigResponse{}, nil
}

func (f *fake) ListResource(_ context.Context, r *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	diags, _ := f.note("list %s", f.decode(r.Config, f.schema.ListResources[r.TypeName])["prefix"])
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for _, id := range f.things {
			result := tfprotov6.ListResourceResult{DisplayName: "Thing " + id, Identity: f.identity(id)}
			if r.IncludeResource && id == "whole" {
				result.Resource = f.thing(id)
			}
			if !yield(result) {
				return
			}
		}
		if len(diags) > 0 {
			yield(tfprotov6.ListResourceResult{Diagnostics: diags})
		}
	}}, nil
}

func (f *fake) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	id := r.ID
	if r.Identity != nil {
		v, err := schema.Decode(r.Identity.IdentityData, f.schema.Identities["test_thing"].ImpliedType())
		if err != nil {
			return nil, err
		}
		id = v.GetAttr("id").AsString()
	}
	diags, _ := f.note("import %s", id)
	return &tfprotov6.ImportResourceStateResponse{Diagnostics: diags, ImportedResources: []*tfprotov6.ImportedResource{
		{TypeName: r.TypeName, State: f.thing(id), Identity: f.identity(id)},
	}}, nil
}

func (f *fake) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, NewIdentity: r.CurrentIdentity}, nil
}
