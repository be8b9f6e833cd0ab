package plan_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/shell"
	"github.com/hykube/hykube/tests/clitest"
)

var hinted = regexp.MustCompile(`(?m)^  kubectl hykube (.*)$`)

// The command that plan -f prints makes the plans that plan -f showed.
func TestHintOfPlanDoesWhatWasShown(t *testing.T) {
	recordedFiles := strings.Join(strings.Split(clitest.FirstFiles, "---\n")[:2], "---\n")
	twoFiles := strings.ReplaceAll(recordedFiles, "{name: main}", "{name: main, namespace: r1}")
	for name, tc := range map[string]struct {
		files string
		flags []string
		want  string
	}{
		"plain":        {recordedFiles, nil, " -n default"},
		"target":       {recordedFiles, []string{"--target", "sim_network.main"}, "--target sim_network.main -n default"},
		"replace":      {recordedFiles, []string{"--replace", "sim-network/main"}, "--replace sim-network/main -n default"},
		"refresh":      {recordedFiles, []string{"--refresh", "All"}, "--refresh All -n default"},
		"exclude":      {recordedFiles, []string{"--all", "--exclude", "sim_network.other"}, "--exclude sim_network.other --all -n default"},
		"selector":     {strings.Replace(recordedFiles, "{name: main}", "{name: main, labels: {team: infra}}", 1), []string{"-l", "team=infra"}, "-l team=infra -n default"},
		"all":          {recordedFiles, []string{"--all"}, " --all -n default"},
		"force":        {recordedFiles, []string{"--force-conflicts"}, " --force-conflicts -n default"},
		"namespace":    {recordedFiles, []string{"-n", "r3"}, " -n r3"},
		"two":          {twoFiles, nil, ".yaml"},
		"destroy":      {recordedFiles, []string{"--destroy"}, " -n default"},
		"destroy some": {recordedFiles, []string{"--destroy", "--target", "sim_network.main"}, "--target sim_network.main -n default"},
		"refresh only": {recordedFiles, []string{"--refresh-only"}, " -n default"},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				named := p.DeepCopy()
				named.Spec.Targets = []string{"sim_network.main"}
				return clitest.Creates(named)
			}
			out, errOut, code := f.Run(append([]string{"plan", "-f", clitest.Write(t, tc.files)}, tc.flags...)...)
			found := hinted.FindAllStringSubmatch(out, -1)
			if code != exit.Done || len(found) != 1 || !strings.HasSuffix(found[0][1], tc.want) {
				t.Fatalf("code %d, hints %q, stderr %s, stdout:\n%s", code, found, errOut, out)
			}
			shown := map[string]v1alpha1.PlanSpec{}
			for _, p := range f.Plans {
				shown[p.Namespace] = p.Spec
			}
			args := strings.Fields(found[0][1])
			if args[0] != "plan" {
				args = append(args, "--auto-approve")
			}
			out, errOut, code = f.Run(args...)
			made := map[string]v1alpha1.PlanSpec{}
			for _, p := range f.Plans {
				if !p.Spec.Speculative {
					made[p.Namespace] = p.Spec
				}
			}
			if d := cmp.Diff(shown, made, cmpopts.IgnoreFields(v1alpha1.PlanSpec{}, "Speculative", "Timestamp", "Shown")); d != "" || code != exit.Done {
				t.Errorf("%q: code %d, stderr %s, plans (-shown +made):\n%s\n%s", args, code, errOut, d, out)
			}
		})
	}
}

func TestHintOfTwoNamespacesComesOnce(t *testing.T) {
	f := clitest.New(t, cli.Command)
	out, _, _ := f.Run("plan", "-f", clitest.Write(t, strings.ReplaceAll(strings.Join(strings.Split(clitest.FirstFiles, "---\n")[:2], "---\n"), "{name: main}", "{name: main, namespace: r1}")+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: r1}\n"))
	for _, want := range []string{"+ configmap/shared in namespace default", "+ configmap/shared in namespace r1", "Namespace default\n", "Namespace r1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"a/b.yaml": "a/b.yaml", "a b": "'a b'", "it's": `'it'\''s'`, "team in (a)": "'team in (a)'"} {
		if got := shell.Word(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// --replace alone plans everything, as in Terraform.
func TestReplaceAlonePlansTheNamespace(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange { return []v1alpha1.PlanChange{} }
	_, errOut, code := f.Run("apply", "--replace", "sim_network.main", "--auto-approve")
	if p := f.Plans["default/apply-x7k2d"]; code != exit.Done || p == nil || len(p.Spec.Targets) != 0 || !cmp.Equal(p.Spec.Replace, []string{"sim_network.main"}) {
		t.Errorf("code %d, stderr %s, plan %+v", code, errOut, p)
	}
}
