// Package activitiestest has a world in memory for the tests of planning, applying and their packages: objects, configurations, rights,
// a ledger and one provider.
package activitiestest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// World is all that the activities touch, in memory: objects, configurations, rights, a ledger and one provider, "test".
// What a test does not set is as an honest world would have it.
type World struct {
	*scope.Sources
	T *testing.T

	Mu              sync.Mutex
	Stored          map[string]*unstructured.Unstructured
	ProviderConfigs map[string]*v1alpha1.ProviderConfig
	// Data are ConfigMaps and Secrets, by resource, namespace and name.
	Data map[string]map[string][]byte
	// Forbidden are objects that nobody may read, written as NAMESPACE/RESOURCE/NAME; asked are those that were asked about.
	Forbidden map[string]bool
	Asked     []string

	// Released are the names of the objects that lost their finalizer.
	Released []string
	// Terminating is true while the namespace is being deleted.
	Terminating bool

	Provider *FakeProvider
	lent     int
}

func NewWorld(t *testing.T) *World {
	w := &World{
		T: t, Stored: map[string]*unstructured.Unstructured{}, ProviderConfigs: map[string]*v1alpha1.ProviderConfig{},
		Data: map[string]map[string][]byte{}, Forbidden: map[string]bool{}, Provider: newFake(t),
	}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: Schema()})
	w.Sources = &scope.Sources{
		Objects: FakeObjects{w}, Configs: FakeConfigs{w}, Access: FakeAccess{w}, Catalog: c,
		Ledger: ledger.New(&KV{Entries: map[string]ledger.Entry{}}), Sessions: session.NewPool(c),
	}
	source := func(context.Context, catalog.Entry, provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		w.lent++
		return w.Provider, func() {
			w.Mu.Lock()
			defer w.Mu.Unlock()
			w.lent--
		}, nil
	}
	w.Sessions.Source, w.Sessions.Unconfigured = source, source
	t.Cleanup(func() {
		if w.lent != 0 {
			t.Errorf("%d processes were not given back", w.lent)
		}
	})
	return w
}

// Schema has one type of everything.
func Schema() *schema.Provider {
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

// Put stores an object, written as KIND/NAME or NAMESPACE:KIND/NAME, and reads it as a resource.
func (w *World) Put(name string, spec map[string]any, lifecycle map[string]any) *resource.Resource {
	w.T.Helper()
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
	w.Stored[namespace+":"+rest] = obj
	r, err := resource.Of(obj, w.Catalog)
	if err != nil {
		w.T.Fatal(err)
	}
	return r
}

// Record writes what the ledger knows of a managed resource.
func (w *World) Record(r *resource.Resource, attributes string) {
	w.T.Helper()
	rec := &ledger.Instance{Object: r.Ref, Provider: "test", State: ledger.State{Type: r.Addr.Type, Attributes: []byte(attributes)}}
	if err := w.Ledger.Save(w.T.Context(), rec); err != nil {
		w.T.Fatal(err)
	}
}

func (w *World) Instance(r *resource.Resource) *ledger.Instance {
	w.T.Helper()
	rec, err := w.Ledger.Instance(w.T.Context(), r.Ref)
	if err != nil {
		w.T.Fatal(err)
	}
	return rec
}

// Config makes a ProviderConfig that is used by default.
func (w *World) Config(limits *v1alpha1.Limits) {
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test", Limits: limits}}
	cfg.Name = v1alpha1.DefaultProviderConfig
	w.ProviderConfigs["team/default"] = cfg
}

func (w *World) Plan() *v1alpha1.Plan {
	po := &v1alpha1.Plan{}
	po.Name, po.Namespace, po.UID = "p", "team", "plan-1"
	po.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	return po
}

// ChangeOf is an open change of a resource.
func ChangeOf(r *resource.Resource, index int32, dependsOn ...int32) *ledger.Change {
	c := &ledger.Change{}
	c.Index, c.Address, c.Type, c.Object, c.DependsOn = index, r.Addr.String(), r.Addr.Type, r.Ref, dependsOn
	if r.Mode != v1alpha1.ModeManaged {
		c.Mode, c.ReadAfter = r.Mode, dependsOn
	}
	return c
}

func (w *World) Save(c *ledger.Change) {
	w.T.Helper()
	if err := w.Ledger.SaveChange(w.T.Context(), "plan-1", c); err != nil {
		w.T.Fatal(err)
	}
}

type FakeObjects struct{ World *World }

func (o FakeObjects) Key(ref v1alpha1.ObjectReference) string {
	return ref.Namespace + ":" + ref.Kind + "/" + ref.Name
}

func (o FakeObjects) List(_ context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(o.World.Stored)) {
			if obj := o.World.Stored[key]; obj.GetNamespace() == namespace && !yield(obj.DeepCopy(), nil) {
				return
			}
		}
	}
}

func (o FakeObjects) Get(_ context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, store.ErrGone
	}
	return obj.DeepCopy(), nil
}

func (o FakeObjects) Plural(ref v1alpha1.ObjectReference) (string, error) { return ref.Kind + "s", nil }

func (o FakeObjects) UpdateStatus(_ context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return store.ErrGone
	}
	obj.Object["status"] = change(obj.DeepCopy())
	return nil
}

func (o FakeObjects) Hold(context.Context, *unstructured.Unstructured) error { return nil }

func (o FakeObjects) Release(_ context.Context, ref v1alpha1.ObjectReference) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	o.World.Released = append(o.World.Released, ref.Name)
	return nil
}

type FakeConfigs struct{ World *World }

func (c FakeConfigs) Get(_ context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	return c.World.ProviderConfigs[namespace+"/"+name], nil
}

func (c FakeConfigs) Leaving(_ context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	if cfg.DeletionTimestamp != nil {
		return fmt.Sprintf("the ProviderConfig %q", cfg.Name), nil
	}
	return "", nil
}

func (c FakeConfigs) Terminating(context.Context, string) (bool, error) {
	return c.World.Terminating, nil
}

func (c FakeConfigs) Secret(context.Context, string, string, string) ([]byte, error) {
	return nil, errors.New("not asked for in these tests")
}

func (c FakeConfigs) ConfigMap(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["configmaps/"+namespace+"/"+name], nil
}

func (c FakeConfigs) ConfigMapNames(_ context.Context, namespace string) ([]string, error) {
	var names []string
	for key := range c.World.Data {
		if name, ok := strings.CutPrefix(key, "configmaps/"+namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (c FakeConfigs) SecretData(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["secrets/"+namespace+"/"+name], nil
}

type FakeAccess struct{ World *World }

func (a FakeAccess) MayUse(_ context.Context, _ v1alpha1.Identity, namespace, name string) (bool, error) {
	return !a.World.Forbidden[namespace+"/providerconfigs/"+name], nil
}

func (a FakeAccess) MayRead(_ context.Context, _ v1alpha1.Identity, namespace, _, resource, name string) (bool, error) {
	key := namespace + "/" + resource + "/" + name
	a.World.Asked = append(a.World.Asked, key)
	return !a.World.Forbidden[key], nil
}

// KV is a KV in memory.
type KV struct {
	mu       sync.Mutex
	Entries  map[string]ledger.Entry
	Revision int64
}

func (s *KV) Get(_ context.Context, key string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.Entries[key]
	if !ok {
		return nil, 0, ledger.ErrNotFound
	}
	return e.Value, e.Revision, nil
}

func (s *KV) Put(_ context.Context, key string, value []byte, revision int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Entries[key].Revision != revision {
		return 0, ledger.ErrConflict
	}
	s.Revision++
	s.Entries[key] = ledger.Entry{Key: key, Value: slices.Clone(value), Revision: s.Revision}
	return s.Revision, nil
}

func (s *KV) Delete(_ context.Context, key string, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.Entries[key]; ok && e.Revision != revision {
		return ledger.ErrConflict
	}
	delete(s.Entries, key)
	return nil
}

func (s *KV) List(_ context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ledger.Entry
	for key, e := range s.Entries {
		if strings.HasPrefix(key, prefix) && key > after {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out[:min(len(out), limit)], nil
}

// FakeProvider is a provider of testSchema. It writes down what it is asked for.
type FakeProvider struct {
	tfprotov6.ProviderServer
	t      *testing.T
	schema *schema.Provider

	mu    sync.Mutex
	Calls []string
	// Fails are the answers to the calls that shall fail, by what is written down of them.
	Fails map[string][]*tfprotov6.Diagnostic
	// Deferred are the calls that the provider puts off.
	Deferred map[string]bool
	// While is called in the middle of an invocation.
	While func()
	// Lost ends an invocation without an answer, and broken with an error of its stream.
	Lost, Broken bool
	// Things are what can be listed, by ID. The list holds all there is to say about the one called "whole".
	Things []string
}

func newFake(t *testing.T) *FakeProvider {
	return &FakeProvider{t: t, schema: Schema(), Fails: map[string][]*tfprotov6.Diagnostic{}, Deferred: map[string]bool{}}
}

func (f *FakeProvider) Said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.Calls)
}

func (f *FakeProvider) note(format string, args ...any) ([]*tfprotov6.Diagnostic, *tfprotov6.Deferred) {
	call := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls = append(f.Calls, call)
	if f.Deferred[call] {
		return nil, &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return f.Fails[call], nil
}

func Refusal(summary string) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: summary}}
}

// decode reads a configuration as texts.
func (f *FakeProvider) decode(d *tfprotov6.DynamicValue, s *schema.Schema) map[string]string {
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

func (f *FakeProvider) encode(ty cty.Type, texts map[string]string) *tfprotov6.DynamicValue {
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

func (f *FakeProvider) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (f *FakeProvider) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	s := f.schema.DataSources[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.note("read %s", c["name"])
	c["id"], c["token"] = "id-"+c["name"], "token-"+c["name"]
	return &tfprotov6.ReadDataSourceResponse{State: f.encode(s.Block.ImpliedType(), c), Diagnostics: diags, Deferred: deferred}, nil
}

func (f *FakeProvider) ValidateEphemeralResourceConfig(context.Context, *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
}

func (f *FakeProvider) OpenEphemeralResource(_ context.Context, r *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	s := f.schema.Ephemerals[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.note("open %s", c["audience"])
	c["value"] = "value-for-" + c["audience"]
	return &tfprotov6.OpenEphemeralResourceResponse{
		Result: f.encode(s.Block.ImpliedType(), c), Private: []byte(c["audience"]), Diagnostics: diags, Deferred: deferred,
	}, nil
}

func (f *FakeProvider) CloseEphemeralResource(_ context.Context, r *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	diags, _ := f.note("close %s", r.Private)
	return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: diags}, nil
}

func (f *FakeProvider) ValidateActionConfig(context.Context, *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	return &tfprotov6.ValidateActionConfigResponse{}, nil
}

func (f *FakeProvider) PlanAction(_ context.Context, r *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	diags, deferred := f.note("plan %s", f.decode(r.Config, f.schema.Actions[r.ActionType])["target"])
	return &tfprotov6.PlanActionResponse{Diagnostics: diags, Deferred: deferred}, nil
}

func (f *FakeProvider) InvokeAction(_ context.Context, r *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	c := f.decode(r.Config, f.schema.Actions[r.ActionType])
	diags, _ := f.note("invoke %s %s", c["target"], c["password"])
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for _, text := range []string{"half way", "almost"} {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{Message: text}})
		}
		if f.While != nil {
			f.While()
		}
		if f.Broken {
			yield(tfprotov6.InvokeActionEvent{Type: struct {
				tfprotov6.InvokeActionEventType
				error
			}{error: errors.New("the stream broke")}})
			return
		}
		if !f.Lost {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: diags}})
		}
	}}, nil
}

func (f *FakeProvider) CallFunction(_ context.Context, r *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	v, err := schema.Decode(r.Arguments[0], cty.String)
	if err != nil {
		return nil, err
	}
	f.note("call %s", r.Name)
	d, err := schema.Encode(cty.StringVal(strings.ToUpper(v.AsString())), cty.String)
	return &tfprotov6.CallFunctionResponse{Result: d}, err
}

func (f *FakeProvider) identity(id string) *tfprotov6.ResourceIdentityData {
	return &tfprotov6.ResourceIdentityData{IdentityData: f.encode(f.schema.Identities["test_thing"].ImpliedType(), map[string]string{"id": id})}
}

func (f *FakeProvider) thing(id string) *tfprotov6.DynamicValue {
	return f.encode(f.schema.Resources["test_thing"].Block.ImpliedType(), map[string]string{"id": id, "password": "secret-of-" + id, "uses": "${of " + id + "}"})
}

func (f *FakeProvider) ValidateListResourceConfig(context.Context, *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return &tfprotov6.ValidateListResourceConfigResponse{}, nil
}

func (f *FakeProvider) ListResource(_ context.Context, r *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	diags, _ := f.note("list %s", f.decode(r.Config, f.schema.ListResources[r.TypeName])["prefix"])
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for _, id := range f.Things {
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

func (f *FakeProvider) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
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

func (f *FakeProvider) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, NewIdentity: r.CurrentIdentity}, nil
}

// Done makes the status of an object say that its generation is done.
func (w *World) Done(r *resource.Resource) {
	w.T.Helper()
	s := resource.StatusOf(r.Object)
	s.Ready(r.Ref.Generation, "")
	condition.Ready(&s.Conditions, r.Ref.Generation, v1alpha1.ReasonApplied, "done")
	r.Object.Object["status"] = s.ToMap()
}

// Began writes down that a run was begun; ended says whether its plan has given up on it.
func (w *World) Began(r *resource.Resource, ended bool) {
	w.T.Helper()
	old := ChangeOf(r, 7)
	old.State = v1alpha1.ChangeRunning
	if ended {
		old.State = v1alpha1.ChangeUnknown
	}
	if err := w.Ledger.SaveChange(w.T.Context(), "older", old); err != nil {
		w.T.Fatal(err)
	}
	rec := &ledger.Instance{Object: r.Ref, Mode: v1alpha1.ModeAction, Provider: "test", Plan: "older"}
	rec.Intent = &ledger.Intent{Plan: "older", Change: 7, Action: v1alpha1.ActionInvoke}
	if err := w.Ledger.Save(w.T.Context(), rec); err != nil {
		w.T.Fatal(err)
	}
}

// UnrefinedEquals compares without what is known about unknown values.
func UnrefinedEquals(a, b cty.Value) bool {
	return a.RawEquals(b) || !a.IsKnown() && !b.IsKnown()
}
