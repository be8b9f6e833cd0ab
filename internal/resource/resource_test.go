package resource_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// TestBlocksOfModules makes and decodes the objects of blocks in two instances of a module. They share what is parsed, and
// each refers to the values of its own module.
func TestBlocksOfModules(t *testing.T) {
	w := activitiestest.NewWorld(t)
	known := w.Put("test-thing/a", map[string]any{"uses": "x"}, nil)
	files := map[string][]byte{
		"main.tf": []byte(`module "net" {
  source   = "./net"
  for_each = toset(["eu", "us"])
  x        = upper(each.key)
}`),
		"net.tf": []byte(`variable "x" {}
locals { y = "y-${var.x}" }
resource "test_thing" "B_1" {}
resource "test_thing" "a" {
  count = 2
  uses  = "${var.x}-${test_thing.B_1.id}-${local.y}-${count.index}"
  lifecycle {
    replace_triggered_by = [test_thing.B_1]
    precondition {
      condition     = var.x == "EU"
      error_message = "not in ${var.x}"
    }
  }
}`),
	}
	provider, _ := v1alpha1.ProviderOfGroup(known.Object.GroupVersionKind().Group)
	shop, err := resourceset.NewModule(&v1alpha1.Module{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "shop", UID: "1"},
		Spec: v1alpha1.ModuleSpec{Source: v1alpha1.ModuleSource{ConfigMap: "shop-tf", Items: []v1alpha1.ModuleItem{
			{Key: "main.tf", Path: "main.tf"}, {Key: "net.tf", Path: "net/main.tf"},
		}}},
	}, 1, files, resourceset.Environment{Provider: func(v1alpha1.Mode, string, string) (string, error) { return provider, nil }}, nil)
	if err != nil || shop.Problem != "" {
		t.Fatal(err, shop.Problem)
	}
	x := shop.Expansion
	values := x.Values(func(a lang.Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("b")}), a.Name == "B_1"
	})
	seen := map[types.UID]bool{}
	for key, want := range map[string]string{"eu": "EU-b-y-EU-1", "us": "US-b-y-US-1"} {
		in := x.InstanceAt(fmt.Sprintf("module.shop.module.net[%q]", key))
		set := in.Sets[slices.IndexFunc(in.Sets, func(s *module.Set) bool { return s.Name == "a" })]
		obj := shop.BlockSet(v1alpha1.ObjectReference{Kind: "test-thing", Name: set.AddressOf(1).ObjectName()}).Object(v1alpha1.InstanceKey{Index: 1})
		r, err := resource.Of(obj, w.Catalog)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ref.Set != "shop" || r.Address != set.AddressOf(1) || seen[r.Ref.UID] {
			t.Errorf("set %q, address %s, UID %s", r.Ref.Set, r.Address, r.Ref.UID)
		}
		seen[r.Ref.UID] = true
		parsed := r.Parse()
		if len(parsed.Invalid) > 0 {
			t.Fatal(diag.Describe(parsed.Invalid))
		}
		if b := []lang.Address{{Module: in.Path, Type: "test_thing", Name: "B_1"}}; !slices.Equal(parsed.DependsOn, b) {
			t.Errorf("%s depends on %v, want %v", r.Address, parsed.DependsOn, b)
		}
		at := lang.EvaluationContext{Instance: r.Instance, Module: in.Path}
		v, diags := parsed.Config.With(at).Evaluate(values.Value)
		if diag.HasErrors(diags) || v.GetAttr("uses") != cty.StringVal(want) {
			t.Errorf("%s: %#v %s", r.Address, v, diag.Describe(diags))
		}
		_, err = resource.Holds(r, resource.Preconditions, at, values.Value, cty.NilVal)
		if holds := err == nil; holds != (key == "eu") {
			t.Errorf("%s: the precondition holds: %t, %v", r.Address, holds, err)
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
