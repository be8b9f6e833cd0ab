package module

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// specOf evaluates the spec of the only instance of sim_x.main.
func specOf(t *testing.T, files string) (cty.Value, string) {
	t.Helper()
	x := mustExpand(t, mustLoad(t, files), nil, nil)
	v := x.Values(nothing)
	s := x.Root.sets[BlockID{Type: "sim_x", Name: "main"}]
	spec, diags := s.spec.With(lang.EvaluationContext{Module: x.Root.Path, Instance: s.Instance(0)}).Evaluate(v.Value, cty.NilVal)
	return spec, report(s.Block.Positions().Located(diags, s.Range))
}

func TestDynamicBlocks(t *testing.T) {
	const variables = `
variable "ports" { default = [80, 443] }
variable "tags" { default = { b = "2", a = "1" } }
variable "none" { default = [] }
variable "rules" {
  default = [{ name = "x", from = ["p", "q"] }, { name = "y", from = [] }]
}
`
	tests := []struct{ name, body, want string }{
		{"of a list", `
dynamic "rule" {
  for_each = var.ports
  content {
    port = rule.value
    key  = rule.key
  }
}`, `{"rule":[{"key":0,"port":80},{"key":1,"port":443}]}`},
		{"of a map and a set", `
dynamic "tag" {
  for_each = var.tags
  content { text = "${tag.key}=${tag.value}" }
}
dynamic "zone" {
  for_each = toset(["q", "p"])
  content { name = "${zone.key}${zone.value}" }
}`, `{"tag":[{"text":"a=1"},{"text":"b=2"}],"zone":[{"name":"pp"},{"name":"qq"}]}`},
		{"between static blocks", `
rule { port = 1 }
dynamic "rule" {
  for_each = var.ports
  iterator = it
  content { port = it.value }
}
rule {
  port = 2
}`, `{"rule":[{"port":1},{"port":80},{"port":443},{"port":2}]}`},
		{"nested", `
dynamic "rule" {
  for_each = var.rules
  content {
    name = rule.value.name
    dynamic "source" {
      for_each = rule.value.from
      content {
        name = "${rule.value.name}-${source.value}"
        deep {
          index = source.key
        }
      }
    }
    fixed { x = upper("x") }
  }
}`, `{"rule":[{"name":"x","source":[{"name":"x-p","deep":[{"index":0}]},{"name":"x-q","deep":[{"index":1}]}],"fixed":[{"x":"X"}]},{"name":"y","source":[],"fixed":[{"x":"X"}]}]}`},
		{"none", `
dynamic "rule" {
  for_each = var.none
  content { port = rule.value }
}`, `{"rule":[]}`},
		{"with heredocs and comments", `
dynamic "rule" {
  for_each = [for p in var.ports : p if p > 80] # some
  content {
    text = <<-EOT
      port ${rule.value}
    EOT
    list = [
      rule.value, // the port
    ]
  }
}`, `{"rule":[{"text":"port 443\n","list":[443]}]}`},
		{"with labels", `
dynamic "rule" {
  for_each = var.tags
  labels   = ["l-${rule.key}"]
  content { v = rule.value }
}
rule "fixed" { v = 0 }`, `{"rule":{"fixed":{"v":0},"l-a":{"v":"1"},"l-b":{"v":"2"}}}`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			spec, problems := specOf(t, variables+"resource \"sim_x\" \"main\" {\n"+tc.body+"\n}\n")
			if problems != "" {
				t.Fatal(problems)
			}
			compareJSON(t, tc.want, spec)
		})
	}
}

func compareJSON(t *testing.T, want string, got cty.Value) {
	t.Helper()
	ours, known := plainJSON(t, got)
	var theirs any
	if err := json.Unmarshal([]byte(want), &theirs); err != nil || !known {
		t.Fatal(err, known)
	}
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("the spec differs (-want +got):\n%s", d)
	}
}

func TestDynamicBlocksInJSON(t *testing.T) {
	spec, problems := specOf(t, `
-- main.tf.json --
{"locals": {"ports": [80, 443]},
 "resource": {"sim_x": {"main": {
   "rule": {"port": 1},
   "dynamic": [{"rule": [{"for_each": "${local.ports}", "iterator": "it", "content": {
     "port": "${it.value}", "text": "p-\"${it.value}\"-$${x}", "fixed": [true, null, {"a": 1.5}],
     "dynamic": {"deep": {"for_each": "${range(it.key)}", "content": {"n": "${deep.value}"}}}
   }}]}, {"other": {"for_each": ["x"], "content": {"name": "${other.value}"}}}]
 }}}}
`)
	if problems != "" {
		t.Fatal(problems)
	}
	compareJSON(t, `{"rule":[{"port":1},{"port":80,"text":"p-\"80\"-${x}","fixed":[true,null,{"a":1.5}],"deep":[]},{"port":443,"text":"p-\"443\"-${x}","fixed":[true,null,{"a":1.5}],"deep":[{"n":0}]}],"other":[{"name":"x"}]}`, spec)
}

func TestProblemsHavePositionsInFiles(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"an argument", "  a = 1\n  b = upper([\"x\"])\n", "main.tf:4:13 "},
		{"a line of an expression", "  a = [\n    1,\n    upper([1]),\n  ]\n", "main.tf:5:11 "},
		{"a nested block", "  rule {\n    deep {\n      x = local.o.missing\n    }\n  }\n", "main.tf:5:18 "},
		{"a template", "  a = \"xx ${upper(local.o)} yy\"\n", "main.tf:3:19 "},
		{"a heredoc", "  a = <<-EOT\n    one\n    ${upper(local.o)}\n  EOT\n", "main.tf:5:13 "},
		{"a dynamic block", "  dynamic \"rule\" {\n    for_each = [1]\n    content {\n      a = 1\n      b = 1 + upper(local.o)\n    }\n  }\n", "main.tf:7:21 "},
		{"the for_each of a dynamic block", "  dynamic \"rule\" {\n    for_each = local.o.missing\n    content {}\n  }\n", "main.tf:4:23 "},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			files := "locals { o = { x = 1 } }\nresource \"sim_x\" \"main\" {\n" + tc.body + "}\n"
			tree, diags := Load(bundle(files), nil)
			problems := report(diags)
			if tree != nil {
				_, problems = specOf(t, files)
			}
			if !strings.HasPrefix(problems, tc.want) {
				t.Errorf("got %s, want %s", problems, tc.want)
			}
		})
	}
	_, problems := specOf(t, "-- main.tf.json --\n{\"locals\": {\"o\": {\"x\": 1}}, \"resource\": {\"sim_x\": {\"main\": {\n  \"a\": {\"b\": \"xx ${local.o.missing}\"}}}}}\n")
	if want := "main.tf.json:2:27 "; !strings.HasPrefix(problems, want) {
		t.Errorf("got %s, want %s", problems, want)
	}
}

func FuzzLoad(f *testing.F) {
	for _, files := range []string{shop, "a {", "-- main.tf.json --\n{\"resource\":{\"a\":{\"b\":{\"dynamic\":{\"x\":{\"for_each\":[],\"content\":{}}}}}}}", "resource \"a_b\" \"c\" {\n dynamic \"x\" {\n  for_each = []\n  content {}\n }\n}"} {
		f.Add(files)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, diags := Load(bundle(text), nil)
		if (tree == nil) != diag.HasErrors(diags) {
			t.Fatalf("a tree: %t, errors: %s", tree != nil, report(diags))
		}
		if tree == nil {
			return
		}
		x, diags := tree.Expand(Inputs{Name: "shop"}, nothing)
		if diag.HasErrors(diags) {
			return
		}
		v, of, digest := x.Values(nothing), x.Dependencies(), x.Digests()
		for _, i := range x.Instances[:min(len(x.Instances), 100)] {
			for _, s := range i.Sets {
				for k := range min(s.Len(), 3) {
					digest(s, k)
					of.Of(s, k)
					v.ProviderOf(s, k)
				}
			}
		}
	})
}
