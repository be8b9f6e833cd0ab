package manifest_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestRefusedTerraformFiles(t *testing.T) {
	module := clitest.ModuleDir(t, "shop", map[string]string{"main.tf": "variable \"a\" {}\n"})
	other := clitest.ModuleDir(t, "other", map[string]string{"main.tofu": ""})
	objects := clitest.ModuleDir(t, "objects", map[string]string{"net.yaml": clitest.NetworkFile})
	wrong := clitest.ModuleDir(t, "wrong", map[string]string{"main.tf": "x {}\ny {}\n", "bad.yaml": "apiVersion: [\n"})
	twice := clitest.ModuleDir(t, "twice", map[string]string{"main.tf": "", "m.yaml": clitest.ModuleObject + "---\n" + strings.ReplaceAll(clitest.ModuleObject, "written", "second")})
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"-f", module + "/main.tf"}, []string{"main.tf is a Terraform file, and a module is a directory: write -f " + module}},
		{[]string{"-f", module, "-f", other}, []string{"name one such directory at a time"}},
		{[]string{"-f", module}, []string{`variable "a" is not set (` + module + "/main.tf:1): use --var a=VALUE, a .tfvars file or TF_VAR_a"}},
		{[]string{"-f", module, "--var", "b=1"}, []string{"--var=b: the root module in"}},
		{[]string{"-f", module, "--var", "b"}, []string{"write NAME=VALUE"}},
		{[]string{"-f", module, "--var-file", "missing"}, []string{"--var-file: open missing"}},
		{[]string{"-f", objects, "--var", "b=1"}, []string{"--var and --var-file give values to the variables of Terraform files"}},
		{[]string{"-f", objects, "--module", "b"}, []string{"--module names the Module for a directory with Terraform files"}},
		{[]string{"-f", wrong}, []string{"wrong/main.tf:1:1: Unsupported block type", "wrong/main.tf:2:1: Unsupported block type", "wrong/bad.yaml"}},
		{[]string{"-f", twice}, []string{"have Modules without spec.source: choose the one for " + twice}},
	} {
		f := clitest.New(t, cli.Command)
		_, errOut, code := f.Run(append([]string{"plan"}, tc.args...)...)
		for _, want := range tc.want {
			if !strings.Contains(errOut, want) || code != exit.Failed || len(f.Plans) > 0 {
				t.Errorf("%v: code %d, missing %q in: %s", tc.args, code, want, errOut)
			}
		}
	}
}
