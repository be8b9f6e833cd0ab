package resource_test

import (
	"errors"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
)

// TestDecoderParsesOnce decodes an object again. Its expressions are parsed anew only when its spec or its lifecycle
// changed.
func TestDecoderParsesOnce(t *testing.T) {
	w := activitiestest.NewWorld(t)
	known := w.Put("test-thing/a", map[string]any{"uses": `${upper("a")}`}, nil)
	parsed := known.Parse()
	d := resource.NewDecoder(w.Catalog, known)
	for what, tc := range map[string]struct {
		change func(map[string]any)
		same   bool
	}{
		"nothing":   {func(map[string]any) {}, true},
		"status":    {func(o map[string]any) { o["status"] = map[string]any{"observedGeneration": int64(1)} }, true},
		"spec":      {func(o map[string]any) { o["spec"] = map[string]any{"uses": `${upper("b")}`} }, false},
		"lifecycle": {func(o map[string]any) { o["lifecycle"] = map[string]any{"dependsOn": []any{"test_thing.b"}} }, false},
	} {
		obj := known.Object.DeepCopy()
		tc.change(obj.Object)
		r, err := d.Decode(obj)
		if err != nil {
			t.Fatal(err)
		}
		if same := r.Parse() == parsed; same != tc.same {
			t.Errorf("%s changed: the expressions are the same: %t, want %t", what, same, tc.same)
		}
	}
}

// TestHoldsNamesAllConditions expects the error to name each condition that is false or cannot be evaluated.
func TestHoldsNamesAllConditions(t *testing.T) {
	w := activitiestest.NewWorld(t)
	condition := func(text string) any { return map[string]any{"condition": text, "errorMessage": "no"} }
	r := w.Put("test-thing/a", nil, map[string]any{"preconditions": []any{
		condition(`${upper("a") == "a"}`), condition(`${test_thing.b.id == "a"}`), condition(`${upper("a") == "A"}`), condition(`${lower("a") == "A"}`),
	}})
	_, err := resource.Holds(r, resource.Preconditions, lang.EvaluationContext{}, func(lang.Address) (cty.Value, bool) { return cty.NilVal, false }, cty.NilVal)
	f, ok := errors.AsType[*diag.Failure](err)
	if !ok || len(f.Diagnostics) != 3 {
		t.Errorf("got %v, want a failure with three diagnostics", err)
	}
}

// TestJudgedGeneration records generations in another order than their numbers, as the hashes of a ResourceSet's instances
// have. The current one stays recorded when the apply of another ends.
func TestJudgedGeneration(t *testing.T) {
	s := &resource.Status{Generation: 5, Observed: 9}
	for _, step := range []struct{ generation, want int64 }{{7, 7}, {5, 5}, {7, 5}, {9, 5}} {
		if s.Ready(step.generation, "m"); s.Observed != step.want {
			t.Errorf("after generation %d: %d, want %d", step.generation, s.Observed, step.want)
		}
	}
}
