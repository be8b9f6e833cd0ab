package planning

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pagedWorld is a namespace with objects of each mode. Some are new, applied, changed, deposed, or marked for deletion, and
// "new" looks like "old".
func pagedWorld(t *testing.T) *activitiestest.World {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	uses := func(text string) map[string]any { return map[string]any{"uses": text} }
	w.Put("test-thing/a", uses("${test_thing.d.id}"), nil)
	w.Put("test-thing/b", map[string]any{}, map[string]any{"dependsOn": []any{"ephemeral.test_token.t"}})
	w.Put("test-thing/c", map[string]any{}, map[string]any{"createBeforeDestroy": true, "dependsOn": []any{"test_thing.b"}})
	w.Put("test-thing/d", uses("${data.test_image.i.id}"), nil)
	w.Put("data-test-image/i", map[string]any{"name": "${test_thing.z.id}"}, nil)
	w.Put("ephemeral-test-token/t", map[string]any{"audience": "${test_thing.z.id}"}, nil)
	w.Put("action-test-reboot/r", map[string]any{"target": "${test_thing.a.id}", "password": "${ephemeral.test_token.t.value}"}, nil)
	w.Put("test-thing/new", uses("the same"), nil)
	applied(w, "leaf", uses("${test_thing.z.id}"))
	for name, text := range map[string]string{"old": "the same", "gone": "something else"} {
		rec := w.Instance(applied(w, name, uses(text)))
		rec.Deposed = []ledger.Deposed{{Key: "k-" + name, State: rec.State}, {Key: "l-" + name, State: rec.State}}
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		w.Stored["team:test-thing/"+name].SetDeletionTimestamp(new(metav1.Now()))
	}
	applied(w, "z", map[string]any{})
	w.Stored["team:test-thing/z"].SetGeneration(2)
	for key, obj := range w.Stored {
		obj.SetLabels(map[string]string{"key": key[len(key)-1:]})
	}
	return w
}

// surveyResult is the result of a survey, with the changes that it stored.
type surveyResult struct {
	// Counted has the numbers, and Diagnosed the errors.
	Counted, Stored string
	Diagnosed       []string
	Changes         []string
	whole           bool
	// dependant has the addresses that a survey of all objects visits only because of others.
	dependant map[string]bool
}

// surveyOf surveys a plan.
func surveyOf(t *testing.T, a *Planner, po *v1alpha1.Plan) surveyResult {
	t.Helper()
	if err := a.Ledger.DropPlan(t.Context(), po.UID); err != nil {
		t.Fatal(err)
	}
	s, err := a.survey(t.Context(), po)
	if err != nil {
		t.Fatal(err)
	}
	var all []*ledger.Change
	for c, err := range a.Ledger.Changes(t.Context(), po.UID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return resultOf(t, s, all)
}

// oracleOf surveys a plan by the oracle.
func oracleOf(t *testing.T, a *Planner, po *v1alpha1.Plan) surveyResult {
	t.Helper()
	o := allOf(t, a, po)
	visited := o.visit()
	var all []*ledger.Change
	if !diag.HasErrors(o.diags) {
		missing, err := checkReads(t.Context(), a.Sources, po, o.survey, visited)
		if err != nil {
			t.Fatal(err)
		}
		o.diags = append(o.diags, missing...)
	}
	if !diag.HasErrors(o.diags) {
		all = o.changes(visited)
	}
	out := resultOf(t, o.survey, all)
	out.dependant = map[string]bool{}
	for _, n := range o.nodes {
		out.dependant[n.Address.String()+" "] = !o.mustVisit(n) && !o.targets.forced[n.Address]
	}
	return out
}

func resultOf(t *testing.T, s *survey, all []*ledger.Change) (out surveyResult) {
	t.Helper()
	out.Counted = fmt.Sprintln(s.inScope, s.recorded, s.readTo)
	for _, d := range s.diags {
		out.Diagnosed = append(out.Diagnosed, fmt.Sprint(d.Address, " ", d.Attribute, " ", d.Summary, ": ", d.Detail))
	}
	if slices.Sort(out.Diagnosed); s.stored != nil {
		out.whole, out.Stored = s.stored.whole, fmt.Sprintln(s.stored.visited, s.stored.providers)
	}
	for _, c := range all {
		c.Basis = ledger.Basis{} // each survey has its own
		encoded, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		out.Changes = append(out.Changes, string(encoded))
	}
	return out
}

// TestSurveyInPages compares surveys in small pages with those in one page, and with those of all objects.
func TestSurveyInPages(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.PlanSpec
		edit func(*activitiestest.World)
		// whole is true if the survey stores a change for each dependant.
		whole, fails bool
	}{
		"a default plan":      {},
		"a refresh":           {spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}},
		"a destroy":           {spec: v1alpha1.PlanSpec{Destroy: true}, whole: true},
		"only a refresh":      {spec: v1alpha1.PlanSpec{RefreshOnly: true}, whole: true},
		"targets":             {spec: v1alpha1.PlanSpec{Targets: []string{"test_thing.c", "test_thing.old", "test_thing.d"}}},
		"destroy of a target": {spec: v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test_thing.old", "test_thing.z", "test_thing.leaf"}}, whole: true},
		"without an object":   {spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll, Exclude: []string{"test_thing.leaf", "test_thing.c"}}},
		"a selector":          {spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"key": "d"}}}, whole: true},
		"a forced replace":    {spec: v1alpha1.PlanSpec{Replace: []string{"test_thing.leaf"}}},
		"a refresh without ephemeral resources": {spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}, whole: true, edit: func(w *activitiestest.World) {
			w.Put("test-thing/b", map[string]any{"uses": "${test_thing.z.id}"}, nil)
			w.Put("action-test-reboot/r", map[string]any{"target": "${test_thing.a.id}"}, nil)
			delete(w.Stored, "team:ephemeral-test-token/t")
		}},
		"a move": {edit: func(w *activitiestest.World) {
			w.Put("test-thing/new", map[string]any{}, map[string]any{"moved": map[string]any{"from": "test_thing.old"}})
		}},
		"a cycle": {fails: true, edit: func(w *activitiestest.World) {
			w.Put("test-thing/d", map[string]any{"uses": "${test_thing.a.id}"}, nil)
		}},
		"errors of several pages": {fails: true, edit: func(w *activitiestest.World) {
			w.Put("test-thing/a", map[string]any{"uses": "${test_thing.nothing.id}"}, nil)
			w.Put("test-thing/new", map[string]any{"uses": "${test_thing.old.id}"}, nil)
		}},
		"missing rights": {fails: true, edit: func(w *activitiestest.World) {
			w.Forbidden["team/test-things/*"], w.Forbidden["team/data-test-images/*"] = true, true
		}},
		"no requester": {fails: true, spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}},
	} {
		t.Run(name, func(t *testing.T) {
			w := pagedWorld(t)
			if tc.edit != nil {
				tc.edit(w)
			}
			po := w.Plan()
			if po.Spec = tc.spec; name == "no requester" {
				po.Status.RequestedBy = nil
			}
			atOnce := surveyOf(t, plannerOf(w), po)
			if len(atOnce.Changes) == 0 != tc.fails {
				t.Fatalf("%d changes: %s", len(atOnce.Changes), atOnce.Diagnosed)
			}
			for _, size := range []int{1, 2} {
				a := plannerOf(w)
				a.PageSize = size
				paged := surveyOf(t, a, po)
				if diff := cmp.Diff(atOnce, paged, cmpopts.IgnoreUnexported(surveyResult{})); diff != "" {
					t.Errorf("pages of %d (-at once +in pages):\n%s", size, diff)
				}
				if paged.whole != tc.whole {
					t.Errorf("pages of %d: whole is %t", size, paged.whole)
				}
				if all := oracleOf(t, a, po); paged.whole {
					if diff := cmp.Diff(all.Changes, paged.Changes); diff != "" {
						t.Errorf("pages of %d (-all +in pages):\n%s", size, diff)
					}
				}
			}
		})
	}
}

// pagesOf returns the pages of the survey of a plan.
func pagesOf(t *testing.T, a *Planner, po *v1alpha1.Plan, tolerates tolerance) *pages {
	t.Helper()
	s, err := a.newSurvey(t.Context(), po)
	if err == nil {
		err = s.selectMembers(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.visits = newVisits(s.members)
	return newPages(s, tolerates)
}

// TestSurveyInPagesSeesEdits edits an object after the outline was made. A write of its status alone does not matter. The last
// attempt tolerates each edit: Propose takes the change out of the plan.
func TestSurveyInPagesSeesEdits(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*activitiestest.World)
		want error
	}{
		"nothing": {edit: func(*activitiestest.World) {}},
		"the status": {edit: func(w *activitiestest.World) {
			w.Stored["team:test-thing/a"].Object["status"] = map[string]any{"observedGeneration": int64(1)}
		}},
		"the spec":     {want: errOutdated, edit: func(w *activitiestest.World) { w.Stored["team:test-thing/a"].SetGeneration(2) }},
		"the labels":   {want: errOutdated, edit: func(w *activitiestest.World) { w.Stored["team:test-thing/a"].SetLabels(nil) }},
		"the deletion": {want: errOutdated, edit: func(w *activitiestest.World) { w.Stored["team:test-thing/old"].SetDeletionTimestamp(nil) }},
		"a status that needs no change": {want: errOutdated, edit: func(w *activitiestest.World) {
			w.Stored["team:action-test-reboot/r"].Object["status"] = w.Stored["team:test-thing/leaf"].Object["status"]
		}},
		"the object": {want: errOutdated, edit: func(w *activitiestest.World) { delete(w.Stored, "team:test-thing/a") }},
		"a record":   {want: errOutdated, edit: func(w *activitiestest.World) { w.Record(w.Put("test-thing/a", nil, nil), `{}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := pagedWorld(t)
			a, po := plannerOf(w), w.Plan()
			a.PageSize = 2
			p, last := pagesOf(t, a, po, exact), pagesOf(t, a, po, tolerant)
			tc.edit(w)
			if err := last.store(t.Context()); err != nil || diag.HasErrors(last.diags) {
				t.Errorf("the last attempt: %v, %v", err, last.diags)
			}
			if err := errors.Join(a.Ledger.DropPlan(t.Context(), po.UID), p.store(t.Context())); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			left := 0
			for _, err := range a.Ledger.Changes(t.Context(), po.UID, 0) {
				if left++; err != nil {
					t.Fatal(err)
				}
			}
			if (left > 0) != (tc.want == nil) {
				t.Errorf("%d changes are stored", left)
			}
		})
	}
}
