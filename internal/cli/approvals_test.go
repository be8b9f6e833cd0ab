package cli

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

func approvalBy(user, message string) v1alpha1.PlanApproval {
	return v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: user}, Message: message}
}

// status and show name the users who approved a plan, and the approvals that it needs.
func TestSeveralApprovers(t *testing.T) {
	const missing, more = "PlanPolicy/p/two requires 2 approvals", "Approved by bob. PlanPolicy/p/two requires 1 more approval"
	f := newFakeServer(t)
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2}}}
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	p := f.plans["default/plan-x7k2d"]
	for _, tc := range []struct { // each goes on from the one before
		reason   string
		happens  func(f *fakeServer, s *v1alpha1.PlanStatus, p *v1alpha1.Plan)
		denied   []string
		args     []string
		want     []string
		unwanted string
	}{
		{"no user approved", func(f *fakeServer, _ *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, missing)
		}, nil, []string{"status"}, []string{missing}, "Decision:"},
		{"one approved", func(f *fakeServer, s *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			s.Approvals = []v1alpha1.PlanApproval{approvalBy("bob", "read it")}
			f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, more)
		}, nil, []string{"status"}, []string{"waits for approval", "approved by bob (read it)", more, "Next: kubectl hykube show"}, ""},
		{"one approved, and the user may not", nil, []string{"approve plans"}, []string{"status"}, []string{more, "You may not"}, "Next:"},
		{"one approved, in the plan", nil, nil, []string{"show"}, []string{more, "It waits for approval: kubectl hykube approve"}, ""},
		{"two approved", func(f *fakeServer, s *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			s.Approvals = append(s.Approvals, approvalBy("erin", ""))
			s.Approval = &s.Approvals[1]
			f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "1 change was made.")
		}, nil, []string{"status"}, []string{"approved by bob (read it)", "approved by erin"}, more},
		{"two approved, in the plan", nil, nil, []string{"show"}, []string{"was approved by bob, by erin. 1 change was made."}, more},
		{"a third one approved without need", func(_ *fakeServer, s *v1alpha1.PlanStatus, _ *v1alpha1.Plan) {
			s.Approval = new(approvalBy("carol", ""))
		}, nil, []string{"show"}, []string{"by bob, by erin, by carol. "}, more},
	} {
		if tc.happens != nil {
			f.mu.Lock()
			tc.happens(f, &p.Status, p)
			f.mu.Unlock()
		}
		f.denied = tc.denied
		out, errOut, code := f.run(append(tc.args, "plan-x7k2d")...)
		for _, want := range tc.want {
			if code != ExitDone || !strings.Contains(out, want) {
				t.Errorf("%s: code %d, no %q in:\n%s%s", tc.reason, code, want, out, errOut)
			}
		}
		if tc.unwanted != "" && strings.Contains(out, tc.unwanted) {
			t.Errorf("%s: %q in:\n%s", tc.reason, tc.unwanted, out)
		}
	}
}

// A plan that a policy refuses, or whose approval does not count, waits, and the command that approves it is named.
func TestPolicyKeepsAPlanWaiting(t *testing.T) {
	for _, tc := range []struct {
		reason, want string
		args         []string
		denied       bool
	}{
		{"refused", "Nothing was changed. The plan can be approved when no policy refuses it any more: kubectl hykube approve plan-x7k2d -n default --digest sha256:abc\n", []string{"plan", "--record"}, true},
		{"refused, in a plan of files", "Error: a policy refuses plan \"plan-guess\"\nNothing was changed.\n", []string{"plan"}, true},
		{"the approval does not count", "does not count\nThe plan waits for approval. To approve it: kubectl hykube approve apply-x7k2d -n default --digest sha256:abc\n", []string{"apply", "--auto-approve"}, false},
	} {
		f := newFakeServer(t)
		f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			if tc.denied {
				p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyDeny}}
			}
			return creates(p)
		}
		f.refuse = func(r *http.Request) *metav1.Status {
			if !strings.HasSuffix(r.URL.Path, "/approval") {
				return nil
			}
			st := status(403, metav1.StatusReasonForbidden, `the approval of user "u" does not count`)
			st.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CausePolicy}}}
			return st
		}
		_, errOut, code := f.run(append(tc.args, "-f", write(t, twoFiles))...)
		if code != ExitRefused || !strings.HasSuffix(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

// The command asks no user to approve whose approval would not count: the requester, and users who have approved
// already.
func TestApprovalThatDoesNotCount(t *testing.T) {
	const another, next = "for the approval of another user, because yours does not count", "\n  kubectl hykube approve plan-x7k2d -n default --digest sha256:abc\n"
	for user, counts := range map[string]bool{"alice": false, "bob": false, "carol": true} {
		f := newFakeServer(t)
		f.user = user
		f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			p.Status.RequestedBy, p.Status.Approvals = &v1alpha1.Identity{Username: "alice"}, []v1alpha1.PlanApproval{approvalBy("bob", "")}
			p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2, ExcludeRequester: true}}}
			p.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "dan"}}}
			return creates(p)
		}
		for _, args := range [][]string{{"plan", "--record", "-f", write(t, twoFiles)}, {"show", "plan-x7k2d"}, {"status", "plan-x7k2d"}} {
			out, errOut, code := f.run(args...)
			if code != ExitDone || strings.Contains(out, another) == counts {
				t.Errorf("%s, %s: code %d:\n%s%s", user, args[0], code, out, errOut)
			}
			if named := "A policy counts no approval of a user who requested the plan, or wrote a part of the changes: alice, dan."; strings.Contains(out, named) == counts {
				t.Errorf("%s, %s does not name those who may not approve:\n%s", user, args[0], out)
			}
			if args[0] == "plan" && strings.Contains(out, next) != counts {
				t.Errorf("%s, %s:\n%s", user, args[0], out)
			}
		}
		if !counts {
			_, errOut, code := f.runIn(asking, "yes\n", "approve", "plan-x7k2d")
			if code != ExitRefused || strings.Contains(errOut, "Do you want") || !strings.Contains(errOut, another) {
				t.Errorf("%s, approve: code %d:\n%s", user, code, errOut)
			}
		}
		_, errOut, code := f.runIn(asking, "yes\n", "apply", "--target", "sim_network.main")
		if asked := strings.Contains(errOut, "Do you want"); asked != counts || !counts && code != ExitRefused {
			t.Errorf("%s: code %d, asked %t:\n%s", user, code, asked, errOut)
		}
	}
}

// TestApproveNamesTheDigest expects that approve approves no plan that the user has not seen.
func TestApproveNamesTheDigest(t *testing.T) {
	for why, tc := range map[string]struct {
		asks   bool
		answer string
		args   []string
		code   int
		errOut string
	}{
		"in a script, without the digest": {code: ExitError, errOut: "name the digest of the changes that you read"},
		"in a script, with it":            {args: []string{"--digest", "sha256:abc"}, code: ExitDone},
		"a part of the digest":            {args: []string{"--digest", "sha256:ab"}, code: ExitError, errOut: "is not a whole digest"},
		"no digest":                       {args: []string{"--digest", "sha256:ab..."}, code: ExitError, errOut: "is not a whole digest"},
		"of another plan":                 {args: []string{"--digest", "sha256:old"}, code: ExitStale, errOut: "isn't the plan that you read"},
		"in a terminal, and yes":          {asks: true, answer: "yes\n", code: ExitDone, errOut: "Digest: sha256:abc"},
		"in a terminal, and no":           {asks: true, answer: "no\n", code: ExitError, errOut: "was not approved"},
		"in a terminal, with the digest":  {asks: true, args: []string{"--digest", "sha256:abc"}, code: ExitDone},
	} {
		f := newFakeServer(t)
		f.planning = creates
		if _, errOut, code := f.run("plan", "--record", "-f", write(t, twoFiles)); code != ExitDone {
			t.Fatal(errOut)
		}
		_, errOut, code := f.runIn(func(s *session) { s.ask = tc.asks }, tc.answer, append([]string{"approve", "plan-x7k2d"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errOut, tc.errOut) {
			t.Errorf("%s: code %d: %s", why, code, errOut)
		}
		if approved := f.plans["default/plan-x7k2d"].Status.Approval != nil; approved != (tc.code == ExitDone) {
			t.Errorf("%s: approved %t", why, approved)
		}
	}
}

// TestApproveWithoutTheRight says who may approve before it asks for a digest, which show does not print for this user.
func TestApproveWithoutTheRight(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	f.denied = []string{"approve plans"}
	if _, errOut, code := f.run("approve", "plan-x7k2d"); code != ExitRefused || strings.Contains(errOut, "--digest") || !strings.Contains(errOut, `needs the verb "approve" on plans`) {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// TestAnOutdatedPlanOffersNoApproval expects that status and show of a plan whose requester lost the rights say so, and offer no
// approval, whatever the rights of the user are.
func TestAnOutdatedPlanOffersNoApproval(t *testing.T) {
	const why = `The user "ada", who made the plan, has no rights.`
	for _, verb := range []string{"status", "show"} {
		f := newFakeServer(t)
		f.planning = creates
		if _, errOut, code := f.run("plan", "--record", "-f", write(t, twoFiles)); code != ExitDone {
			t.Fatal(errOut)
		}
		p := f.plans["default/plan-x7k2d"]
		condition.Waiting(&p.Status.Conditions, p.Generation, v1alpha1.ReasonStale, why)
		out, errOut, code := f.run(verb, "plan-x7k2d")
		if code != ExitDone || !strings.Contains(out, why) || strings.Contains(out, "approve") {
			t.Errorf("%s: code %d:\n%s%s", verb, code, out, errOut)
		}
	}
}

// TestApplySaysThatThePlanWouldWait records files whose plan the user's approval does not apply only after a yes to a question that
// says so, and never with --auto-approve.
func TestApplySaysThatThePlanWouldWait(t *testing.T) {
	onCall := []v1alpha1.PlanPolicyResult{{
		Rule: "PlanPolicy/freeze/weekend", Effect: v1alpha1.PolicyRequireApprovals, Message: "it is the weekend",
		Approvals: &v1alpha1.RequiredApprovals{Count: 1, Groups: []string{"on-call"}},
	}}
	two := []v1alpha1.PlanPolicyResult{{Rule: "PlanPolicy/p/two", Message: "two look at it", Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2}}}
	for reason, tc := range map[string]struct {
		policies []v1alpha1.PlanPolicyResult
		denied   []string
		want     string
	}{
		"a freeze":            {policies: onCall, want: "PlanPolicy/freeze/weekend requires 1 more approval by members of on-call (the approval by ada does not count"},
		"two approvals":       {policies: two, want: "PlanPolicy/p/two requires 1 more approval"},
		"no right":            {denied: []string{"approve plans"}, want: `You may not: that needs the verb "approve" on plans`},
		"nothing prevents it": {},
	} {
		for _, yes := range []string{"yes\n", "no\n", ""} {
			f := newFakeServer(t)
			f.user, f.denied = "ada", tc.denied
			f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Status.Policies, p.Status.RequestedBy = tc.policies, &v1alpha1.Identity{Username: "ada"}
				return creates(p)
			}
			f.objects[v1alpha1.SchemeGroupVersion.String()+"/stacks/default/rest"] = map[string]any{
				"metadata": map[string]any{"name": "rest", "namespace": "default"}, "spec": map[string]any{"approval": "Automatic"},
			}
			args := []string{"apply", "-f", write(t, twoFiles)}
			if yes == "" {
				args = append(args, "--auto-approve")
			}
			out, errOut, code := f.runIn(asking, yes, args...)
			if recorded := len(f.writes()) > 0; recorded != (yes == "yes\n" || yes == "" && tc.want == "") {
				t.Errorf("%s, %q: code %d, recorded %t: %s", reason, yes, code, recorded, errOut)
			}
			if tc.want == "" {
				continue
			}
			if !strings.Contains(out+errOut, "would wait in namespace default for someone who may approve it. "+tc.want) {
				t.Errorf("%s, %q: code %d\n%s%s", reason, yes, code, out, errOut)
			}
			if yes == "" && (code != ExitRefused || !strings.Contains(errOut, "Nothing was changed. To record the files")) {
				t.Errorf("%s: code %d: %s", reason, code, errOut)
			}
			if yes != "" && !strings.Contains(out, "The stack rest selects resources of the files") {
				t.Errorf("%s, %q does not name the stack:\n%s", reason, yes, out)
			}
		}
	}
}
