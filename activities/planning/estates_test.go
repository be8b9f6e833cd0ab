package planning

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// randomEstate is a namespace of random objects and records.
type randomEstate struct {
	*rand.Rand
	w *activitiestest.World
	t *testing.T
	// names are those of the objects, with their kinds.
	names []string
}

// kinds of the objects of a random estate. Most are managed.
var estateKinds = []string{
	"test-thing", "test-thing", "test-thing", "test-thing", "data-test-image", "ephemeral-test-token", "action-test-reboot",
}

// one reports true in one of n cases.
func (e *randomEstate) one(n int) bool { return e.IntN(n) == 0 }

func newRandomEstate(t *testing.T, seed uint64) *randomEstate {
	e := &randomEstate{Rand: rand.New(rand.NewPCG(seed, 1)), w: activitiestest.NewWorld(t), t: t}
	e.w.Config(nil)
	for i := range 2 + e.IntN(9) {
		e.names = append(e.names, fmt.Sprintf("%s/%c", estateKinds[e.IntN(len(estateKinds))], 'a'+i))
	}
	if e.one(4) {
		inner := e.w.ProviderConfigs["team/default"].DeepCopy()
		inner.Name, inner.Spec.Config = "inner", &runtime.RawExtension{Raw: []byte(`{"host": "` + e.reference() + `"}`)}
		e.w.ProviderConfigs["team/inner"] = inner
	}
	for _, name := range e.names {
		e.put(name)
	}
	e.settle()
	for range e.IntN(4) {
		e.edit(e.names[e.IntN(len(e.names))])
	}
	return e
}

// address returns the address of a random object, or rarely of one that does not exist.
func (e *randomEstate) address() string {
	if e.one(60) {
		return "test_thing.nothing"
	}
	kind, name, _ := strings.Cut(e.names[e.IntN(len(e.names))], "/")
	mode, terraformType := v1alpha1.ParseKind(kind)
	return lang.AddressOf(mode, terraformType, name).String()
}

// reference returns an expression that refers to a random object.
func (e *randomEstate) reference() string {
	addr := e.address()
	switch {
	case e.one(6), strings.HasPrefix(addr, "action."):
		return "${timestamp()}"
	case strings.HasPrefix(addr, "ephemeral."):
		return "x" // only some arguments accept it
	}
	return "${" + addr + ".id}"
}

// put adds an object. Its references are mostly to earlier ones, so that cycles are rare.
func (e *randomEstate) put(name string) {
	spec, lifecycle := map[string]any{}, map[string]any{}
	kind, short, _ := strings.Cut(name, "/")
	field := map[string]string{
		"test-thing": "uses", "data-test-image": "name", "ephemeral-test-token": "audience", "action-test-reboot": "target",
	}[kind]
	all, known := e.names, slices.Index(e.names, name)
	if e.names = all[:known]; e.one(12) {
		e.names = all
	}
	if len(e.names) > 0 && e.one(2) {
		spec[field] = e.reference()
	}
	if len(e.names) > 0 && e.one(4) {
		lifecycle["dependsOn"] = []any{e.address()}
	}
	e.names = all
	if kind == "test-thing" {
		if e.one(4) {
			lifecycle["createBeforeDestroy"] = true
		}
		if e.one(6) {
			lifecycle["moved"] = map[string]any{"from": e.address()}
		}
	}
	if e.w.ProviderConfigs["team/inner"] != nil && e.one(3) {
		lifecycle["providerConfig"] = "inner"
	}
	r := e.w.Put(name, spec, lifecycle)
	obj := e.w.Stored["team:"+name]
	obj.SetLabels(map[string]string{"name": short})
	if e.one(3) {
		return // it was never applied
	}
	good := &resource.Status{Generation: 1, Observed: 1, Applied: 1}
	condition.Ready(&good.Conditions, 1, v1alpha1.ReasonApplied, "")
	obj.Object["status"] = good.ToMap()
	state := ledger.State{Type: r.Address.Type, Attributes: []byte(`{"id":"` + short + `"}`)}
	rec := &ledger.Instance{Object: r.Ref, Provider: "test", Mode: r.Mode, Plan: "earlier", State: state}
	rec.Version = "v" + short
	for _, addr := range r.Parse().DependsOn {
		if addr.Mode == "" {
			rec.Dependencies = append(rec.Dependencies, addr.String())
		}
	}
	if r.Mode == v1alpha1.ModeManaged || r.Mode == v1alpha1.ModeData {
		e.save(rec)
	}
}

func (e *randomEstate) save(rec *ledger.Instance) {
	e.t.Helper()
	if err := e.w.Ledger.Save(e.t.Context(), rec); err != nil {
		e.t.Fatal(err)
	}
}

// settle records the present versions of what the objects refer to.
func (e *randomEstate) settle() {
	e.t.Helper()
	all := allOf(e.t, plannerOf(e.w), e.w.Plan())
	for _, n := range all.nodes {
		if n.record.Exists() && !e.one(5) {
			n.record.DependencyVersions = known(all.dependencyVersions(n))
			e.save(n.record)
		}
	}
}

// edit changes an object or its record.
func (e *randomEstate) edit(name string) {
	obj := e.w.Stored["team:"+name]
	if obj == nil {
		return
	}
	r, err := resource.Of(obj, e.w.Catalog)
	if err != nil {
		return
	}
	rec := e.w.Instance(r)
	switch e.IntN(12) {
	case 0, 1:
		obj.SetGeneration(obj.GetGeneration() + 1)
	case 2, 3, 4:
		obj.SetDeletionTimestamp(new(metav1.Now()))
	case 5:
		delete(e.w.Stored, "team:"+name)
	case 6:
		obj.Object["status"] = map[string]any{}
	case 7:
		rec.Tainted = true
	case 8:
		rec.Deposed = append(rec.Deposed, ledger.Deposed{Key: "k", State: rec.State})
	case 9: // an interrupted move
		if from := e.names[e.IntN(len(e.names))]; strings.HasPrefix(from, "test-thing/") && r.Mode == v1alpha1.ModeManaged {
			rec.MovedFrom = types.UID(from)
		}
	case 10:
		if rec.Version = "changed"; e.one(3) {
			rec.Intent = &ledger.Intent{Plan: "other", Action: v1alpha1.ActionUpdate}
		}
	case 11:
		if e.one(4) {
			twin := obj.DeepCopy()
			twin.SetAPIVersion([]string{"best.hykube.io/v1", "absent.hykube.io/v1"}[e.IntN(2)])
			twin.SetUID("twin")
			e.w.Stored["team:0"+name] = twin // the providers sort before "test"
		}
	}
	if rec.Exists() {
		e.save(rec)
	}
}

// spec returns the spec of a random plan.
func (e *randomEstate) spec() (s v1alpha1.PlanSpec) {
	switch e.IntN(6) {
	case 0:
		s.Refresh = v1alpha1.RefreshAll
	case 1:
		s.Destroy = true
	case 2:
		s.RefreshOnly = true
	}
	switch e.IntN(5) {
	case 0:
		s.Targets = []string{e.address(), e.address()}
	case 1:
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}
	}
	if e.one(4) {
		s.Exclude = []string{e.address()}
	}
	if e.one(6) && !s.RefreshOnly && !s.Destroy {
		s.Replace = []string{e.address()}
	}
	if s.RefreshOnly && e.one(3) {
		s.ReadBudget = &v1alpha1.ReadBudget{MaxReads: 2}
	}
	return s
}

// comparable returns the changes of a survey by address, without the numbers of other changes.
func (r *surveyResult) comparable(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, text := range r.Changes {
		c := &ledger.Change{}
		if err := json.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		c.Index, c.DependsOn, c.ReadAfter = 0, nil, nil
		raw, err := json.MarshalIndent(c, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out[c.Address+" "+c.Deposed] = string(raw)
	}
	return out
}

// severe returns the errors, or only those because of which a survey with the index ends early: about ambiguous
// addresses, or else about the plan's spec.
func (r *surveyResult) severe() []string {
	for _, is := range []func(text string) bool{
		func(text string) bool { return strings.Contains(text, summaryAmbiguous) },
		func(text string) bool { return strings.HasPrefix(text, " spec.") },
	} {
		if only := slices.DeleteFunc(slices.Clone(r.Diagnosed), func(text string) bool { return !is(text) }); len(only) > 0 {
			return only
		}
	}
	return r.Diagnosed
}

// TestSurveysOfRandomEstates compares the survey, in pages of different sizes, with that of all objects.
func TestSurveysOfRandomEstates(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 100
	}
	failed, moved, visited := 0, 0, 0
	for seed := range seeds {
		e := newRandomEstate(t, seed)
		if twin, ok := e.w.Catalog.Get("test"); ok {
			twin.Name = "best"
			e.w.Catalog.Put(twin)
		}
		po := e.w.Plan()
		po.Spec = e.spec()
		a := plannerOf(e.w)
		all := oracleOf(t, a, po)
		for _, size := range []int{0, 1, 3} {
			a.PageSize = size
			got := surveyOf(t, a, po)
			where := fmt.Sprintf("seed %d, pages of %d, %+v", seed, size, po.Spec)
			if diff := cmp.Diff(all.severe(), got.severe()); diff != "" {
				t.Errorf("%s (-all +selected):\n%s", where, diff)
				continue
			}
			if failed++; len(got.Diagnosed) > 0 {
				continue
			}
			if diff := cmp.Diff(all.Counted, got.Counted); diff != "" {
				t.Errorf("%s (-all +selected):\n%s", where, diff)
			}
			want, changes := all.comparable(t), got.comparable(t)
			if !got.whole { // Propose adds the dependants
				maps.DeleteFunc(want, func(name, _ string) bool { _, ok := changes[name]; return !ok && all.dependant[name] })
			}
			if diff := cmp.Diff(want, changes); diff != "" {
				t.Errorf("%s (-all +selected):\n%s", where, diff)
			}
			failed--
			visited += len(changes)
			for _, text := range changes {
				if strings.Contains(text, "previousAddress") {
					moved++
				}
			}
		}
		if t.Failed() {
			for name, obj := range e.w.Stored {
				raw, _ := json.Marshal(obj.Object)
				t.Logf("%s %s", name, raw)
			}
			return
		}
	}
	if failed == 0 || moved == 0 || visited == 0 {
		t.Errorf("%d surveys failed, and the others had %d changes, of which %d were moves", failed, visited, moved)
	}
}
