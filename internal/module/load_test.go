package module

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/diag"
)

// bundle reads files from text, each after a line "-- NAME --". Text before the first such line is main.tf.
func bundle(text string) Files {
	files := Files{}
	name, content := "main.tf", ""
	put := func() {
		if strings.TrimSpace(content) != "" || name != "main.tf" {
			files[name] = []byte(content)
		}
	}
	for line := range strings.Lines(text) {
		if next, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(next, " --") {
			put()
			name, content = strings.TrimSuffix(next, " --"), ""
			continue
		}
		content += line
	}
	put()
	return files
}

func mustLoad(t *testing.T, text string) *Tree {
	t.Helper()
	tree, diags := Load(bundle(text), nil)
	if tree == nil {
		t.Fatalf("the module is refused: %s", report(diags))
	}
	return tree
}

// report returns a line for each diagnostic.
func report(diags diag.Diagnostics) string {
	var out strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&out, "%s %s: %s\n", d.Attribute, d.Summary, d.Detail)
	}
	return out.String()
}

func specText(t *testing.T, spec map[string]any) string {
	t.Helper()
	text, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&").Replace(string(text))
}

func TestBodiesBecomeSpecs(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"constants keep their types", `
			a = "x"
			b = 3
			c = 1.5
			d = true
			e = null
			f = ["x", -1]
			g = {team = "a", "other key" = 2}`,
			`{"a":"x","b":3,"c":1.5,"d":true,"e":null,"f":["x",-1],"g":{"team":"a","other key":2}}`},
		{"a text of template characters is escaped", `a = "$${x} %%{y}"`, `{"a":"$${x} %%{y}"}`},
		{"an expression is a template", `a = var.x + 1`, `{"a":"${var.x + 1}"}`},
		{"a template keeps its quotes", `a = "n-${var.x}\n"`, `{"a":"${\"n-${var.x}\\n\"}"}`},
		{"an expression over lines", "a = [\n  var.x, # one\n  2\n]", `{"a":"${[\n  var.x, # one\n  2\n]}"}`},
		{"a heredoc", "a = <<-EOT\n  x ${var.x}\n  y\n  EOT\n", `{"a":"${<<-EOT\n  x ${var.x}\n  y\n  EOT\n}"}`},
		{"a constant heredoc", "a = <<EOT\nx\nEOT\n", `{"a":"x\n"}`},
		{"blocks are lists", `
			rule {
				port = 80
				deep { x = var.x }
			}
			rule { port = 443 }`,
			`{"rule":[{"port":80,"deep":[{"x":"${var.x}"}]},{"port":443}]}`},
		{"blocks with labels are objects", `
			rule "a" "b" { port = 80 }
			rule "a" "c" { port = 81 }`,
			`{"rule":{"a":{"b":{"port":80},"c":{"port":81}}}}`},
		{"the escape block has arguments with the names of meta-arguments", `_ { count = 3 }`, `{"count":3}`},
		{"meta-arguments are no fields", `
			count = 2
			provider = sim.west
			depends_on = [sim_x.y]
			lifecycle { create_before_destroy = true }
			a = 1`, `{"a":1}`},
		{"a dynamic block is an expression", `
			dynamic "rule" {
				for_each = var.rules
				content { port = rule.value }
			}`,
			"{\"rule\":\"${concat([for rule in [for key, value in (\\nvar.rules\\n) : {key = key, value = value}] : {\\n\\\"port\\\" = (\\nrule.value\\n),\\n}])}\"}"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tree := mustLoad(t, "resource \"sim_x\" \"y\" {}\nvariable \"x\" {}\nvariable \"rules\" {}\nprovider \"sim\" {\n alias = \"west\"\n}\nresource \"sim_x\" \"main\" {\n"+tc.body+"\n}\n")
			got := tree.Root.Blocks[BlockID{Type: "sim_x", Name: "main"}].Spec
			var want, compact map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(specText(t, got)), &compact); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, compact); d != "" {
				t.Errorf("the spec differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestLoadReportsAllProblems(t *testing.T) {
	tests := []struct {
		name, files string
		want        []string
	}{
		{"what cannot be carried", `
resource "sim_x" "a" {
  provisioner "local-exec" { command = "x" }
  connection { host = "x" }
}
terraform {
  experiments = [x]
  provider_meta "sim" {}
}
wrong "x" {}
resource "sim_x" "b" {
  count    = 1
  for_each = {}
}
`, []string{
			"main.tf:3:3 Unsupported provisioner", "main.tf:4:3 Unsupported connection", "main.tf:7:3 Unsupported experiments",
			"main.tf:8:3 Unsupported provider_meta", "main.tf:10:1 Unsupported block type", `main.tf:13:3 Invalid combination of "count" and "for_each"`,
		}},
		{"syntax errors of several files", "a {\n-- b.tf --\nresource {\n", []string{"b.tf:1:10 Unclosed configuration block", "main.tf:1:3 Unclosed configuration block"}},
		{"duplicates", `
variable "a" {}
variable "a" {}
locals { x = 1 }
locals { x = 2 }
resource "sim_x" "a" {}
resource "sim_x" "a" {}
module "m" { source = "./m" }
module "m" { source = "./m" }
output "o" { value = 1 }
output "o" { value = 1 }
-- m/main.tf --
`, []string{
			"main.tf:3:1 Duplicate variable declaration", "main.tf:5:10 Duplicate local value definition", "main.tf:7:1 Duplicate resource declaration",
			"main.tf:9:1 Duplicate module call declaration", "main.tf:11:1 Duplicate output declaration",
		}},
		{"module sources", `
module "a" { source = "./a" }
module "b" { source = "hashicorp/consul/aws" }
module "c" { source = "../c" }
module "d" { source = "./d" }
module "e" { source = var.x }
variable "x" {}
-- d/main.tf --
module "again" { source = "../d" }
`, []string{
			"d/main.tf:1:1 Module calls itself", "main.tf:2:1 Unreadable module directory", "main.tf:3:1 Module not installed",
			"main.tf:4:1 Module outside of the directory", "main.tf:6:23 Variables not allowed",
		}},
		{"variables", `
variable "version" {}
variable "t" { type = foo }
variable "d" {
  type    = number
  default = "x"
}
variable "n" {
  nullable = false
  default  = null
}
variable "e" { default = var.d }
`, []string{
			"main.tf:2:10 Invalid variable name", "main.tf:3:23 Invalid type specification", "main.tf:6:13 Invalid default value for variable",
			"main.tf:10:14 Invalid default value for variable", "main.tf:12:26 Variables not allowed",
		}},
		{"an override without a base", "-- x_override.tf --\nresource \"sim_x\" \"a\" {}\n", []string{"x_override.tf:1:1 Missing base resource to override"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tree, diags := Load(bundle(tc.files), nil)
			if tree != nil {
				t.Error("the module is accepted")
			}
			var got []string
			for _, d := range diags {
				got = append(got, d.Attribute+" "+d.Summary)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the report differs (-want +got):\n%s\n%s", d, report(diags))
			}
		})
	}
}

func TestOrdinaryTextIsNotTooComplex(t *testing.T) {
	text := strings.Repeat(`\u003cp\u003e \"quoted\" (x) `, 1000)
	mustLoad(t, "-- main.tf.json --\n"+`{"locals": {"a": "`+text+`"}}`)
	mustLoad(t, "locals { a = \""+strings.Repeat("(-", 1000)+"\" }\n")
}

func TestHostileFilesAreRefusedSoon(t *testing.T) {
	many := Files{}
	for i := range 10_000 {
		many[fmt.Sprintf("f%d.tf", i)] = []byte("locals {}\n")
	}
	recursive := Files{}
	for i := range 30 {
		recursive[fmt.Sprintf("m%d/main.tf", i)] = fmt.Appendf(nil, "module \"a\" {\n source = \"../m%d\"\n}\nmodule \"b\" {\n source = \"../m%d\"\n}\n", i+1, i+1)
	}
	recursive["main.tf"], recursive["m30/main.tf"] = recursive["m0/main.tf"], []byte("locals {}")
	recursive["main.tf"] = []byte("module \"a\" {\n source = \"./m0\"\n}\n")
	tests := []struct {
		name  string
		files Files
		want  string
	}{
		{"10,000 files", many, "Module too large"},
		{"a file of 100 MiB", Files{"x.bin": make([]byte, 100<<20)}, "Module too large"},
		{"a configuration file of 2 MiB", Files{"main.tf": make([]byte, 2<<20)}, "File too large"},
		{"a path out of the directory", Files{"../main.tf": nil}, "Invalid file name"},
		{"an absolute path", Files{"/etc/main.tf": nil}, "Invalid file name"},
		{"a path with a detour", Files{"a/../main.tf": nil}, "Invalid file name"},
		{"2^30 calls of modules", recursive, "Too many modules"},
		{"nested brackets", Files{"main.tf": []byte("locals {\n a = " + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "\n}\n")}, "File too complex"},
		{"nested templates", Files{"main.tf": []byte("locals {\n a = " + strings.Repeat(`"${`, 100_000) + "1" + strings.Repeat(`}"`, 100_000) + "\n}\n")}, "File too complex"},
		{"nested operators", Files{"main.tf": []byte("locals {\n a = " + strings.Repeat("!", 500_000) + "true\n}\n")}, "File too complex"},
		{"nested blocks", Files{"main.tf": []byte(strings.Repeat("a {\n", 100_000) + strings.Repeat("}\n", 100_000))}, "File too complex"},
		{"nested JSON", Files{"main.tf.json": []byte(`{"locals":{"a":` + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000) + "}}")}, "File too complex"},
		{"nested brackets in a JSON string", Files{"main.tf.json": []byte(`{"variable":{"a":{"type":"` + strings.Repeat("list(", 150_000) + "any" + strings.Repeat(")", 150_000) + `"}}}`)}, "File too complex"},
		{"nested operators in a JSON string", Files{"main.tf.json": []byte(`{"module":{"a":{"source":"./a","depends_on":["` + strings.Repeat("!", 900_000) + `a.b"]}}}`)}, "File too complex"},
		{"escaped brackets in a JSON string", Files{"main.tf.json": []byte(`{"module":{"a":{"source":"./a","depends_on":["` + strings.Repeat(`\u0028`, 100_000) + `a.b"]}}}`)}, "File too complex"},
		{"a manifest that leads out of the directory", Files{
			"main.tf": []byte("module \"a\" {\n source = \"x/y/z\"\n}\n"), manifestFile: []byte(`{"Modules":[{"Key":"a","Dir":"../../etc"}]}`),
		}, "Module not installed"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tree, diags := Load(tc.files, nil)
			if tree != nil || !strings.Contains(report(diags), tc.want) {
				t.Errorf("got %.2000s, want %s", report(diags), tc.want)
			}
		})
	}
}
