package activities

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withoutBriefs hides the briefs of plans, so that each change is read.
type withoutBriefs struct{ ledger.KV }

func (s withoutBriefs) Get(ctx context.Context, key string) ([]byte, int64, error) {
	if strings.HasPrefix(key, "briefs/") {
		return nil, 0, ledger.ErrNotFound
	}
	return s.KV.Get(ctx, key)
}

// compareBriefs fails the test if the briefs of a plan differ from its changes, or if its changes are stale for other reasons
// when each is verified. It does nothing if the server was killed.
func (sc *crashScenario) compareBriefs(po *v1alpha1.Plan) {
	sc.T.Helper()
	if sc.injector.alive() != nil {
		return
	}
	ctx, each := sc.T.Context(), *sc.Sources
	each.Ledger = ledger.New(withoutBriefs{sc.ledgerKV})
	brief, err := changes.Load(ctx, sc.Ledger, po.UID)
	if err != nil {
		sc.T.Fatal(err)
	}
	whole, err := changes.Load(ctx, each.Ledger, po.UID)
	if err != nil {
		sc.T.Fatal(err)
	}
	if diff := cmp.Diff(whole, brief, cmpopts.IgnoreUnexported(changes.Stored{}, changes.StoredChange{}),
		cmpopts.IgnoreFields(changes.StoredChange{}, "Hash"), cmpopts.EquateEmpty()); diff != "" {
		sc.T.Errorf("the briefs of plan %s differ (-changes +briefs)\n%s", po.Name, diff)
	}
	stale := func(src *scope.Sources, w *changes.Stored) []*changes.StaleError {
		found, err := changes.FindStale(ctx, src, po, w)
		if err != nil {
			sc.T.Fatal(err)
		}
		return found
	}
	before := stale(&each, whole)
	fromBriefs := stale(sc.Sources, brief)
	fromEach := stale(&each, whole)
	if sc.stepping > 0 && !cmp.Equal(before, fromEach) {
		return // a step of another plan has written meanwhile
	}
	if diff := cmp.Diff(fromEach, fromBriefs); diff != "" {
		sc.T.Errorf("other changes of plan %s are stale (-verified each +verified groups)\n%s", po.Name, diff)
	}
}

// countedObjects counts the objects that a verification reads.
type countedObjects struct {
	store.Objects
	mu   sync.Mutex
	read []string
}

func (o *countedObjects) GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.mu.Lock()
	o.read = append(o.read, ref.Name)
	o.mu.Unlock()
	return o.Objects.GetSpec(ctx, ref)
}

// TestAlikeChangesAreVerifiedOnce verifies a plan of five resources that differ in their names alone.
func TestAlikeChangesAreVerifiedOnce(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	edit := func(size string) func(*crashScenario) {
		return func(sc *crashScenario) {
			for _, name := range all {
				sc.put("test-thing/"+name, m{"name": name, "size": size}, nil)
			}
		}
	}
	create := edit("1")
	update := func(sc *crashScenario) { create(sc); sc.apply(); edit("2")(sc) }
	destroyC := func(sc *crashScenario) {
		sc.spec = v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test_thing.c"}}
		sc.apply()
	}
	for name, test := range map[string]struct {
		planned, moved func(*crashScenario)
		// read and stale are the names of the objects.
		read, stale []string
	}{
		"creates":   {planned: create, read: []string{"a"}},
		"updates":   {planned: update, read: []string{"a"}},
		"an edit":   {create, func(sc *crashScenario) { sc.put("test-thing/c", m{"name": "c", "size": "3"}, nil) }, []string{"a", "c"}, []string{"c"}},
		"a mark":    {update, func(sc *crashScenario) { sc.delete("test-thing/d") }, []string{"a", "d"}, []string{"d"}},
		"a removal": {create, func(sc *crashScenario) { delete(sc.Stored, "team:test-thing/b") }, []string{"a", "b"}, []string{"b"}},
		"a record":  {update, func(sc *crashScenario) { sc.taint("test-thing/e") }, []string{"a", "e"}, []string{"e"}},
		"a create by another plan": {create, func(sc *crashScenario) {
			sc.spec.Targets = []string{"test_thing.b"}
			sc.apply()
		}, []string{"a", "b"}, []string{"b"}},
		"a destroy by another plan":                           {update, destroyC, []string{"a", "c"}, []string{"c"}},
		"a destroy by another plan, without a ProviderConfig": {func(sc *crashScenario) { sc.takesConfig(false); clear(sc.ProviderConfigs); update(sc) }, destroyC, []string{"a", "c"}, []string{"c"}},
		"the ProviderConfig":                                  {create, func(sc *crashScenario) { configure(sc.World, "team"); sc.Config(nil) }, all, all},
		"the right to all of them, which is lost":             {create, func(sc *crashScenario) { sc.Forbidden["create:team/test-things/c"] = true }, all, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			test.planned(sc)
			run := sc.newRun()
			po := sc.until(run, approving)
			if test.moved != nil {
				test.moved(sc)
			}
			counted := &countedObjects{Objects: sc.Objects}
			sources := *sc.Sources
			sources.Objects = counted
			found, err := changes.Verify(t.Context(), &sources, po)
			if err != nil {
				t.Fatal(err)
			}
			var stale []string
			for _, o := range found.Stale {
				stale = append(stale, strings.TrimPrefix(o.Address, "test_thing."))
			}
			sorted := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff([][]string{test.read, test.stale}, [][]string{counted.read, stale}, sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read, and stale (-want +got)\n%s", diff)
			}
			if len(found.Stale)+found.Left != len(all) {
				t.Errorf("%d stale, %d left", len(found.Stale), found.Left)
			}
			sc.compareBriefs(po)
		})
	}
}

// TestAChangePlannedAgainIsNotApplied stores other planned values of a change after the approval, as a planning activity could
// that did not notice its end. The apply makes the other change, or none.
func TestAChangePlannedAgainIsNotApplied(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for name, phase := range map[string]int{"before it is begun": beginning, "after it is begun": stepping} {
			t.Run(fmt.Sprintf("%s, lane %t", name, lane), func(t *testing.T) {
				sc := newCrashScenario(t)
				sc.lane = lane
				things("a", "b")(sc)
				run := sc.newRun()
				po := sc.until(run, phase)
				first, err := sc.Ledger.Change(t.Context(), po.UID, 0)
				if err != nil {
					t.Fatal(err)
				}
				other, err := sc.Ledger.Change(t.Context(), po.UID, 1)
				if err != nil {
					t.Fatal(err)
				}
				first.Planned = other.Planned
				if err := sc.Ledger.SaveChange(t.Context(), po.UID, first); err != nil {
					t.Fatal(err)
				}
				if phase == beginning {
					if run.begun, err = sc.applier.Begin(t.Context(), run.Plan); err != nil {
						t.Fatal(err)
					}
					run.phase = stepping
				}
				err = sc.advance(run)
				if err == nil || !strings.Contains(err.Error(), "The change of "+first.Address+" was planned again after the approval.") {
					t.Errorf("got %v", err)
				}
				if made := sc.cloud.made[strings.TrimPrefix(first.Address, "test_thing.")]; made > 0 {
					t.Errorf("%s was created: %v", first.Address, sc.cloud.log)
				}
			})
		}
	}
}
