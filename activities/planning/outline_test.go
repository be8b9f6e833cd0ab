package planning

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applied puts a thing whose infrastructure matches its spec.
func applied(w *activitiestest.World, name string, spec map[string]any) *resource.Resource {
	r := w.Put("test-thing/"+name, spec, nil)
	good := &resource.Status{Generation: 1, Observed: 1, Applied: 1}
	condition.Ready(&good.Conditions, 1, v1alpha1.ReasonApplied, "")
	w.Stored["team:test-thing/"+name].Object["status"] = good.ToMap()
	w.Record(r, `{"id":"`+name+`"}`)
	return r
}

// TestSurveyLoadsWhatThePlanVisits plans a namespace of many objects that refer to one. It counts the objects that are loaded.
func TestSurveyLoadsWhatThePlanVisits(t *testing.T) {
	const leaves = 300
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	applied(w, "hub", map[string]any{})
	for i := range leaves {
		applied(w, fmt.Sprintf("leaf-%03d", i), map[string]any{"uses": "${test_thing.hub.id}"})
	}
	a, po := plannerOf(w), w.Plan()
	settleVersions(t, w)
	counted := &countedObjects{Objects: a.Objects}
	a.Objects = counted
	edit := func(name string) {
		obj := w.Stored["team:test-thing/"+name]
		obj.SetGeneration(obj.GetGeneration() + 1)
		obj.Object["spec"] = map[string]any{"password": "x"}
	}
	for _, step := range []struct {
		reason          string
		edit            string
		loaded, visited int
	}{
		{reason: "only the first user of the ProviderConfig, whose check reports its errors", loaded: 1},
		{reason: "and the changed object", edit: "leaf-150", loaded: 2, visited: 1},
		{reason: "and the changed object; those that refer to it follow only if its id changes", edit: "hub", loaded: 2, visited: 2},
	} {
		if step.edit != "" {
			edit(step.edit)
		}
		counted.reads.Store(0)
		s, err := a.survey(t.Context(), po)
		if err != nil {
			t.Fatal(err)
		}
		loaded := int(counted.reads.Load())
		if diag.HasErrors(s.diags) || loaded != step.loaded || s.stored.visited != step.visited || s.inScope != leaves+1 || s.recorded != leaves+1 {
			t.Errorf("change of %q: loaded %d, visits %d, in scope %d, recorded %d; want %d (%s) and %d; %v",
				step.edit, loaded, s.stored.visited, s.inScope, s.recorded, step.loaded, step.reason, step.visited, s.diags)
		}
	}
}

// countedObjects counts the reads of objects.
type countedObjects struct {
	store.Objects
	reads atomic.Int32
}

func (o *countedObjects) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.reads.Add(1)
	return o.Objects.Get(ctx, ref)
}

// TestSurveyOfTargets compares surveys of plans that leave objects out with those of all objects.
func TestSurveyOfTargets(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	for _, thing := range [][2]string{{"a", ""}, {"b", "a"}, {"c", "b"}, {"d", "a"}, {"e", ""}} {
		spec := map[string]any{}
		if thing[1] != "" {
			spec["uses"] = "${test_thing." + thing[1] + ".id}"
		}
		made := applied(w, thing[0], spec)
		w.Stored["team:test-thing/"+thing[0]].SetLabels(map[string]string{"name": thing[0]})
		if thing[1] != "" {
			rec := w.Instance(made)
			rec.Dependencies = []string{"test_thing." + thing[1]}
			if err := w.Ledger.Save(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Put("test-thing/broken", map[string]any{"uses": "${test_thing.nothing.id}"}, nil)
	for _, spec := range []v1alpha1.PlanSpec{
		{Targets: []string{"test_thing.b"}}, {Targets: []string{"test_thing.c"}, Exclude: []string{"test_thing.a"}}, {Targets: []string{"test_thing.x"}},
		{Destroy: true, Targets: []string{"test_thing.a"}}, {Exclude: []string{"test_thing.broken"}}, {},
		{Replace: []string{"test_thing.a"}, Exclude: []string{"test_thing.broken", "test_thing.d"}}, {RefreshOnly: true, Exclude: []string{"test_thing.a"}},
		{RefreshOnly: true, ReadBudget: &v1alpha1.ReadBudget{MaxReads: 2}}, {RefreshOnly: true, ReadBudget: &v1alpha1.ReadBudget{MaxReads: 3}, ReadAfter: "test_thing.b"},
		{RefreshOnly: true, ReadBudget: &v1alpha1.ReadBudget{ReadsPerSecond: 5}, Targets: []string{"test_thing.b"}},
	} {
		po := w.Plan()
		po.Spec = spec
		a := plannerOf(w)
		all, got := oracleOf(t, a, po), surveyOf(t, a, po)
		if diff := cmp.Diff(all.severe(), got.severe()); diff != "" {
			t.Errorf("%+v (-all +selected):\n%s", spec, diff)
		}
		if diff := cmp.Diff([]any{all.Counted, all.Changes}, []any{got.Counted, got.Changes}); diff != "" && len(got.Diagnosed) == 0 {
			t.Errorf("%+v (-all +selected):\n%s", spec, diff)
		}
	}
}
