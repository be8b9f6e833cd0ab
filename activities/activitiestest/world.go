// Package activitiestest is an in-memory environment for tests of planning, applying and the packages that they use. It
// holds objects, ProviderConfigs, rights, a ledger and one provider.
package activitiestest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
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

// World holds everything that the activities use, in memory: objects, ProviderConfigs, rights, a ledger and the
// provider "test". By default, each right is granted and each call succeeds.
type World struct {
	*scope.Sources
	T *testing.T

	Mu     sync.Mutex
	Stored map[string]*unstructured.Unstructured
	// Wrote holds the writers of objects that are no resources.
	Wrote           map[store.Written]store.Writers
	ProviderConfigs map[string]*v1alpha1.ProviderConfig
	// ConfigReads is the number of reads of ProviderConfigs.
	ConfigReads int
	// Data holds the data of ConfigMaps and Secrets. Its key is RESOURCE/NAMESPACE/NAME.
	Data map[string]map[string][]byte
	// Forbidden is the set of objects that no user may read or use, as NAMESPACE/RESOURCE/NAME.
	// VERB:NAMESPACE/RESOURCE/NAME forbids another verb. USER!NAMESPACE/RESOURCE/NAME forbids one user. The name *
	// means all objects. Asked records the rights that were checked.
	Forbidden map[string]bool
	Asked     []string

	// Released are the names of the objects whose finalizer was removed.
	Released []string
	// Policies are the PlanPolicies of the namespace "team".
	Policies []v1alpha1.PlanPolicy
	// Terminating is true while the namespace is being deleted.
	Terminating bool

	Provider *FakeProvider
	lent     int
	// Feed feeds the index with the objects.
	Feed *Feed
}

// NewWorld returns a world with the provider "test" and without objects. The test fails if a provider process is not
// released.
func NewWorld(t *testing.T) *World {
	w := &World{
		T: t, Stored: map[string]*unstructured.Unstructured{}, ProviderConfigs: map[string]*v1alpha1.ProviderConfig{},
		Data: map[string]map[string][]byte{}, Forbidden: map[string]bool{}, Provider: newFake(t),
	}
	c := catalog.New(nil)
	// The grant makes the resources more than values; see query.ReachesNothing.
	c.Put(catalog.Entry{Name: "test", Schema: Schema(),
		Package: provider.Package{Grants: contain.Grants{ReadPaths: []string{"/cloud"}}}})
	w.Sources = &scope.Sources{
		Objects: FakeObjects{w}, Configs: FakeConfigs{w}, Access: FakeAccess{w}, Policies: FakePolicies{w}, Catalog: c,
		Processes: ledger.Alone(),
		Ledger:    ledger.New(ledgertest.New()),
		Sessions:  session.NewPool(c, ledger.Alone(), slog.New(slog.DiscardHandler)),
	}
	w.Follow()
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

// Follow replaces the index by an empty one.
func (w *World) Follow() {
	w.Feed = &Feed{World: w}
	w.Sources.Index = index.New(w.Feed, w.Ledger, w.Catalog)
}

// Schema returns a schema with one type of each kind: a resource, a data source, an ephemeral resource, an action and a
// list resource. It also has a function.
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
		Config: of(),
		Resources: map[string]*schema.Schema{"test_thing": of(computed("id"), secret(text("password")),
			text("uses"))},
		DataSources: map[string]*schema.Schema{"test_image": of(computed("id"), text("name"),
			secret(computed("token")))},
		Ephemerals:    map[string]*schema.Schema{"test_token": of(text("audience"), secret(computed("value")))},
		Actions:       map[string]*schema.Schema{"test_reboot": of(writeOnly(text("password")), text("target"))},
		ListResources: map[string]*schema.Schema{"test_thing": of(text("prefix"))},
		Identities: map[string]*schema.Identity{"test_thing": {Attributes: []*schema.IdentityAttribute{
			{Name: "id", Type: cty.String, RequiredForImport: true},
		}}},
		Functions: map[string]*schema.Function{"upper": {Parameters: []*schema.Parameter{{Name: "s", Type: cty.String}},
			Return: cty.String}},
	}
}

// Put stores an object and decodes it as a resource. name is KIND/NAME or NAMESPACE:KIND/NAME; the default namespace is
// "team".
func (w *World) Put(name string, spec map[string]any, lifecycle map[string]any) *resource.Resource {
	w.T.Helper()
	namespace, rest, ok := strings.Cut(name, ":")
	if !ok {
		namespace, rest = "team", name
	}
	kind, objName, _ := strings.Cut(rest, "/")
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.hykube.io/v1", "kind": kind,
		"spec": spec}}
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

// Record saves an instance of a managed resource in the ledger.
func (w *World) Record(r *resource.Resource, attributes string) {
	w.T.Helper()
	rec := &ledger.Instance{Object: r.Ref, Provider: "test",
		State: ledger.State{Type: r.Address.Type, Attributes: []byte(attributes)}}
	if err := w.Ledger.Save(w.T.Context(), rec); err != nil {
		w.T.Fatal(err)
	}
}

// Instance returns the resource's instance in the ledger.
func (w *World) Instance(r *resource.Resource) *ledger.Instance {
	w.T.Helper()
	rec, err := w.Ledger.Instance(w.T.Context(), r.Ref)
	if err != nil {
		w.T.Fatal(err)
	}
	return rec
}

// Config stores the default ProviderConfig of the namespace "team".
func (w *World) Config(limits *v1alpha1.Limits) {
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test", Limits: limits}}
	cfg.Name = v1alpha1.DefaultProviderConfig
	w.ProviderConfigs["team/default"] = cfg
}

// Plan returns a Plan in the namespace "team" that the user ann requested.
func (w *World) Plan() *v1alpha1.Plan {
	po := &v1alpha1.Plan{}
	po.Name, po.Namespace, po.UID = "p", "team", "plan-1"
	po.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	return po
}

// ChangeOf returns an open change of a resource.
func ChangeOf(r *resource.Resource, index int32, dependsOn ...int32) *ledger.Change {
	c := &ledger.Change{}
	c.Index, c.Address, c.Type, c.Object, c.DependsOn = index, r.Address.String(), r.Address.Type, r.Ref, dependsOn
	if r.Mode != v1alpha1.ModeManaged {
		c.Mode, c.ReadAfter = r.Mode, dependsOn
	}
	return c
}

// Save saves a change of the plan that Plan returns.
func (w *World) Save(c *ledger.Change) {
	w.T.Helper()
	if err := w.Ledger.SaveChange(w.T.Context(), "plan-1", c); err != nil {
		w.T.Fatal(err)
	}
}
