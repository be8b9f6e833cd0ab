package cli

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

const placed = `# a comment
---
# another
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec:
  name: "${sim_network.a.b}"
  plain: ${x}
  script: |
    first
    ${y}
  tags: {"a b": 1}
  rule:
  - port: 1
  - port: two
`

func TestPositions(t *testing.T) {
	ms, err := parseManifest("f.yaml", []byte(placed))
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	for field, want := range map[string]string{
		"spec.name":                     "f.yaml:8:3",
		"spec.name, column 3":           "f.yaml:8:12",
		"spec.plain, column 3":          "f.yaml:9:12",
		"spec.script, line 2, column 3": "f.yaml:12:7",
		`spec.tags["a b"]`:              "f.yaml:13:10",
		"spec.rule[1].port":             "f.yaml:16:5",
		"spec.rule[1]":                  "f.yaml:16:5",
		"spec.missing":                  "f.yaml:7:1",
		"spec.rule[7].port":             "f.yaml:14:3",
		"":                              "f.yaml:4:1",
		"metadata.name":                 "f.yaml:6:12",
	} {
		if got := ms[0].at(field); got != want {
			t.Errorf("%s is at %s, want %s", field, got, want)
		}
	}
	ms, err = parseManifest("l.yaml", []byte("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n  data: {x: y y}\n"))
	if err != nil || len(ms) != 2 {
		t.Fatal(ms, err)
	}
	if got := ms[1].at("data.x"); got != "l.yaml:10:10" {
		t.Errorf("a field of an item is at %s", got)
	}
}

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
		f := newFakeServer(t)
		_, errOut, code := f.run("apply", "-f", write(t, text), "--auto-approve")
		if code != ExitError || !strings.Contains(errOut, want) || len(f.calls) > 0 {
			t.Errorf("code %d, calls %v, want %q in:\n%s", code, f.calls, want, errOut)
		}
	}
}

// An error about a field names its place in the file. A diagnostic of a plan names the place of its object.
func TestRefusalsNameTheirLineInTheFile(t *testing.T) {
	f := newFakeServer(t)
	st := status(422, metav1.StatusReasonInvalid, "invalid")
	st.Details = &metav1.StatusDetails{Name: "main", Causes: []metav1.StatusCause{
		{Field: "spec.cidr, column 4", Message: `Invalid value: "x": no`}, {Field: "spec.nmae", Message: "Forbidden: no"},
	}}
	f.refusing["main"] = st
	_, errOut, _ := f.run("apply", "-f", write(t, firstFiles), "--auto-approve")
	for _, want := range []string{`sim-network "main": spec.cidr, column 4: Invalid value: "x": no` + "\n", `sim-network "main": spec.nmae: Forbidden: no`} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if strings.Count(errOut, "first.yaml:") != 2 {
		t.Errorf("not every objection has a place:\n%s", errOut)
	}

	f = newFakeServer(t)
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "No", Address: "sim_network.main", Attribute: "spec.cidr"}}
		f.set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "no")
		f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "no")
		return nil
	}
	_, errOut, _ = f.run("apply", "-f", write(t, firstFiles), "--auto-approve")
	if !strings.Contains(errOut, "on sim_network.main, spec.cidr (/") || !strings.Contains(errOut, "first.yaml:") {
		t.Errorf("no place in:\n%s", errOut)
	}
}

// A user who may not approve a plan is not asked for an approval.
func TestWhoMayNotApprove(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	f.denied = []string{"approve plans"}
	const want = `waits in namespace default for someone who may approve it. You may not: that needs the verb "approve" on plans`
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"plan"}, ExitDone}, {[]string{"show", "plan-x7k2d"}, ExitDone}, {[]string{"status", "plan-x7k2d"}, ExitDone},
		{[]string{"apply", "--all", "--auto-approve"}, ExitRefused},
	} {
		out, errOut, code := f.run(tc.args...)
		if all := out + errOut; code != tc.code || !strings.Contains(all, want) || strings.Contains(all, "kubectl hykube approve") {
			t.Errorf("%v: code %d:\n%s", tc.args, code, all)
		}
	}
	f.denied = []string{"update plans/approval"}
	if out, _, _ := f.run("status", "plan-x7k2d"); !strings.Contains(out, want) {
		t.Errorf("no right on the subresource:\n%s", out)
	}
}

func TestRawStateNeedsARight(t *testing.T) {
	f := newFakeServer(t)
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/state") {
			return status(403, metav1.StatusReasonForbidden, "no")
		}
		return nil
	}
	_, errOut, code := f.run("state", "show", "sim-network/main", "-o", "json")
	if code != ExitRefused || !strings.Contains(errOut, "read state of sim_network.main: you need get on sim-networks/state in the group sim.hykube.io") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// The error of a refused approval names the verb "approve" only if that right is missing.
func TestRefusedApprovalNamesTheMissingRight(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/approval") {
			return status(403, metav1.StatusReasonForbidden, `user "u" has no right to create sim-networks`)
		}
		return nil
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	for _, denied := range []string{"", "approve plans", "update plans/approval"} {
		f.denied = []string{denied}
		_, errOut, code := f.run("approve", "plan-x7k2d", "--digest", "sha256:abc")
		if code != ExitRefused || !strings.Contains(errOut, "no right to create sim-networks") || strings.Contains(errOut, "You may not") != (denied != "") {
			t.Errorf("without %q: code %d: %s", denied, code, errOut)
		}
	}
}

// TestDiscardOfAFailedPlan discards a plan that failed before the user read it.
func TestDiscardOfAFailedPlan(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		f.set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "no")
		f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "no")
		return nil
	}
	f.run("plan", "--record", "-f", write(t, firstFiles))
	f.refuse = func(r *http.Request) *metav1.Status {
		if !strings.HasSuffix(r.URL.Path, "/approval") {
			return nil
		}
		return status(409, metav1.StatusReasonConflict, "planning failed, so it cannot be approved or discarded")
	}
	_, errOut, code := f.run("discard", "plan-x7k2d")
	if code != ExitError || !strings.Contains(errOut, "planning failed") || strings.Contains(errOut, "Read it again") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
