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

// survey surveys with the index and, if tn.compares is set, again without it. The results must be the same.
func (tn *crashScenario) survey(p workflows.Plan) (workflows.Surveyed, error) {
	ctx := tn.T.Context()
	before, revisions := tn.plans[p.Name].Status.DeepCopy(), tn.revisions()
	selected, err := tn.planner.Survey(ctx, p)
	if err != nil || !tn.compares {
		return selected, err
	}
	if err != nil || !maps.Equal(revisions, tn.revisions()) {
		return selected, err // the steps of another plan run meanwhile
	}
	withIndex := tn.surveyed(p)
	withIndex.Whole = selected.Whole
	tn.plans[p.Name].Status = *before
	sources := *tn.Sources
	sources.Index = nil
	logger := slog.New(slog.DiscardHandler)
	all, err := planning.New(&sources, crashPlans{tn}, changes.CancelReader{Plans: crashPlans{tn}, Logger: logger}, logger).Survey(ctx, p)
	if err != nil {
		return all, err
	}
	// Continue with the changes of the one with the index.
	withoutIndex := tn.surveyed(p)
	tn.plans[p.Name].Status = *before
	again, err := tn.planner.Survey(ctx, p)
	if err != nil || !maps.Equal(revisions, tn.revisions()) {
		return again, err
	}
	same := cmpopts.IgnoreFields(workflows.Surveyed{}, "Visited", "Providers", "Whole")
	if diff := cmp.Diff(all, selected, same); diff != "" {
		tn.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	// The survey of all stores dependants, too.
	maps.DeleteFunc(withoutIndex.Changes, func(name string, _ ledger.Change) bool {
		_, ok := withIndex.Changes[name]
		return !ok && !withIndex.Whole
	})
	if diff := cmp.Diff(withoutIndex, withIndex, cmpopts.IgnoreUnexported(ledger.Change{}), cmpopts.IgnoreFields(surveyed{}, "Whole"),
		cmpopts.IgnoreFields(v1alpha1.PlanChange{}, "Index", "DependsOn"), cmpopts.IgnoreFields(ledger.Change{}, "ReadAfter")); diff != "" {
		tn.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	return again, nil
}

// revisions returns the revisions of the records.
func (tn *crashScenario) revisions() map[types.UID]int64 {
	out := map[types.UID]int64{}
	for rec, err := range tn.Ledger.Instances(tn.T.Context(), "") {
		if err == nil {
			out[rec.Object.UID] = rec.Revision()
		}
	}
	return out
}

// surveyed is all that a survey leaves behind.
type surveyed struct {
	Diagnostics []v1alpha1.Diagnostic
	Changes     map[string]ledger.Change
	Whole       bool
}

func (tn *crashScenario) surveyed(p workflows.Plan) surveyed {
	out := surveyed{Diagnostics: tn.plans[p.Name].Status.Diagnostics, Changes: map[string]ledger.Change{}}
	for c, err := range tn.Ledger.Changes(tn.T.Context(), workflows.ObjectUID(p), 0) {
		if err != nil {
			tn.T.Fatal(err)
		}
		out.Changes[c.Address+" "+c.Deposed] = *c
	}
	return out
}
