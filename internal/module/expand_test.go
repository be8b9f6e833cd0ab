package module

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// nothing knows no value.
func nothing(lang.Address) (cty.Value, bool) { return cty.NilVal, false }

// addresses lists the addresses of all instances of blocks, sorted.
func (x *Expansion) addresses() []string {
	var out []string
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			for k := range s.Len() {
				out = append(out, s.AddressOf(k).String())
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestExpansion(t *testing.T) {
	tests := []struct {
		name, files string
		inputs      map[string]any
		want        []string
	}{
		{"blocks without repetition", `
resource "sim_x" "a" {}
data "sim_y" "b" {}
ephemeral "sim_z" "c" {}
`, nil, []string{"module.shop.data.sim_y.b", "module.shop.ephemeral.sim_z.c", "module.shop.sim_x.a"}},
		{"count and for_each", `
variable "n" { type = number }
resource "sim_x" "a" { count = var.n }
resource "sim_x" "b" { for_each = toset(["x", "y/z"]) }
resource "sim_x" "c" { for_each = {for k in ["p", "q"] : k => upper(k)} }
resource "sim_x" "d" { count = 0 }
`, map[string]any{"n": int64(2)}, []string{
			"module.shop.sim_x.a[0]", "module.shop.sim_x.a[1]", `module.shop.sim_x.b["x"]`, `module.shop.sim_x.b["y/z"]`,
			`module.shop.sim_x.c["p"]`, `module.shop.sim_x.c["q"]`,
		}},
		{"nested modules", `
module "net" {
  source   = "./net"
  for_each = {eu = 2, us = 1}
  n        = each.value
}
module "one" {
  source = "./net"
  count  = 1
}
-- net/main.tf --
variable "n" { default = 0 }
module "deep" {
  source = "./deep"
  names  = [for i in range(var.n) : "s${i}"]
}
-- net/deep/main.tf --
variable "names" { type = set(string) }
resource "sim_subnet" "a" { for_each = var.names }
`, nil, []string{
			`module.shop.module.net["eu"].module.deep.sim_subnet.a["s0"]`, `module.shop.module.net["eu"].module.deep.sim_subnet.a["s1"]`,
			`module.shop.module.net["us"].module.deep.sim_subnet.a["s0"]`,
		}},
		{"a chain of for_each", `
resource "sim_x" "a" { for_each = toset(["x", "y"]) }
resource "sim_x" "b" { for_each = sim_x.a }
resource "sim_x" "c" { count = length(sim_x.b) }
`, nil, []string{
			`module.shop.sim_x.a["x"]`, `module.shop.sim_x.a["y"]`, `module.shop.sim_x.b["x"]`, `module.shop.sim_x.b["y"]`, "module.shop.sim_x.c[0]", "module.shop.sim_x.c[1]",
		}},
		{"outputs of modules", `
module "b" {
  source   = "./b"
  for_each = module.a.names
}
module "a" { source = "./a" }
resource "sim_x" "c" { count = module.b["p"].size + length(module.b) }
-- a/main.tf --
output "names" { value = toset(["p", "q"]) }
-- b/main.tf --
output "size" { value = 1 }
`, nil, []string{"module.shop.sim_x.c[0]", "module.shop.sim_x.c[1]", "module.shop.sim_x.c[2]"}},
		{"types and defaults of variables", `
variable "pools" {
  type = map(object({
    size = optional(number, 2)
    tags = optional(list(string), ["x"])
  }))
}
resource "sim_x" "a" { count = sum([for p in var.pools : p.size * length(p.tags)]) }
`, map[string]any{"pools": map[string]any{"a": map[string]any{}, "b": map[string]any{"size": "1"}}}, []string{"module.shop.sim_x.a[0]", "module.shop.sim_x.a[1]", "module.shop.sim_x.a[2]"}},
		{"an override", `
resource "sim_x" "a" { count = 3 }
-- override.tf --
resource "sim_x" "a" { count = 1 }
`, nil, []string{"module.shop.sim_x.a[0]"}},
		{"a file of OpenTofu replaces that of Terraform", `
resource "sim_x" "a" {}
-- main.tofu --
resource "sim_x" "b" { 
  lifecycle { enabled = false }
}
resource "sim_x" "c" { 
  lifecycle { enabled = true }
}
`, nil, []string{"module.shop.sim_x.c"}},
		{"JSON", `
-- main.tf.json --
{"variable": {"n": {"type": "number", "default": 2}}, "locals": {"//": "a comment", "names": ["x", "${upper(\"y\")}"]},
 "resource": {"sim_x": {"a": {"count": "${var.n}", "name": "n-${count.index}"}, "b": {"for_each": "${toset(local.names)}"}}}}
`, nil, []string{"module.shop.sim_x.a[0]", "module.shop.sim_x.a[1]", `module.shop.sim_x.b["Y"]`, `module.shop.sim_x.b["x"]`}},
		{"files", `
module "a" { source = "./m/a" }
-- m/a/main.tf --
locals { names = yamldecode(templatefile("${path.module}/names.tftpl", {names = ["x", "y"]})) }
resource "sim_x" "a" { for_each = toset(local.names) }
resource "sim_x" "b" { for_each = fileset(path.module, "{t,u}/**/*.txt") }
resource "sim_x" "c" { count = tonumber(trimspace(file("${path.module}/t/1.txt"))) }
resource "sim_x" "d" { count = fileexists("${path.module}/t/2.txt") ? 1 : 0 }
resource "sim_x" "e" { for_each = toset([filemd5("m/a/t/1.txt")]) }
-- m/a/names.tftpl --
%{ for n in names ~}
- n-${n}
%{ endfor ~}
-- m/a/t/1.txt --
2
-- m/a/t/deep/er/3.txt --
-- m/a/t/deep/er/3.md --
`, nil, []string{
			`module.shop.module.a.sim_x.a["n-x"]`, `module.shop.module.a.sim_x.a["n-y"]`, `module.shop.module.a.sim_x.b["t/1.txt"]`,
			`module.shop.module.a.sim_x.b["t/deep/er/3.txt"]`, "module.shop.module.a.sim_x.c[0]", "module.shop.module.a.sim_x.c[1]",
			`module.shop.module.a.sim_x.e["26ab0db90d72e28ad0ba1e22ee510510"]`,
		}},
		{"path and workspace", `
module "a" { source = "./m/a" }
-- m/a/main.tf --
resource "sim_x" "a" { for_each = toset([path.module, path.root, terraform.workspace]) }
`, nil, []string{`module.shop.module.a.sim_x.a["."]`, `module.shop.module.a.sim_x.a["default"]`, `module.shop.module.a.sim_x.a["m/a"]`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			x, diags := mustLoad(t, tc.files).Expand(Inputs{Name: "shop", Values: tc.inputs}, nothing)
			if diag.HasErrors(diags) || len(x.Waiting) > 0 {
				t.Fatalf("the expansion fails: %s %v", report(diags), x.Waiting)
			}
			if d := cmp.Diff(tc.want, x.addresses()); d != "" {
				t.Errorf("the instances differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestExpansionErrors(t *testing.T) {
	tests := []struct {
		name, files string
		inputs      map[string]any
		want        []string
	}{
		{"for_each of a list", `
resource "sim_x" "a" { for_each = ["x"] }
resource "sim_x" "b" { for_each = null }
resource "sim_x" "c" { for_each = toset([1]) }
resource "sim_x" "d" { for_each = sensitive({a = 1}) }
resource "sim_x" "e" { count = -1 }
resource "sim_x" "f" { count = 1.5 }
resource "sim_x" "g" { count = null }
resource "sim_x" "h" { count = "x" }
`, nil, []string{
			"main.tf:2:35 Invalid for_each argument", "main.tf:3:35 Invalid for_each argument", "main.tf:4:35 Invalid for_each argument",
			"main.tf:5:35 Invalid for_each argument", "main.tf:6:32 Invalid count argument", "main.tf:7:32 Invalid count argument",
			"main.tf:8:32 Invalid count argument", "main.tf:9:32 Invalid count argument",
		}},
		{"wrong inputs", `
variable "a" {}
variable "size" { type = number }
resource "sim_x" "a" { count = var.size }
`, map[string]any{"sise": int64(1), "size": "many"}, []string{
			"spec.inputs.a No value for required variable", "spec.inputs.sise Value for undeclared variable",
		}},
		{"an input of a wrong type", `
variable "size" { type = number }
resource "sim_x" "a" { count = var.size }
`, map[string]any{"size": "many"}, []string{"spec.inputs.size Invalid value for input variable"}},
		{"a validation", `
variable "size" {
  validation {
    condition     = var.size < 3
    error_message = "The size ${var.size} is too large."
  }
}
resource "sim_x" "a" { count = var.size }
`, map[string]any{"size": int64(7)}, []string{"main.tf:4:21 Invalid value for variable"}},
		{"cycles", `
resource "sim_x" "b" { count = length(sim_x.b) }
module "m" {
  source = "./m"
  count  = module.m[0].x
}
-- m/main.tf --
output "x" { value = 1 }
`, nil, []string{"main.tf:2:1 Cycle", "main.tf:3:1 Cycle"}},
		{"a million keys", `
locals {
  a = range(1000)
  b = toset(flatten([for i in local.a : [for j in local.a : "${i}-${j}"]]))
}
module "m" {
  source   = "./m"
  for_each = local.b
}
-- m/main.tf --
`, nil, []string{"main.tf:4:21 Expression too large"}},
		{"a million modules", `
module "m" {
  source = "./m"
  count  = 1000000
}
-- m/main.tf --
`, nil, []string{"main.tf:2:1 Too many instances"}},
		{"a million modules in modules", `
module "m" {
  source = "./m"
  count  = 1000
}
-- m/main.tf --
module "n" {
  source = "./n"
  count  = 1000
}
-- m/n/main.tf --
resource "sim_x" "a" {}
`, nil, []string{"m/main.tf:1:1 Too many instances"}},
		{"a billion resources", `
module "m" {
  source = "./m"
  count  = 1000
}
-- m/main.tf --
resource "sim_x" "a" { count = 1000000 }
`, nil, []string{"m/main.tf:1:1 Too many instances"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, diags := mustLoad(t, tc.files).Expand(Inputs{Name: "shop", Values: tc.inputs}, nothing)
			var got []string
			for _, d := range diags {
				got = append(got, d.Attribute+" "+d.Summary)
			}
			missing := slices.DeleteFunc(slices.Clone(tc.want), func(w string) bool { return slices.Contains(got, w) })
			if len(missing) > 0 {
				t.Errorf("missing %q in\n%s", missing, report(diags))
			}
		})
	}
}

func TestInstancesWaitForValues(t *testing.T) {
	tree := mustLoad(t, `
variable "cidrs" {}
resource "sim_network" "main" { cidr = var.cidrs }
data "sim_zones" "all" {}
resource "sim_subnet" "a" { count = length(local.zones) }
locals { zones = data.sim_zones.all.names }
module "net" {
  source   = "./net"
  for_each = toset(local.zones)
}
resource "sim_subnet" "b" { count = length(module.net) }
-- net/main.tf --
resource "sim_x" "a" {}
`)
	inputs := Inputs{Name: "shop", Values: map[string]any{"cidrs": "${sim_network.outer.cidr}"}}
	x, diags := tree.Expand(inputs, nothing)
	if diag.HasErrors(diags) {
		t.Fatal(report(diags))
	}
	zones := lang.Address{Module: "module.shop", Mode: "data", Type: "sim_zones", Name: "all"}
	var waiting []string
	for _, w := range x.Waiting {
		if d := cmp.Diff([]lang.Address{zones}, w.Needs); d != "" {
			t.Errorf("%s needs other values (-want +got):\n%s", w.Address, d)
		}
		waiting = append(waiting, w.Address.String()+" "+w.Problem.Attribute)
	}
	slices.Sort(waiting)
	if d := cmp.Diff([]string{"module.shop.module.net main.tf:9:14", "module.shop.sim_subnet.a main.tf:5:37", "module.shop.sim_subnet.b main.tf:11:37"}, waiting); d != "" {
		t.Errorf("other blocks wait (-want +got):\n%s", d)
	}
	x, diags = tree.Expand(inputs, func(a lang.Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"names": cty.ListVal([]cty.Value{cty.StringVal("p"), cty.StringVal("q")})}), a == zones
	})
	if diag.HasErrors(diags) || len(x.Waiting) > 0 {
		t.Fatalf("%s %v", report(diags), x.Waiting)
	}
	want := []string{
		"module.shop.data.sim_zones.all", `module.shop.module.net["p"].sim_x.a`, `module.shop.module.net["q"].sim_x.a`, "module.shop.sim_network.main",
		"module.shop.sim_subnet.a[0]", "module.shop.sim_subnet.a[1]", "module.shop.sim_subnet.b[0]", "module.shop.sim_subnet.b[1]",
	}
	if d := cmp.Diff(want, x.addresses()); d != "" {
		t.Errorf("the instances differ (-want +got):\n%s", d)
	}
}

func TestValuesOfKeysAreThoseOfThePlan(t *testing.T) {
	tree := mustLoad(t, `
resource "sim_network" "main" {}
locals { ids = { a = sim_network.main.id } }
resource "sim_x" "a" {
  for_each = local.ids
  name     = each.value
}
module "m" {
  source   = "./m"
  for_each = local.ids
  name     = each.value
}
-- m/main.tf --
variable "name" {}
resource "sim_x" "b" { name = var.name }
`)
	network := lang.Address{Module: "module.shop", Type: "sim_network", Name: "main"}
	id := func(text string) Known {
		return func(a lang.Address) (cty.Value, bool) {
			return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(text)}), a == network
		}
	}
	recorded, diags := tree.Expand(Inputs{Name: "shop"}, id("recorded"))
	first, more := tree.Expand(Inputs{Name: "shop"}, nothing)
	if diag.HasErrors(append(diags, more...)) {
		t.Fatal(report(append(diags, more...)))
	}
	for _, x := range []*Expansion{recorded, first} {
		v := x.Values(id("planned"))
		for _, i := range x.Instances {
			for _, s := range i.Sets {
				if s.Type != "sim_x" {
					continue
				}
				spec, diags := s.spec.With(lang.EvaluationContext{Module: i.Path, Instance: v.Instance(s, 0)}).Evaluate(v.Value, cty.NilVal)
				if diag.HasErrors(diags) || spec.GetAttr("name") != cty.StringVal("planned") {
					t.Errorf("%s: %#v %s", s, spec, report(diags))
				}
			}
		}
	}
	if d := cmp.Diff([]string{}, changed(recorded, first)); d != "" {
		t.Errorf("the digests depend on recorded values:\n%s", d)
	}
}

func TestReferencesAreChecked(t *testing.T) {
	_, diags := Load(bundle(`
resource "sim_x" "a" {
  name  = var.nam
  other = local.other
  rule { port = sim_x.b.id }
  zone  = data.sim_z.z.id
  net   = module.nett.id
  fn    = nofunction(1)
  depends_on = [sim_x.c, module.x]
}
variable "name" {}
module "net" {
  source = "./net"
  extra  = 1
}
output "o" { value = each.key }
resource "sim_x" "p" { provider = sim.west }
-- net/main.tf --
variable "need" {}
resource "sim_x" "a" { name = var.no }
`), nil)
	want := []string{
		"main.tf:3:11 Reference to undeclared input variable", "main.tf:4:11 Reference to undeclared local value", "main.tf:5:17 Reference to undeclared resource",
		"main.tf:6:11 Reference to undeclared resource", "main.tf:7:11 Reference to undeclared module",
		"main.tf:8:11 Call to unknown function",
		"main.tf:9:17 Reference to undeclared resource", "main.tf:9:26 Reference to undeclared module", "main.tf:12:1 Missing required argument",
		"main.tf:14:12 Unsupported argument", `main.tf:16:22 Reference to "each" in the wrong context`, "main.tf:17:1 Provider configuration not present",
		"net/main.tf:2:31 Reference to undeclared input variable",
	}
	var got []string
	for _, d := range diags {
		got = append(got, d.Attribute+" "+d.Summary)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the report differs (-want +got):\n%s\n%s", d, report(diags))
	}
	if !strings.Contains(report(diags), `Did you mean "name"?`) {
		t.Error("no name is suggested")
	}
}

// Blocks of all modules share their parsed expressions, with functions that read no file. An evaluation reads the files of its module.
func TestFunctionsThatReadFiles(t *testing.T) {
	const block = `
resource "sim_x" "a" { name = "${file("${path.module}/a.txt")}-${templatefile("t.tpl", { v = "x" })}" }
resource "sim_x" "b" { name = "b" }
-- t.tpl --
t-${v}
`
	load := func(text string) *Expansion {
		return mustExpand(t, mustLoad(t, block+"-- a.txt --\n"+text), nil, nil)
	}
	first, second := load("one"), load("two")
	if got := changed(first, second); !slices.Equal(got, []string{"sim_x.a"}) {
		t.Errorf("an edit of a file changes %q", got)
	}
	parsed, diags := lang.ParseExpression(first.Instances[0].Sets[0].Spec, "spec", lang.ExpressionOptions{Module: "module.shop", Functions: FileSignatures()})
	if diag.HasErrors(diags) {
		t.Fatal(report(diags))
	}
	for x, want := range map[*Expansion]string{first: "one-t-x", second: "two-t-x"} {
		v := x.Values(nothing)
		got, diags := parsed.With(lang.EvaluationContext{Module: "module.shop", Functions: x.Functions()}).Evaluate(v.Value, cty.NilVal)
		if diag.HasErrors(diags) || strings.ReplaceAll(got.GetAttr("name").AsString(), "\n", "") != want {
			t.Errorf("got %#v, want %s: %s", got, want, report(diags))
		}
	}
}
