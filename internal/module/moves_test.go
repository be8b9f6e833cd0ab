package module

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

func TestOrigins(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
resource "sim_x" "plain" {}
resource "sim_x" "counted" { count = 2 }
resource "sim_x" "c" { for_each = toset(["x", "y"]) }
moved {
  from = sim_x.a
  to   = sim_x.b
}
moved {
  from = sim_x.b
  to   = sim_x.c["x"]
}
resource "sim_x" "renamed" { for_each = toset(["p"]) }
moved {
  from = sim_x.old
  to   = sim_x.renamed
}
module "new" {
  source = "./m"
  count  = 1
}
moved {
  from = module.old
  to   = module.new[0]
}
module "kept" {
  source   = "./m"
  for_each = toset(["k"])
}
moved {
  from = module.was
  to   = module.kept
}
moved {
  from = sim_x.outside
  to   = module.kept["k"].sim_x.in
}
-- m/main.tf --
moved {
  from = sim_x.before
  to   = sim_x.in
}
resource "sim_x" "in" {}
`), nil, nil)
	want := map[string][]string{
		"sim_x.plain": {"sim_x.plain[0]"}, "sim_x.counted[0]": {"sim_x.counted"}, "sim_x.counted[1]": nil,
		`sim_x.c["x"]`: {"sim_x.b", "sim_x.a"}, `sim_x.c["y"]`: nil, `sim_x.renamed["p"]`: {`sim_x.old["p"]`},
		"module.new[0].sim_x.in":    {"module.old.sim_x.in", "module.new[0].sim_x.before", "module.old.sim_x.before", "module.new[0].sim_x.in[0]"},
		`module.kept["k"].sim_x.in`: {`module.was["k"].sim_x.in`, "sim_x.outside", `module.kept["k"].sim_x.before`, `module.was["k"].sim_x.before`, `module.kept["k"].sim_x.in[0]`},
	}
	got := map[string][]string{}
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			for k := range s.Len() {
				var list []string
				for _, a := range x.Origins(s, k) {
					list = append(list, strings.TrimPrefix(a.String(), "module.shop."))
				}
				got[strings.TrimPrefix(s.AddressOf(k).String(), "module.shop.")] = list
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the earlier addresses differ (-want +got):\n%s", d)
	}
}

func TestMovedAndRemovedBlocksAreChecked(t *testing.T) {
	_, diags := Load(bundle(`
resource "sim_x" "a" {}
resource "sim_x" "b" {}
moved {
  from = sim_x.a
  to   = sim_x.b
}
moved {
  from = sim_x.a
  to   = module.m
}
removed { from = sim_x.b }
removed { from = sim_x.c[0] }
moved {
  from = sim_x.z
  to   = sim_x.b[var.x]
}
`), nil)
	want := []string{"main.tf:8:1 Invalid \"moved\" addresses", "main.tf:13:18 Resource instance address not allowed"}
	if got := summaries(diags); !cmp.Equal(want, got) {
		t.Errorf("the report differs: %q", got)
	}
	_, diags = Load(bundle(`
resource "sim_x" "a" {}
resource "sim_x" "b" {}
moved {
  from = sim_x.a
  to   = sim_x.b
}
removed { from = sim_x.b }
moved {
  from = sim_x.z
  to   = sim_x.b[var.x]
}
`), nil)
	want = []string{"main.tf:4:1 Moved object still exists", "main.tf:8:1 Removed resource still exists", "main.tf:11:10 Invalid address"}
	if got := summaries(diags); !cmp.Equal(want, got) {
		t.Errorf("the report differs: %q", got)
	}
}

func summaries(diags diag.Diagnostics) []string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Attribute+" "+d.Summary)
	}
	return out
}

func TestRemovedBlocksForget(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
removed {
  from = sim_x.a
  lifecycle { destroy = false }
}
removed { from = sim_x.b }
removed {
  from = module.m
  lifecycle { destroy = false }
}
`), nil, nil)
	for address, want := range map[string]bool{
		"module.shop.sim_x.a": true, "module.shop.sim_x.a[3]": true, "module.shop.sim_x.b": false, "module.shop.sim_x.c": false,
		"module.shop.module.m.sim_x.a": true, `module.shop.module.m["k"].module.n.sim_x.a[0]`: true, "module.shop.module.mm.sim_x.a": false, "sim_x.a": false,
	} {
		a, err := lang.ParseAddress(address)
		if err != nil || x.Forgets(a) != want {
			t.Errorf("%s: %t, %v", address, x.Forgets(a), err)
		}
	}
}

func TestImports(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
locals { ids = { a = "id-a", b = "id-b" } }
resource "sim_x" "each" { for_each = local.ids }
resource "sim_x" "one" {}
module "m" {
  source   = "./m"
  for_each = local.ids
}
import {
  for_each = local.ids
  to       = sim_x.each[each.key]
  id       = each.value
}
import {
  to = sim_x.one
  identity = { id = "one-${local.ids.a}" }
}
import {
  to = module.m["a"].sim_x.in
  id = "in"
}
-- m/main.tf --
resource "sim_x" "in" {}
`), nil, nil)
	list, diags := x.Values(nothing).Imports()
	if diag.HasErrors(diags) {
		t.Fatal(report(diags))
	}
	got := map[string]string{}
	for _, i := range list {
		by := i.Identity
		if by.IsNull() {
			by = i.ID
		}
		text, _ := lang.FormatHCL(by, 1000)
		got[i.To.String()] = text
	}
	want := map[string]string{
		`module.shop.sim_x.each["a"]`: `"id-a"`, `module.shop.sim_x.each["b"]`: `"id-b"`, "module.shop.sim_x.one": "{\n  \"id\" = \"one-id-a\"\n}",
		`module.shop.module.m["a"].sim_x.in`: `"in"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the imports differ (-want +got):\n%s", d)
	}
}

func TestChecksWarn(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
variable "n" { default = 3 }
data "sim_y" "unused" {}
check "size" {
  data "sim_y" "probe" {}
  assert {
    condition     = var.n < 3
    error_message = "n is ${var.n}"
  }
  assert {
    condition     = data.sim_y.probe.ok
    error_message = "unknown"
  }
}
`), nil, nil)
	diags := x.Values(nothing).Checks()
	if len(diags) != 2 || diag.HasErrors(diags) || !strings.HasPrefix(report(diags), "main.tf:7:21 Check block assertion failed: n is 3") ||
		!strings.Contains(report(diags), "main.tf:11:21 Check block assertion known after apply") || diags[0].Address != "module.shop.check.size" {
		t.Errorf("got %s", report(diags))
	}
	if b := x.Root.Config.Blocks[BlockID{"data", "sim_y", "probe"}]; b == nil || b.Check != "size" {
		t.Error("the data source of the check block is missing")
	}
}

func TestInstalledModules(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
module "vpc" {
  source  = "registry.example.com/org/vpc/aws"
  version = "~> 5.0"
}
-- .terraform/modules/modules.json --
{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"vpc","Source":"registry.example.com/org/vpc/aws","Version":"5.1.0","Dir":".terraform/modules/vpc"},
 {"Key":"vpc.flow","Source":"git::https://example.com/flow.git","Dir":".terraform\\modules\\vpc.flow\\sub"}]}
-- .terraform/modules/vpc/main.tf --
module "flow" { source = "git::https://example.com/flow.git//sub" }
module "local" { source = "./modules/endpoint" }
-- .terraform/modules/vpc/modules/endpoint/main.tf --
resource "sim_x" "e" { name = path.module }
-- .terraform/modules/vpc.flow/sub/main.tf --
resource "sim_x" "f" {}
`), nil, nil)
	want := []string{"module.shop.module.vpc.module.flow.sim_x.f", "module.shop.module.vpc.module.local.sim_x.e"}
	if d := cmp.Diff(want, x.addresses()); d != "" {
		t.Errorf("the instances differ (-want +got):\n%s", d)
	}
}

// TestInstancesThatAreStillDeclaredDoNotMove moves instances by their keys.
func TestInstancesThatAreStillDeclaredDoNotMove(t *testing.T) {
	const declared = `
resource "sim_x" "k" { for_each = { x = 1, y = 2 } }
resource "sim_x" "one" {}
module "m" {
  source   = "./m"
  for_each = { p = 1 }
}
`
	for moved, refused := range map[string]bool{
		`sim_x.k["x"], sim_x.k["z"]`:                             true,
		`sim_x.k["w"], sim_x.k["x"]`:                             false,
		`sim_x.one, sim_x.many[0]`:                               true,
		`sim_x.k, sim_x.k["x"]`:                                  false,
		`module.m["p"], module.m["q"]`:                           true,
		`module.m["p"].sim_x.in, sim_x.other`:                    true,
		`module.m["gone"].sim_x.in, module.m["p"].sim_x.in`:      false,
		`module.m["p"].sim_x.in[0], module.m["p"].sim_x.in["a"]`: false,
	} {
		from, to, _ := strings.Cut(moved, ", ")
		tree := mustLoad(t, declared+"moved {\n  from = "+from+"\n  to   = "+to+"\n}\n-- m/main.tf --\nresource \"sim_x\" \"in\" {}\n")
		_, diags := tree.Expand(Inputs{Name: "shop"}, nothing)
		if got := summaries(diags); (len(got) > 0) != refused || refused && got[0] != "main.tf:8:1 Moved object still exists" {
			t.Errorf("%s: %q", moved, got)
		}
	}
}

// TestUndeclared has a call that lost an instance.
func TestUndeclared(t *testing.T) {
	x := mustExpand(t, mustLoad(t, `
module "m" {
  source   = "./m"
  for_each = { p = 1 }
}
-- m/main.tf --
resource "sim_x" "in" { count = 2 }
`), nil, nil)
	for address, want := range map[string]bool{
		`module.shop.module.m["q"].sim_x.in[0]`: true, `module.shop.module.m.sim_x.in[0]`: true, `module.shop.module.m["p"].sim_x.in[7]`: false,
		`module.shop.module.m["q"].sim_x.other`: false, `module.shop.module.n.sim_x.in`: false, `module.shop.sim_x.in`: false,
	} {
		a, err := lang.ParseAddress(address)
		if err != nil || x.Undeclares(a) != want {
			t.Errorf("%s: %t, %v", address, x.Undeclares(a), err)
		}
	}
}
