package validate_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestValidate(t *testing.T) {
	f := clitest.New(t, cli.Command)
	var sent *v1alpha1.Validation
	f.Validating = func(v *v1alpha1.Validation) {
		sent = v
		v.Status.Problems = []v1alpha1.ValidationProblem{
			{Index: 1, Severity: v1alpha1.SeverityError, Field: "spec.name, column 3", Message: "no"},
			{Index: 0, Severity: v1alpha1.SeverityWarning, Field: "data", Message: "perhaps"},
		}
	}
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: aHVudGVyMg==}\n---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: net}\nspec: {name: \"${x}\"}\n"
	out, errOut, code := f.Run("validate", "-f", clitest.Write(t, text))
	for _, want := range []string{`first.yaml:4:1: warning: Secret "s": data: perhaps` + "\n", `first.yaml:9:17: error: sim-network "net": spec.name, column 3: no` + "\n"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if code != exit.Failed || !strings.HasPrefix(out, "Not valid: 1 error. 2 objects checked, 1 warning.\nNot checked: the recorded objects") {
		t.Errorf("code %d: %s", code, out)
	}
	if s := string(sent.Spec.Objects[0].Raw); strings.Contains(s, "aHVu") || !strings.Contains(s, `"k":""`) {
		t.Errorf("a secret was sent: %s", s)
	}
	if out, _, code = f.Run("validate", "-f", clitest.Write(t, text), "-o", "json"); code != exit.Failed || !strings.Contains(out, `"column": 17`) || !strings.Contains(out, `"valid": false`) {
		t.Errorf("code %d: %s", code, out)
	}
	f.Validating = func(*v1alpha1.Validation) {}
	if out, _, code = f.Run("validate", "-f", clitest.Write(t, text)); code != exit.Done || !strings.HasPrefix(out, "Valid. 2 objects checked.\n") {
		t.Errorf("code %d: %s", code, out)
	}
}

// The server cannot check the objects of a Provider in the files before it is installed. So the output does not call
// them valid.
func TestValidateWithoutTheProvider(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Validating = func(*v1alpha1.Validation) {}
	text := "apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: tls}\nspec: {source: registry.terraform.io/hashicorp/tls}\n---\n" +
		"apiVersion: tls.hykube.io/v1\nkind: tls-private-key\nmetadata: {name: k}\nspec: {algorithn: RSA}\n"
	out, errOut, code := f.Run("validate", "-f", clitest.Write(t, text))
	if want := "No error found. 1 of 2 objects checked.\nNot checked: the objects of providers that are not installed yet (tls)"; code != exit.Done || !strings.HasPrefix(out, want) {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
}

// A kind that the server does not have is a mistake, and not an object that was checked and found good.
func TestValidateUnknownKind(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Validating = func(*v1alpha1.Validation) {}
	out, errOut, code := f.Run("validate", "-f", clitest.Write(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"))
	if want := `first.yaml:2:1: error: Pod "p": kind: this server has no kind "Pod" in "v1"`; code != exit.Failed || !strings.Contains(errOut, want) || !strings.HasPrefix(out, "Not valid: 1 error. 2 objects checked.\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

// The output names the checks that a validation cannot make, without those of the files themselves.
func TestValidateSaysWhatWasNotChecked(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Validating = func(*v1alpha1.Validation) {}
	files := clitest.Write(t, `{apiVersion: hykube.io/v1alpha1, kind: Provider, metadata: {name: aws}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}
---
{apiVersion: sim.hykube.io/v1, kind: sim-network, metadata: {name: main}, spec: {name: "${configmap.app.a}${secret.db.b}"}}
---
{apiVersion: sim.hykube.io/v1, kind: sim-subnet, metadata: {name: front}, spec: {name: "${sim_network.main.id}${sim_network.gone.id}"}}
`)
	out, errOut, code := f.Run("validate", "-f", files)
	want := "Not checked: the objects of providers that are not installed yet (aws); references to objects that are not in the files (secret.db, sim_network.gone); the recorded objects"
	if code != exit.Done || !strings.Contains(out, want) {
		t.Errorf("code %d: %s%s", code, out, errOut)
	}
}

// An invalid name does not keep the errors of the other objects back.
func TestValidateInvalidNames(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Validating = func(v *v1alpha1.Validation) {
		v.Status.Problems = []v1alpha1.ValidationProblem{{Index: 0, Severity: v1alpha1.SeverityError, Field: "spec.cidr", Message: "no"}}
	}
	text := "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: A_a}\n---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: B_b}\n---\n" +
		"apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: c}\nspec: {cidr: x}\n"
	out, errOut, code := f.Run("validate", "-f", clitest.Write(t, text))
	for _, want := range []string{`first.yaml:3:12: error: sim-network "A_a": metadata.name: Invalid value: `, `first.yaml:7:12: error: sim-network "B_b": `, `error: sim-network "c": spec.cidr: no`} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if code != exit.Failed || !strings.HasPrefix(out, "Not valid: 3 errors.") {
		t.Errorf("code %d: %s", code, out)
	}
}
