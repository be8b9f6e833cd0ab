package speculation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/tests/clitest"
)

// The files of a directory are those of a module, or have objects. A plan of it is of the Module and of the resources.
func TestObjectsOfADirectory(t *testing.T) {
	for _, tc := range []struct {
		reason string
		files  map[string]string
		flags  manifest.Flags
		want   []string
		says   string
	}{
		{"Terraform files alone", map[string]string{"main.tf": "", "a.tf.json": "{}", "terraform.tfvars.json": "{}"}, manifest.Flags{},
			[]string{"ConfigMap/shop-tf", "Module/shop", "module.shop"}, ""},
		{"another name", map[string]string{"main.tf": ""}, named("other"), []string{"ConfigMap/other-tf", "Module/other", "module.other"}, ""},
		{"objects beside them", map[string]string{"main.tf": "", "net.yaml": clitest.NetworkFile}, manifest.Flags{},
			[]string{"sim-network/a", "ConfigMap/shop-tf", "Module/shop", "sim_network.a", "module.shop"}, ""},
		{"a Module among the objects", map[string]string{"main.tf": "", "m.yaml": clitest.ModuleObject}, manifest.Flags{}, []string{"Module/written", "ConfigMap/written-tf", "module.written"}, ""},
		{"files that the module reads", map[string]string{"main.tf": `locals { a = yamldecode(file("values.yaml")) }`, "values.yaml": "a: 1\n", "sub/net.yaml": clitest.NetworkFile}, manifest.Flags{},
			[]string{"ConfigMap/shop-tf", "Module/shop", "module.shop"}, ""},
		{"sub-directories", map[string]string{"main.tf": "", "sub/net.yaml": clitest.NetworkFile, ".terraform/modules/a/net.yaml": clitest.NetworkFile}, recursive(),
			[]string{"sim-network/a", "ConfigMap/shop-tf", "Module/shop", "sim_network.a", "module.shop"}, ""},
		{"a sensitive value", map[string]string{"main.tf": "variable \"p\" { sensitive = true }\n", "terraform.tfvars": "p = 1\nq = 2\n"}, manifest.Flags{},
			[]string{"ConfigMap/shop-tf", "Secret/shop-vars", "Module/shop", "module.shop"}, "Value for undeclared variable"},
		{"no Terraform files", map[string]string{"net.yaml": clitest.NetworkFile}, manifest.Flags{}, []string{"sim-network/a", "sim_network.a"}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var errOut bytes.Buffer
			s := &session.Session{Terminal: terminal.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &errOut})}
			tc.flags.Filenames = []string{clitest.ModuleDir(t, "shop", tc.files)}
			ms, err := manifest.Read(t.Context(), s, &tc.flags)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var rs []record.Recorded
			for _, m := range ms {
				got = append(got, m.Object.GetKind()+"/"+m.Object.GetName())
				rs = append(rs, record.Recorded{Manifest: m})
			}
			for _, sc := range Scopes(rs) {
				got = append(got, sc.planned()...)
			}
			if d := cmp.Diff(tc.want, got); d != "" || !strings.Contains(errOut.String(), tc.says) {
				t.Errorf("%s (-want +got):\n%s", errOut.String(), d)
			}
			if strings.HasPrefix(tc.reason, "a Module") {
				if config, _, _ := unstructured.NestedString(ms[0].Object.Object, "spec", "providers", "sim"); config != "eu" {
					t.Errorf("the Module lost its providers: %v", ms[0].Object.Object)
				}
			}
		})
	}
}

// named returns the flags with --module.
func named(module string) manifest.Flags {
	var f manifest.Flags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(fs)
	_ = fs.Set("module", module)
	return f
}

func recursive() manifest.Flags {
	f := manifest.Flags{}
	f.Recursive = true
	return f
}
