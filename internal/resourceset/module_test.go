package resourceset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

const netFiles = `
terraform {
  required_providers {
    test = { source = "hykube/test", configuration_aliases = [test.west] }
  }
}
variable "n" { default = 2 }
resource "test_thing" "one" {}
resource "test_thing" "many" {
  count      = var.n
  provider   = test.west
  uses       = local.id
  depends_on = [test_thing.other]
  lifecycle { prevent_destroy = true }
}
resource "test_thing" "other" {}
locals { id = test_thing.one.id }
`

// expandNet expands a Module.
func expandNet(t *testing.T, files string, change func(*v1alpha1.ModuleSpec), recorded func(types.UID) bool) *Module {
	t.Helper()
	obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "net", UID: "net-uid", Labels: map[string]string{"app": "net"}}}
	obj.Spec = v1alpha1.ModuleSpec{Source: v1alpha1.ModuleSource{ConfigMap: "net-tf"}, Providers: map[string]string{"test.west": "west"}}
	if change != nil {
		change(&obj.Spec)
	}
	m, err := NewModule(obj, 1, map[string][]byte{"main.tf": []byte(files)}, Environment{Recorded: recorded, Provider: func(_ v1alpha1.Mode, terraformType, _ string) (string, error) {
		if terraformType != "test_thing" {
			return "", fmt.Errorf("%w %s", ErrNoProvider, terraformType)
		}
		return "test", nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func blockOf(m *Module, name string) *Set {
	return m.BlockSet(v1alpha1.ObjectReference{Kind: "test-thing", Name: "module.net:" + name})
}

// TestBlocksAreSets expects each block to be a set: its objects have Terraform's addresses, the ProviderConfig, the lifecycle and the
// objects behind named values.
func TestBlocksAreSets(t *testing.T) {
	m := expandNet(t, netFiles, nil, nil)
	if m.Problem != "" {
		t.Fatal(m.Problem)
	}
	many := blockOf(m, "many")
	u := many.Object(v1alpha1.InstanceKey{Index: 1})
	lifecycle := fmt.Sprint(u.Object["lifecycle"])
	if u.GetName() != "module.net:many[1]" || u.GetLabels()["app"] != "net" || !strings.Contains(lifecycle, "providerConfig:west") ||
		!strings.Contains(lifecycle, "preventDestroy:true") || !strings.Contains(lifecycle, "dependsOn:[module.net.test_thing.other]") {
		t.Errorf("%s, labels %v, lifecycle %s", u.GetName(), u.GetLabels(), lifecycle)
	}
	if got, repeats := Through(u); !slices.Equal(got, []lang.Address{{Module: "module.net", Type: "test_thing", Name: "one"}}) || len(repeats) > 0 {
		t.Errorf("it depends on %v through named values, and by count on %v", got, repeats)
	}
	one := blockOf(m, "one")
	if u := one.Object(one.Key(0)); u.GetName() != "module.net:one" || one.Len() != 1 || one.Repeats != "" {
		t.Errorf("a block without count: %s of %d", u.GetName(), one.Len())
	}
}

// TestContentOfABlockCoversTheModule changes what the object of the Module says about a block. An approval of the old content must not
// hold for the new one.
func TestContentOfABlockCoversTheModule(t *testing.T) {
	content := func(m *Module, name string) string {
		t.Helper()
		if m.Problem != "" {
			t.Fatal(m.Problem)
		}
		s := blockOf(m, name)
		return Content(s.Object(s.Key(0)))
	}
	m := expandNet(t, netFiles, nil, nil)
	other := expandNet(t, netFiles, func(s *v1alpha1.ModuleSpec) { s.Providers["test.west"] = "east" }, nil)
	if content(m, "many") == content(other, "many") {
		t.Error("another ProviderConfig gives the same content")
	}
	if content(m, "one") != content(other, "one") {
		t.Error("a block whose ProviderConfig stays has another content")
	}
	larger := expandNet(t, netFiles, func(s *v1alpha1.ModuleSpec) { s.Inputs = map[string]v1alpha1.JSON{"n": {Raw: []byte("3")}} }, nil)
	if content(m, "many") != content(larger, "many") || blockOf(larger, "many").Len() != 3 {
		t.Error("a larger count changes the instances that stay")
	}
}

// TestMovedBlocksNameWhatIsRecorded expects an instance to take over the infrastructure of its earlier address, if that has any and the
// instance has none.
func TestMovedBlocksNameWhatIsRecorded(t *testing.T) {
	before := expandNet(t, `resource "test_thing" "a" {}`, nil, nil)
	old := blockOf(before, "a")
	uid := old.UIDOf(old.Key(0))
	after := `
resource "test_thing" "b" {}
moved {
  from = test_thing.a
  to   = test_thing.b
}`
	from := func(recorded ...types.UID) string {
		m := expandNet(t, after, nil, func(u types.UID) bool { return slices.Contains(recorded, u) })
		s := blockOf(m, "b")
		lifecycle, _ := s.Object(s.Key(0)).Object["lifecycle"].(map[string]any)
		moved, _ := lifecycle["moved"].(map[string]any)
		text, _ := moved["from"].(string)
		return text
	}
	own := blockOf(expandNet(t, after, nil, nil), "b")
	moves := blockOf(expandNet(t, after, nil, func(u types.UID) bool { return u == uid }), "b")
	if key := own.Key(0); moves.GenerationOf(key) != own.GenerationOf(key) || Content(moves.Object(key)) != Content(own.Object(key)) {
		t.Error("the instance has another content once the infrastructure has moved, so the step that moves and changes it would be stale")
	}
	if got := from(uid); got != "module.net.test_thing.a" {
		t.Errorf("it moves from %q", got)
	}
	if got := from(); got != "" {
		t.Errorf("without infrastructure it moves from %q", got)
	}
	if got := from(uid, own.UIDOf(own.Key(0))); got != "" {
		t.Errorf("with infrastructure of its own it moves from %q", got)
	}
}

// TestRemovedBlocksKeepTheInfrastructure expects the object of an instance that left a Module to say so.
func TestRemovedBlocksKeepTheInfrastructure(t *testing.T) {
	ref := v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: "module.net:a", Set: "net", SetUID: "net-uid"}
	removed := expandNet(t, `
removed {
  from = test_thing.a
  lifecycle { destroy = false }
}`, nil, nil)
	for reason, tc := range map[string]struct {
		m    *Module
		want string
	}{
		"a removed block": {removed, "map[destroy:false] forget_because_removed"},
		"none":            {expandNet(t, `resource "test_thing" "b" {}`, nil, nil), "<nil> "},
	} {
		u := Leaving(tc.m.BlockSet(ref), ref)
		if got := fmt.Sprintf("%v %s", u.Object["lifecycle"], ForgetReason(u)); got != tc.want || !IsLeaving(u) || u.GetDeletionTimestamp() == nil || u.GetLabels()["app"] != "net" {
			t.Errorf("%s: lifecycle %s, want %s: %v", reason, got, tc.want, u.Object)
		}
	}
}

// TestModulesThatCannotBeExpanded expects a reason for each: with the position in the files, or with what to write.
func TestModulesThatCannotBeExpanded(t *testing.T) {
	for reason, tc := range map[string]struct {
		files   string
		change  func(*v1alpha1.ModuleSpec)
		problem string
	}{
		"no ProviderConfig for an alias": {netFiles, func(s *v1alpha1.ModuleSpec) { s.Providers = nil }, `Name one in spec.providers["test.west"]`},
		"arguments of a provider": {`
provider "test" { region = "eu" }
resource "test_thing" "a" {}`, nil, `the provider block test at main.tf:2`},
		"types without a provider": {`
terraform {
  required_providers {
    other = {
      source  = "example.com/team/other"
      version = "~> 2.0"
    }
  }
}
resource "other_thing" "a" {}
resource "null_resource" "a" {}
resource "terraform_data" "a" {}`, nil, `no installed Provider has the type null_resource, other_thing, terraform_data. Unless they exist and are not ready yet, apply:
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: "null"}
spec:
  source: hashicorp/null
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: "other"}
spec:
  source: example.com/team/other
  version: "~> 2.0"
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: "terraform"}
spec:
  source: terraform.io/builtin/terraform`},
		"an unknown input": {netFiles, func(s *v1alpha1.ModuleSpec) { s.Inputs = map[string]v1alpha1.JSON{"m": {Raw: []byte("1")}} }, "spec.inputs.m: Value for undeclared variable"},
		"a count of a Secret": {`
variable "n" {}
resource "test_thing" "b" { count = var.n }`, func(s *v1alpha1.ModuleSpec) {
			s.Providers, s.Inputs = nil, map[string]v1alpha1.JSON{"n": {Raw: []byte(`"${secret.db.n}"`)}}
		},
			"the instances of module.net.test_thing.b depend on secret.db, and the count or for_each of a Module can depend only on resources and data sources"},
		"a file that does not exist": {netFiles, func(s *v1alpha1.ModuleSpec) { s.Source.Items = []v1alpha1.ModuleItem{{Key: "x.tf", Path: "x.tf"}} }, `has no key "x.tf"`},
		"an ephemeral resource":      {`ephemeral "test_token" "a" {}`, nil, "main.tf:1:1: Not supported yet: A Module cannot have ephemeral resources yet"},
		"a data source in a check": {`
check "up" {
  data "test_thing" "a" {}
  assert {
    condition     = true
    error_message = "x"
  }
}`, nil, "main.tf:3:3: Not supported yet: A check block of a Module cannot have a data source yet"},
		"a value that the module does not accept": {`
variable "n" {
  default = 1
  validation {
    condition     = var.n > 1
    error_message = "n is ${var.n}"
  }
}`, nil, "main.tf:5:21: Invalid value for variable: n is 1"},
		"an impure local value": {`locals { now = timestamp() }`, nil, "Not supported yet: A value of a Module cannot call a function such as timestamp()"},
	} {
		m := expandNet(t, tc.files, tc.change, nil)
		if !strings.Contains(m.Problem, tc.problem) || len(m.Sets) > 0 {
			t.Errorf("%s: the problem is %q, want %q", reason, m.Problem, tc.problem)
		}
	}
}

// TestDeletedModulesNeedNoCorrectFiles expects all resources to leave a deleted Module with errors in its files, unless a word in these
// says that one may be kept.
func TestDeletedModulesNeedNoCorrectFiles(t *testing.T) {
	for reason, tc := range map[string]struct {
		files    map[string][]byte
		observed bool
		problem  string
	}{
		"no ConfigMap":       {nil, false, ""},
		"an undeclared name": {map[string][]byte{"out.tf": []byte(`output "id" { value = test_thing.one.id }`)}, false, ""},
		"an order of changes": {map[string][]byte{"main.tf": []byte(`
resource "test_thing" "one" {
  uses = var.none
  lifecycle { create_before_destroy = true }
}`)}, false, ""},
		"some blocks are expanded": {map[string][]byte{"main.tf": []byte("resource \"test_thing\" \"one\" {}\nresource \"other_thing\" \"two\" {}")}, false, ""},
		"a protected resource":     {map[string][]byte{"main.tf": []byte(netFiles), "out.tf": []byte("output \"id\" {")}, false, "out.tf:1:"},
		"a removed block":          {map[string][]byte{"main.tf": []byte("removed {")}, false, "main.tf:1:"},
		"a resource that is kept":  {map[string][]byte{"main.tf": []byte("lifecycle { destroy = false }")}, false, "main.tf:1:"},
		"nothing is destroyed":     {map[string][]byte{"main.tf": []byte("removed {")}, true, ""},
	} {
		obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "net", UID: "net-uid", DeletionTimestamp: new(metav1.Unix(100, 0))}}
		obj.Spec = v1alpha1.ModuleSpec{Source: v1alpha1.ModuleSource{ConfigMap: "net-tf"}, Inputs: map[string]v1alpha1.JSON{"m": {Raw: []byte("1")}}}
		if tc.observed {
			obj.Spec.Mode = v1alpha1.ModuleObserve
		}
		m, err := NewModule(obj, 1, tc.files, Environment{Provider: func(v1alpha1.Mode, string, string) (string, error) { return "test", nil }}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (m.Problem != "") != (tc.problem != "") || !strings.Contains(m.Problem, tc.problem) || m.Len() > 0 {
			t.Errorf("%s: the problem is %q, want %q; %d resources", reason, m.Problem, tc.problem, m.Len())
		}
		ref := v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: "module.net:one", Set: "net", SetUID: "net-uid"}
		if u := Leaving(m.BlockSet(ref), ref); KeysUnknown(u) != (tc.problem != "") || u.GetDeletionTimestamp() == nil {
			t.Errorf("%s: the object of a recorded resource is %v", reason, u)
		}
	}
}

// TestWrittenModulesStay expects a write of the status to keep the expansion, and a write of the finalizers to be seen.
func TestWrittenModulesStay(t *testing.T) {
	obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "net", UID: "net-uid", Generation: 1}}
	m, err := NewModule(obj, 1, map[string][]byte{"main.tf": []byte(`resource "test_thing" "a" {}`)}, Environment{
		Provider: func(v1alpha1.Mode, string, string) (string, error) { return "test", nil }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	obj.Status.Ready, obj.Finalizers = 1, []string{v1alpha1.FinalizerState}
	same := m.Written(obj, 1)
	if same == nil || same.Expansion != m.Expansion || !same.Held || !blockOf(same, "a").Held || blockOf(m, "a").Held {
		t.Errorf("after a write of the status: %+v", same)
	}
	if m.Written(obj, 2) != nil {
		t.Error("another version of the files keeps the expansion")
	}
	if obj.Generation = 2; m.Written(obj, 1) != nil {
		t.Error("another spec keeps the expansion")
	}
}

// TestModulesAreExpandedWithinABudget expands a large module, and one whose evaluation never ends.
func TestModulesAreExpandedWithinABudget(t *testing.T) {
	expand := func(files string) *Module {
		t.Helper()
		obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "net", UID: "net-uid", Generation: 1}}
		m, err := NewModule(obj, 1, map[string][]byte{"main.tf": []byte(files)}, Environment{
			Budget:   lang.BudgetOf(lang.WithBudget(t.Context(), nil)),
			Provider: func(v1alpha1.Mode, string, string) (string, error) { return "test", nil },
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	large := expand(`
locals { zones = { for i in range(1000) : "zone-${i}" => { name = "net-${i}", cidr = "10.0.0.0/16" } } }
resource "test_thing" "a" {
  for_each = local.zones
  uses     = each.value.name
}
resource "test_thing" "b" {
  count = 1000
  uses  = "${local.zones["zone-${count.index}"].name}-b"
}`)
	if large.Problem != "" || large.Len() != 2000 {
		t.Errorf("%d resources: %s", large.Len(), large.Problem)
	}
	var locals strings.Builder
	for i := range 20 {
		fmt.Fprintf(&locals, "locals { l%d = length([for i in range(1000) : [for j in range(1000) : i * j * %d]]) }\n", i, i)
		fmt.Fprintf(&locals, "resource \"test_thing\" \"r%d\" { count = local.l%d }\n", i, i)
	}
	if m := expand(locals.String()); !strings.Contains(m.Problem, "of this request together exceed the evaluation limit") {
		t.Errorf("20 costly expressions have no common limit: %d resources, %.3000s", m.Len(), m.Problem)
	}
	if m := expand(`resource "test_thing" "a" { count = 1000000 }`); !strings.Contains(m.Problem, "at most 200000") {
		t.Errorf("a million resources: %d, %q", m.Len(), m.Problem)
	}
}

// TestBlocksWaitForRecordedValues expects a block whose count is not known to wait, and each block that depends on it: through a local
// value, an output, a whole module or depends_on. Others have their instances. Nothing waits if the Module is being deleted.
func TestBlocksWaitForRecordedValues(t *testing.T) {
	files := `
resource "test_thing" "a" {}
resource "test_thing" "b" { count = length(test_thing.a.id) }
locals { b = test_thing.b[*].id }
resource "test_thing" "local" { uses = local.b[0] }
resource "test_thing" "after" { depends_on = [test_thing.local] }
resource "test_thing" "free" { uses = test_thing.a.id }
output "b" { value = local.b }
output "a" { value = test_thing.a.id }`
	waiting := func(m *Module) (out []string) {
		if m.Problem != "" {
			t.Fatal(m.Problem)
		}
		for _, s := range m.Sets {
			if s.Problem != "" {
				out = append(out, s.Template)
			}
		}
		return out
	}
	m := expandNet(t, files, func(s *v1alpha1.ModuleSpec) { s.Providers, s.Inputs = nil, nil }, nil)
	want := []string{"module.net:after", "module.net:b", "module.net:local"}
	if got := waiting(m); !slices.Equal(got, want) || len(m.Waiting) != 3 {
		t.Errorf("the blocks %q wait, want %q: %q", got, want, m.Waiting)
	}
	if m.Outputs["b"].Waits == "" || m.Outputs["a"].Waits != "" {
		t.Errorf("the outputs are %+v and %+v", m.Outputs["b"], m.Outputs["a"])
	}
	ref := v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Name: "module.net:b[0]"}
	if s := m.BlockSet(ref); s.Problem == "" {
		t.Error("a recorded instance of a block that waits has no reason to stay")
	}
}

// TestWaitsFor wants the value of an output to wait if what is behind it does, also through outputs of other Modules, even in a cycle.
func TestWaitsFor(t *testing.T) {
	of := func(name string) lang.Address { return lang.OutputOf("", name, "out") }
	output := func(waits string, behind ...lang.Address) *Module {
		return &Module{Outputs: map[string]*Output{"out": {Waits: waits, Behind: behind}}}
	}
	elsewhere := of("waits")
	elsewhere.Namespace = "other"
	modules := map[string]*Module{
		"waits": output("it depends on a block"), "known": output("", lang.AddressOf(v1alpha1.ModeManaged, "sim_network", "main")),
		"through": output("", of("known"), of("waits")), "cycle": output("", of("cycle"), of("known")), "other": output("", elsewhere),
	}
	for name, want := range map[string]string{
		"waits": "it depends on module.waits.out: it depends on a block", "through": "it depends on module.waits.out: it depends on a block",
		"known": "", "cycle": "", "other": "", "missing": "",
	} {
		if got := WaitsFor(of(name), func(name string) *Module { return modules[name] }); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
