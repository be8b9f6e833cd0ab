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

// scenario is a crashScenario with a provider in which one object can depend on another in every way: test_server;
// test_legacy, with the legacy SDK; data sources; ephemeral resources; and the provider's configuration.
type scenario struct {
	*crashScenario
	backend *scenarioCloud
	kv      *ledgertest.KV
	// born counts the objects, so that each gets its own UID.
	born int
}

func newScenario(t *testing.T) *scenario {
	// Do not use NewWorld: a long run makes more worlds than the test could keep until its end.
	w := &activitiestest.World{T: t, Stored: map[string]*unstructured.Unstructured{}, ProviderConfigs: map[string]*v1alpha1.ProviderConfig{}, Data: map[string]map[string][]byte{}}
	sc := &crashScenario{World: w, injector: &crashInjector{}, plans: &storedPlans{byName: map[string]*v1alpha1.Plan{}}, compares: true}
	g := &scenario{crashScenario: sc, kv: ledgertest.New(), backend: &scenarioCloud{t: t, injector: sc.injector, things: map[string]map[string]string{}, reads: map[string]int{}}}
	sc.ledgerKV = crashStore{g.kv, sc.injector, w}
	sc.provides = func(conf provider.Configuration) tfprotov6.ProviderServer {
		return scenarioProvider{cloud: g.backend, conf: conf.Config}
	}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: scenarioSchema()})
	w.Sources = &scope.Sources{
		Objects: crashObjects{activitiestest.FakeObjects{World: w}, sc}, Configs: activitiestest.FakeConfigs{World: w}, Access: activitiestest.FakeAccess{World: w},
		Policies: activitiestest.FakePolicies{World: w}, Catalog: c,
		Processes: ledger.Alone(),
		Ledger:    ledger.New(sc.ledgerKV),
	}
	configure(w, "team")
	sc.restart()
	return g
}

// put writes an object as kubectl apply does. The generation increases only if the object changes.
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

// snapshot is everything that survives a server.
type snapshot struct {
	entries map[string]ledger.Entry
	rev     int64
	objects map[string]*unstructured.Unstructured
	plans   map[string]*v1alpha1.Plan
}

func (g *scenario) save() snapshot {
	k := snapshot{maps.Clone(g.kv.Entries), g.kv.Revision, map[string]*unstructured.Unstructured{}, g.plans.all()}
	for name, obj := range g.Stored {
		k.objects[name] = obj.DeepCopy()
	}
	return k
}

func (g *scenario) restore(k snapshot) {
	g.kv.Entries, g.kv.Revision = maps.Clone(k.entries), k.rev
	clear(g.Stored)
	for name, obj := range k.objects {
		g.Stored[name] = obj.DeepCopy()
	}
	g.plans.restore(k.plans)
	g.restart()
}

// plannedChange is the part of an object's change that an apply would make.
type plannedChange struct {
	Action                               v1alpha1.Action
	First, Forget, Checks                bool
	State                                v1alpha1.ChangeState
	Import                               *v1alpha1.PlanImport
	From, Config                         string
	Before, After, Unknown, Paths, Drift string
}

// viewed is a plan that was made and not applied.
type viewed struct {
	run    *planRun
	failed bool
	does   map[string]plannedChange
	// visited has all visited objects, and rests those without a change.
	visited, rests map[string]bool
	// deps has the visited objects to which a visited object refers.
	deps  map[string][]string
	diags diag.Diagnostics
}

// planWith makes a plan.
func (g *scenario) planWith(refresh v1alpha1.RefreshMode) viewed {
	g.T.Helper()
	was := g.spec
	g.spec = v1alpha1.PlanSpec{Refresh: refresh}
	run := g.newRun()
	po := g.until(run, approving)
	g.spec = was
	v := viewed{run: run, failed: po.PlanFailed(), does: map[string]plannedChange{}, visited: map[string]bool{}, rests: map[string]bool{}, deps: map[string][]string{}, diags: po.Status.Diagnostics}
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

// both makes a default plan and a full plan of the same state, in a cloud without drift. The store is unchanged after
// it.
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
