package resources_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

// TestInstances lists the instances of a set while a plan changes them in waves. The age is that of the object, and not
// the time since its condition changed.
func TestInstances(t *testing.T) {
	instance := func(name, reason string) map[string]any {
		return map[string]any{
			"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "creationTimestamp": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)}}},
		}
	}
	for why, tc := range map[string]struct {
		args   []string
		edit   func(*v1alpha1.Plan)
		reason string
		notes  bool
	}{
		"a wave begins later":            {reason: v1alpha1.ReasonAwaitingPlan, notes: true},
		"none waits":                     {reason: v1alpha1.ReasonApplying},
		"the plan waits for an approval": {reason: v1alpha1.ReasonAwaitingPlan, edit: func(p *v1alpha1.Plan) { p.Status.Approval = nil }},
		"the plan has ended":             {reason: v1alpha1.ReasonAwaitingPlan, edit: func(p *v1alpha1.Plan) { condition.Ready(&p.Status.Conditions, 0, v1alpha1.ReasonApplied, "") }},
		"of another set":                 {reason: v1alpha1.ReasonAwaitingPlan, edit: func(p *v1alpha1.Plan) { p.Status.Rollouts[0].ResourceSet = "other" }},
		"addresses alone":                {reason: v1alpha1.ReasonAwaitingPlan, args: []string{"-o", "address"}},
	} {
		t.Run(why, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Objects["hykube.io/v1alpha1/resourcesets/default/fleet"] = map[string]any{
				"apiVersion": "hykube.io/v1alpha1", "kind": "ResourceSetInstanceList", "items": []any{instance("web[0]", v1alpha1.ReasonApplied), instance("web[1]", tc.reason)},
			}
			p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "edit", Namespace: "default"}}
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
			p.Status.Rollouts = []v1alpha1.PlanRollout{{ResourceSet: "fleet", Waves: []int32{1, 4}}}
			if tc.edit != nil {
				tc.edit(p)
			}
			f.Plans["default/edit"] = p
			out, errOut, code := f.Run(append([]string{"instances", "fleet"}, tc.args...)...)
			if code != 0 || len(tc.args) == 0 && (strings.Count(out, " 3h") != 2 || strings.Contains(out, "60s")) {
				t.Errorf("exit code %d: %s\n%s", code, errOut, out)
			}
			if notes := strings.Contains(errOut, "kubectl hykube status edit -n default"); notes != tc.notes {
				t.Errorf("names the rollout: %t, want %t: %s", notes, tc.notes, errOut)
			}
		})
	}
}

// TestInstancesOfNoSet lists the instances of a set that does not exist, and those with a reason that does not exist.
func TestInstancesOfNoSet(t *testing.T) {
	for why, tc := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"a misspelled set":    {[]string{"instances", "flet"}, []string{`there is no ResourceSet "flet" in namespace default: did you mean fleet?`}, 1},
		"another set":         {[]string{"instances", "databases"}, []string{`there is no ResourceSet "databases" in namespace default` + "\n"}, 1},
		"a misspelled reason": {[]string{"instances", "fleet", "--reason", "Applied,ApplyFaild"}, []string{`no instance has the reason "ApplyFaild": did you mean ApplyFailed?`, "Applied, ApplyFailed, Applying", "Tainted"}, 1},
		"another reason":      {[]string{"instances", "fleet", "--reason", "Healthy"}, []string{`no instance has the reason "Healthy"` + "\n", "CreateUnknown"}, 1},
		"no instance":         {[]string{"instances", "fleet", "--reason", "ApplyFailed"}, nil, 0},
	} {
		t.Run(why, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Objects["v1/namespaces//default"] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
			f.Objects["hykube.io/v1alpha1/resourcesets/default/fleet"] = map[string]any{
				"apiVersion": "hykube.io/v1alpha1", "kind": "ResourceSetInstanceList", "metadata": map[string]any{"name": "fleet"}, "items": []any{},
			}
			out, errOut, code := f.Run(tc.args...)
			if code != tc.code || (out == "") != (tc.code != 0) {
				t.Errorf("exit code %d: %q", code, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(errOut, want) {
					t.Errorf("the error lacks %q: %s", want, errOut)
				}
			}
		})
	}
}
