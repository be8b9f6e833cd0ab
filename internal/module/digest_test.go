package module

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/diag"
)

func mustExpand(t testing.TB, tree *Tree, previous *Expansion, values map[string]any) *Expansion {
	t.Helper()
	x, diags := tree.ExpandAfter(previous, Inputs{Name: "shop", Values: values}, nothing)
	if diag.HasErrors(diags) {
		t.Fatal(report(diags))
	}
	return x
}

// changed lists the instances of blocks whose digests differ between two expansions.
func changed(a, b *Expansion) []string {
	digests := func(x *Expansion) map[string]string {
		out, digest := map[string]string{}, x.Digests()
		for _, i := range x.Instances {
			for _, s := range i.Sets {
				for k := range s.Len() {
					out[strings.TrimPrefix(s.AddressOf(k).String(), "module.shop.")] = fmt.Sprintf("%x", digest(s, k))
				}
			}
		}
		return out
	}
	before, after := digests(a), digests(b)
	out := []string{}
	for address, digest := range after {
		if before[address] != digest {
			out = append(out, address)
		}
	}
	slices.Sort(out)
	return out
}

const shop = `
variable "nets" { type = map(object({ size = number, tags = optional(map(string), {}) })) }
variable "tags" {
  type    = map(string)
  default = { a = "1", b = "2" }
}
variable "password" {
  default   = "p"
  sensitive = true
}
variable "outer" { default = "" }
locals {
  all  = { a = var.tags.a, b = var.tags.b, n = sim_network.main.id }
  name = "n-${var.tags.b}"
}
module "net" {
  source   = "./net"
  for_each = var.nets
  size     = each.value.size
  name     = local.name
}
resource "sim_network" "main" {}
resource "sim_x" "a" { name = local.all.a }
resource "sim_x" "b" { name = var.tags["b"] }
resource "sim_x" "each" {
  for_each = toset(keys(var.nets))
  size     = var.nets[each.key].size
}
resource "sim_x" "secret" { password = var.password }
resource "sim_x" "outer" { name = var.outer }
output "ids" { value = [for n in module.net : n.id] }
-- net/main.tf --
variable "size" {}
variable "name" {}
resource "sim_subnet" "s" { count = var.size }
resource "sim_y" "y" { name = var.name }
output "id" { value = sim_y.y.id }
`

func TestDigestsCoverWhatABlockRefersTo(t *testing.T) {
	tree := mustLoad(t, shop)
	inputs := func(change func(map[string]any)) map[string]any {
		out := map[string]any{"nets": map[string]any{"eu": map[string]any{"size": int64(1)}, "us": map[string]any{"size": int64(2)}}}
		change(out)
		return out
	}
	base := mustExpand(t, tree, nil, inputs(func(map[string]any) {}))
	tests := []struct {
		name   string
		change func(map[string]any)
		want   []string
	}{
		{"nothing", func(map[string]any) {}, []string{}},
		{"an element of a map", func(v map[string]any) { v["tags"] = map[string]any{"a": "3", "b": "2"} }, []string{"sim_x.a"}},
		{"a local of modules", func(v map[string]any) { v["tags"] = map[string]any{"a": "1", "b": "3"} },
			[]string{`module.net["eu"].sim_y.y`, `module.net["us"].sim_y.y`, "sim_x.b"}},
		{"an element with a key", func(v map[string]any) { v["nets"].(map[string]any)["us"] = map[string]any{"size": int64(3)} },
			[]string{`module.net["us"].sim_subnet.s[2]`, `sim_x.each["us"]`}},
		{"a sensitive value", func(v map[string]any) { v["password"] = "q" }, []string{"sim_x.secret"}},
		{"a reference in place of a value", func(v map[string]any) { v["outer"] = "${sim_network.outer.id}" }, []string{"sim_x.outer"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			values := inputs(tc.change)
			x := mustExpand(t, tree, nil, values)
			if d := cmp.Diff(tc.want, changed(base, x)); d != "" {
				t.Errorf("other instances change (-want +got):\n%s", d)
			}
			adopted := mustExpand(t, tree, base, values)
			if d := cmp.Diff(x.addresses(), adopted.addresses()); d != "" {
				t.Errorf("an expansion after another one has other instances (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{}, changed(x, adopted)); d != "" {
				t.Errorf("an expansion after another one has other digests:\n%s", d)
			}
		})
	}
	next := mustExpand(t, tree, base, inputs(func(v map[string]any) { v["nets"].(map[string]any)["us"] = map[string]any{"size": int64(3)} }))
	if !next.InstanceAt(`module.shop.module.net["eu"]`).Adopted || next.InstanceAt(`module.shop.module.net["us"]`).Adopted {
		t.Error("the instances with new arguments, and no others, are expanded again")
	}
}

func TestDigestsDoNotDependOnLines(t *testing.T) {
	values := map[string]any{"nets": map[string]any{"eu": map[string]any{"size": int64(1)}}}
	a := mustExpand(t, mustLoad(t, shop), nil, values)
	b := mustExpand(t, mustLoad(t, "\n\n# a comment\n"+shop), nil, values)
	if d := cmp.Diff([]string{"sim_x.secret"}, changed(a, b)); d != "" { // its digest has the files in place of the value
		t.Errorf("other instances change (-want +got):\n%s", d)
	}
}

func TestDependenciesGoThroughNamedValues(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
variable "outer" {}
locals {
  ids   = { main = sim_network.main.id, other = sim_network.other.id }
  names = [for v in local.ids : v]
}
resource "sim_network" "main" {}
resource "sim_network" "other" {}
resource "sim_x" "attribute" { id = local.ids.main }
resource "sim_x" "whole" { id = local.names[0] }
resource "sim_x" "input" { id = var.outer }
module "net" {
  source     = "./net"
  for_each   = toset(["a", "b"])
  network    = { id = sim_network.main.id, name = sim_network.other.name }
  depends_on = [sim_x.whole]
}
resource "sim_x" "output" { id = module.net["a"].id }
resource "sim_x" "outputs" { id = values(module.net)[*].id }
resource "sim_x" "count" { count = length(module.net) }
resource "sim_x" "explicit" { depends_on = [module.net, sim_x.count[0]] }
-- net/main.tf --
variable "network" {}
resource "sim_subnet" "s" { id = var.network.id }
resource "sim_subnet" "p" {}
output "id" {
  value      = sim_subnet.s.id
  depends_on = [sim_subnet.p]
}
`), nil, map[string]any{"outer": "${sim_network.outer.id} ${configmap.app.x}"})
	want := map[string][]string{
		"sim_network.main": {}, "sim_network.other": {},
		"sim_x.attribute": {"sim_network.main"}, "sim_x.whole": {"sim_network.main", "sim_network.other"},
		"sim_x.input":  {"OUTSIDE configmap.app", "OUTSIDE sim_network.outer"},
		"sim_x.output": {`module.net["a"].sim_subnet.p`, `module.net["a"].sim_subnet.s`},
		"sim_x.outputs": {
			`module.net["a"].sim_subnet.p`, `module.net["a"].sim_subnet.s`, `module.net["b"].sim_subnet.p`, `module.net["b"].sim_subnet.s`,
		},
		"sim_x.count[0]": {`module.net["a"].sim_subnet.p`, `module.net["a"].sim_subnet.s`, `module.net["b"].sim_subnet.p`, `module.net["b"].sim_subnet.s`},
		"sim_x.count[1]": {`module.net["a"].sim_subnet.p`, `module.net["a"].sim_subnet.s`, `module.net["b"].sim_subnet.p`, `module.net["b"].sim_subnet.s`},
		"sim_x.explicit": {"module.net", "sim_x.count[0]"},
	}
	for _, k := range []string{"a", "b"} {
		want[fmt.Sprintf("module.net[%q].sim_subnet.s", k)] = []string{"sim_network.main", "sim_x.whole"}
		want[fmt.Sprintf("module.net[%q].sim_subnet.p", k)] = []string{"sim_x.whole"}
	}
	got, of := map[string][]string{}, x.Dependencies()
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			for k := range s.Len() {
				list := []string{}
				for _, a := range of.Of(s, k) {
					text, inside := strings.CutPrefix(a.String(), "module.shop.")
					if !inside {
						text = "OUTSIDE " + text
					}
					list = append(list, text)
				}
				slices.Sort(list)
				got[strings.TrimPrefix(s.AddressOf(k).String(), "module.shop.")] = list
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the dependencies differ (-want +got):\n%s", d)
	}
}

func TestProviderConfigurationsArePassed(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
terraform {
  required_providers { sim = { source = "hykube/sim" } }
}
provider "sim" { region = "eu" }
provider "sim" {
  alias  = "west"
  region = "us"
}
provider "sim" {
  alias    = "by"
  for_each = toset(["p", "q"])
}
resource "sim_x" "default" {}
resource "sim_x" "west" { provider = sim.west }
resource "sim_x" "by" {
  for_each = toset(["p"])
  provider = sim.by[each.key]
}
module "implicit" { source = "./m" }
module "passed" {
  source    = "./m"
  providers = { sim = sim.west }
}
module "keyed" {
  source    = "./m"
  for_each  = toset(["q"])
  providers = { sim = sim.by[each.key] }
}
module "legacy" {
  source    = "./legacy"
  providers = { sim.proxy = sim.west }
}
module "aliased" {
  source    = "./a"
  providers = { sim.one = sim.west, sim.two = sim }
}
-- m/main.tf --
resource "sim_x" "m" {}
-- legacy/main.tf --
provider "sim" {
  alias = "proxy"
}
resource "sim_x" "l" { provider = sim.proxy }
-- a/main.tf --
terraform {
  required_providers {
    sim = {
      source                = "hykube/sim"
      configuration_aliases = [sim.one, sim.two]
    }
  }
}
resource "sim_x" "one" { provider = sim.one }
module "deep" {
  source    = "../m"
  providers = { sim = sim.two }
}
`), nil, nil)
	want := map[string]string{
		"sim_x.default": "sim", "sim_x.west": "sim.west", `sim_x.by["p"]`: `sim.by["p"]`, "module.implicit.sim_x.m": "sim", "module.passed.sim_x.m": "sim.west", "module.legacy.sim_x.l": "sim.west",
		`module.keyed["q"].sim_x.m`: `sim.by["q"]`, "module.aliased.sim_x.one": "sim.west", "module.aliased.module.deep.sim_x.m": "sim",
	}
	got, v := map[string]string{}, x.Values(nothing)
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			for k := range s.Len() {
				p, diags := v.ProviderOf(s, k)
				if diag.HasErrors(diags) || p.Module != "module.shop" || p.Source != "hykube/sim" {
					t.Errorf("%s: %+v %s", s.AddressOf(k), p, report(diags))
				}
				got[strings.TrimPrefix(s.AddressOf(k).String(), "module.shop.")] = p.String()
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the providers differ (-want +got):\n%s", d)
	}
}

func TestLifecyclesBecomeThoseOfObjects(t *testing.T) {
	tree := mustLoad(t, `
variable "ok" { default = true }
resource "sim_x" "a" {
  lifecycle {
    create_before_destroy = true
    prevent_destroy       = true
    destroy               = false
    ignore_changes        = [tags["Name"], rule[0].port]
    replace_triggered_by  = [sim_x.b.id]
    precondition {
      condition     = var.ok
      error_message = "not ${var.ok}"
    }
    postcondition {
      condition     = self.id != ""
      error_message = "none"
    }
  }
}
resource "sim_x" "b" {
  lifecycle { ignore_changes = all }
}
resource "sim_x" "quoted" {
  lifecycle { ignore_changes = ["tags.a", name] }
  depends_on = ["sim_x.a"]
}
`)
	want := map[string]any{
		"createBeforeDestroy": true, "preventDestroy": true, "destroy": false, "ignoreChanges": []any{`tags["Name"]`, "rule[0].port"},
		"replaceTriggeredBy": []any{"sim_x.b.id"},
		"preconditions":      []any{map[string]any{"condition": "${var.ok}", "errorMessage": `${"not ${var.ok}"}`}},
		"postconditions":     []any{map[string]any{"condition": `${self.id != ""}`, "errorMessage": "none"}},
	}
	if d := cmp.Diff(want, tree.Root.Blocks[BlockID{Type: "sim_x", Name: "a"}].Template()); d != "" {
		t.Errorf("the lifecycle differs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"ignoreChanges": []any{"tags.a", "name"}}, tree.Root.Blocks[BlockID{Type: "sim_x", Name: "quoted"}].Template()); d != "" {
		t.Errorf("the lifecycle differs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"ignoreChanges": []any{"all"}}, tree.Root.Blocks[BlockID{Type: "sim_x", Name: "b"}].Template()); d != "" {
		t.Errorf("the lifecycle differs (-want +got):\n%s", d)
	}
}

// fleet is a module with many instances, and the inputs for them.
func fleet(tb testing.TB, n int) (*Tree, func(size int) map[string]any) {
	tree, diags := Load(bundle(`
variable "nets" { type = map(object({ size = number, name = string })) }
variable "tag" { default = "t" }
module "net" {
  source   = "./net"
  for_each = var.nets
  size     = each.value.size
  name     = "${each.value.name}-${var.tag}"
}
-- net/main.tf --
variable "size" { type = number }
variable "name" { type = string }
resource "sim_subnet" "s" { 
  name = var.name
  size = var.size
}
`), nil)
	if tree == nil {
		tb.Fatal(report(diags))
	}
	return tree, func(size int) map[string]any {
		nets := map[string]any{}
		for i := range n {
			nets[fmt.Sprintf("n%05d", i)] = map[string]any{"size": int64(1), "name": "x"}
		}
		nets["n00007"] = map[string]any{"size": int64(size), "name": "x"}
		return map[string]any{"nets": nets}
	}
}

func TestOneChangedVariableOfManyInstances(t *testing.T) {
	tree, inputs := fleet(t, 2000)
	before := mustExpand(t, tree, nil, inputs(1))
	after := mustExpand(t, tree, before, inputs(2))
	fresh := 0
	for _, i := range after.Instances {
		if !i.Adopted {
			fresh++
		}
	}
	if fresh != 2 { // the root and the changed one
		t.Errorf("%d module instances are expanded again", fresh)
	}
	if d := cmp.Diff([]string{`module.net["n00007"].sim_subnet.s`}, changed(before, after)); d != "" {
		t.Errorf("other instances change (-want +got):\n%s", d)
	}
}

func BenchmarkOneChangedVariable(b *testing.B) {
	tree, inputs := fleet(b, 50_000)
	before := mustExpand(b, tree, nil, inputs(1))
	digest := before.Digests()
	for _, i := range before.Instances {
		for _, s := range i.Sets {
			digest(s, 0)
		}
	}
	values := inputs(2)
	for b.Loop() {
		after := mustExpand(b, tree, before, values)
		digest := after.Digests()
		for _, i := range after.Instances {
			if i.Adopted {
				continue
			}
			for _, s := range i.Sets {
				digest(s, 0)
			}
		}
	}
}
