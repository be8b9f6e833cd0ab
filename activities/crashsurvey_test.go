package activities

import (
	"log/slog"
	"maps"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

// survey surveys with the index and, if sc.compares is set, again without it, and in pages of one object. The results must
// be the same.
func (sc *crashScenario) survey(p workflows.Plan) (workflows.Surveyed, error) {
	ctx := sc.T.Context()
	before, revisions := sc.plans.get(p.Name).Status.DeepCopy(), sc.revisions()
	selected, err := sc.planner.Survey(ctx, p)
	if err != nil || !sc.compares {
		return selected, err
	}
	if err != nil || !maps.Equal(revisions, sc.revisions()) {
		return selected, err // the steps of another plan run concurrently
	}
	withIndex := sc.surveyed(p)
	withIndex.Whole = selected.Whole
	sc.plans.change(p.Name, func(po *v1alpha1.Plan) { po.Status = *before })
	sources := *sc.Sources
	sources.Index = nil
	logger := slog.New(slog.DiscardHandler)
	all, err := planning.New(&sources, crashPlans{sc}, changes.CancelReader{Plans: crashPlans{sc}, Logger: logger}, logger).Survey(ctx, p)
	if err != nil {
		return all, err
	}
	// Continue with the changes of the survey in pages.
	withoutIndex := sc.surveyed(p)
	sc.plans.change(p.Name, func(po *v1alpha1.Plan) { po.Status = *before })
	inPages := *sc.planner
	inPages.PageSize = 1
	again, err := inPages.Survey(ctx, p)
	if err != nil || !maps.Equal(revisions, sc.revisions()) {
		return again, err
	}
	paged := sc.surveyed(p)
	paged.Whole = selected.Whole
	if diff := cmp.Diff(selected, again, cmpopts.IgnoreFields(workflows.Surveyed{}, "Whole")); diff != "" {
		sc.T.Errorf("%s: the result of the survey in pages differs (-at once +in pages):\n%s", p.Name, diff)
	}
	if diff := cmp.Diff(withIndex, paged, cmpopts.IgnoreUnexported(ledger.Change{}), cmpopts.IgnoreFields(ledger.Change{}, "Basis")); diff != "" {
		sc.T.Errorf("%s: the survey in pages differs (-at once +in pages):\n%s", p.Name, diff)
	}
	if again.Whole && !again.Invalid {
		withIndex.Whole = true // it stores a change for each dependant
	}
	same := cmpopts.IgnoreFields(workflows.Surveyed{}, "Visited", "Providers", "Whole")
	if diff := cmp.Diff(all, selected, same); diff != "" {
		sc.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	// The survey of all objects stores dependants, too.
	maps.DeleteFunc(withoutIndex.Changes, func(name string, _ ledger.Change) bool {
		_, ok := withIndex.Changes[name]
		return !ok && !withIndex.Whole
	})
	if diff := cmp.Diff(withoutIndex, withIndex, cmpopts.IgnoreUnexported(ledger.Change{}), cmpopts.IgnoreFields(surveyed{}, "Whole"),
		cmpopts.IgnoreFields(v1alpha1.PlanChange{}, "Index", "DependsOn"), cmpopts.IgnoreFields(ledger.Change{}, "ReadAfter", "Basis")); diff != "" {
		sc.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	return again, nil
}

// revisions returns the revisions of the records.
func (sc *crashScenario) revisions() map[types.UID]int64 {
	out := map[types.UID]int64{}
	for rec, err := range sc.Ledger.Instances(sc.T.Context(), "") {
		if err == nil {
			out[rec.Object.UID] = rec.Revision()
		}
	}
	return out
}

// surveyed is everything that a survey stores.
type surveyed struct {
	Diagnostics []v1alpha1.Diagnostic
	Changes     map[string]ledger.Change
	Whole       bool
}

func (sc *crashScenario) surveyed(p workflows.Plan) surveyed {
	out := surveyed{Diagnostics: sc.plans.get(p.Name).Status.Diagnostics, Changes: map[string]ledger.Change{}}
	for c, err := range sc.Ledger.Changes(sc.T.Context(), workflows.ObjectUID(p), 0) {
		if err != nil {
			sc.T.Fatal(err)
		}
		out.Changes[c.Address+" "+c.Deposed] = *c
	}
	return out
}
