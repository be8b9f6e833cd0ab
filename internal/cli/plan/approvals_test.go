package plan_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

func approvalBy(user, message string) v1alpha1.PlanApproval {
	return v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: user}, Message: message}
}

// status and show name the users who approved a plan, and the approvals that it needs.
func TestSeveralApprovers(t *testing.T) {
	const missing, more = "PlanPolicy/p/two requires 2 approvals", "Approved by bob. PlanPolicy/p/two requires 1 more approval"
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2}}}
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	p := f.Plans["default/plan-x7k2d"]
	for _, tc := range []struct { // each goes on from the one before
		reason   string
		happens  func(f *clitest.Server, s *v1alpha1.PlanStatus, p *v1alpha1.Plan)
		denied   []string
		args     []string
		want     []string
		unwanted string
	}{
		{"no user approved", func(f *clitest.Server, _ *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, missing)
		}, nil, []string{"status"}, []string{missing}, "Decision:"},
		{"one approved", func(f *clitest.Server, s *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			s.Approvals = []v1alpha1.PlanApproval{approvalBy("bob", "read it")}
			f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, more)
		}, nil, []string{"status"}, []string{"waits for approval", "approved by bob (read it)", more, "Next: kubectl hykube show"}, ""},
		{"one approved, and the user may not", nil, []string{"approve plans"}, []string{"status"}, []string{more, "You may not"}, "Next:"},
		{"one approved, in the plan", nil, nil, []string{"show"}, []string{more, "It waits for approval: kubectl hykube approve"}, ""},
		{"two approved", func(f *clitest.Server, s *v1alpha1.PlanStatus, p *v1alpha1.Plan) {
			s.Approvals = append(s.Approvals, approvalBy("erin", ""))
			s.Approval = &s.Approvals[1]
			f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "1 change was made.")
		}, nil, []string{"status"}, []string{"approved by bob (read it)", "approved by erin"}, more},
		{"two approved, in the plan", nil, nil, []string{"show"}, []string{"was approved by bob, by erin. 1 change was made."}, more},
		{"a third one approved without need", func(_ *clitest.Server, s *v1alpha1.PlanStatus, _ *v1alpha1.Plan) {
			s.Approval = new(approvalBy("carol", ""))
		}, nil, []string{"show"}, []string{"by bob, by erin, by carol. "}, more},
	} {
		if tc.happens != nil {
			f.Mu.Lock()
			tc.happens(f, &p.Status, p)
			f.Mu.Unlock()
		}
		f.Denied = tc.denied
		out, errOut, code := f.Run(append(tc.args, "plan-x7k2d")...)
		for _, want := range tc.want {
			if code != exit.Done || !strings.Contains(out, want) {
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
		f := clitest.New(t, cli.Command)
		f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			if tc.denied {
				p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyDeny}}
			}
			return clitest.Creates(p)
		}
		f.Refuse = func(r *http.Request) *metav1.Status {
			if !strings.HasSuffix(r.URL.Path, "/approval") {
				return nil
			}
			st := clitest.Status(403, metav1.StatusReasonForbidden, `the approval of user "u" does not count`)
			st.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CausePolicy}}}
			return st
		}
		_, errOut, code := f.Run(append(tc.args, "-f", clitest.Write(t, clitest.TwoFiles))...)
		if code != exit.Refused || !strings.HasSuffix(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

// The command asks no user to approve whose approval would not count: the requester, and users who have approved
// already.
func TestApprovalThatDoesNotCount(t *testing.T) {
	const another, next = "for the approval of another user, because yours does not count", "\n  kubectl hykube approve plan-x7k2d -n default --digest sha256:abc\n"
	for user, counts := range map[string]bool{"alice": false, "bob": false, "carol": true} {
		f := clitest.New(t, cli.Command)
		f.User = user
		f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			p.Status.RequestedBy, p.Status.Approvals = &v1alpha1.Identity{Username: "alice"}, []v1alpha1.PlanApproval{approvalBy("bob", "")}
			p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2, ExcludeRequester: true}}}
			p.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "dan"}}}
			return clitest.Creates(p)
		}
		for _, args := range [][]string{{"plan", "--record", "-f", clitest.Write(t, clitest.TwoFiles)}, {"show", "plan-x7k2d"}, {"status", "plan-x7k2d"}} {
			out, errOut, code := f.Run(args...)
			if code != exit.Done || strings.Contains(out, another) == counts {
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
			_, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", "approve", "plan-x7k2d")
			if code != exit.Refused || strings.Contains(errOut, "Do you want") || !strings.Contains(errOut, another) {
				t.Errorf("%s, approve: code %d:\n%s", user, code, errOut)
			}
		}
		_, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", "apply", "--target", "sim_network.main")
		if asked := strings.Contains(errOut, "Do you want"); asked != counts || !counts && code != exit.Refused {
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
		"in a script, without the digest": {code: exit.Failed, errOut: "name the digest of the changes that you read"},
		"in a script, with it":            {args: []string{"--digest", "sha256:abc"}, code: exit.Done},
		"a part of the digest":            {args: []string{"--digest", "sha256:ab"}, code: exit.Failed, errOut: "is not a whole digest"},
		"no digest":                       {args: []string{"--digest", "sha256:ab..."}, code: exit.Failed, errOut: "is not a whole digest"},
		"of another plan":                 {args: []string{"--digest", "sha256:old"}, code: exit.Stale, errOut: "isn't the plan that you read"},
		"in a terminal, and yes":          {asks: true, answer: "yes\n", code: exit.Done, errOut: "Digest: sha256:abc"},
		"in a terminal, and no":           {asks: true, answer: "no\n", code: exit.Failed, errOut: "was not approved"},
		"in a terminal, with the digest":  {asks: true, args: []string{"--digest", "sha256:abc"}, code: exit.Done},
	} {
		f := clitest.New(t, cli.Command)
		f.Planning = clitest.Creates
		if _, errOut, code := f.Run("plan", "--record", "-f", clitest.Write(t, clitest.TwoFiles)); code != exit.Done {
			t.Fatal(errOut)
		}
		_, errOut, code := f.RunIn(func(s *session.Session) { s.Ask = tc.asks }, tc.answer, append([]string{"approve", "plan-x7k2d"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errOut, tc.errOut) {
			t.Errorf("%s: code %d: %s", why, code, errOut)
		}
		if approved := f.Plans["default/plan-x7k2d"].Status.Approval != nil; approved != (tc.code == exit.Done) {
			t.Errorf("%s: approved %t", why, approved)
		}
	}
}

// TestApproveWithoutTheRight says who may approve before it asks for a digest, which show does not print for this user.
func TestApproveWithoutTheRight(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	f.Denied = []string{"approve plans"}
	if _, errOut, code := f.Run("approve", "plan-x7k2d"); code != exit.Refused || strings.Contains(errOut, "--digest") || !strings.Contains(errOut, `needs the verb "approve" on plans`) {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// TestAnOutdatedPlanOffersNoApproval expects that status and show of a plan whose requester lost the rights say so, and offer no
// approval, whatever the rights of the user are.
func TestAnOutdatedPlanOffersNoApproval(t *testing.T) {
	const why = `The user "ada", who made the plan, has no rights.`
	for _, verb := range []string{"status", "show"} {
		f := clitest.New(t, cli.Command)
		f.Planning = clitest.Creates
		if _, errOut, code := f.Run("plan", "--record", "-f", clitest.Write(t, clitest.TwoFiles)); code != exit.Done {
			t.Fatal(errOut)
		}
		p := f.Plans["default/plan-x7k2d"]
		condition.Waiting(&p.Status.Conditions, p.Generation, v1alpha1.ReasonStale, why)
		out, errOut, code := f.Run(verb, "plan-x7k2d")
		if code != exit.Done || !strings.Contains(out, why) || strings.Contains(out, "approve") {
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
			f := clitest.New(t, cli.Command)
			f.User, f.Denied = "ada", tc.denied
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Status.Policies, p.Status.RequestedBy = tc.policies, &v1alpha1.Identity{Username: "ada"}
				return clitest.Creates(p)
			}
			f.Objects[v1alpha1.SchemeGroupVersion.String()+"/stacks/default/rest"] = map[string]any{
				"metadata": map[string]any{"name": "rest", "namespace": "default"}, "spec": map[string]any{"approval": "Automatic"},
			}
			args := []string{"apply", "-f", clitest.Write(t, clitest.TwoFiles)}
			if yes == "" {
				args = append(args, "--auto-approve")
			}
			out, errOut, code := f.RunIn(clitest.OnTerminal, yes, args...)
			if recorded := len(f.Writes()) > 0; recorded != (yes == "yes\n" || yes == "" && tc.want == "") {
				t.Errorf("%s, %q: code %d, recorded %t: %s", reason, yes, code, recorded, errOut)
			}
			if tc.want == "" {
				continue
			}
			if !strings.Contains(out+errOut, "would wait in namespace default for someone who may approve it. "+tc.want) {
				t.Errorf("%s, %q: code %d\n%s%s", reason, yes, code, out, errOut)
			}
			if yes == "" && (code != exit.Refused || !strings.Contains(errOut, "Nothing was changed. To record the files")) {
				t.Errorf("%s: code %d: %s", reason, code, errOut)
			}
			if yes != "" && !strings.Contains(out, "The stack rest selects resources of the files") {
				t.Errorf("%s, %q does not name the stack:\n%s", reason, yes, out)
			}
		}
	}
}

// A user who may not approve a plan is not asked for an approval.
func TestWhoMayNotApprove(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	f.Denied = []string{"approve plans"}
	const want = `waits in namespace default for someone who may approve it. You may not: that needs the verb "approve" on plans`
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"plan"}, exit.Done}, {[]string{"show", "plan-x7k2d"}, exit.Done}, {[]string{"status", "plan-x7k2d"}, exit.Done},
		{[]string{"apply", "--all", "--auto-approve"}, exit.Refused},
	} {
		out, errOut, code := f.Run(tc.args...)
		if all := out + errOut; code != tc.code || !strings.Contains(all, want) || strings.Contains(all, "kubectl hykube approve") {
			t.Errorf("%v: code %d:\n%s", tc.args, code, all)
		}
	}
	f.Denied = []string{"update plans/approval"}
	if out, _, _ := f.Run("status", "plan-x7k2d"); !strings.Contains(out, want) {
		t.Errorf("no right on the subresource:\n%s", out)
	}
}

// The error of a refused approval names the verb "approve" only if that right is missing.
func TestRefusedApprovalNamesTheMissingRight(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/approval") {
			return clitest.Status(403, metav1.StatusReasonForbidden, `user "u" has no right to create sim-networks`)
		}
		return nil
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	for _, denied := range []string{"", "approve plans", "update plans/approval"} {
		f.Denied = []string{denied}
		_, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc")
		if code != exit.Refused || !strings.Contains(errOut, "no right to create sim-networks") || strings.Contains(errOut, "You may not") != (denied != "") {
			t.Errorf("without %q: code %d: %s", denied, code, errOut)
		}
	}
}

// TestDiscardOfAFailedPlan discards a plan that failed before the user read it.
func TestDiscardOfAFailedPlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		f.Set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "no")
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "no")
		return nil
	}
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	f.Refuse = func(r *http.Request) *metav1.Status {
		if !strings.HasSuffix(r.URL.Path, "/approval") {
			return nil
		}
		return clitest.Status(409, metav1.StatusReasonConflict, "planning failed, so it cannot be approved or discarded")
	}
	_, errOut, code := f.Run("discard", "plan-x7k2d")
	if code != exit.Failed || !strings.Contains(errOut, "planning failed") || strings.Contains(errOut, "Read it again") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// A frozen server applies no plan: apply -f --auto-approve records nothing, and an answer records the files and leaves the plan.
func TestApplyOfFilesOnAFrozenServer(t *testing.T) {
	const why = "The server applies no plan in namespace default, because its database was restored from a backup."
	for _, yes := range []string{"yes\n", "no\n", ""} {
		f := clitest.New(t, cli.Command)
		f.Frozen = true
		args := []string{"apply", "-f", clitest.Write(t, clitest.TwoFiles)}
		if yes == "" {
			args = append(args, "--auto-approve")
		}
		out, errOut, code := f.RunIn(clitest.OnTerminal, yes, args...)
		if recorded := len(f.Writes()) > 0; recorded != (yes == "yes\n") || !strings.Contains(out+errOut, why) {
			t.Errorf("%q: recorded %t: %s%s", yes, recorded, out, errOut)
		}
		if code != map[string]int{"yes\n": exit.Refused, "no\n": exit.Failed, "": exit.Refused}[yes] {
			t.Errorf("%q: code %d: %s", yes, code, errOut)
		}
		for name, p := range f.Plans {
			if p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved {
				t.Errorf("%q: the plan %s was approved", yes, name)
			}
		}
	}
}

// A superseded plan is not discarded, and the error names the other plan.
func TestDiscardOfASupersededPlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Run("plan")
	f.Set(f.Plans["default/plan-x7k2d"], v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan plan-new.")
	const want = `nobody can approve plan "plan-x7k2d" any more, so there is nothing to discard: Superseded by plan plan-new.`
	if _, errOut, code := f.Run("discard", "plan-x7k2d"); code != exit.Failed || !strings.Contains(errOut, want) {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// The end of an approved plan does not repeat the warnings of the plan that the user read.
func TestApproveDoesNotRepeatWarnings(t *testing.T) {
	read := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Of the plan", Address: "sim_network.main"}
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Status.Diagnostics = []v1alpha1.Diagnostic{read}
		changes := clitest.Creates(p)
		changes[0].Diagnostics = []v1alpha1.Diagnostic{read}
		return changes
	}
	f.Run("plan", "--target", "sim_network.main")
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		c := &f.Changes[p.Namespace+"/"+p.Name][0]
		c.State = v1alpha1.ChangeDone
		c.Diagnostics = append(c.Diagnostics, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Of the apply"})
		f.Set(p, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, "")
		f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
	}
	digest := f.Plans["default/plan-x7k2d"].Status.Digest
	_, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", digest)
	if code != exit.Done || strings.Contains(errOut, "Of the plan") || !strings.Contains(errOut, "Of the apply") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
