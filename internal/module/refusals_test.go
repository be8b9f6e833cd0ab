package module

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/tests/harness/machine"
)

// refused are modules that Terraform and the loader or the expansion both refuse.
var refused = map[string]string{
	"cycle of locals":                         "locals {\n a = local.b\n b = local.a\n}\n",
	"cycle through a module":                  "module \"m\" {\n source = \"./m\"\n x = module.m.y\n}\n-- m/main.tf --\nvariable \"x\" {}\noutput \"y\" { value = var.x }\n",
	"undeclared variable":                     "locals { a = var.x }\n",
	"undeclared resource":                     "locals { a = terraform_data.x.id }\n",
	"undeclared module":                       "locals { a = module.x.y }\n",
	"undeclared output":                       "module \"m\" { source = \"./m\" }\noutput \"o\" { value = module.m.nope }\n-- m/main.tf --\nlocals {}\n",
	"unknown function":                        "locals { a = nope(1) }\n",
	"each without for_each":                   "resource \"terraform_data\" \"a\" { input = each.key }\n",
	"count with for_each":                     "resource \"terraform_data\" \"a\" {\n for_each = {}\n input = count.index\n}\n",
	"self outside of a postcondition":         "resource \"terraform_data\" \"a\" { input = self.id }\n",
	"unsupported argument of a module":        "module \"m\" {\n source = \"./m\"\n x = 1\n}\n-- m/main.tf --\nlocals {}\n",
	"missing argument of a module":            "module \"m\" { source = \"./m\" }\n-- m/main.tf --\nvariable \"x\" {}\n",
	"wrong type of an argument":               "module \"m\" {\n source = \"./m\"\n x = [1]\n}\n-- m/main.tf --\nvariable \"x\" { type = string }\n",
	"unknown block":                           "foo \"x\" {}\n",
	"unknown attribute":                       "variable \"x\" { foo = 1 }\n",
	"two labels":                              "variable \"x\" \"y\" {}\n",
	"invalid name":                            "resource \"terraform_data\" \"1x\" {}\n",
	"sensitive output of the root":            "output \"o\" { value = sensitive(1) }\n",
	"for_each of a tuple":                     "resource \"terraform_data\" \"a\" { for_each = [1] }\n",
	"for_each of a sensitive value":           "resource \"terraform_data\" \"a\" { for_each = toset([sensitive(\"x\")]) }\n",
	"negative count":                          "resource \"terraform_data\" \"a\" { count = -1 }\n",
	"default of a wrong type":                 "variable \"x\" {\n type = number\n default = \"y\"\n}\n",
	"null for a variable that must not be":    "module \"m\" {\n source = \"./m\"\n x = null\n}\n-- m/main.tf --\nvariable \"x\" { nullable = false }\n",
	"provider alias that does not exist":      "resource \"terraform_data\" \"a\" { provider = terraform.west }\n",
	"missing configuration alias":             "module \"m\" { source = \"./m\" }\n-- m/main.tf --\nterraform {\n required_providers {\n  terraform = {\n   source = \"terraform.io/builtin/terraform\"\n   configuration_aliases = [terraform.x]\n  }\n }\n}\n",
	"ephemeral value for another variable":    "module \"m\" {\n source = \"./m\"\n x = var.e\n}\nvariable \"e\" {\n ephemeral = true\n default = 1\n}\n-- m/main.tf --\nvariable \"x\" {}\nresource \"terraform_data\" \"a\" { count = var.x }\n",
	"removed that still exists":               "resource \"terraform_data\" \"a\" {}\nremoved {\n from = terraform_data.a\n}\n",
	"import without an id":                    "resource \"terraform_data\" \"a\" {}\nimport {\n to = terraform_data.a\n}\n",
	"check without an assertion":              "check \"c\" {}\n",
	"lifecycle argument of a data source":     "data \"terraform_remote_state\" \"a\" {\n backend = \"local\"\n lifecycle { ignore_changes = all }\n}\n",
	"depends_on of something undeclared":      "resource \"terraform_data\" \"a\" { depends_on = [terraform_data.b] }\n",
	"module.x as a value":                     "locals { a = module }\n",
	"path.nope":                               "locals { a = path.nope }\n",
	"two iterators":                           "resource \"terraform_data\" \"a\" {\n dynamic \"x\" {\n  for_each = []\n }\n}\n",
	"failed validation":                       "module \"m\" {\n source = \"./m\"\n x = 1\n}\n-- m/main.tf --\nvariable \"x\" {\n validation {\n  condition = var.x > 1\n  error_message = \"No.\"\n }\n}\nresource \"terraform_data\" \"a\" { count = var.x }\n",
	"failed validation of an unused variable": "module \"m\" {\n source = \"./m\"\n x = 1\n}\n-- m/main.tf --\nvariable \"x\" {\n validation {\n  condition = var.x > 1\n  error_message = \"No.\"\n }\n}\n",
	"attribute of a local that is not there":  "locals { a = { b = 1 } }\nresource \"terraform_data\" \"a\" { count = local.a.c }\n",
	"depends_on with a string":                "resource \"terraform_data\" \"a\" { depends_on = [1] }\n",
	"ignore_changes of an expression":         "resource \"terraform_data\" \"a\" {\n lifecycle { ignore_changes = [upper(\"x\")] }\n}\n",
	"provider block with a wrong reference":   "module \"m\" {\n source = \"./m\"\n providers = { terraform = 1 }\n}\n-- m/main.tf --\nlocals {}\n",
}

func TestRefusalsAreThoseOfTerraform(t *testing.T) {
	program := machine.Terraform.Need(t)
	for name, text := range refused {
		t.Run(name, func(t *testing.T) {
			files := bundle(text)
			tree, diags := Load(files, nil)
			if tree != nil {
				var x *Expansion
				x, diags = tree.Expand(Inputs{Name: "root"}, nothing)
				if !diag.HasErrors(diags) {
					v := x.Values(nothing)
					v.Variables()
					v.Outputs()
					diags = v.Diagnostics()
				}
			}
			if !diag.HasErrors(diags) {
				t.Error("the module is accepted")
			}
			if out, ok := planRefused(t, program, files); !ok {
				t.Errorf("Terraform accepts the module, which is refused here: %s\n%s", report(diags), out)
			}
		})
	}
}

// planRefused reports whether Terraform refuses to plan a module.
func planRefused(t *testing.T, program string, files Files) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for _, args := range [][]string{{"init", "-input=false", "-backend=false"}, {"plan", "-input=false"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		all.Write(out)
		if err != nil {
			return all.String(), true
		}
	}
	return all.String(), false
}
