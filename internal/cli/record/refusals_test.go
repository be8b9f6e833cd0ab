package record_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// YAML 1.1 reads y, no and on as booleans, and 0123 as a number.
func TestNamesThatYAMLReadsAsSomethingElse(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: y}\n":                                `first.yaml:3:12: metadata.name: y is a boolean in YAML: quote it, as in "y"`,
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: 0123\n":                            `first.yaml:4:3: metadata.name: 0123 is a number in YAML: quote it, as in "0123"`,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: x, labels: {team: on}}\n":            `first.yaml:3:30: metadata.labels["team"]: on is a boolean in YAML: quote it, as in "on"`,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: no}\n":                    `metadata.namespace: no is a boolean in YAML`,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: [a]}\n":                              `metadata.name must be a string, not a list`,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: x, annotations: {a: 1, b: false}}\n": `metadata.annotations["b"]: false is a boolean in YAML`,
	} {
		f := clitest.New(t, cli.Command)
		_, errOut, code := f.Run("apply", "-f", clitest.Write(t, text), "--auto-approve")
		if code != exit.Failed || !strings.Contains(errOut, want) || len(f.Calls) > 0 {
			t.Errorf("code %d, calls %v, want %q in:\n%s", code, f.Calls, want, errOut)
		}
	}
}

// An error about a field names its place in the file. A diagnostic of a plan names the place of its object.
func TestRefusalsNameTheirLineInTheFile(t *testing.T) {
	f := clitest.New(t, cli.Command)
	st := clitest.Status(422, metav1.StatusReasonInvalid, "invalid")
	st.Details = &metav1.StatusDetails{Name: "main", Causes: []metav1.StatusCause{
		{Field: "spec.cidr, column 4", Message: `Invalid value: "x": no`}, {Field: "spec.nmae", Message: "Forbidden: no"},
	}}
	f.Refusing["main"] = st
	_, errOut, _ := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	for _, want := range []string{`sim-network "main": spec.cidr, column 4: Invalid value: "x": no` + "\n", `sim-network "main": spec.nmae: Forbidden: no`} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if strings.Count(errOut, "first.yaml:") != 2 {
		t.Errorf("not every objection has a place:\n%s", errOut)
	}

	f = clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "No", Address: "sim_network.main", Attribute: "spec.cidr"}}
		f.Set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "no")
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "no")
		return nil
	}
	_, errOut, _ = f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	if !strings.Contains(errOut, "on sim_network.main, spec.cidr (/") || !strings.Contains(errOut, "first.yaml:") {
		t.Errorf("no place in:\n%s", errOut)
	}
}
