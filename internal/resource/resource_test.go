package resource_test

import (
	"errors"
	"slices"
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

// TestBlocksOfModules decodes objects of blocks in two instances of a module. They share what is parsed, and each refers to
// the values of its own module.
func TestBlocksOfModules(t *testing.T) {
	w := activitiestest.NewWorld(t)
	known := w.Put("test-thing/a", map[string]any{"uses": "x"}, nil)
	for _, name := range []string{`module.shop.module.net["eu"]:a`, `module.shop.module.net["us"]:a[3]`} {
		obj := known.Object.DeepCopy()
		obj.SetName(name)
		obj.Object["instance"] = map[string]any{"set": "shop", "setUID": "1", "template": name[len(name)-1:], "module": "module.root.module.net"}
		obj.Object["spec"] = map[string]any{"uses": "${var.x}-${test_thing.B_1.id}-${local.y}"}
		obj.Object["lifecycle"] = map[string]any{"replaceTriggeredBy": []any{"test_thing.B_1"}, "preconditions": []any{map[string]any{"condition": "${var.ok}", "errorMessage": "no"}}}
		r, err := resource.Of(obj, w.Catalog)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ref.Set != "shop" || r.Address.ObjectName() != name {
			t.Errorf("%s: set %q, address %s", name, r.Ref.Set, r.Address)
		}
		parsed, module := r.Parse(), r.Address.Module
		if len(parsed.Invalid) > 0 {
			t.Fatal(diag.Describe(parsed.Invalid))
		}
		want := []lang.Address{{Module: module, Type: "test_thing", Name: "B_1"}}
		if !slices.Equal(parsed.DependsOn, want) {
			t.Errorf("%s depends on %v, want %v", name, parsed.DependsOn, want)
		}
		values := map[lang.Address]cty.Value{
			{Module: module, Mode: lang.ModeVariable, Name: "x"}:  cty.StringVal(module),
			{Module: module, Mode: lang.ModeVariable, Name: "ok"}: cty.False,
			{Module: module, Mode: lang.ModeLocal, Name: "y"}:     cty.StringVal("y"),
			want[0]: cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("b")}),
		}
		scope := func(a lang.Address) (cty.Value, bool) { v, ok := values[a]; return v, ok }
		at := lang.EvaluationContext{Instance: r.Instance, Module: module}
		v, diags := parsed.Config.With(at).Evaluate(scope)
		if diag.HasErrors(diags) || v.GetAttr("uses") != cty.StringVal(module+"-b-y") {
			t.Errorf("%s: %#v %s", name, v, diag.Describe(diags))
		}
		if _, err := resource.Holds(r, resource.Preconditions, at, scope, cty.NilVal); err == nil {
			t.Errorf("%s: the precondition holds", name)
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
