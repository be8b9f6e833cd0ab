package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func policyWith(rules ...v1alpha1.PlanPolicyRule) []v1alpha1.PlanPolicy {
	p := v1alpha1.PlanPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PlanPolicySpec{Rules: rules}}
	p.Status.Author = &v1alpha1.Identity{Username: "paula"}
	return []v1alpha1.PlanPolicy{p}
}

// later returns an expression whose value is known only in the apply, which creates test_thing.base.
func later(value string) string { return `${test_thing.base.id == "" ? "x" : "` + value + `"}` }

// TestAnUndecidedRuleIsJudgedInTheStep applies plans with a value that planning does not know, and that a rule is about.
func TestAnUndecidedRuleIsJudgedInTheStep(t *testing.T) {
	rule := func(when string, effect v1alpha1.PlanPolicyEffect) v1alpha1.PlanPolicyRule {
		return v1alpha1.PlanPolicyRule{Name: "r", When: when, Effect: effect, Message: "not 66", Approvals: &v1alpha1.RequiredApprovals{Count: 2}}
	}
	const is66 = `plan.resource_changes.exists(c, c.change.after != null && c.change.after.size == "66")`
	const two = `plan.resource_changes.filter(c, c.change.after != null && c.change.after.size in ["66", "67"]).size() > 1`
	for why, tc := range map[string]struct {
		rule  v1alpha1.PlanPolicyRule
		put   func(*crashScenario)
		sizes []string
		made  int
		stale string
		lane  bool
		warns bool
		known bool
	}{
		"a denial":                 {rule: rule(is66, v1alpha1.PolicyDeny), sizes: []string{later("66"), later("67")}, made: 1, stale: "with all values known, a policy refuses the change. PlanPolicy/p/r: not 66"},
		"a denial in a lane":       {rule: rule(is66, v1alpha1.PolicyDeny), sizes: []string{later("66"), later("67")}, made: 1, stale: "a policy refuses the change", lane: true},
		"approvals":                {rule: rule(is66, v1alpha1.PolicyRequireApprovals), sizes: []string{later("66")}, stale: "approvals are missing"},
		"a warning":                {rule: rule(is66, v1alpha1.PolicyWarn), sizes: []string{later("66")}, made: 1, warns: true},
		"a permitted value":        {rule: rule(is66, v1alpha1.PolicyDeny), sizes: []string{later("67")}, made: 1},
		"the second of two":        {rule: rule(two, v1alpha1.PolicyDeny), sizes: []string{later("66"), later("67")}, made: 1, stale: "a policy refuses the change"},
		"a known value":            {rule: rule(is66, v1alpha1.PolicyWarn), sizes: []string{"66"}, made: 1, known: true},
		"a value of another one":   {rule: rule(is66, v1alpha1.PolicyDeny), sizes: []string{later("66")}, put: func(sc *crashScenario) { sc.put("test-thing/z", m{"name": "${test_thing.a.size}", "size": "1"}, nil) }, stale: "a policy refuses the change"},
		"a value that is computed": {rule: rule(`plan.resource_changes.exists(c, c.change.after != null && c.change.after.id == "66")`, v1alpha1.PolicyDeny), sizes: []string{"1"}, made: 1},
	} {
		t.Run(why, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.lane = tc.lane
			things("base")(sc)
			for i, size := range tc.sizes {
				sc.put("test-thing/"+string(rune('a'+i)), m{"name": string(rune('a' + i)), "size": size}, nil)
			}
			if tc.put != nil {
				tc.put(sc)
			}
			sc.Policies = policyWith(tc.rule)
			run := sc.newRun()
			planned := sc.until(run, approving)
			if len(planned.Status.Policies) != 1 || (planned.Status.Policies[0].Undecided == nil) != tc.known {
				t.Fatalf("the plan has the rules %+v", planned.Status.Policies)
			}
			ended := sc.resume(run)
			if len(sc.cloud.made) != tc.made+1 {
				t.Errorf("the cloud made %v: %+v", sc.cloud.made, ended.Status.Conditions)
			}
			stale, warned := "", false
			for c, err := range sc.Ledger.Changes(t.Context(), ended.UID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if c.State == v1alpha1.ChangeStale {
					stale = string(c.StaleReason) + ": " + c.Message
				}
				for _, d := range c.Diagnostics {
					warned = warned || d.Summary == "Warning of a policy"
				}
			}
			if (stale != "") != (tc.stale != "") || !strings.Contains(stale, tc.stale) || tc.stale != "" && !strings.HasPrefix(stale, "PolicyDenied: ") {
				t.Errorf("stale %q", stale)
			}
			if warned != tc.warns {
				t.Errorf("warned: %t", warned)
			}
		})
	}
}

// TestAReplacementIsJudgedBeforeItDestroys has a rule about a value that is known only in the apply.
func TestAReplacementIsJudgedBeforeItDestroys(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
	sc.apply()
	sc.taint("test-thing/a")
	things("base")(sc)
	sc.put("test-thing/a", m{"name": "a", "size": later("66")}, nil)
	sc.Policies = policyWith(v1alpha1.PlanPolicyRule{Name: "r", Effect: v1alpha1.PolicyDeny, When: `plan.resource_changes.exists(c, c.change.after != null && c.change.after.size == "66")`})
	ended := sc.apply()
	if len(sc.cloud.things) != 2 || sc.cloud.made["a"] != 1 {
		t.Errorf("the cloud has %v, made %v: %+v", sc.cloud.things, sc.cloud.made, ended.Status.Conditions)
	}
}

// TestAReplacementRefersToWhatFollowsItsDestroy replaces b, whose new instance refers to x. x is created after the replacement
// of a, and that follows the destroy of the old b. Without a policy, and with one that depends on the values, both apply; a
// policy that refuses the value does so before the create.
func TestAReplacementRefersToWhatFollowsItsDestroy(t *testing.T) {
	for why, tc := range map[string]struct {
		policies []v1alpha1.PlanPolicy
		made     int
	}{
		"no policy":             {nil, 2},
		"a policy that permits": {policyWith(v1alpha1.PlanPolicyRule{Name: "r", Effect: v1alpha1.PolicyDeny, When: `plan.resource_changes.exists(c, c.change.after != null && c.change.after.uses == "66")`}), 2},
		"a policy that refuses": {policyWith(v1alpha1.PlanPolicyRule{Name: "r", Effect: v1alpha1.PolicyDeny, When: `plan.resource_changes.exists(c, c.change.after != null && c.address == "test_thing.b" && c.change.after.uses != "")`}), 1},
	} {
		t.Run(why, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
			sc.apply()
			sc.put("test-thing/a", m{"name": "a2"}, nil)
			sc.put("test-thing/x", m{"name": "x", "uses": "${test_thing.a.id}"}, nil)
			sc.put("test-thing/b", m{"name": "b", "size": "2", "uses": "${test_thing.x.id}"}, nil)
			sc.taint("test-thing/b")
			sc.Policies = tc.policies
			ended := sc.apply()
			if sc.cloud.made["b"] != tc.made || sc.cloud.made["x"] != 1 {
				t.Errorf("the cloud made %v, want b %d times: %+v", sc.cloud.made, tc.made, ended.Status.Conditions)
			}
		})
	}
}

// TestPoliciesJudgeWhatStays makes changes of an approved plan stale. What is left would not have been permitted.
func TestPoliciesJudgeWhatStays(t *testing.T) {
	for why, leftOut := range map[string]bool{"stale at begin": false, "left out of the approval": true} {
		sc := newCrashScenario(t)
		things("a")(sc)
		sc.apply()
		sc.partial = true
		sc.put("test-thing/b", m{"name": "b", "size": "1"}, nil)
		sc.delete("test-thing/a")
		run := sc.newRun()
		sc.until(run, beginning)
		sc.Policies = policyWith(v1alpha1.PlanPolicyRule{Name: "r", When: "counts.delete > counts.create", Effect: v1alpha1.PolicyDeny, Message: "it shrinks"})
		if leftOut {
			var index string
			for c := range sc.Ledger.Changes(t.Context(), "p1", 0) {
				if c != nil && c.Action == v1alpha1.ActionCreate {
					index = string(rune('0' + c.Index))
				}
			}
			sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.Approval.LeftOut = index })
		} else {
			sc.put("test-thing/b", m{"name": "b", "size": "2"}, nil)
		}
		begun, err := sc.applier.Begin(t.Context(), run.Plan)
		if err != nil || !strings.Contains(begun.Refused, "PlanPolicy/p/r: it shrinks") {
			t.Errorf("%s: %+v, %v", why, begun, err)
		}
		if len(sc.cloud.things) != 1 {
			t.Errorf("%s: the cloud has %v", why, sc.cloud.things)
		}
	}
}

// TestAnAuthorWithoutTheRightAllowsNothing has an automatic plan that a rule allows, whose author lost the right to approve.
func TestAnAuthorWithoutTheRightAllowsNothing(t *testing.T) {
	for _, lost := range []bool{false, true} {
		sc := newCrashScenario(t)
		things("a")(sc)
		sc.Policies = policyWith(v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyAllowAutomatic})
		sc.Forbidden["paula!"+store.VerbApprove+":team/plans/*"] = lost
		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Spec.Approval, po.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true, ByPolicy: true}
		})
		po := sc.until(run, approving)
		if got := po.Status.AutomaticApproval.Message; strings.Contains(got, `its author "paula" may not approve`) != lost {
			t.Errorf("lost %t: %q", lost, got)
		}
	}
}
