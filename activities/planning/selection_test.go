package planning

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// stackOf returns what a stack with the label in=stack selects.
func stackOf(t *testing.T, w *activitiestest.World) *Selection {
	t.Helper()
	selected, err := Select(t.Context(), w.Sources, &v1alpha1.Identity{Username: "ann"}, "team", func(set labels.Set) bool { return set["in"] == "stack" })
	if err != nil {
		t.Fatal(err)
	}
	return selected
}

// stackWorld returns a namespace whose things hub, base, user and out are applied. user refers to hub, to base and to a
// ConfigMap. The stack selects base, user and new, which is not applied.
func stackWorld(t *testing.T) *activitiestest.World {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	w.Data["configmaps/team/app"] = map[string][]byte{"region": []byte("eu")}
	applied(w, "hub", map[string]any{})
	applied(w, "out", map[string]any{})
	applied(w, "base", map[string]any{})
	applied(w, "user", map[string]any{"uses": "${test_thing.hub.id}-${test_thing.base.id}-${configmap.app.region}"})
	w.Put("test-thing/new", map[string]any{}, nil)
	for _, name := range []string{"base", "user", "new"} {
		w.Stored["team:test-thing/"+name].SetLabels(map[string]string{"in": "stack"})
	}
	settleVersions(t, w)
	return w
}

// settleVersions records the current versions of what the things refer to.
func settleVersions(t *testing.T, w *activitiestest.World) {
	t.Helper()
	all := allOf(t, plannerOf(w), w.Plan())
	for _, n := range all.nodes {
		if !n.record.Exists() {
			continue
		}
		n.record.DependencyVersions = known(all.dependencyVersions(n))
		if err := w.Ledger.Save(t.Context(), n.record); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSelectionOfAStack(t *testing.T) {
	edit := func(name string) func(*testing.T, *activitiestest.World) {
		return func(_ *testing.T, w *activitiestest.World) {
			obj := w.Stored["team:test-thing/"+name]
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
	}
	mark := func(name string) func(*testing.T, *activitiestest.World) {
		return func(_ *testing.T, w *activitiestest.World) {
			w.Stored["team:test-thing/"+name].SetDeletionTimestamp(new(metav1.Now()))
		}
	}
	for why, tc := range map[string]struct {
		change func(*testing.T, *activitiestest.World)
		// changes says whether the contents of the stack change, and read whether only because of what its objects refer to.
		changes, read  bool
		edited, faulty string
		lost           string
		beyond         string
	}{
		"nothing":                      {change: func(*testing.T, *activitiestest.World) {}, edited: "[test_thing.new]"},
		"an edit":                      {change: edit("user"), changes: true, edited: "[test_thing.new test_thing.user]"},
		"an edit outside":              {change: edit("out"), edited: "[test_thing.new]"},
		"an edit of what it refers to": {change: edit("hub"), edited: "[test_thing.new]", beyond: "test_thing.hub test_thing.user"},
		"a deletion with what it refers to": {change: func(t *testing.T, w *activitiestest.World) {
			mark("user")(t, w)
			mark("hub")(t, w)
			record(t, w, "user", func(rec *ledger.Instance) { rec.Dependencies = []string{"test_thing.hub"} })
		}, changes: true, edited: "[test_thing.new test_thing.user]", beyond: "test_thing.hub test_thing.user destroys"},
		"a deletion":                       {change: mark("user"), changes: true, edited: "[test_thing.new test_thing.user]"},
		"a deletion of what never existed": {change: func(_ *testing.T, w *activitiestest.World) { delete(w.Stored, "team:test-thing/new") }, changes: true, edited: "[]"},
		"a new version of a ConfigMap": {change: func(_ *testing.T, w *activitiestest.World) {
			w.Data["configmaps/team/app"] = map[string][]byte{"region": []byte("us")}
		}, changes: true, read: true, edited: "[test_thing.new test_thing.user]"},
		"another value outside": {change: func(t *testing.T, w *activitiestest.World) {
			record(t, w, "hub", func(rec *ledger.Instance) { rec.Version = "2" })
		}, changes: true, read: true, edited: "[test_thing.new test_thing.user]"},
		"another value inside, as after an apply": {change: func(t *testing.T, w *activitiestest.World) {
			record(t, w, "base", func(rec *ledger.Instance) { rec.Version = "2" })
		}, edited: "[test_thing.new test_thing.user]"},
		"another label outside": {change: func(_ *testing.T, w *activitiestest.World) {
			w.Stored["team:test-thing/out"].SetLabels(map[string]string{"in": "other"})
		}, edited: "[test_thing.new]"},
		"an object leaves the stack": {change: func(_ *testing.T, w *activitiestest.World) {
			w.Stored["team:test-thing/user"].SetLabels(nil)
		}, changes: true, edited: "[test_thing.new]"},
		"a taint": {change: func(t *testing.T, w *activitiestest.World) {
			record(t, w, "user", func(rec *ledger.Instance) { rec.Tainted = true })
		}, edited: "[test_thing.new]", faulty: "[test_thing.user]"},
		"an update without an outcome": {change: func(t *testing.T, w *activitiestest.World) {
			record(t, w, "user", func(rec *ledger.Instance) { rec.Intent = &ledger.Intent{Action: v1alpha1.ActionUpdate} })
		}, edited: "[test_thing.new]", faulty: "[test_thing.user]"},
		"a create without an outcome": {change: func(t *testing.T, w *activitiestest.World) {
			record(t, w, "user", func(rec *ledger.Instance) {
				rec.State, rec.Intent = ledger.State{}, &ledger.Intent{Action: v1alpha1.ActionCreate}
			})
		}, edited: "[test_thing.new]", faulty: "[test_thing.user]", lost: "[test_thing.user]"},
		"the apply of what it selects": {change: func(t *testing.T, w *activitiestest.World) {
			applied(w, "new", map[string]any{})
			w.Stored["team:test-thing/new"].SetLabels(map[string]string{"in": "stack"})
			settleVersions(t, w)
		}, edited: "[]"},
	} {
		t.Run(why, func(t *testing.T) {
			w := stackWorld(t)
			before := stackOf(t, w)
			tc.change(t, w)
			w.Follow()
			after := stackOf(t, w)
			if changes := before.Contents != after.Contents; changes != tc.changes {
				t.Errorf("the contents change: %t", changes)
			}
			if wrote := before.Written != after.Written; wrote != (tc.changes && !tc.read) {
				t.Errorf("what users wrote changes: %t", wrote)
			}
			if got := listOf(slices.Concat(after.Missing, after.Edited)); got != tc.edited {
				t.Errorf("edited %s, want %s", got, tc.edited)
			}
			if got := listOf(after.Faulty); tc.faulty != "" && got != tc.faulty || tc.faulty == "" && len(after.Faulty) > 0 {
				t.Errorf("faulty %s, want %q", got, tc.faulty)
			}
			if got := listOf(after.Lost); tc.lost != "" && got != tc.lost || tc.lost == "" && len(after.Lost) > 0 {
				t.Errorf("lost %s, want %q", got, tc.lost)
			}
			beyond := ""
			if after.Beyond != nil {
				beyond = after.Beyond.String() + " " + after.For.String()
			}
			if after.Destroys {
				beyond += " destroys"
			}
			if beyond != tc.beyond {
				t.Errorf("beyond %q, want %q", beyond, tc.beyond)
			}
		})
	}
}

// TestSelectionWithoutASurvey selects in a namespace with two objects of one address, which no plan can survey.
func TestSelectionWithoutASurvey(t *testing.T) {
	w := stackWorld(t)
	selected := stackOf(t, w)
	if selected.Resources != 3 || len(selected.Pending()) != 1 {
		t.Fatalf("%+v", selected)
	}
	view, err := w.Index.View(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"stack": true, "stakc": false} {
		any, err := SelectsAny(t.Context(), w.Sources, "team", func(set labels.Set) bool { return set["in"] == value })
		if err != nil || any != want {
			t.Errorf("in=%s selects any: %t, %v", value, any, err)
		}
	}
	rough := selectRoughly(view, func(set labels.Set) bool { return set["in"] == "stack" })
	if rough.Resources != 3 || listOf(rough.Missing) != "[test_thing.new]" || rough.Contents == "" {
		t.Errorf("%+v", rough)
	}
}

func listOf(list []lang.Address) string {
	texts := make([]string, 0, len(list))
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return fmt.Sprint(sorted(texts))
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// TestTheIndexTellsWhatChanged counts the calls of Changed. Without a change there are none, so that an idle server does
// nothing.
func TestTheIndexTellsWhatChanged(t *testing.T) {
	w := activitiestest.NewWorld(t)
	var told []string
	w.Index.Changed = func(namespace string) { told = append(told, namespace) }
	look := func(want ...string) {
		t.Helper()
		told = nil
		if _, err := w.Index.View(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	}
	r := w.Put("test-thing/a", map[string]any{}, nil)
	w.Put("shared:test-thing/b", map[string]any{}, nil)
	look("shared", "team")
	look()
	w.Put("test-thing/c", map[string]any{}, nil)
	w.Put("test-thing/d", map[string]any{}, nil)
	look("team")
	w.Record(r, `{"id":"a"}`)
	look("team")
	look()
}

// record changes the record of a thing.
func record(t *testing.T, w *activitiestest.World, name string, change func(*ledger.Instance)) {
	t.Helper()
	for rec, err := range w.Ledger.Instances(t.Context(), "team") {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Object.Name != name {
			continue
		}
		change(rec)
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAStackApprovesOnlyWhatItSelects makes automatic plans that would change an object outside of their selection.
// TestAStackDestroysNothingThatOthersNeed has a resource outside of a stack refer to one that the stack destroys.
func TestAStackDestroysNothingThatOthersNeed(t *testing.T) {
	for why, tc := range map[string]struct {
		stack    *v1alpha1.PlanStack
		action   v1alpha1.Action
		referrer string
		waits    bool
	}{
		"a delete":                    {&v1alpha1.PlanStack{Stack: "web"}, v1alpha1.ActionDelete, "", false},
		"a delete of what is needed":  {&v1alpha1.PlanStack{Stack: "web"}, v1alpha1.ActionDelete, "test_thing.leaf", true},
		"a replace of what is needed": {&v1alpha1.PlanStack{Stack: "web"}, v1alpha1.ActionReplace, "test_thing.leaf", true},
		"an update of what is needed": {&v1alpha1.PlanStack{Stack: "web"}, v1alpha1.ActionUpdate, "test_thing.leaf", false},
		"a plan of a user":            {nil, v1alpha1.ActionDelete, "test_thing.leaf", false},
	} {
		po := &v1alpha1.Plan{}
		po.Status.Stack, po.Status.AutomaticApproval = tc.stack, &v1alpha1.AutomaticApproval{Granted: true}
		totals := newTotals(nil)
		totals.verdict = &policy.Verdict{}
		c := &ledger.Change{Requested: true}
		c.Address, c.Action = "test_thing.hub", tc.action
		if tc.referrer != "" {
			c.Referrers = []ledger.Referrer{{Address: tc.referrer}}
		}
		totals.add(totals.hash(c))
		if got := totals.manual(po); (got != "") != tc.waits || tc.waits && !strings.Contains(got, tc.referrer) {
			t.Errorf("%s: %q", why, got)
		}
	}
}

// TestTheAuthorOfAStackCountsForWhatNobodyWrote plans a change of another user beside one that nobody wrote, as after a drift. The author of
// the stack, which another user approved, then counts as the requester.
func TestTheAuthorOfAStackCountsForWhatNobodyWrote(t *testing.T) {
	for why, tc := range map[string]struct {
		beside v1alpha1.Action
		wrote  bool
		counts bool
	}{
		"an update that nobody wrote":  {beside: v1alpha1.ActionUpdate, counts: true},
		"a replace that nobody wrote":  {beside: v1alpha1.ActionReplace, counts: true},
		"a read of a data source":      {beside: v1alpha1.ActionRead},
		"an update that another wrote": {beside: v1alpha1.ActionUpdate, wrote: true},
	} {
		wrote := []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}}}
		totals := newTotals(nil)
		for i, action := range []v1alpha1.Action{v1alpha1.ActionUpdate, tc.beside} {
			c := &ledger.Change{Requested: true}
			c.Address, c.Action = fmt.Sprintf("test_thing.a%d", i), action
			if i == 0 || tc.wrote {
				c.Contributors = wrote
			}
			totals.add(totals.hash(c))
		}
		s := &v1alpha1.PlanStatus{Stack: &v1alpha1.PlanStack{Stack: "web", AuthorApproved: true}}
		totals.noteContributors(s)
		if s.Stack.AuthorApproved == tc.counts || len(s.Contributors) != 1 {
			t.Errorf("beside %s: %+v, contributors %v", why, s.Stack, s.Contributors)
		}
	}
}

// TestNoPlanCreatesASecondResourceUnasked has a create fail without a state, with an error that does not exclude that the
// resource exists.
func TestNoPlanCreatesASecondResourceUnasked(t *testing.T) {
	for _, failed := range []string{"", "at 2026-11-26T04:00:00Z by the plan \"web-1\""} {
		r := &resource.Resource{Object: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"failedCreate": failed}}}}
		c := &ledger.Change{Requested: true}
		c.Address, c.Action = "test_thing.hub", v1alpha1.ActionCreate
		warnings := createWarnings(c, r, c.Action, false)
		po := &v1alpha1.Plan{}
		po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		totals := newTotals(nil)
		totals.verdict = &policy.Verdict{}
		totals.add(totals.hash(c))
		if waits := totals.manual(po) != ""; waits != (failed != "") || waits != (len(warnings) == 1) {
			t.Errorf("failed before %q: the plan waits: %t, warnings: %v", failed, waits, warnings)
		}
	}
}

// TestAPlanNamesAllReasonsForAPerson has a resource that may be that of another account, a policy and a contributor without rights.
func TestAPlanNamesAllReasonsForAPerson(t *testing.T) {
	po := &v1alpha1.Plan{}
	po.Status.RequestedBy, po.Status.AutomaticApproval = &v1alpha1.Identity{Username: "ann"}, &v1alpha1.AutomaticApproval{Granted: true}
	totals := newTotals(nil)
	totals.elsewhere, totals.person = "test_thing.hub", `the user "eve" may not approve plans`
	totals.verdict = &policy.Verdict{Results: []v1alpha1.PlanPolicyResult{{Rule: "PlanPolicy/p/r", Effect: v1alpha1.PolicyDeny, Message: "frozen"}}}
	for _, want := range []string{"test_thing.hub with other arguments than before", "PlanPolicy/p/r: frozen", `the user "eve" may not approve plans`} {
		if got := totals.manual(po); !strings.Contains(got, want) {
			t.Errorf("the reason lacks %q: %s", want, got)
		}
	}
}

// TestAPlanNamesMissingApprovalsOnce publishes plans that need an approval because of a policy.
func TestAPlanNamesMissingApprovalsOnce(t *testing.T) {
	rule := v1alpha1.PlanPolicyResult{Rule: "PlanPolicy/prod/two", Effect: v1alpha1.PolicyRequireApprovals, Message: "Ask the team.", Approvals: &v1alpha1.RequiredApprovals{}}
	for why, tc := range map[string]struct {
		approval v1alpha1.ApprovalMode
		referrer string
		want     string
	}{
		"a plan of a person":                         {v1alpha1.ApprovalManual, "", "then approve or discard it. PlanPolicy/prod/two requires"},
		"an automatic plan":                          {v1alpha1.ApprovalAutomatic, "", "although spec.approval is Automatic: PlanPolicy/prod/two requires"},
		"an automatic plan with a reason of its own": {v1alpha1.ApprovalAutomatic, "test_thing.leaf", "although spec.approval is Automatic: it would destroy"},
	} {
		po := &v1alpha1.Plan{Spec: v1alpha1.PlanSpec{Approval: tc.approval}}
		po.Status.Stack = &v1alpha1.PlanStack{Stack: "web"}
		if tc.approval == v1alpha1.ApprovalAutomatic {
			po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		}
		totals := newTotals(nil)
		totals.verdict = &policy.Verdict{Results: []v1alpha1.PlanPolicyResult{rule}}
		c := &ledger.Change{Requested: true}
		c.Address, c.Action = "test_thing.hub", v1alpha1.ActionDelete
		if tc.referrer != "" {
			c.Referrers = []ledger.Referrer{{Address: tc.referrer}}
		}
		totals.add(totals.hash(c))
		totals.writeStatus(po, &po.Status)
		ready := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != v1alpha1.ReasonAwaitingApproval || strings.Count(ready.Message, rule.Message) != 1 || !strings.Contains(ready.Message, tc.want) {
			t.Errorf("%s: %s %q, want %q, and the message of the rule once", why, ready.Reason, ready.Message, tc.want)
		}
	}
}

// TestSummaryOfRemovedRecords counts resources that a plan stops to manage apart from those that do not exist.
func TestSummaryOfRemovedRecords(t *testing.T) {
	totals := newTotals(nil)
	for name, reason := range map[string]string{"kept": "", "unknown": plan.ReasonCreateUnknown, "never": plan.ReasonGone} {
		c := &ledger.Change{}
		c.Address, c.Action, c.ActionReason = "test_thing."+name, v1alpha1.ActionForget, reason
		totals.add(totals.hash(c))
	}
	totals.summarize(workflows.Publish{})
	if s := totals.summary; s.Forget != 3 || totals.gone != 1 || !strings.Contains(s.Text, "2 to forget") {
		t.Errorf("%+v, of which %d do not exist", s, totals.gone)
	}
}

func TestAStackApprovesOnlyWhatItSelects(t *testing.T) {
	for why, tc := range map[string]struct {
		stack     *v1alpha1.PlanStack
		requested bool
		waits     bool
	}{
		"a plan of a stack":            {&v1alpha1.PlanStack{Stack: "web"}, true, false},
		"a plan of a stack, and wider": {&v1alpha1.PlanStack{Stack: "web"}, false, true},
		"a plan of a user":             {nil, false, false},
	} {
		po := &v1alpha1.Plan{}
		po.Status.Stack, po.Status.AutomaticApproval = tc.stack, &v1alpha1.AutomaticApproval{Granted: true}
		totals := newTotals(nil)
		totals.verdict = &policy.Verdict{}
		c := &ledger.Change{Requested: tc.requested}
		c.Address, c.Action = "test_thing.hub", v1alpha1.ActionCreate
		totals.add(totals.hash(c))
		if got := totals.manual(po); (got != "") != tc.waits {
			t.Errorf("%s: %q", why, got)
		}
		totals.writeStatus(po, &po.Status)
		ready := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionReady)
		if waits := ready.Reason == v1alpha1.ReasonAwaitingApproval; waits != tc.waits || waits == meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionReconciling) {
			t.Errorf("%s: Ready has the reason %s, and Reconciling is %t", why, ready.Reason, !waits)
		}
	}
}

// TestInstancesCountAsTheirSet adds the instances of a ResourceSet to the digest of what users wrote. Their number and their
// contents may follow from an output, so only the set counts.
func TestInstancesCountAsTheirSet(t *testing.T) {
	of := func(objects ...*index.Object) string {
		sum := newWrittenSum(&index.View{})
		for _, o := range objects {
			sum.add(o, index.Sum{})
		}
		return textOf(sum.sum)
	}
	instance := func(name string, set types.UID, generation int64) *index.Object {
		return &index.Object{Kind: &index.Kind{Type: "test_thing"}, Name: name, UID: types.UID("uid of " + name), Generation: generation, Instance: &index.Instance{SetUID: set}}
	}
	one := of(instance("fleet[0]", "a", 1))
	if more := of(instance("fleet[0]", "a", 5), instance("fleet[1]", "a", 1)); more != one {
		t.Error("another instance counts as a write")
	}
	if other := of(instance("fleet[0]", "b", 1)); other == one {
		t.Error("another set does not count as a write")
	}
}
