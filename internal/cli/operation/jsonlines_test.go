package operation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// kindsOf are the types of lines of JSON, each with the address that it is about.
func kindsOf(t *testing.T, out string) []string {
	t.Helper()
	var kinds []string
	for line := range strings.Lines(out) {
		var l struct {
			Level      string `json:"@level"`
			Message    string `json:"@message"`
			Timestamp  string `json:"@timestamp"`
			Type       string
			Change     struct{ Resource struct{ Addr string } }
			Hook       struct{ Resource struct{ Addr string } }
			Diagnostic struct{ Summary string }
			Changes    struct{ Operation string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Level == "" || l.Message == "" || l.Timestamp == "" {
			t.Fatalf("%s: %v", line, err)
		}
		kinds = append(kinds, strings.TrimSpace(fmt.Sprintln(l.Type, l.Change.Resource.Addr+l.Hook.Resource.Addr+l.Diagnostic.Summary+l.Changes.Operation)))
	}
	return kinds
}

// apply -o json writes what terraform apply -json does: each line alone is JSON, and nothing else is on standard output.
func TestApplyInLinesOfJSON(t *testing.T) {
	f := clitest.New(t, cli.Command)
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles), "--auto-approve", "-o", "json")
	kinds := kindsOf(t, out)
	for _, want := range []string{"version", "planned_change sim_network.main", "change_summary plan", "apply_start sim_network.main", "apply_complete sim_network.main", "change_summary apply"} {
		if !strings.Contains("\n"+strings.Join(kinds, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q is missing in %q", want, kinds)
		}
	}
	if code != exit.Done || kinds[0] != "version" || kinds[len(kinds)-1] != "change_summary apply" || !strings.Contains(errOut, "Apply complete!") {
		t.Errorf("code %d, %q, %s", code, kinds, errOut)
	}
}

// The other verbs that apply a plan write the same lines.
func TestOtherVerbsInLinesOfJSON(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	if _, errOut, code := f.Run("destroy", "--all", "-o", "json"); code != exit.Failed || !strings.Contains(errOut, "add --auto-approve") {
		t.Errorf("code %d: %s", code, errOut)
	}
	for _, tc := range []struct {
		args []string
		last string
	}{
		{[]string{"refresh", "sim_network.main", "--auto-approve"}, "change_summary plan"},
		{[]string{"destroy", "sim_network.main", "--auto-approve"}, "change_summary destroy"},
	} {
		out, errOut, code := f.Run(append(tc.args, "-o", "json")...)
		if kinds := kindsOf(t, out); code != exit.Done || kinds[0] != "version" || !slices.Contains(kinds, tc.last) {
			t.Errorf("%s: code %d, %q, %s", tc.args, code, kinds, errOut)
		}
	}
	f.Run("plan", "--target", "sim_network.main")
	out, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc", "-o", "json")
	if kinds := kindsOf(t, out); code != exit.Done || kinds[0] != "version" || kinds[len(kinds)-1] != "change_summary apply" || !strings.Contains(errOut, "approved") {
		t.Errorf("code %d, %q, %s", code, kinds, errOut)
	}
}

func TestLinesOfJSONOfFailures(t *testing.T) {
	f := clitest.New(t, cli.Command)
	if _, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles), "-o", "json"); code != exit.Failed || !strings.Contains(errOut, "add --auto-approve") {
		t.Errorf("code %d: %s", code, errOut)
	}
	out, _, code := f.Run("apply", "-f", clitest.Write(t, "apiVersion: sim.hykube.io/v1\nkind: sim-nothing\nmetadata: {name: x}\n"), "--auto-approve", "-o", "json")
	kinds := kindsOf(t, out)
	if code != exit.Failed || len(kinds) != 2 || !strings.HasPrefix(kinds[1], "diagnostic ") {
		t.Errorf("code %d, %q", code, kinds)
	}
}

// As in Terraform, no counts follow the error of a change, and the exit code alone is no diagnostic.
func TestLinesOfJSONOfFailedChange(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		for i := range f.Changes[p.Namespace+"/"+p.Name] {
			c := &f.Changes[p.Namespace+"/"+p.Name][i]
			c.State, c.Diagnostics = v1alpha1.ChangeFailed, []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Quota exceeded"}}
		}
		p.Status.FinishedAt = new(metav1.Now())
		f.Set(p, v1alpha1.ConditionApplied, false, v1alpha1.ReasonApplyFailed, "1 change failed")
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
	}
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles), "--auto-approve", "-o", "json")
	kinds := kindsOf(t, out)
	if code != exit.Failed || kinds[len(kinds)-1] != "diagnostic Quota exceeded" || slices.Contains(kinds, "change_summary apply") || strings.Contains(out, "exit code") {
		t.Errorf("code %d, %q, %s", code, kinds, errOut)
	}
}

func TestDocumentsOfStatusAndState(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	clitest.Network(f, "new", clitest.Unplanned)
	var state struct{ Items []map[string]any }
	out, errOut, _ := f.Run("state", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &state); err != nil || len(state.Items) != 1 || state.Items[0]["address"] != "sim_network.main" || state.Items[0]["namespace"] != "default" {
		t.Errorf("%v: %s%s", err, out, errOut)
	}
	for _, args := range [][]string{{"status", "-o", "json"}, {"status", "-A", "-o", "json"}} {
		var status struct {
			Items []struct {
				Namespace string
				Modes     map[string]int
				Reasons   map[string]int
			}
		}
		out, errOut, _ := f.Run(args...)
		if err := json.Unmarshal([]byte(out), &status); err != nil || len(status.Items) != 1 {
			t.Fatalf("%v: %v: %s%s", args, err, out, errOut)
		}
		if d := cmp.Diff(map[string]int{"managed": 2}, status.Items[0].Modes); d != "" || status.Items[0].Namespace != "default" || status.Items[0].Reasons[v1alpha1.ReasonAwaitingPlan] != 1 {
			t.Errorf("%v: %s\n%s", args, d, out)
		}
	}
}
