package scope_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// shopFiles is a module with a secret input, a local value that refers to a resource, and repeated blocks.
const shopFiles = `
variable "name" { type = string }
variable "password" {
  type      = string
  sensitive = true
}
variable "short" {
  type    = string
  default = "ok"
  validation {
    condition     = length(var.short) < 5
    error_message = "too long: ${var.short}"
  }
}
locals {
  both   = { id = test_thing.one.id, name = upper(var.name) }
  things = { a = test_thing.one.id, b = "fixed" }
}
resource "test_thing" "one" { uses = var.name }
resource "test_thing" "each" {
  for_each = local.things
  uses     = each.value
}
output "id" { value = test_thing.one.id }
output "password" {
  value     = var.password
  sensitive = true
}
output "hint" { value = substr(nonsensitive(var.password), 0, 1) }
output "short" { value = var.short }
`

// modules finds the Modules of the namespace "team", by their names.
type modules map[string]*resourceset.Module

func (m modules) Set(_ context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error) {
	for _, of := range m {
		if s := of.BlockSet(ref); s.Template == ref.Name && s.Repeats != "" {
			return s, nil
		}
	}
	return nil, nil
}

func (m modules) Module(_ context.Context, namespace, name string) (*resourceset.Module, error) {
	if namespace != "team" {
		return nil, nil
	}
	return m[name], nil
}

// withShop adds the Module "shop" with inputs.
func withShop(t *testing.T, w *activitiestest.World, inputs map[string]string) *resourceset.Module {
	t.Helper()
	return withModule(t, w, "shop", shopFiles, inputs)
}

// withModule adds a Module with inputs.
func withModule(t *testing.T, w *activitiestest.World, name, files string, inputs map[string]string) *resourceset.Module {
	t.Helper()
	obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name + "-uid")}}
	obj.Spec.Source.ConfigMap, obj.Spec.Inputs = "shop-tf", map[string]v1alpha1.JSON{}
	for name, text := range inputs {
		obj.Spec.Inputs[name] = v1alpha1.JSON{Raw: []byte(`"` + text + `"`)}
	}
	shop, err := resourceset.NewModule(obj, 1, map[string][]byte{"main.tf": []byte(files)}, resourceset.Environment{
		Provider: func(v1alpha1.Mode, string, string) (string, error) { return "test", nil },
	}, nil)
	if err != nil || shop.Problem != "" {
		t.Fatal(err, shop.Problem)
	}
	if w.Sources.Sets == nil {
		w.Sources.Sets = modules{}
	}
	w.Sources.Sets.(modules)[name] = shop
	return shop
}

func inShop(mode v1alpha1.Mode, name string) lang.Address {
	return lang.Address{Module: "module.shop", Mode: mode, Name: name}
}

// TestNamedValuesOfModules reads variables, local values and outputs. They follow what a plan has planned so far.
func TestNamedValuesOfModules(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Record(w.Put("test-thing/outside", nil, nil), `{"id":"i-1","password":null,"uses":"eu"}`)
	w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
	shop := withShop(t, w, map[string]string{"name": "${test_thing.outside.uses}", "password": "${secret.db.password}"})
	planned := map[lang.Address]cty.Value{}
	s := w.NewScope(w.Plan(), "team", func(a lang.Address) (cty.Value, bool) { v, ok := planned[a]; return v, ok })
	value := func(a lang.Address) cty.Value {
		t.Helper()
		v, ok, err := s.Value(t.Context(), a)
		if err != nil || !ok {
			t.Fatalf("%s: %t, %v", a, ok, err)
		}
		return v
	}
	if v := value(inShop(lang.ModeVariable, "name")); !v.RawEquals(cty.StringVal("eu")) {
		t.Errorf("var.name is %#v", v)
	}
	if v, _ := value(inShop(lang.ModeVariable, "password")).Unmark(); !v.RawEquals(cty.StringVal("s3cret")) {
		t.Errorf("var.password is %#v", v)
	}
	if v := value(inShop(lang.ModeLocal, "both")); v.GetAttr("id").IsKnown() || !v.GetAttr("name").RawEquals(cty.StringVal("EU")) {
		t.Errorf("local.both before the resource is planned: %#v", v)
	}
	one := lang.Address{Module: "module.shop", Type: "test_thing", Name: "one"}
	planned[one] = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("new"), "password": cty.NullVal(cty.String), "uses": cty.StringVal("eu")})
	for _, a := range []lang.Address{inShop(lang.ModeOutput, "id")} {
		if v := value(a); !v.RawEquals(cty.StringVal("new")) {
			t.Errorf("%s after the resource is planned: %#v", a, v)
		}
	}
	if v := value(inShop(lang.ModeLocal, "both")); !v.GetAttr("id").RawEquals(cty.StringVal("new")) {
		t.Errorf("local.both after the resource is planned: %#v", v)
	}

	// The value of an instance follows, too.
	key := v1alpha1.InstanceKey{Named: true, Name: "a"}
	r, err := resource.Of(shop.BlockSet(v1alpha1.ObjectReference{Kind: "test-thing", Name: "module.shop:each"}).Object(key), w.Catalog)
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.EvaluationContext(t.Context(), r)
	if err != nil || at.Instance == nil || !at.Instance.Value.RawEquals(cty.StringVal("new")) {
		t.Errorf("each.value is %+v, %v", at.Instance, err)
	}
	var through []lang.Address
	for _, ref := range r.Parse().References {
		through = append(through, ref.Address)
	}
	if len(through) != 1 || through[0] != one {
		t.Errorf("%s refers to %v, want the resource behind each.value", r.Address, through)
	}
}

// TestNamedValuesAreReadWithRights reads a Secret and a resource through a variable. The requester needs the rights, and those who wrote
// the Module or its files need them, too: nobody checked what they wrote.
func TestNamedValuesAreReadWithRights(t *testing.T) {
	for reason, tc := range map[string]struct {
		forbidden string
		writers   []v1alpha1.Contributor
		refused   string
		held      bool
	}{
		"all have the rights":             {writers: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}},
		"a writer may not get the Secret": {forbidden: "bob!team/secrets/db", writers: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}, held: true},
		"a writer is not known":           {writers: []v1alpha1.Contributor{{More: true}}, held: true},
		"the requester may not get it":    {forbidden: "team/secrets/db", refused: `may not read "db" of secrets`},
	} {
		w := activitiestest.NewWorld(t)
		w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
		withShop(t, w, map[string]string{"name": "x", "password": "${secret.db.password}"})
		if tc.forbidden != "" {
			w.Forbidden[tc.forbidden] = true
		}
		s := w.NewScope(w.Plan(), "team", nil).WrittenBy(tc.writers)
		v, _, err := s.Value(t.Context(), inShop(lang.ModeVariable, "password"))
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: got %#v, %v; want the refusal %s", reason, v, err, tc.refused)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if _, held := lang.HoldsPassOnly(v); held != tc.held || !v.HasMark(lang.Sensitive) {
			t.Errorf("%s: pass only %t, want %t: %#v", reason, held, tc.held, v)
		}
	}
}

// TestErrorsOfNamedValues expects the errors of a module, with their positions in its files, from whoever refers to its values.
func TestErrorsOfNamedValues(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Record(w.Put("test-thing/outside", nil, nil), `{"id":"i-1","password":null,"uses":"too-long-a-text"}`)
	withShop(t, w, map[string]string{"name": "x", "password": "y", "short": "${test_thing.outside.uses}"})
	s := w.NewScope(w.Plan(), "team", nil)
	_, _, err := s.Value(t.Context(), inShop(lang.ModeVariable, "short"))
	f, ok := errors.AsType[*diag.Failure](err)
	if !ok || !strings.Contains(diag.Describe(f.Diagnostics), "main.tf:11:21: Invalid value for variable: too long: too-long-a-text") {
		t.Errorf("the error is %v: %s", err, diag.Describe(diag.Of(err)))
	}
	gone := lang.Address{Module: "module.gone", Mode: lang.ModeVariable, Name: "x"}
	if _, _, err := s.Value(t.Context(), gone); err == nil || !strings.Contains(err.Error(), `there is no Module "gone"`) {
		t.Errorf("a Module that does not exist: %v", err)
	}
}

// TestOutputsAreReadWithRights reads outputs of a Module for an object outside of it. Who refers to one needs the right to the Module, and
// to a Secret that the value comes from. Those who wrote the files of the Module need it, too, if an output reveals the Secret.
func TestOutputsAreReadWithRights(t *testing.T) {
	by := func(name string) []v1alpha1.Contributor {
		return []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: name}}}
	}
	for reason, tc := range map[string]struct {
		output    string
		forbidden string
		writers   []v1alpha1.Contributor
		files     []v1alpha1.Contributor
		refused   string
	}{
		"all have the rights":                         {output: "password", writers: by("bob"), files: by("eve")},
		"the requester may not get the Module":        {output: "id", forbidden: "team/modules/shop", refused: `may not read "shop" of modules.hykube.io`},
		"the requester may not get the Secret":        {output: "password", forbidden: "team/secrets/db", refused: `may not read "db" of secrets`},
		"a writer of the object may not get it":       {output: "password", forbidden: "bob!team/secrets/db", writers: by("bob"), refused: `the user "bob" may not read "db" of secrets`},
		"a writer of the files may pass it on":        {output: "password", forbidden: "eve!team/secrets/db", files: by("eve")},
		"a writer of the files may not reveal it":     {output: "hint", forbidden: "eve!team/secrets/db", files: by("eve"), refused: "eve"},
		"a writer of the files may reveal an own one": {output: "hint", files: by("eve")},
		"there is no such output":                     {output: "idd", refused: `the Module "shop" has no output "idd". Did you mean "id"?`},
	} {
		w := activitiestest.NewWorld(t)
		w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
		withShop(t, w, map[string]string{"name": "x", "password": "${secret.db.password}"})
		w.Wrote = map[store.Written]store.Writers{
			{Kind: "Module", Namespace: "team", Name: "shop"}:       {Files: "shop-tf"},
			{Kind: "ConfigMap", Namespace: "team", Name: "shop-tf"}: {List: tc.files},
		}
		if tc.forbidden != "" {
			w.Forbidden[tc.forbidden] = true
		}
		s := w.NewScope(w.Plan(), "team", nil).WrittenBy(tc.writers)
		_, _, err := s.Value(t.Context(), lang.OutputOf("", "shop", tc.output))
		if tc.refused == "" && err != nil {
			t.Errorf("%s: %v: %s", reason, err, diag.Describe(diag.Of(err)))
		}
		if tc.refused != "" && (err == nil || !strings.Contains(diag.Describe(diag.Of(err)), tc.refused)) {
			t.Errorf("%s: got %v, want the refusal %s", reason, err, tc.refused)
		}
	}
}

// TestOutputsOfModulesThatReferToEachOther reads an output through another Module, and reports one that depends on itself.
func TestOutputsOfModulesThatReferToEachOther(t *testing.T) {
	w := activitiestest.NewWorld(t)
	const files = `variable "from" {}
output "out" { value = "${var.from}!" }
output "own" { value = "fixed" }`
	withModule(t, w, "a", files, map[string]string{"from": "${module.b.out}"})
	withModule(t, w, "b", files, map[string]string{"from": "${module.a.own}"})
	s := w.NewScope(w.Plan(), "team", nil)
	v, _, err := s.Value(t.Context(), lang.OutputOf("", "a", "out"))
	if err != nil || !v.RawEquals(cty.StringVal("fixed!!")) {
		t.Errorf("module.a.out is %#v, %v", v, err)
	}
	refs := []lang.Reference{{Address: lang.OutputOf("", "a", "out")}}
	version, ok := s.ExternalVersion(t.Context(), refs)
	withModule(t, w, "b", files, map[string]string{"from": "other"})
	if now, known := s.ExternalVersion(t.Context(), refs); !ok || !known || now == version {
		t.Errorf("the version of module.a.out is %q, and %q after a change of module.b", version, now)
	}
	withModule(t, w, "b", files, map[string]string{"from": "${module.a.out}"})
	_, _, err = s.Value(t.Context(), lang.OutputOf("", "a", "out"))
	if err == nil || !strings.Contains(diag.Describe(diag.Of(err)), "The value of module.a.out depends on itself, through module.a.out, module.b.out") {
		t.Errorf("the cycle is %v: %s", err, diag.Describe(diag.Of(err)))
	}
	if _, known := s.ExternalVersion(t.Context(), refs); known {
		t.Error("a cycle has a version")
	}
}

// TestOutputsHaveTheWritersOfTheParts asks who caused an output after an apply ended the entries of the Module. Each user who last wrote
// a part of its spec counts, and not only the last one.
func TestOutputsHaveTheWritersOfTheParts(t *testing.T) {
	w := activitiestest.NewWorld(t)
	withShop(t, w, map[string]string{"name": "x", "password": "y"})
	w.Wrote = map[store.Written]store.Writers{{Kind: "Module", Namespace: "team", Name: "shop"}: {Parts: []v1alpha1.Contributor{
		{Identity: v1alpha1.Identity{Username: "ann"}},
		{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{`inputs["short"]`}},
	}}}
	list, err := w.NewScope(w.Plan(), "team", nil).WritersOf(t.Context(), lang.OutputOf("", "shop", "short"), "")
	if got := strings.Join(contributor.Names(list), " "); err != nil || got != "ann eve" {
		t.Errorf("written by %s, %v; want ann eve", got, err)
	}
}

// TestChecksRevealNoSecrets evaluates a check block whose message has a secret. Those who wrote the files need the right to it, and so
// does the requester.
func TestChecksRevealNoSecrets(t *testing.T) {
	const files = `
variable "password" { sensitive = true }
check "password" {
  assert {
    condition     = nonsensitive(var.password) == "other"
    error_message = "It is ${nonsensitive(var.password)}."
  }
}`
	for forbidden, want := range map[string]string{"": "It is s3cret.", "eve!team/secrets/db": "eve", "team/secrets/db": `may not read "db" of secrets`} {
		w := activitiestest.NewWorld(t)
		w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
		withModule(t, w, "shop", files, map[string]string{"password": "${secret.db.password}"})
		w.Wrote = map[store.Written]store.Writers{
			{Kind: "Module", Namespace: "team", Name: "shop"}:       {Files: "shop-tf"},
			{Kind: "ConfigMap", Namespace: "team", Name: "shop-tf"}: {List: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}}}},
		}
		w.Forbidden[forbidden] = true
		diags, err := w.NewScope(w.Plan(), "team", nil).Checks(t.Context(), "shop")
		text := ""
		for _, d := range diags {
			text += d.Detail + "\n"
		}
		if err != nil || diag.HasErrors(diags) || !strings.Contains(text, want) || forbidden != "" && strings.Contains(text, "s3cret") {
			t.Errorf("without the right to %q: %v, %s; want %s", forbidden, err, text, want)
		}
	}
}
