package activities

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/scope"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// scenario is a crashScenario over a provider in which one object can follow another in every way that there is: test_server and test_legacy,
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
	sc := &crashScenario{World: w, injector: &crashInjector{}, plans: map[string]*v1alpha1.Plan{}, compares: true}
	g := &scenario{crashScenario: sc, kv: ledgertest.New(), backend: &scenarioCloud{t: t, injector: sc.injector, things: map[string]map[string]string{}, reads: map[string]int{}}}
	sc.provides = func(conf provider.Configuration) tfprotov6.ProviderServer {
		return scenarioProvider{cloud: g.backend, conf: conf.Config}
	}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: scenarioSchema()})
	w.Sources = &scope.Sources{
		Objects: crashObjects{activitiestest.FakeObjects{World: w}, sc}, Configs: activitiestest.FakeConfigs{World: w}, Access: activitiestest.FakeAccess{World: w},
		Policies: activitiestest.FakePolicies{World: w}, Catalog: c,
		Ledger: ledger.New(crashStore{g.kv, sc.injector}),
	}
	configure(w, "team")
	sc.restart()
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

// plannedChange is what a plan says of one object, as far as an apply would do something about it.
type plannedChange struct {
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
	does   map[string]plannedChange
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
	v := viewed{failed: po.PlanFailed(), does: map[string]plannedChange{}, visited: map[string]bool{}, rests: map[string]bool{}, deps: map[string][]string{}, diags: po.Status.Diagnostics}
	var names []string
	dependsOn := map[string][]int32{}
	for c, err := range g.Ledger.Changes(g.T.Context(), po.UID, 0) {
		if err != nil {
			g.T.Fatal(err)
		}
		name := strings.TrimSpace(c.Address + " " + c.Deposed)
		names = append(names, name)
		dependsOn[name] = c.DependsOn
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
		v.does[name] = plannedChange{
			c.Action, c.CreateBeforeDestroy, c.Forget, c.Checks, c.State, c.Importing, c.PreviousAddress, c.ProviderConfig,
			text(c.Before), text(c.After), text(c.AfterUnknown), text(c.ReplacePaths), text(c.Drift),
		}
	}
	for name, of := range dependsOn {
		for _, d := range of {
			v.deps[name] = append(v.deps[name], names[d])
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
