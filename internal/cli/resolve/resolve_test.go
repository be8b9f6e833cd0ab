package resolve_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestResolve(t *testing.T) {
	f := clitest.New(t, cli.Command)
	resolved := func() (names string) {
		for _, c := range f.Calls {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(c, "POST /apis/sim.hykube.io/v1/namespaces/default/sim-networks/"), "/resolve"); ok {
				names += name + " "
			}
		}
		f.Calls = nil
		return names
	}
	clitest.Network(f, "a", clitest.Lost)
	clitest.Network(f, "b", clitest.Lost)
	clitest.Network(f, "fine", nil)
	clitest.Network(f, "leaving", func(o map[string]any) {
		clitest.Lost(o)
		o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	const a, b = "sim-network.sim.hykube.io/a", "sim-network.sim.hykube.io/b"
	for _, tc := range []struct {
		reason      string
		args        string
		stdin       string
		code        int
		out, errOut string
		resolved    string
	}{
		{"no way", "sim-network/a", "", exit.Failed, "", "use exactly one of --adopt ID", ""},
		{"two ways", "sim-network/a --retry --forget", "", exit.Failed, "", "use exactly one of --adopt ID", ""},
		{"no object", "--retry", "", exit.Failed, "", "use exactly one of KIND/NAME", ""},
		{"all and one", "sim-network/a --all --retry", "", exit.Failed, "", "use exactly one of KIND/NAME", ""},
		{"not a selector", "-l a=b=c --retry", "", exit.Failed, "", "--selector=a=b=c", ""},
		{"one ID for two", "sim-network/a sim-network/b --adopt net-9", "", exit.Failed, "", "--adopt is for one resource", ""},
		{"one ID for all", "--all --adopt net-9", "", exit.Failed, "", "--adopt is for one resource", ""},
		{"an ID for a healthy one", "sim-network/fine --adopt net-9 --auto-approve", "", exit.Failed, "", "has no create with an unknown outcome", ""},
		{"a healthy one", "sim-network/fine --retry --auto-approve", "", exit.Failed, "", "fine has no create with an unknown outcome (its reason is Applied)", ""},
		{"to forget a healthy one", "sim-network/fine --forget", "", exit.Failed, "", "fine has no create with an unknown outcome", ""},
		{"answered with no", "sim-network/a --retry", "no\n", exit.Failed, "", "If one of them exists, that plan makes a second one, and nothing manages the first.\nHave you checked that none of them exists?", ""},
		{"without an answer", "sim-network/a --retry", "", exit.Failed, "", "Nothing was changed.", ""},
		{"answered with yes", "sim-network/a --retry", "yes\n", exit.Done, a + " resolved\n", "The next plan creates the resolved resources: kubectl hykube plan -n default", "a "},
		{"one healthy, one lost", "sim-network/fine sim-network/b --retry --auto-approve -o name", "", exit.Failed, b + "\n", "fine has no create", "b "},
		{"all", "--all --retry --auto-approve", "", exit.Done, a + " resolved\n" + b + " resolved\n", "The next applied plan forgets 1 create with an unknown outcome", "a b "},
		{"by labels", "-l team=infra --retry --auto-approve", "", exit.Done, a + " resolved\n" + b + " resolved\n", "", "a b "},
		{"none in the namespace", "--all --retry --auto-approve -n empty", "", exit.Done, "", "No create of the namespace empty has an unknown outcome, and no record is lost.", ""},
	} {
		f.Calls = nil
		out, errOut, code := f.RunIn(nil, tc.stdin, append([]string{"resolve"}, strings.Fields(tc.args)...)...)
		if got := resolved(); code != tc.code || out != tc.out || !strings.Contains(errOut, tc.errOut) || got != tc.resolved {
			t.Errorf("%s: code %d, resolved %q\n%s\n%s", tc.reason, code, got, out, errOut)
		}
	}
	if _, errOut, code := f.RunIn(clitest.WithoutAnswer, "", "resolve", "--all", "--retry"); code != exit.Failed || !strings.Contains(errOut, "add --auto-approve") || resolved() != "" {
		t.Errorf("without a terminal: code %d: %s", code, errOut)
	}
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/a/resolve") {
			return clitest.Status(409, metav1.StatusReasonConflict, "a plan is creating it")
		}
		return nil
	}
	if out, errOut, code := f.Run("resolve", "--all", "--retry", "--auto-approve"); code != exit.Failed || out != b+" resolved\n" || !strings.Contains(errOut, "retry sim_network.a: a plan is creating it") {
		t.Errorf("one is refused: code %d: %s\n%s", code, out, errOut)
	}
	f.Refuse = nil

	out, errOut, code := f.Run("resolve", "--all", "--forget")
	if code != exit.Done || out != a+" marked to be forgotten\n"+b+" marked to be forgotten\n" ||
		!strings.Contains(errOut, "removes the records of the marked objects and destroys nothing:\n  kubectl hykube apply --target sim_network.a --target sim_network.b -n default") {
		t.Errorf("forget: code %d: %s\n%s", code, out, errOut)
	}
	if l, _ := f.Object("a")["lifecycle"].(map[string]any); l["destroy"] != false {
		t.Errorf("lifecycle: %v", l)
	}
	if out, errOut, code = f.Run("resolve", "--all", "--forget"); code != exit.Done || out != "" || !strings.Contains(errOut, "The next applied plan forgets 3 creates") {
		t.Errorf("forget again: code %d: %s\n%s", code, out, errOut)
	}
}

// TestRetryLeavesImportsOut retries all creates. An object with an import is not one of them, because it exists.
func TestRetryLeavesImportsOut(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "found", func(o map[string]any) {
		clitest.Lost(o)
		o["lifecycle"] = map[string]any{"import": map[string]any{"id": "net-9"}}
	})
	out, errOut, code := f.Run("resolve", "--all", "--retry", "--auto-approve")
	if want := "The next plan imports 1 resource with an unknown outcome of its create, as lifecycle.import or spec.imports says.\n"; code != exit.Done || out != "" || errOut != want {
		t.Errorf("code %d, %q and %q, want %q", code, out, errOut, want)
	}
}

func TestResolveAdopts(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "main", clitest.Lost)
	out, errOut, code := f.Run("resolve", "sim-network/main", "--adopt", "net-9", "--auto-approve")
	if code != exit.Done || !strings.Contains(out, "Apply complete! 1 imported, 0 added") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
}

// A create with an unknown outcome is no failure: the end of the apply says how to settle it.
func TestEndWithUnknownOutcomes(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		for i := range f.Changes[p.Namespace+"/"+p.Name] {
			f.Changes[p.Namespace+"/"+p.Name][i].State = []v1alpha1.ChangeState{v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown, v1alpha1.ChangeUnknown}[i]
		}
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "0 of 3 changes were made")
	}
	_, errOut, code := f.Run("apply", "--auto-approve", "--target", "sim_network.a", "--target", "sim_network.b", "--target", "sim_network.c")
	for _, want := range []string{"1 failed, 2 with an unknown outcome, in ", "kubectl hykube resolve KIND/NAME --adopt ID -n default", "kubectl hykube resolve --all --retry -n default", "kubectl hykube plan --exclude TYPE.NAME -n default"} {
		if code != exit.Failed || !strings.Contains(errOut, want) {
			t.Errorf("code %d, without %q: %s", code, want, errOut)
		}
	}
}
