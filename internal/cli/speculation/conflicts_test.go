package speculation_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// A plan shows what taking over fields of other managers would do, and apply refuses to record them before it asks.
func TestConflicts(t *testing.T) {
	owned := map[string][]metav1.StatusCause{"db": {
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-patch" using v1`, Field: ".data.password"},
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-patch" using v1`, Field: ".data.user"},
	}}
	const line = `first.yaml:6: Secret "db": conflict with "kubectl-patch" using v1: .data.password, .data.user`
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		told   bool
		writes bool
	}{
		{"plan", []string{"plan"}, exit.Done, true, false},
		{"apply", []string{"apply"}, exit.Failed, true, false},
		{"apply with force", []string{"apply", "--force-conflicts"}, exit.Done, false, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.RecordSecret("7")
			f.Owned = owned
			out, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", append(tc.args, "-f", clitest.Write(t, clitest.TwoFiles))...)
			if code != tc.code || strings.Contains(errOut, line) != tc.told || strings.Contains(errOut, "--force-conflicts") != tc.told || !strings.Contains(out, "changes password") {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			if got := len(f.Writes()) > 0; got != tc.writes || !tc.writes && strings.Contains(errOut, "Do you want") {
				t.Errorf("writes %v:\n%s", f.Writes(), errOut)
			}
		})
	}
}

// The end of an apply says which Secrets and the like were changed, also when no infrastructure had to be.
func TestApplyTellsWhatItRecorded(t *testing.T) {
	for _, infrastructure := range []bool{true, false} {
		f := clitest.New(t, cli.Command)
		f.RecordSecret("7")
		if !infrastructure {
			f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange { return []v1alpha1.PlanChange{} }
		}
		out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles), "--auto-approve")
		if code != exit.Done || !strings.HasSuffix(out, "Other recorded objects: secret/db changed (password).\n") {
			t.Errorf("code %d: %s\n%s", code, errOut, out)
		}
	}
}

// The plan that a command shows and then removes is not named; the one that stays is.
func TestApplyNamesThePlanThatStays(t *testing.T) {
	f := clitest.New(t, cli.Command)
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {cidr: 10.0.0.0/16}\n", i)
	}
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, many.String()), "--auto-approve")
	if code != exit.Done || strings.Contains(out, "apply-guess") || strings.Count(out, "Every change in full: kubectl hykube show apply-x7k2d -n default") != 1 {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

// A changed Provider is recorded before planning. What changes in it, and a conflict, come before the question.
func TestChangedProvider(t *testing.T) {
	const question = "No plan can be made before these are recorded"
	for _, tc := range []struct {
		reason string
		owned  map[string][]metav1.StatusCause
		asks   bool
		want   string
	}{
		{"its version changes", nil, true, "Provider \"sim\" would change: spec.version: \">= 1.0\" -> \">= 2.0\"\n"},
		{"another manager owns the version", map[string][]metav1.StatusCause{"sim": {{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit"`, Field: ".spec.version"}}},
			false, `Provider "sim": conflict with "kubectl-edit": .spec.version`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Owned = tc.owned
			f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": "sim", "generation": int64(1)},
				"spec": map[string]any{"source": "hykube/sim", "version": ">= 1.0"}, "status": map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Installed"}}}}}, "providers")
			file := clitest.Write(t, "apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: sim}\nspec: {source: hykube/sim, version: \">= 2.0\"}\n")
			out, errOut, code := f.RunIn(clitest.OnTerminal, "no\n", "apply", "-f", file)
			if code != exit.Failed || !strings.Contains(out+errOut, tc.want) || strings.Contains(errOut, question) != tc.asks || len(f.Writes()) > 0 {
				t.Errorf("code %d, writes %v:\n%s\n%s", code, f.Writes(), out, errOut)
			}
			if _, errOut, _ := f.Run("plan", "-f", file); !strings.Contains(errOut, `"version":">= 2.0"`) {
				t.Errorf("no command to copy:\n%s", errOut)
			}
		})
	}
}
