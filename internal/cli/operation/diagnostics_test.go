package operation_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// Many creates whose outcome is unknown print their text once, in a plan and at the end of an apply.
func TestTextThatManyResourcesShare(t *testing.T) {
	const after = "; the resource may exist. If it exists: kubectl hykube resolve"
	var targets []string
	for i := range 16 {
		targets = append(targets, "--target", fmt.Sprintf("sim_network.n%d", i))
	}
	lost := func(i int) v1alpha1.Diagnostic {
		return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Outcome of a create is unknown", Address: fmt.Sprintf("sim_network.n%d", i),
			Detail: fmt.Sprintf("At 2026-11-23T09:00:%02dZ a create of sim_network.n%d started%s sim-network/n%d -n default --adopt ID. Or: kubectl hykube plan --exclude sim_network.n%d -n default", i, i, after, i, i)}
	}
	for reason, prepare := range map[string]func(f *clitest.Server){
		"plan": func(f *clitest.Server) {
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				for i := range 16 {
					p.Status.Diagnostics = append(p.Status.Diagnostics, lost(i))
				}
				f.Set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "errors")
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "errors")
				return nil
			}
		},
		"apply": func(f *clitest.Server) {
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				for i := range f.Changes[p.Namespace+"/"+p.Name] {
					c := &f.Changes[p.Namespace+"/"+p.Name][i]
					c.State, c.Diagnostics = v1alpha1.ChangeUnknown, []v1alpha1.Diagnostic{lost(i)}
					c.Message = "apply: " + lost(i).Summary + ": " + lost(i).Detail
				}
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "errors")
			}
		},
	} {
		f := clitest.New(t, cli.Command)
		prepare(f)
		out, errOut, code := f.Run(append([]string{"apply", "--auto-approve"}, targets...)...)
		if strings.Contains(out, after) || strings.Contains(out, "sim_network.n1: its outcome is unknown\n") != (reason == "apply") {
			t.Errorf("%s: %s", reason, out)
		}
		if code != exit.Failed || strings.Count(errOut, after) != 1 || !strings.Contains(errOut, "The same holds for 15 other resources: sim_network.n1, sim_network.n2, ") {
			t.Errorf("%s: code %d:\n%s", reason, code, errOut)
		}
	}
}

// Of many failures with texts of their own, the first ones are printed in full, errors before warnings, and then the number of
// the others with the command that lists them. The counts of the plan come last.
func TestManyDifferentFailures(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		out := make([]v1alpha1.PlanChange, 300)
		for i := range out {
			out[i] = v1alpha1.PlanChange{Index: int32(i), Address: fmt.Sprintf("sim_network.net[%d]", i), Type: "sim_network", Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending,
				Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "default", Name: fmt.Sprintf("net[%d]", i), Set: "fleet"}}
		}
		return out
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		changes := f.Changes["default/plan-x7k2d"]
		for i := range changes {
			c := &changes[i]
			c.State, c.Diagnostics = v1alpha1.ChangeFailed, []v1alpha1.Diagnostic{
				{Severity: v1alpha1.SeverityWarning, Summary: "Slow region", Detail: fmt.Sprintf("The region of n%d is slow.", i)},
				{Severity: v1alpha1.SeverityError, Summary: fmt.Sprintf("Network net-%04x exists", i), Detail: fmt.Sprintf("The name n%d is taken.", i)},
			}
		}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: 300, Failed: 300}
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "300 changes failed")
	}
	out, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != exit.Failed {
		t.Fatalf("code %d: %s%s", code, out, errOut)
	}
	rest := errOut
	for _, text := range []string{
		"Error: Network net-0000 exists", "Error: Network net-0002 exists", "Warning: Slow region",
		"… and 297 more like it (Network net-0003 exists): kubectl hykube instances fleet --reason ApplyFailed -o wide -n default\n",
		"… and 297 more like it (Slow region): sim_network.net[3], ", "0 of 300 changes made",
	} {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("%q is missing, or not after the texts before it:\n%s", text, errOut)
		}
		rest = after
	}
	if n := strings.Count(errOut, "\n"); n > 60 {
		t.Errorf("%d lines:\n%s", n, errOut)
	}
	out, _, _ = f.Run("status", "plan-x7k2d")
	if n := strings.Count(out, "Error: "); n != 3 || !strings.Contains(out, "… and 297 more like it") {
		t.Errorf("status prints %d errors in full:\n%s", n, out)
	}
}

// A speculative plan cannot be approved, so it need not be discarded.
func TestDiscardSpeculativePlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Plans["default/p"] = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1alpha1.PlanSpec{Speculative: true}}
	_, errOut, code := f.Run("discard", "p")
	if code != exit.Failed || !strings.Contains(errOut, `plan "p" is speculative and cannot be approved, so there is nothing to discard. To remove it: kubectl delete plan p -n default`) || strings.Contains(errOut, "after you read it") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
