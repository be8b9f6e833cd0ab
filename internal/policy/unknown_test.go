package policy

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// open is a plan of bob with three creates. The first has unknown values, the second sensitive ones, the third is known.
func open(s *Set, second Values) *Subject {
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "prod"}}
	p.Status.RequestedBy = user("bob")
	subject := s.NewSubject(p)
	add := func(c *v1alpha1.PlanChange, v Values) {
		c.Type, c.Action = "sim_network", v1alpha1.ActionCreate
		c.Object = v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "prod", Name: strings.TrimPrefix(c.Address, "sim_network.")}
		if err := subject.Add(c, v); err != nil {
			panic(err)
		}
	}
	add(&v1alpha1.PlanChange{Index: 0, Address: "sim_network.unknown",
		After:        raw(`{"name":"u","allowed":["10.0.0.0/8",null],"tags":{"team":"web"},"size":3}`),
		AfterUnknown: raw(`{"id":true,"cidr":true,"labels":true,"allowed":[false,true],"tags":{"owner":true}}`)}, Values{})
	add(&v1alpha1.PlanChange{Index: 1, Address: "sim_network.sensitive",
		After:          raw(`{"name":"s","cidr":"(sensitive value)","allowed":[],"tags":{},"labels":{"a":"b"},"id":"1"}`),
		AfterSensitive: raw(`{"cidr":true}`)}, second)
	add(&v1alpha1.PlanChange{Index: 2, Address: "sim_network.known",
		After: raw(`{"name":"k","cidr":"10.1.0.0/16","allowed":["0.0.0.0/0"],"tags":{"owner":"x"},"labels":{"a":"b"},"id":"2"}`)}, Values{})
	return subject
}

// evaluateOne evaluates one rule, and returns "true", "false", an error, or the indexes of the changes that make it undecided.
func evaluateOne(t *testing.T, when string, second Values) string {
	t.Helper()
	set := NewSet(rules(deny(when)), nil, nil)
	v, err := set.Evaluate(t.Context(), open(set, second))
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	switch {
	case len(v.Results) == 0:
		return "false"
	case strings.Contains(v.Results[0].Message, "cannot be evaluated"):
		return v.Results[0].Message
	case v.Results[0].Undecided == nil:
		return "true"
	}
	if v.Denied() != "" {
		t.Errorf("%s: an undecided rule denies the plan", when)
	}
	return strings.ReplaceAll(v.Results[0].Undecided.List(), "sim_network.", "")
}

// TestUndecided evaluates conditions about values that are not known. Each change of the plan is p, q and r.
func TestUndecided(t *testing.T) {
	const one = `plan.resource_changes.exists(c, c.name == "unknown" && %)`
	secret := Values{After: raw(`{"name":"s","cidr":"10.66.0.0/16","allowed":[],"tags":{},"labels":{"a":"b"},"id":"1"}`)}
	tests := map[string]string{
		// a value
		`c.change.after.cidr == "10.66.0.0/16"`:             "unknown",
		`c.change.after.cidr != "10.66.0.0/16"`:             "unknown",
		`c.change.after.?cidr.orValue("") == "x"`:           "unknown",
		`c.change.after["cidr"].startsWith("10.")`:          "unknown",
		`c.change.after.cidr in ["a", "b"]`:                 "unknown",
		`!(c.change.after.cidr in ["a", "b"])`:              "unknown",
		`c.change.after.cidr == null`:                       "unknown",
		`c.change.after.cidr.size() > 3 || true`:            "true",
		`c.change.after.cidr == "x" && false`:               "false",
		`c.change.after.size == 3`:                          "true",
		`c.change.after.size == 3 && c.change.after.id > 3`: "unknown",
		`(c.change.after.cidr == "x" ? 1 : 2) == 1`:         "unknown",
		// a map that is unknown as a whole
		`"labels" in c.change.after`:                                  "true",
		`"cost-centre" in c.change.after.labels`:                      "unknown",
		`!("cost-centre" in c.change.after.labels)`:                   "unknown",
		`has(c.change.after.labels.team)`:                             "unknown",
		`!has(c.change.after.labels.team)`:                            "unknown",
		`c.change.after.labels.?team.orValue("") == "x"`:              "unknown",
		`c.change.after.labels == {"a": "b"}`:                         "unknown",
		`size(c.change.after.labels) == 0`:                            "unknown",
		`c.change.after.labels.exists(k, k == "a")`:                   "unknown",
		`c.change.after.labels.all(k, v, v != "public")`:              "unknown",
		`c.change.after.?labels.hasValue()`:                           "unknown",
		`[c.change.after.labels].exists(l, l == {"a": "b"}) || 1 > 2`: "unknown",
		// a map with an unknown element
		`c.change.after.tags.team == "web"`:                              "true",
		`c.change.after.tags.owner == "x"`:                               "unknown",
		`has(c.change.after.tags.team)`:                                  "true",
		`has(c.change.after.tags.nothing)`:                               "false",
		`"owner" in c.change.after.tags`:                                 "true",
		`c.change.after.tags == {"team": "web", "owner": "x"}`:           "unknown",
		`{"team": "web", "owner": "x"} == c.change.after.tags`:           "unknown",
		`{"team": "web", "owner": "x"} != c.change.after.tags`:           "unknown",
		`c.change.after.tags == {"team": "db", "owner": "x"}`:            "false",
		`c.change.after.tags == {"team": "web"}`:                         "false",
		`c.change.after.tags in [{"team": "web", "owner": "x"}]`:         "unknown",
		`optional.of(c.change.after.tags) == optional.of({"a": "b"})`:    "false",
		`c.change.after.tags.exists(k, c.change.after.tags[k] == "web")`: "true",
		`c.change.after.tags.exists(k, c.change.after.tags[k] == "x")`:   "unknown",
		`c.change.after == {"a": "b"}`:                                   "false",
		// a list with an unknown element
		`"10.0.0.0/8" in c.change.after.allowed`:                  "true",
		`"0.0.0.0/0" in c.change.after.allowed`:                   "unknown",
		`!("0.0.0.0/0" in c.change.after.allowed)`:                "unknown",
		`size(c.change.after.allowed) == 2`:                       "true",
		`c.change.after.allowed == ["10.0.0.0/8", "0.0.0.0/0"]`:   "unknown",
		`["10.0.0.0/8", "0.0.0.0/0"] == c.change.after.allowed`:   "unknown",
		`["a", "b"] == c.change.after.allowed`:                    "false",
		`(c.change.after.allowed + ["a"]) == ["a"]`:               "false",
		`"a" in (c.change.after.allowed + ["a"])`:                 "true",
		`"b" in (c.change.after.allowed + ["a"])`:                 "unknown",
		`c.change.after.allowed.exists(a, a == "0.0.0.0/0")`:      "unknown",
		`c.change.after.allowed.all(a, a.startsWith("10."))`:      "unknown",
		`c.change.after.allowed.all(a, a.startsWith("11."))`:      "false",
		`c.change.after.allowed.exists_one(a, a == "10.0.0.0/8")`: "unknown",
		`c.change.after.allowed.filter(a, a == "x").size() > 0`:   "unknown",
		`c.change.after.allowed.map(a, a + "x") == []`:            "unknown",
		`c.change.after.allowed[0] == "10.0.0.0/8"`:               "true",
		`c.change.after.allowed.join(",") == ""`:                  "unknown",
		`c.change.after.allowed.reverse()[1] == "10.0.0.0/8"`:     "unknown",
		`sets.contains(["10.0.0.0/8"], c.change.after.allowed)`:   "unknown",
		`sets.contains(c.change.after.allowed, ["10.0.0.0/8"])`:   "unknown",
		`sets.intersects(c.change.after.allowed, ["0.0.0.0/0"])`:  "unknown",
		`c.change.after.allowed.distinct().size() == 2`:           "unknown",
		`string(c.change.after.cidr) == "x"`:                      "unknown",
		`c.change.after.cidr.replace("x", "y") == "x"`:            "unknown",
		// other parts of the document
		`plan.planned_values.root_module.resources.exists(r, r.values.cidr == "10.66.0.0/16" && r.name == "unknown")`: "unknown",
		`c.change.after_unknown.cidr`: "true",
	}
	for when, want := range tests {
		if got := evaluateOne(t, strings.ReplaceAll(one, "%", when), secret); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	all := map[string]struct {
		when   string
		second Values
		want   string
	}{
		"a sensitive value":                       {`plan.resource_changes.exists(c, c.name != "unknown" && c.change.after.cidr == "10.66.0.0/16")`, secret, "true"},
		"a sensitive value that is not available": {`plan.resource_changes.exists(c, c.name != "unknown" && c.change.after.cidr == "10.66.0.0/16")`, Values{}, "sensitive"},
		"the mask is no value":                    {`plan.resource_changes.exists(c, c.change.after.?cidr.orValue("") == "(sensitive value)")`, secret, "unknown"},
		"a known change decides":                  {`plan.resource_changes.exists(c, c.change.after.cidr == "10.1.0.0/16")`, secret, "true"},
		"two changes":                             {`plan.resource_changes.all(c, c.change.after.cidr != "x")`, Values{}, "unknown, sensitive"},
		"counts alone":                            {`counts.create == 3`, Values{}, "true"},
	}
	for why, tc := range all {
		if got := evaluateOne(t, tc.when, tc.second); got != tc.want {
			t.Errorf("%s: %s, want %s", why, got, tc.want)
		}
	}
}

// TestForgedMark expects that a value that looks like a mark stays a value.
func TestForgedMark(t *testing.T) {
	secret := Values{After: raw(`{"cidr":"unknown 0"}`)}
	if got := evaluateOne(t, `plan.resource_changes.exists(c, c.name == "sensitive" && c.change.after.cidr == "unknown 0")`, secret); got != "true" {
		t.Error(got)
	}
}

// TestMessagesAreMasked expects no sensitive value in a message, although the condition reads it.
func TestMessagesAreMasked(t *testing.T) {
	secret := Values{After: raw(`{"name":"s","cidr":"10.66.0.0/16"}`)}
	r := v1alpha1.PlanPolicyRule{Name: "r", Effect: v1alpha1.PolicyDeny, When: `plan.resource_changes.exists(c, c.name == "sensitive" && c.change.after.cidr == "10.66.0.0/16")`,
		MessageExpression: `plan.resource_changes.filter(c, c.name == "sensitive")[0].change.after.cidr + "!" + plan.planned_values.root_module.resources.map(r, string(r.values.?cidr.orValue(""))).join(" ")`}
	set := NewSet(rules(r), nil, nil)
	v, err := set.Evaluate(t.Context(), open(set, secret))
	if err != nil || strings.Contains(v.Denied(), "10.66") || !strings.Contains(v.Denied(), "(sensitive value)!") {
		t.Errorf("%q, %v", v.Denied(), err)
	}
}

// TestUndecidedAllowsNothing expects that an undecided rule has no effect but the one in the message.
func TestUndecidedAllowsNothing(t *testing.T) {
	r := deny(`plan.resource_changes.all(c, c.change.after.cidr != "0.0.0.0/0")`)
	r.Effect = v1alpha1.PolicyAllowAutomatic
	set := NewSet(rules(r), nil, nil)
	v, err := set.Evaluate(t.Context(), open(set, Values{}))
	if err != nil {
		t.Fatal(err)
	}
	why := v.Manual(user("bob"), false)
	if !strings.Contains(why, "PlanPolicy/p/r is undecided") || !strings.Contains(why, "sim_network.unknown, sim_network.sensitive") {
		t.Errorf("%q", why)
	}
	if !v.Undecided(0) || !v.Undecided(1) || v.Undecided(2) {
		t.Errorf("undecided changes: %+v", v.undecided)
	}
	two := v1alpha1.PlanPolicyRule{Name: "two", When: r.When, Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2}}
	set = NewSet(rules(two), nil, nil)
	if v, err = set.Evaluate(t.Context(), open(set, Values{})); err != nil || v.Missing(user("bob"), nil) != "" || len(v.Results) != 1 {
		t.Errorf("required approvals: %+v, %v", v, err)
	}
}

// TestLapsed expects that a rule of an author without the right allows nothing, and says why.
func TestLapsed(t *testing.T) {
	r := deny("true")
	r.Effect = v1alpha1.PolicyAllowAutomatic
	set := NewSet(rules(r), nil, nil)
	set.Lapse("PlanPolicy/p2", "other")
	for _, lapsed := range []bool{false, true} {
		if lapsed {
			set.Lapse("PlanPolicy/p", `its author "ann" may not approve`)
		}
		v, err := set.Evaluate(t.Context(), open(set, Values{}))
		if err != nil {
			t.Fatal(err)
		}
		if why := v.Manual(user("bob"), false); (why != "") != lapsed || lapsed && !strings.Contains(why, `PlanPolicy/p/r allows nothing: its author "ann"`) {
			t.Errorf("lapsed %t: %q", lapsed, why)
		}
	}
}

// TestUsersAreAsTheyAreNow expects that a rule counts the groups of an approver that the caller found, and no user who is gone.
func TestUsersAreAsTheyAreNow(t *testing.T) {
	r := v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 2, Groups: []string{"oncall"}}}
	set := NewSet(rules(r), nil, nil)
	given := approvals(user("erin", "oncall"), user("frank", "oncall"), user("gone", "oncall"))
	for why, tc := range map[string]struct {
		now     []*v1alpha1.Identity
		missing bool
	}{
		"all are members":    {[]*v1alpha1.Identity{user("erin", "oncall"), user("frank", "oncall")}, false},
		"one left":           {[]*v1alpha1.Identity{user("erin"), user("frank", "oncall")}, true},
		"one does not exist": {[]*v1alpha1.Identity{user("frank", "oncall")}, true},
	} {
		subject := open(set, Values{})
		subject.Approvals = approvals(tc.now...)
		v, err := set.Evaluate(t.Context(), subject)
		if err != nil || (v.Missing(user("bob"), given) != "") != tc.missing {
			t.Errorf("%s: %q, %v", why, v.Missing(user("bob"), given), err)
		}
	}
	forbidden := NewSet(rules(deny(`!("platform" in requester.groups)`)), nil, nil)
	subject := open(forbidden, Values{})
	subject.Requester = user("bob", "platform")
	if v, _ := forbidden.Evaluate(t.Context(), subject); v.Denied() != "" {
		t.Error("a requester with a group that the plan does not name")
	}
}

// TestCanonicalTypesAndCounts expects the canonical type in conditions, and counts.removed.
func TestCanonicalTypesAndCounts(t *testing.T) {
	set := NewSet(rules(deny(`plan.resource_changes.exists(c, c.type == "sim_instance") && counts.removed == 3 && counts.invoke == 1`)), nil, nil)
	s := set.NewSubject(&v1alpha1.Plan{})
	for i, action := range []v1alpha1.Action{v1alpha1.ActionDelete, v1alpha1.ActionReplace, v1alpha1.ActionForget, v1alpha1.ActionInvoke} {
		c := &v1alpha1.PlanChange{Index: int32(i), Address: "sim_server.x", Type: "sim_server", Action: action, Before: raw(`{"name":"x"}`), After: raw(`{"name":"y"}`)}
		if err := s.Add(c, Values{Type: "sim_instance"}); err != nil {
			t.Fatal(err)
		}
		if c.Type != "sim_server" {
			t.Errorf("the change itself has the type %s", c.Type)
		}
	}
	v, err := set.Evaluate(t.Context(), s)
	if err != nil || v.Denied() == "" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestUndecidedComesLast(t *testing.T) {
	v := &Verdict{Results: []v1alpha1.PlanPolicyResult{
		{Rule: "undecided", Effect: v1alpha1.PolicyDeny, Undecided: &v1alpha1.PlanPolicyUndecided{}},
		{Rule: "warns", Effect: v1alpha1.PolicyWarn},
		{Rule: "denies", Effect: v1alpha1.PolicyDeny},
	}}
	first, further := v.First(2)
	var names []string
	for _, r := range first {
		names = append(names, r.Rule)
	}
	if !slices.Equal(names, []string{"denies", "warns"}) || further != 1 {
		t.Errorf("%v, %d", names, further)
	}
}

// TestContributorsInPolicies expects that rules see the contributors of a plan, and that they do not approve where the requester may not.
func TestContributorsInPolicies(t *testing.T) {
	when := NewSet(rules(deny(`plan.contributors.exists(c, c.username == "eve" && "dev" in c.groups) && plan.contributors.size() == 1`)), nil, nil)
	p := &v1alpha1.Plan{}
	p.Status.RequestedBy = user("bob")
	p.Status.Contributors = []v1alpha1.Contributor{{Identity: *user("eve", "dev")}, {More: true}}
	if v, err := when.Evaluate(t.Context(), when.NewSubject(p)); err != nil || v.Denied() == "" || strings.Contains(v.Denied(), "evaluated") {
		t.Errorf("%q, %v", v.Denied(), err)
	}
	for excludes, missing := range map[bool]bool{true: true, false: false} {
		r := v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: excludes}}
		set := NewSet(rules(r), nil, nil)
		s := set.NewSubject(p)
		s.Approvals = approvals(user("eve"))
		v, err := set.Evaluate(t.Context(), s)
		got := v.Missing(p.Status.RequestedBy, s.Approvals)
		if err != nil || (got != "") != missing || missing && !strings.Contains(got, "not by the requester or those who wrote the changes (eve)") || missing != strings.Contains(got, "or let eve make the plan (kubectl hykube plan), which bob may then approve") {
			t.Errorf("excludes %t: %q, %v", excludes, got, err)
		}
		if counts, _ := VerdictOf(&v1alpha1.Plan{Status: v1alpha1.PlanStatus{Policies: v.Results, Contributors: p.Status.Contributors}}).Counts(p.Status.RequestedBy, nil, s.Approvals[0]); counts == missing {
			t.Errorf("excludes %t: the approval counts: %t", excludes, counts)
		}
	}
}

// TestWayOut names, to a small team, the plan that one of them may approve: with another requester, or of a part of several changes.
func TestWayOut(t *testing.T) {
	const split, other = "make a plan with --target", "let eve make the plan (kubectl hykube plan), which bob may then approve"
	both := []v1alpha1.Contributor{{Identity: *user("bob")}, {Identity: *user("eve")}}
	wrote := func(what ...string) []v1alpha1.Contributor {
		return []v1alpha1.Contributor{{Identity: *user("eve"), Wrote: what}}
	}
	for why, tc := range map[string]struct {
		contributors   []v1alpha1.Contributor
		groups         []string
		changes        int32
		want, unwanted string
	}{
		"the requester wrote nothing":                {both[1:], nil, 1, other, split},
		"the requester wrote nothing of two changes": {both[1:], nil, 2, other, split},
		"the requester is not in the group":          {both[1:], []string{"on-call"}, 1, "ask another user", "let eve"},
		"both wrote one change":                      {both, nil, 1, "ask another user", split},
		"both wrote two changes":                     {both, nil, 2, split, "let "},
		"one rotated a credential":                   {wrote("Secret cloud: token"), nil, 2, "(kubectl hykube plan --refresh=All); for a credential, which neither is an address nor chooses an account, set rotates: true", "make a plan with --target"},
		"one made a ProviderConfig again":            {wrote("ProviderConfig cloud: provider"), nil, 1, "(kubectl hykube plan --refresh=All)", "rotates"},
		"one wrote a ConfigMap and a spec":           {wrote("ConfigMap cloud: token", "spec"), nil, 1, other, "--refresh=All"},
	} {
		p := &v1alpha1.Plan{}
		p.Status.RequestedBy, p.Status.Contributors, p.Status.Summary = user("bob"), tc.contributors, &v1alpha1.PlanSummary{Update: tc.changes}
		p.Status.Policies = []v1alpha1.PlanPolicyResult{{Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: true, Groups: tc.groups}}}
		set := NewSet(rules(v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyRequireApprovals, Approvals: p.Status.Policies[0].Approvals}), nil, nil)
		subject := set.NewSubject(p)
		subject.counts = *p.Status.Summary
		evaluated, err := set.Evaluate(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*Verdict{evaluated, VerdictOf(p)} {
			if got := v.Missing(p.Status.RequestedBy, nil); !strings.Contains(got, tc.want) || strings.Contains(got, tc.unwanted) {
				t.Errorf("%s: %q, want %q and not %q", why, got, tc.want, tc.unwanted)
			}
		}
	}
}

// TestNobodyCountsAloneBesideUnnamedContributors has a plan that does not name all contributors. Any approver may be one of them, so
// a rule that excludes the requester requires one more approval, and says why.
func TestNobodyCountsAloneBesideUnnamedContributors(t *testing.T) {
	for _, tc := range []struct {
		unnamed, excludes bool
		approvals         []v1alpha1.PlanApproval
		missing           string
	}{
		{true, true, nil, "2 more approvals, not by the requester or those who wrote the changes (eve) (2 in all instead of 1: the plan does not name all"},
		{true, true, approvals(user("carol")), "1 more approval, not by"},
		{true, true, approvals(user("carol"), user("eve")), "1 more approval, not by"},
		{true, true, approvals(user("carol"), user("dave")), ""},
		{true, false, approvals(user("carol")), ""},
		{false, true, approvals(user("carol")), ""},
	} {
		r := v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: tc.excludes}}
		set, p := NewSet(rules(r), nil, nil), &v1alpha1.Plan{}
		p.Status.RequestedBy = user("bob")
		p.Status.Contributors = []v1alpha1.Contributor{{Identity: *user("eve")}}
		if tc.unnamed {
			p.Status.Contributors = append(p.Status.Contributors, v1alpha1.Contributor{More: true})
		}
		s := set.NewSubject(p)
		s.Approvals = tc.approvals
		v, err := set.Evaluate(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		p.Status.Policies = v.Results
		for _, v := range []*Verdict{v, VerdictOf(p)} {
			if got := v.Missing(p.Status.RequestedBy, tc.approvals); (got == "") != (tc.missing == "") || !strings.Contains(got, tc.missing) {
				t.Errorf("unnamed %t, excludes %t, %d approvals: %q, want %q", tc.unnamed, tc.excludes, len(tc.approvals), got, tc.missing)
			}
		}
	}
}

// TestTheAuthorOfAnApprovedStack has a plan of a stack that another user approved as the author wrote it. Where a rule excludes the
// requester, the author may approve what others wrote, and nothing else.
func TestTheAuthorOfAnApprovedStack(t *testing.T) {
	eve, unnamed := v1alpha1.Contributor{Identity: *user("eve")}, v1alpha1.Contributor{More: true}
	through := v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: "eve", Through: []v1alpha1.WorkflowUser{{Username: "bob"}}}}
	for why, tc := range map[string]struct {
		approved     bool
		askedBy      *v1alpha1.Identity
		contributors []v1alpha1.Contributor
		may          bool
	}{
		"another user wrote the changes":                         {approved: true, contributors: []v1alpha1.Contributor{eve}, may: true},
		"nobody approved the stack":                              {contributors: []v1alpha1.Contributor{eve}},
		"nobody wrote the changes":                               {approved: true},
		"the author wrote a part":                                {approved: true, contributors: []v1alpha1.Contributor{eve, {Identity: *user("bob")}}},
		"another user wrote them through a worker of the author": {approved: true, contributors: []v1alpha1.Contributor{through}},
		"users without a name wrote a part":                      {approved: true, contributors: []v1alpha1.Contributor{eve, unnamed}},
		"a user requested the drift check":                       {approved: true, askedBy: user("bob"), contributors: []v1alpha1.Contributor{eve}},
	} {
		p := &v1alpha1.Plan{}
		p.Status.RequestedBy, p.Status.Contributors = user("bob"), tc.contributors
		p.Status.Stack = &v1alpha1.PlanStack{Stack: "s", AuthorApproved: tc.approved, CheckRequestedBy: tc.askedBy}
		r := v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: v1alpha1.PolicyRequireApprovals, Approvals: &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: true}}
		set := NewSet(rules(r), nil, nil)
		s := set.NewSubject(p)
		s.Approvals = approvals(user("bob"))
		v, err := set.Evaluate(t.Context(), s)
		if err != nil || (v.Missing(p.Status.RequestedBy, s.Approvals) == "") != tc.may {
			t.Errorf("%s: the author may approve: %t, but %q, %v", why, tc.may, v.Missing(p.Status.RequestedBy, s.Approvals), err)
		}
		if got := v.Missing(p.Status.RequestedBy, nil); tc.may && !strings.Contains(got, "1 more approval, not by those who wrote the changes (eve)") {
			t.Errorf("%s: %q", why, got)
		}
		p.Status.Policies = v.Results
		if counts, _ := VerdictOf(p).Counts(p.Status.RequestedBy, nil, s.Approvals[0]); counts != tc.may {
			t.Errorf("%s: a client says that the approval counts: %t", why, counts)
		}
	}
}
