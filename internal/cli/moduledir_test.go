package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// moduleDir writes files into a directory of a name, and returns its path.
func moduleDir(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	moduleObject = "apiVersion: hykube.io/v1alpha1\nkind: Module\nmetadata: {name: written}\nspec: {providers: {sim: eu}}\n"
	networkFile  = "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: a}\n"
)

// The files of a directory are those of a module, or have objects. A plan of it is of the Module and of the resources.
func TestObjectsOfADirectory(t *testing.T) {
	for _, tc := range []struct {
		reason string
		files  map[string]string
		flags  fileFlags
		want   []string
		says   string
	}{
		{"Terraform files alone", map[string]string{"main.tf": "", "a.tf.json": "{}", "terraform.tfvars.json": "{}"}, fileFlags{},
			[]string{"ConfigMap/shop-tf", "Module/shop", "module.shop"}, ""},
		{"another name", map[string]string{"main.tf": ""}, fileFlags{modules: moduleFlags{name: "other"}}, []string{"ConfigMap/other-tf", "Module/other", "module.other"}, ""},
		{"objects beside them", map[string]string{"main.tf": "", "net.yaml": networkFile}, fileFlags{},
			[]string{"sim-network/a", "ConfigMap/shop-tf", "Module/shop", "sim_network.a", "module.shop"}, ""},
		{"a Module among the objects", map[string]string{"main.tf": "", "m.yaml": moduleObject}, fileFlags{}, []string{"Module/written", "ConfigMap/written-tf", "module.written"}, ""},
		{"files that the module reads", map[string]string{"main.tf": `locals { a = yamldecode(file("values.yaml")) }`, "values.yaml": "a: 1\n", "sub/net.yaml": networkFile}, fileFlags{},
			[]string{"ConfigMap/shop-tf", "Module/shop", "module.shop"}, ""},
		{"sub-directories", map[string]string{"main.tf": "", "sub/net.yaml": networkFile, ".terraform/modules/a/net.yaml": networkFile}, recursive(),
			[]string{"sim-network/a", "ConfigMap/shop-tf", "Module/shop", "sim_network.a", "module.shop"}, ""},
		{"a sensitive value", map[string]string{"main.tf": "variable \"p\" { sensitive = true }\n", "terraform.tfvars": "p = 1\nq = 2\n"}, fileFlags{},
			[]string{"ConfigMap/shop-tf", "Secret/shop-vars", "Module/shop", "module.shop"}, "Value for undeclared variable"},
		{"no Terraform files", map[string]string{"net.yaml": networkFile}, fileFlags{}, []string{"sim-network/a", "sim_network.a"}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var errOut bytes.Buffer
			s := &session{terminal: newTerminal(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &errOut})}
			tc.flags.Filenames = []string{moduleDir(t, "shop", tc.files)}
			ms, err := s.manifests(t.Context(), &tc.flags)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var rs []recorded
			for _, m := range ms {
				got = append(got, m.object.GetKind()+"/"+m.object.GetName())
				rs = append(rs, recorded{manifest: m})
			}
			for _, sc := range scopes(rs) {
				got = append(got, sc.planned()...)
			}
			if d := cmp.Diff(tc.want, got); d != "" || !strings.Contains(errOut.String(), tc.says) {
				t.Errorf("%s (-want +got):\n%s", errOut.String(), d)
			}
			if strings.HasPrefix(tc.reason, "a Module") {
				if config, _, _ := unstructured.NestedString(ms[0].object.Object, "spec", "providers", "sim"); config != "eu" {
					t.Errorf("the Module lost its providers: %v", ms[0].object.Object)
				}
			}
		})
	}
}

func recursive() fileFlags {
	f := fileFlags{}
	f.Recursive = true
	return f
}

func TestRefusedTerraformFiles(t *testing.T) {
	module := moduleDir(t, "shop", map[string]string{"main.tf": "variable \"a\" {}\n"})
	other := moduleDir(t, "other", map[string]string{"main.tofu": ""})
	objects := moduleDir(t, "objects", map[string]string{"net.yaml": networkFile})
	wrong := moduleDir(t, "wrong", map[string]string{"main.tf": "x {}\ny {}\n", "bad.yaml": "apiVersion: [\n"})
	twice := moduleDir(t, "twice", map[string]string{"main.tf": "", "m.yaml": moduleObject + "---\n" + strings.ReplaceAll(moduleObject, "written", "second")})
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
		f := newFakeServer(t)
		_, errOut, code := f.run(append([]string{"plan"}, tc.args...)...)
		for _, want := range tc.want {
			if !strings.Contains(errOut, want) || code != ExitError || len(f.plans) > 0 {
				t.Errorf("%v: code %d, missing %q in: %s", tc.args, code, want, errOut)
			}
		}
	}
}

// The command that a plan prints has the same values, but no text of --var, which may be a secret.
func TestRepeatedValues(t *testing.T) {
	f := &fileFlags{}
	f.Filenames = []string{"shop"}
	f.modules.name = "eu"
	if err := (assignments{&f.modules, false}).Set("password=secret"); err != nil {
		t.Fatal(err)
	}
	if err := (assignments{&f.modules, true}).Set("a b.tfvars"); err != nil {
		t.Fatal(err)
	}
	if got := f.repeatFlags(); got != " -f shop --module eu --var password=... --var-file 'a b.tfvars'" {
		t.Errorf("got %q", got)
	}
}
