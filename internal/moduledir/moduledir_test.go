package moduledir

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// write makes a directory with files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func none(string) bool { return false }

func mustRead(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := Read(dir, none)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const callsModules = `
module "local" {
  source = "./modules/local"
}
module "registry" {
  source  = "hykube/registry/sim"
  version = "1.0.0"
}
`

const manifest = `{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"local","Source":"./modules/local","Dir":"modules/local"},{"Key":"registry","Source":"registry.terraform.io/hykube/registry/sim","Version":"1.0.0","Dir":".terraform/modules/registry"},{"Key":"registry.inner","Source":"./modules/inner","Dir":".terraform/modules/registry/modules/inner"}]}`

// The package has the files of the modules that are called, and what these may read. It has no state, no values and no keys.
func TestFilesOfADirectory(t *testing.T) {
	files := map[string]string{
		"main.tf": callsModules, "extra.tf.json": `{"locals": {"a": 1}}`, "new.tofu": "", "notes.txt": "note",
		"modules/local/main.tf": `output "a" { value = 1 }`, "modules/unused/main.tf": "",
		".terraform/modules/modules.json":                   manifest,
		".terraform/modules/registry/main.tf":               `module "inner" { source = "./modules/inner" }`,
		".terraform/modules/registry/modules/inner/main.tf": "",
		".terraform/modules/registry/examples/a/main.tf":    "",
		".terraform/modules/registry/README.md":             "about",
		".terraform/modules/registry/.git/config":           "secret",
		".terraform/modules/other/main.tf":                  "",
		".terraform/modules/other/README.md":                "",
		".terraform/providers/x/terraform-provider-x":       "binary",
		".terraform/terraform.tfstate":                      "{}",
		".terraform.lock.hcl":                               "lock",
		".git/config":                                       "secret",
		".env":                                              "secret",
		"terraform.tfstate":                                 "secret",
		"terraform.tfstate.backup":                          "secret",
		"terraform.tfstate.d/prod/terraform.tfstate":        "secret",
		"plan.tfplan":                                       "secret",
		"terraform.tfvars":                                  "",
		"prod.tfvars":                                       "",
		"config.yaml":                                       "object",
		"templates/user-data.tpl":                           "hello",
	}
	config := []string{".terraform/modules/modules.json", ".terraform/modules/registry/main.tf", ".terraform/modules/registry/modules/inner/main.tf",
		"extra.tf.json", "main.tf", "modules/local/main.tf", "new.tofu"}
	for _, tc := range []struct {
		reason, main string
		want         []string
	}{
		{"no expression reads a file", callsModules, config},
		{"an expression reads files", callsModules + `locals { t = file("notes.txt") }`,
			append([]string{".terraform/modules/registry/README.md", "notes.txt", "templates/user-data.tpl"}, config...)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			all := maps.Clone(files)
			all["main.tf"] = tc.main
			d, err := Read(write(t, all), func(name string) bool { return name == "config.yaml" })
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, keysOf(d.Files)); diff != "" || string(d.Lock) != "lock" {
				t.Errorf("lock %q, files (-want +got):\n%s", d.Lock, diff)
			}
		})
	}
}

func TestRefusedDirectories(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	many := map[string]string{"main.tf": `locals { t = file("main.tf") }`}
	for i := range MaxFiles {
		many["f/"+strings.Repeat("x", 1+i/26)+string(rune('a'+i%26))] = ""
	}
	for _, tc := range []struct {
		reason string
		files  map[string]string
		want   string
	}{
		{"files are too large", map[string]string{"main.tf": `locals { t = file("a") }`, "a": large, "b": large, "c": large, "d": large}, "The largest files are a, b, c, d, main.tf. Move"},
		{"one file is too large", map[string]string{"main.tf": `locals { t = file("a") }`, "a": strings.Repeat(large, 4)}, `may have 983040 bytes. These have more: a. Move`},
		{"too many files", many, "has 1001 files, and a Module may have 1000"},
		{"a module is not installed", map[string]string{"main.tf": callsModules, "modules/local/main.tf": ""}, "shop/main.tf:5:1: Module not installed: The source \"hykube/registry/sim\" is not a directory of this module, and .terraform/modules/modules.json does not list it. Run terraform init"},
		{"a module is outside", map[string]string{"main.tf": `module "a" { source = "../a" }`}, "shop/main.tf:1:1: Module outside of the directory"},
		{"the manifest leads outside", map[string]string{"main.tf": `module "a" { source = "x/y/z" }`, ".terraform/modules/modules.json": `{"Modules":[{"Key":"a","Dir":"../../etc"}]}`}, "which is not within the module's directory"},
		{"two errors are listed at once", map[string]string{"a.tf": "x {}", "b.tf": "y {}"}, "shop/b.tf:1:1: Unsupported block type"},
		{"an expression reads a private key", map[string]string{"main.tf": `locals { t = file("a.pem") }`, "a.pem": "key"}, "shop/a.pem: File left out: The name is that of a private key"},
		{"a part is not supported", map[string]string{"a.tf": "ephemeral \"sim_password\" \"p\" {}"}, "shop/a.tf:1:1: Not supported yet"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := Read(write(t, tc.files), none)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestSymbolicLinks(t *testing.T) {
	for _, tc := range []struct {
		reason, main, link, to, want string
	}{
		{"a configuration file", "", "more.tf", "/etc/passwd", "put a copy in place of more.tf"},
		{"a directory of modules", `module "a" { source = "./modules/a" }`, "modules", "..", "put a copy in place of modules"},
		{"a file that the module may read", `locals { t = file("note") }`, "note", "/etc/passwd", "put a copy in place of note"},
		{"a file that no module reads", "", "note", "/etc/passwd", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			dir := write(t, map[string]string{"main.tf": tc.main})
			if err := os.Symlink(tc.to, filepath.Join(dir, tc.link)); err != nil {
				t.Fatal(err)
			}
			d, err := Read(dir, none)
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want == "" && (err != nil || len(d.Files) != 1) {
				t.Errorf("%v, %v", err, d)
			}
		})
	}
}

// A private key does not get into a ConfigMap, and the user hears of it.
func TestKeysAreLeftOut(t *testing.T) {
	d := mustRead(t, write(t, map[string]string{"main.tf": `locals { t = file("b.txt") }`, "a.pem": "key", "id_rsa": "key", "b.txt": ""}))
	var left []string
	for _, w := range d.Warnings {
		left = append(left, w.Attribute)
	}
	if diff := cmp.Diff([]string{"a.pem", "id_rsa"}, left); diff != "" || len(d.Files) != 2 {
		t.Errorf("%v (-want +got):\n%s", keysOf(d.Files), diff)
	}
}

const variables = `
variable "a" {}
variable "b" { type = list(string) }
variable "secret" {
  type      = string
  sensitive = true
}
variable "secrets" {
  type      = map(string)
  sensitive = true
}
variable "nothing" {
  default   = "x"
  sensitive = true
}
`

// Each place of values wins over those before it.
func TestPrecedenceOfValues(t *testing.T) {
	files := map[string]string{"main.tf": variables}
	var environ []string
	var given []Assignment
	expect := func(place, want string) {
		t.Helper()
		values, err := mustRead(t, write(t, files)).Values(environ, given)
		if err != nil || values.Inputs["a"] != want {
			t.Errorf("%s: got %v, %v", place, values, err)
		}
	}
	environ = []string{"PATH=/bin", "TF_VAR_a=environment", "TF_VAR_undeclared=x"}
	expect("environment", "environment")
	files["terraform.tfvars"] = `a = "terraform.tfvars"`
	expect("terraform.tfvars", "terraform.tfvars")
	files["terraform.tfvars.json"] = `{"a": "terraform.tfvars.json"}`
	expect("terraform.tfvars.json", "terraform.tfvars.json")
	files["a.auto.tfvars"] = `a = "a.auto"`
	expect("a.auto.tfvars", "a.auto")
	files["b.auto.tfvars.json"] = `{"a": "b.auto"}`
	expect("b.auto.tfvars.json", "b.auto")
	files["other.tfvars"] = `a = "other"`
	expect("a file that nobody names", "b.auto")
	given = []Assignment{{File: filepath.Join(write(t, files), "other.tfvars")}}
	expect("--var-file", "other")
	given = append(given, Assignment{Name: "a", Text: "var ${x}"})
	expect("--var", "var $${x}")
	given = append(given, given[0])
	expect("--var-file after --var", "other")
}

func TestValuesWithProblems(t *testing.T) {
	d := mustRead(t, write(t, map[string]string{"main.tf": variables, "terraform.tfvars": "other = 1\nb = [\"x\"]\n"}))
	values, err := d.Values(nil, nil)
	if err != nil || len(values.Warnings) != 1 || !strings.Contains(Describe("shop", values.Warnings[0]), `shop/terraform.tfvars: Value for undeclared variable: The root module has no variable "other"`) {
		t.Errorf("%v, %v", values, err)
	}
	if d := cmp.Diff(map[string]any{"b": []any{"x"}}, values.Inputs); d != "" {
		t.Error(d)
	}
	for _, tc := range []struct {
		given Assignment
		want  string
	}{
		{Assignment{Name: "other", Text: "1"}, "--var=other: the root module in"},
		{Assignment{Name: "b", Text: "x"}, "--var=b:1:1: Variables not allowed"},
		{Assignment{File: "missing.tfvars"}, "--var-file: open missing.tfvars: no such file"},
	} {
		if _, err := d.Values(nil, []Assignment{tc.given}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %q", tc.given, err, tc.want)
		}
	}
}

// Sensitive values are in a Secret, and the inputs refer to it.
func TestPack(t *testing.T) {
	d := mustRead(t, write(t, map[string]string{
		"main.tf": variables + `module "a" { source = "./m" }` + "\n" + `locals { t = filebase64("m/b") }`, "m/main.tf": "", "m/b": "\xff", "m__b": "text",
		"terraform.tfvars": `a = "x$${y}"` + "\n" + `secret = "p$${w}"` + "\n" + `secrets = { k = "v$${w}" }` + "\nnothing = null\n",
	}))
	values, err := d.Values(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	written := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Module", "metadata": map[string]any{"name": "shop", "namespace": "prod", "labels": map[string]any{"team": "a"}},
		"spec": map[string]any{"providers": map[string]any{"sim": "eu"}, "inputs": map[string]any{"a": "old", "b": "${sim_network.main.zones}"}},
	}}
	p, err := d.Pack("shop", values, written)
	if err != nil {
		t.Fatal(err)
	}
	data := p.ConfigMap.Object["data"].(map[string]any)
	keys := keysOf(data)
	other := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "main.tf" || k == "m__main.tf" })
	if len(keys) != 3 || len(other) != 1 || len(other[0]) != 64 || data[other[0]] != "text" {
		t.Errorf("keys %v", keys)
	}
	if d := cmp.Diff(map[string]any{"m__b": "/w=="}, p.ConfigMap.Object["binaryData"]); d != "" {
		t.Error(d)
	}
	secrets := map[string]string{}
	for name, text := range p.Secret.Object["data"].(map[string]any) {
		raw, err := base64.StdEncoding.DecodeString(text.(string))
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = string(raw)
	}
	if d := cmp.Diff(map[string]string{"secret": "p${w}", "secrets": `{"k":"v${w}"}`}, secrets); d != "" {
		t.Error(d)
	}
	want := map[string]any{
		"providers": map[string]any{"sim": "eu"},
		"source": map[string]any{"configMap": "shop-tf", "items": []any{
			map[string]any{"key": "m__b", "path": "m/b"}, map[string]any{"key": "m__main.tf", "path": "m/main.tf"},
			map[string]any{"key": other[0], "path": "m__b"}, map[string]any{"key": "main.tf", "path": "main.tf"},
		}},
		"inputs": map[string]any{"a": "x$${y}", "b": "${sim_network.main.zones}", "nothing": nil,
			"secret": "${secret.shop-vars.secret}", "secrets": "${jsondecode(secret.shop-vars.secrets)}"},
	}
	if d := cmp.Diff(want, p.Module.Object["spec"]); d != "" {
		t.Errorf("spec (-want +got):\n%s", d)
	}
	for _, o := range p.Objects() {
		if o.GetNamespace() != "prod" {
			t.Errorf("%s in namespace %q", o.GetKind(), o.GetNamespace())
		}
	}
	if written.Object["spec"].(map[string]any)["source"] != nil {
		t.Error("the written Module changed")
	}
}

func TestModuleNames(t *testing.T) {
	for dir, want := range map[string]string{
		"a/shop": "shop", "a/shop-2/": "shop-2", "My_Infra.d": "my-infra-d", "2024": "m-2024", "-x-": "x", "a/" + strings.Repeat("x", 300): strings.Repeat("x", 200), "/": "", "__": "",
	} {
		got, err := ModuleName(dir)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", dir, got, err)
		}
	}
}

func TestHasConfiguration(t *testing.T) {
	for name, want := range map[string]bool{"a.tf": true, "a.tf.json": true, "a.tofu": true, "a.yaml": false, "a.tfvars": false, "sub/a.tf": false, ".a.tf": false} {
		if got := Has(write(t, map[string]string{name: ""})); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
