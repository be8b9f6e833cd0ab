package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/store"
)

func as(t *testing.T, name string) context.Context {
	return request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
}

// noPolicies judges plans by no rule.
func noPolicies(context.Context, *v1alpha1.Plan, changes.Judged) (*policy.Verdict, error) {
	return &policy.Verdict{}, nil
}

// waiting is a plan that waits for a decision.
func waiting() *v1alpha1.Plan {
	p := &v1alpha1.Plan{}
	p.Name, p.Namespace, p.Status.Digest = "p", "team", "sha256:1"
	condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "1 to create")
	return p
}

// TestDecide approves plans that are, and are not, what the person read.
func TestDecide(t *testing.T) {
	type verification = func(context.Context, *v1alpha1.Plan) (changes.Verification, error)
	finds := func(v changes.Verification) verification {
		return func(context.Context, *v1alpha1.Plan) (changes.Verification, error) { return v, nil }
	}
	stale, blocked := []changes.Obstacle{{Address: "a.b", Why: "moved"}}, []changes.Obstacle{{Address: "a.c", Why: "protected"}}
	for reason, test := range map[string]struct {
		who    string
		change func(*v1alpha1.Plan)
		sent   v1alpha1.PlanApproval
		verify verification
		taken  bool
	}{
		"what was read":         {taken: true},
		"another digest":        {sent: v1alpha1.PlanApproval{Digest: "sha256:2"}},
		"no digest":             {sent: v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}},
		"discarded without one": {sent: v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded}, taken: true},
		"discarded before": {change: func(p *v1alpha1.Plan) {
			p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: "sha256:1"}
		}},
		"cancelled":        {change: func(p *v1alpha1.Plan) { p.Status.Cancel = &v1alpha1.PlanCancel{} }},
		"still being made": {change: func(p *v1alpha1.Plan) { p.Status.Conditions = nil }},
		"could not be made": {change: func(p *v1alpha1.Plan) {
			condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "")
		}},
		"superseded": {change: func(p *v1alpha1.Plan) {
			condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonSuperseded, "by another")
		}},
		"ended by the server": {change: func(p *v1alpha1.Plan) {
			condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonDiscarded, "its stack was deleted")
		}},
		"stale": {change: func(p *v1alpha1.Plan) {
			condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, "")
		}},
		"speculative":              {change: func(p *v1alpha1.Plan) { p.Spec.Speculative = true }},
		"nothing to do":            {change: func(p *v1alpha1.Plan) { condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonNoChanges, "") }},
		"the server, unasked":      {who: user.APIServerUser},
		"a change moved":           {verify: finds(changes.Verification{Stale: stale, Left: 1})},
		"a change is blocked":      {verify: finds(changes.Verification{Blocked: blocked, Left: 1})},
		"moved, and partial":       {sent: v1alpha1.PlanApproval{Partial: true}, verify: finds(changes.Verification{Stale: stale, Left: 1}), taken: true},
		"partial, nothing is left": {sent: v1alpha1.PlanApproval{Partial: true}, verify: finds(changes.Verification{Blocked: blocked})},
		"the user lacks a right of a change": {verify: finds(changes.Verification{Left: 1, Rights: store.EachRight([]store.Right{
			{Verb: store.VerbGet, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks", Name: "a"},
			{Verb: store.VerbDelete, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks", Name: "a"},
		})})},
		"the user has the rights of all changes": {taken: true, verify: finds(changes.Verification{Left: 1, Rights: store.EachRight([]store.Right{
			{Verb: store.VerbUpdate, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks", Name: "a"}, store.UseOf("team", "default"),
		})})},
		"a discard takes no right of a change": {sent: v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded}, taken: true, verify: finds(changes.Verification{Left: 1, Rights: store.EachRight([]store.Right{
			{Verb: store.VerbDelete, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks", Name: "a"},
		})})},
		"the verification fails": {verify: func(context.Context, *v1alpha1.Plan) (changes.Verification, error) {
			return changes.Verification{}, errors.New("no ledger")
		}},
	} {
		p, sent := waiting(), test.sent
		if test.change != nil {
			test.change(p)
		}
		if sent.Decision == "" {
			sent.Decision = v1alpha1.DecisionApproved
			if sent.Digest == "" {
				sent.Digest = "sha256:1"
			}
		}
		if test.verify == nil {
			test.verify = finds(changes.Verification{Left: 1})
		}
		if test.who == "" {
			test.who = "ann"
		}
		before := p.Status.Approval
		c := Config{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "ann" && a.GetVerb() != "delete" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}), Verify: test.verify, Backend: &Backend{Judge: noPolicies}}
		err := c.decide(as(t, test.who), p, &sent)
		if (err == nil) != test.taken || !test.taken && p.Status.Approval != before {
			t.Errorf("%s: %v", reason, err)
		}
		if test.taken && (p.Status.Approval.By.Username != "ann" || p.Status.Approval.Digest != "sha256:1") {
			t.Errorf("%s: recorded %+v", reason, p.Status.Approval)
		}
		if approved := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved); approved != (test.taken && sent.Decision == v1alpha1.DecisionApproved) {
			t.Errorf("%s: approved: %t", reason, approved)
		}
	}
}

// TestRepeatedDecisions sends the decision that a plan already has again.
func TestRepeatedDecisions(t *testing.T) {
	by := func(name string) v1alpha1.PlanApproval {
		return v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: "sha256:1", By: &v1alpha1.Identity{Username: name}}
	}
	for who, want := range map[string]bool{"ann": true, "bob": true, "eve": false, user.APIServerUser: true} {
		p := waiting()
		p.Status.Approvals = []v1alpha1.PlanApproval{by("ann"), by("bob")}
		p.Status.Approval = &p.Status.Approvals[1]
		sent := by("")
		c := Config{Verify: func(context.Context, *v1alpha1.Plan) (changes.Verification, error) {
			return changes.Verification{}, nil
		}}
		if err := c.decide(as(t, who), p, &sent); (err == nil) != want || p.Status.Approval.By.Username != "bob" {
			t.Errorf("%s: %v, decided by %v", who, err, p.Status.Approval.By)
		}
		sent.Partial = true
		if err := c.decide(as(t, who), p, &sent); err == nil {
			t.Errorf("%s: another decision is accepted", who)
		}
	}
}

// TestADecisionIsInTheNameOfItsUser has a client claim to be another.
func TestADecisionIsInTheNameOfItsUser(t *testing.T) {
	sent := &v1alpha1.PlanApproval{By: &v1alpha1.Identity{Username: "bob"}}
	if by := decider(as(t, "ann"), sent); by.Username != "ann" {
		t.Errorf("decided by %s", by.Username)
	}
	if by := decider(as(t, user.APIServerUser), sent); by.Username != "bob" {
		t.Errorf("the server decides in the name of %s", by.Username)
	}
}

// TestAutomaticApprovalTakesTheRightsOfItsUser has the server approve in the name of a user who lost the right to.
func TestAutomaticApprovalTakesTheRightsOfItsUser(t *testing.T) {
	for lost, want := range map[string]string{"": "", "approve": "approve plans.hykube.io", "delete": "delete sim-networks.sim.hykube.io"} {
		c := Config{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() != "ann" || a.GetVerb() == lost {
				return authorizer.DecisionNoOpinion, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})}
		p := waiting()
		p.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		err := c.authorizeChanges(as(t, user.APIServerUser), p, &v1alpha1.PlanApproval{By: &v1alpha1.Identity{Username: "ann"}},
			store.EachRight([]store.Right{{Verb: store.VerbDelete, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks"}}))
		if (err == nil) != (want == "") || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user "ann" has no right to `+want+` in the namespace "team"`)) {
			t.Errorf("without %q: %v", lost, err)
		}
	}
}

// TestAnApprovalOfAnImportTakesTheRightToTheOtherObject approves an import of an ID that objects of other namespaces
// have. The error names neither these nor their number.
func TestAnApprovalOfAnImportTakesTheRightToTheOtherObject(t *testing.T) {
	c := Config{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetNamespace() == "team" && a.GetVerb() == "create" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	right := func(verb, namespace string) store.Right {
		return store.Right{Verb: verb, Namespace: namespace, Group: "sim.hykube.io", Resource: "sim-networks", Name: "a", Unnamed: namespace != "team"}
	}
	const other = "update sim-networks.sim.hykube.io on another object that manages a resource with the same ID or identity"
	for want, needed := range map[string][]store.Right{
		`user "ann" has no right to ` + other + ", and an approval":                                             {right("create", "team"), right("update", "ops"), right("update", "secret")},
		`no right to delete sim-networks.sim.hykube.io in the namespace "team", ` + other + ", and an approval": {right("update", "ops"), right("delete", "team")},
	} {
		err := c.authorizeChanges(as(t, "ann"), waiting(), nil, store.EachRight(needed))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ops") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMayApproveAsksForTheVerb(t *testing.T) {
	for decision, allowed := range map[authorizer.Decision]bool{authorizer.DecisionAllow: true, authorizer.DecisionDeny: false, authorizer.DecisionNoOpinion: false} {
		var asked authorizer.Attributes
		a := authorizer.AuthorizerFunc(func(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
			asked = attributes
			return decision, "", nil
		})
		err := mayApprove(as(t, "ann"), a, waiting(), "ask")
		if (err == nil) != allowed || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("decision %d: %v", decision, err)
		}
		if asked.GetVerb() != "approve" || asked.GetResource() != "plans" || asked.GetNamespace() != "team" || asked.GetUser().GetName() != "ann" {
			t.Errorf("asked %+v", asked)
		}
	}
}

// TestOnlyTheServerWrites tries what would make a decision about one plan one about another.
func TestOnlyTheServerWrites(t *testing.T) {
	old := waiting()
	for phase, before := range map[string]*v1alpha1.Plan{"that is made": old, "that is being made": {}} {
		forged := before.DeepCopy()
		forged.Status.Summary = &v1alpha1.PlanSummary{Text: "no changes"}
		if statusOfPlan(as(t, "ann"), forged, before) == nil || statusOfPlan(as(t, user.APIServerUser), forged, before) != nil {
			t.Errorf("the status of a plan %s is the server's own", phase)
		}
	}
	old.Finalizers = []string{v1alpha1.FinalizerRecord}
	keeps := keepRecordFinalizer(rest.ValidateAllObjectUpdateFunc)
	if keeps(as(t, "ann"), waiting(), old) == nil || keeps(as(t, user.APIServerUser), waiting(), old) != nil {
		t.Error("the finalizer of a plan's record is the server's own")
	}
	if requireServer(as(t, "ann"), "r") == nil {
		t.Error("a client may write a PlanRecord")
	}
}

func TestAPlanThatIsAppliedStays(t *testing.T) {
	p := waiting()
	condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, "")
	if beingApplied(p) == nil {
		t.Error("it can be deleted while it is applied")
	}
	p.Status.FinishedAt = new(metav1.Now())
	if err := beingApplied(p); err != nil {
		t.Error(err)
	}
}
