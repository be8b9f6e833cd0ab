package module

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/diag"
)

func TestVariableFiles(t *testing.T) {
	want := map[string]any{"a": "x$${y}", "n": int64(3), "list": []any{"p", int64(1)}, "o": map[string]any{"k": true, "none": nil}, "text": "line\n"}
	for name, content := range map[string]string{
		"terraform.tfvars":   "a = \"x$${y}\" # a comment\nn = 3\nlist = [\"p\", 1]\no = { k = true, none = null }\ntext = <<-EOT\n  line\n  EOT\n",
		"x.auto.tfvars.json": `{"a": "x${y}", "n": 3, "list": ["p", 1], "o": {"k": true, "none": null}, "text": "line\n"}`,
	} {
		got, diags := ReadVariableFile(name, []byte(content))
		if d := cmp.Diff(want, got); d != "" || len(diags) > 0 {
			t.Errorf("%s: (-want +got):\n%s%s", name, d, report(diags))
		}
	}
	for content, want := range map[string]string{
		"a = var.x\n": "f.tfvars:1:5 Variables not allowed", "a = upper(\"x\")\n": "f.tfvars:1:5 Function calls not allowed", "a {}\n": "f.tfvars:1:1 Unexpected \"a\" block", "a = \n": "f.tfvars:1:5 Invalid expression",
	} {
		_, diags := ReadVariableFile("f.tfvars", []byte(content))
		if got := summaries(diags); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
}

func TestVariableTexts(t *testing.T) {
	tree := mustLoad(t, `
variable "untyped" { default = "" }
variable "text" {
  type    = string
  default = ""
}
variable "number" {
  type    = number
  default = 0
}
variable "list" {
  type    = list(string)
  default = []
}
variable "any" {
  type    = any
  default = null
}
`)
	for _, tc := range []struct {
		name, text string
		want       any
	}{
		{"untyped", `["x"]`, `["x"]`}, {"text", "${x}", "$${x}"}, {"number", "3", "3"}, {"list", `["x", "y"]`, []any{"x", "y"}}, {"any", `{ a = 1 }`, map[string]any{"a": int64(1)}},
	} {
		got, diags := tree.Root.Variables[tc.name].ReadVariableText("-var", tc.text)
		if d := cmp.Diff(tc.want, got); d != "" || len(diags) > 0 {
			t.Errorf("%s: (-want +got):\n%s%s", tc.name, d, report(diags))
		}
	}
	if _, diags := tree.Root.Variables["list"].ReadVariableText("-var", "[x]"); !diag.HasErrors(diags) {
		t.Error("a reference is accepted")
	}
}
