package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

func user(name string, groups ...string) *v1alpha1.Identity {
	return &v1alpha1.Identity{Username: name, Groups: groups}
}

func approvals(by ...*v1alpha1.Identity) (out []v1alpha1.PlanApproval) {
	for _, who := range by {
		out = append(out, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: who})
	}
	return out
}

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

// subject is a plan of bob that destroys one network and creates another.
func subject() *Subject {
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "prod"}}
	p.Spec.Targets = []string{"sim_network.new"}
	p.Status.RequestedBy = user("bob", "dev")
	s := NewSet(rules(deny(`size(plan) > 0`)), nil, nil).NewSubject(p)
	add := func(c *v1alpha1.PlanChange) {
		if err := s.Add(c, Values{}); err != nil {
			panic(err)
		}
	}
	ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "prod"}
	ref.Name = "old"
	add(&v1alpha1.PlanChange{Address: "sim_network.old", Type: "sim_network", Object: ref, Action: v1alpha1.ActionDelete, Provider: "registry.example.com/hykube/sim", Before: raw(`{"name":"old"}`)})
	ref.Name = "new"
	add(&v1alpha1.PlanChange{Address: "sim_network.new", Type: "sim_network", Object: ref, Action: v1alpha1.ActionCreate, Provider: "registry.example.com/hykube/sim",
		After: raw(`{"name":"new","size":16,"tags":{"team":"web"}}`), AfterUnknown: raw(`{"id":true}`)})
	s.NamespaceLabels = map[string]string{"stage": "prod"}
	s.Now = time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	s.Approvals = approvals(user("carol", "platform"))
	s.Earlier = []v1alpha1.PlanRecord{{Plan: v1alpha1.PlanReference{Name: "before"}, Outcome: v1alpha1.ReasonApplyFailed, RequestedBy: user("bob")}}
	return s
}

func rules(rr ...v1alpha1.PlanPolicyRule) []v1alpha1.PlanPolicy {
	return []v1alpha1.PlanPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PlanPolicySpec{Rules: rr}}}
}

func deny(when string) v1alpha1.PlanPolicyRule {
	return v1alpha1.PlanPolicyRule{Name: "r", When: when, Effect: v1alpha1.PolicyDeny, Message: "no"}
}

func TestVariables(t *testing.T) {
	tests := map[string]bool{
		`plan.resource_changes.exists(c, "delete" in c.change.actions)`:                                                  true,
		`plan.resource_changes.exists(c, c.type == "sim_disk")`:                                                          false,
		`plan.resource_changes.all(c, c.change.after == null || has(c.change.after.tags.team))`:                          true,
		`plan.resource_changes.exists(c, c.change.after != null && c.change.after.size > 8)`:                             true,
		`plan.resource_changes.exists(c, c.change.after != null && c.change.after.size == 16.0)`:                         true,
		`size(plan.resource_drift) == 0`:                                                                                 true,
		`has(plan.configuration)`:                                                                                        false,
		`counts.delete == 1 && counts.create == 1 && counts.replace == 0 && counts["import"] == 0 && counts.forget == 0`: true,
		`counts.delete + counts.replace > 10`:                                                                            false,
		`requester.username == "bob" && "dev" in requester.groups`:                                                       true,
		`approvers.exists(a, "platform" in a.groups)`:                                                                    true,
		`providers.exists(p, p.name == "sim" && p.source.startsWith("registry.example.com/"))`:                           true,
		`namespaceObject.metadata.name == "prod" && namespaceObject.metadata.labels.stage == "prod"`:                     true,
		`spec.targets == ["sim_network.new"] && !has(spec.destroy)`:                                                      true,
		`earlier.exists(e, e.outcome == "ApplyFailed" && e.plan.name == "before")`:                                       true,
		`now > timestamp("2026-12-20T00:00:00Z") && now.getDayOfWeek() == 4`:                                             true,
		`now.getHours("Europe/Berlin") == 19`:                                                                            true,
	}
	for when, want := range tests {
		v, err := NewSet(rules(deny(when)), nil, nil).Evaluate(t.Context(), subject())
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := v.Denied(); (got != "") != want || strings.Contains(got, "cannot be evaluated") {
			t.Errorf("%s: denied %q, want %t", when, got, want)
		}
	}
}

func TestRuleThatFailsRefuses(t *testing.T) {
	tests := map[string]string{
		"missing field":   `plan.resource_changes[0].nothing == 1`,
		"no boolean":      `plan.format_version`,
		"does not parse":  `counts.delete >`,
		"another type":    `counts.delete`,
		"another version": `plan.resource_changes.all(c, cluster.name == "x")`,
		"too much": `plan.resource_changes.exists(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e,
			[0,1,2,3,4,5,6,7,8,9].all(f, [0,1,2,3,4,5,6,7,8,9].all(g, [0,1,2,3,4,5,6,7,8,9].all(h, [0,1,2,3,4,5,6,7,8,9].all(i, b + c + d + e + f + g + h + i >= 0)))))))))`,
	}
	for name, when := range tests {
		t.Run(name, func(t *testing.T) {
			r := deny(when)
			r.Effect = v1alpha1.PolicyWarn
			v, err := NewSet(rules(r), nil, nil).Evaluate(t.Context(), subject())
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Denied(); !strings.HasPrefix(got, "PlanPolicy/p/r: The rule cannot be evaluated") {
				t.Errorf("denied %q", got)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := NewSet(rules(deny("true")), nil, nil).Evaluate(ctx, subject()); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v, %v", v, err)
	}
}

func TestMessages(t *testing.T) {
	tests := map[string]struct {
		rule v1alpha1.PlanPolicyRule
		want string
	}{
		"its message":                {v1alpha1.PlanPolicyRule{When: "true", Message: "ask the platform team"}, "ask the platform team"},
		"the condition":              {v1alpha1.PlanPolicyRule{When: "true"}, "true"},
		"an expression":              {v1alpha1.PlanPolicyRule{When: "true", Message: "no", MessageExpression: `"destroys " + string(counts.delete)`}, "destroys 1"},
		"an expression that fails":   {v1alpha1.PlanPolicyRule{When: "true", Message: "no", MessageExpression: `plan.resource_changes[9].address`}, "no"},
		"an expression that is long": {v1alpha1.PlanPolicyRule{When: "true", Message: "no", MessageExpression: `"` + strings.Repeat("x", maxMessage+1) + `"`}, "no"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.rule.Name, test.rule.Effect = "r", v1alpha1.PolicyWarn
			v, err := NewSet(rules(test.rule), nil, nil).Evaluate(t.Context(), subject())
			if err != nil || len(v.Results) != 1 || v.Results[0].Message != test.want || v.Denied() != "" {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestNamespaceSelector(t *testing.T) {
	cluster := func(selector *metav1.LabelSelector) []v1alpha1.ClusterPlanPolicy {
		return []v1alpha1.ClusterPlanPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Spec: v1alpha1.ClusterPlanPolicySpec{NamespaceSelector: selector, PlanPolicySpec: v1alpha1.PlanPolicySpec{Rules: []v1alpha1.PlanPolicyRule{deny("true")}}}}}
	}
	tests := map[string]struct {
		selector *metav1.LabelSelector
		empty    bool
	}{
		"none":             {nil, false},
		"matches":          {&metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}, false},
		"does not":         {&metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}, true},
		"cannot be parsed": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Near"}}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NewSet(nil, cluster(test.selector), map[string]string{"stage": "prod"}).Empty(); got != test.empty {
				t.Errorf("empty %t", got)
			}
		})
	}
}

func TestRequiredApprovals(t *testing.T) {
	bob, carol, dave, erin := user("bob", "platform"), user("carol", "platform"), user("dave", "dev"), user("erin", "security")
	two := &v1alpha1.RequiredApprovals{Count: 2, ExcludeRequester: true}
	platform := &v1alpha1.RequiredApprovals{Groups: []string{"platform", "security"}}
	tests := map[string]struct {
		required []*v1alpha1.RequiredApprovals
		given    []v1alpha1.PlanApproval
		next     *v1alpha1.Identity
		missing  string
		counts   bool
	}{
		"the first of two":         {[]*v1alpha1.RequiredApprovals{two}, nil, carol, "requires 1 more approval, not by the requester", true},
		"the second":               {[]*v1alpha1.RequiredApprovals{two}, approvals(carol), dave, "", true},
		"the same user again":      {[]*v1alpha1.RequiredApprovals{two}, approvals(carol), carol, "requires 1 more approval", false},
		"the requester":            {[]*v1alpha1.RequiredApprovals{two}, nil, bob, "the approval by bob does not count: the user requested the plan", false},
		"nobody":                   {[]*v1alpha1.RequiredApprovals{two}, nil, nil, "requires 2 more approvals", false},
		"a member":                 {[]*v1alpha1.RequiredApprovals{platform}, nil, erin, "", true},
		"the requester is one":     {[]*v1alpha1.RequiredApprovals{platform}, nil, bob, "", true},
		"no member":                {[]*v1alpha1.RequiredApprovals{platform}, nil, dave, "the approval by dave does not count: the user is not a member of platform or security", false},
		"one approval, two rules":  {[]*v1alpha1.RequiredApprovals{platform, two}, nil, carol, "requires 1 more approval", true},
		"two approvals, two rules": {[]*v1alpha1.RequiredApprovals{platform, two}, approvals(dave), erin, "", true},
		"no use for the other":     {[]*v1alpha1.RequiredApprovals{platform, two}, approvals(dave, dave), dave, "requires", false},
		"no rule":                  {nil, nil, dave, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := &Verdict{}
			for i, r := range test.required {
				v.Results = append(v.Results, v1alpha1.PlanPolicyResult{Rule: fmt.Sprint(i), Effect: v1alpha1.PolicyRequireApprovals, Approvals: r})
			}
			next := v1alpha1.PlanApproval{By: test.next}
			missing := v.Missing(bob, append(test.given, next))
			if (missing == "") != (test.missing == "") || !strings.Contains(missing, test.missing) {
				t.Errorf("missing %q", missing)
			}
			counts, required := v.Counts(bob, test.given, next)
			if counts != test.counts || required != (len(test.required) > 0) {
				t.Errorf("counts %t, required %t", counts, required)
			}
		})
	}
}

func TestManual(t *testing.T) {
	result := func(e v1alpha1.PlanPolicyEffect) []v1alpha1.PlanPolicyResult {
		return []v1alpha1.PlanPolicyResult{{Rule: "r", Effect: e, Message: "why", Approvals: &v1alpha1.RequiredApprovals{}}}
	}
	tests := map[string]struct {
		verdict  Verdict
		byPolicy bool
		manual   bool
	}{
		"no policy":                        {Verdict{}, false, false},
		"no policy, and no right":          {Verdict{}, true, true},
		"a warning":                        {Verdict{Results: result(v1alpha1.PolicyWarn)}, false, false},
		"denied":                           {Verdict{Results: result(v1alpha1.PolicyDeny)}, false, true},
		"needs approvals":                  {Verdict{Results: result(v1alpha1.PolicyRequireApprovals)}, false, true},
		"allowed":                          {Verdict{Results: result(v1alpha1.PolicyAllowAutomatic), restricted: true}, true, false},
		"restricted to others":             {Verdict{restricted: true}, false, true},
		"allowed, and approvals are asked": {Verdict{Results: append(result(v1alpha1.PolicyAllowAutomatic), result(v1alpha1.PolicyRequireApprovals)...), restricted: true}, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.verdict.Manual(user("bob"), test.byPolicy); (got != "") != test.manual {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := v1alpha1.PlanPolicyRule{Name: "r", When: "counts.delete > 0", Effect: v1alpha1.PolicyDeny}
	with := func(change func(r *v1alpha1.PlanPolicyRule)) []v1alpha1.PlanPolicyRule {
		r := good
		change(&r)
		return []v1alpha1.PlanPolicyRule{r}
	}
	many := make([]v1alpha1.PlanPolicyRule, maxRules+1)
	tests := map[string]struct {
		rules []v1alpha1.PlanPolicyRule
		want  string
	}{
		"good":              {with(func(*v1alpha1.PlanPolicyRule) {}), ""},
		"none":              {nil, "spec.rules: Required"},
		"too many":          {many, "spec.rules: Too many"},
		"twice":             {[]v1alpha1.PlanPolicyRule{good, good}, "spec.rules[1].name: Duplicate"},
		"no name":           {with(func(r *v1alpha1.PlanPolicyRule) { r.Name = "" }), "spec.rules[0].name"},
		"no condition":      {with(func(r *v1alpha1.PlanPolicyRule) { r.When = "" }), "spec.rules[0].when: Required"},
		"a wrong variable":  {with(func(r *v1alpha1.PlanPolicyRule) { r.When = "deletes > 0" }), "undeclared reference to 'deletes'"},
		"a number":          {with(func(r *v1alpha1.PlanPolicyRule) { r.When = "counts.delete" }), "the expression has the type int, but must have the type bool"},
		"a long condition":  {with(func(r *v1alpha1.PlanPolicyRule) { r.When = strings.Repeat(" ", maxExpression) + "true" }), "spec.rules[0].when: Too long"},
		"no text":           {with(func(r *v1alpha1.PlanPolicyRule) { r.MessageExpression = "1" }), "must have the type string"},
		"no effect":         {with(func(r *v1alpha1.PlanPolicyRule) { r.Effect = "" }), "spec.rules[0].effect: Unsupported"},
		"no approvals":      {with(func(r *v1alpha1.PlanPolicyRule) { r.Effect = v1alpha1.PolicyRequireApprovals }), "spec.rules[0].approvals: Required"},
		"approvals of none": {with(func(r *v1alpha1.PlanPolicyRule) { r.Approvals = &v1alpha1.RequiredApprovals{} }), "spec.rules[0].approvals: Forbidden"},
		"a negative count": {with(func(r *v1alpha1.PlanPolicyRule) {
			r.Effect, r.Approvals = v1alpha1.PolicyRequireApprovals, &v1alpha1.RequiredApprovals{Count: -1}
		}), "approvals.count"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Validate(v1alpha1.PlanPolicySpec{Rules: test.rules}, field.NewPath("spec")).ToAggregate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUsesLabels(t *testing.T) {
	cluster := func(selector *metav1.LabelSelector, when string) []v1alpha1.ClusterPlanPolicy {
		p := v1alpha1.ClusterPlanPolicy{}
		p.Spec.NamespaceSelector, p.Spec.Rules = selector, []v1alpha1.PlanPolicyRule{deny(when)}
		return []v1alpha1.ClusterPlanPolicy{p}
	}
	for why, tc := range map[string]struct{ got, want bool }{
		"counts":               {UsesLabels(rules(deny("counts.delete > 0")), cluster(nil, "true")), false},
		"labels":               {UsesLabels(rules(deny(`namespaceObject.metadata.labels.stage == "prod"`)), nil), true},
		"a cluster policy":     {UsesLabels(nil, cluster(nil, `namespaceObject.metadata.name == "x"`)), true},
		"a selector":           {UsesLabels(nil, cluster(&metav1.LabelSelector{}, "true")), true},
		"a message of its own": {UsesLabels(rules(v1alpha1.PlanPolicyRule{When: "true", MessageExpression: "namespaceObject.metadata.name"}), nil), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t, want %t", why, tc.got, tc.want)
		}
	}
}

func TestFirst(t *testing.T) {
	result := func(effect v1alpha1.PlanPolicyEffect) v1alpha1.PlanPolicyResult {
		return v1alpha1.PlanPolicyResult{Effect: effect}
	}
	v := &Verdict{Results: []v1alpha1.PlanPolicyResult{result(v1alpha1.PolicyWarn), result(v1alpha1.PolicyWarn), result(v1alpha1.PolicyRequireApprovals), result(v1alpha1.PolicyDeny)}}
	if got, further := v.First(4); len(got) != 4 || further != 0 || got[0].Effect != v1alpha1.PolicyWarn {
		t.Errorf("all: %v, %d", got, further)
	}
	if got, further := v.First(2); len(got) != 2 || further != 2 || got[0].Effect != v1alpha1.PolicyDeny || got[1].Effect != v1alpha1.PolicyRequireApprovals {
		t.Errorf("two: %v, %d", got, further)
	}
}
