package activities

import (
	"encoding/json"
	"log/slog"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/workflows"

	"github.com/google/go-cmp/cmp"
)

// survey surveys with the index and, if tn.compares is set, again without it. The results must be the same.
func (tn *crashScenario) survey(p workflows.Plan) (workflows.Surveyed, error) {
	ctx := tn.T.Context()
	before := tn.plans[p.Name].Status.DeepCopy()
	selected, err := tn.planner.Survey(ctx, p)
	if err != nil || !tn.compares {
		return selected, err
	}
	withIndex := tn.surveyed(p)
	tn.plans[p.Name].Status = *before
	sources := *tn.Sources
	sources.Index = nil
	logger := slog.New(slog.DiscardHandler)
	all, err := planning.New(&sources, crashPlans{tn}, changes.CancelReader{Plans: crashPlans{tn}, Logger: logger}, logger).Survey(ctx, p)
	if err != nil {
		return all, err
	}
	if diff := cmp.Diff(all, selected); diff != "" {
		tn.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	if diff := cmp.Diff(tn.surveyed(p), withIndex); diff != "" {
		tn.T.Errorf("%s: the survey of all objects and that of the selected ones differ (-all +selected):\n%s", p.Name, diff)
	}
	return selected, nil
}

// surveyed is all that a survey leaves behind.
type surveyed struct {
	Diagnostics []v1alpha1.Diagnostic
	Changes     []string
}

func (tn *crashScenario) surveyed(p workflows.Plan) surveyed {
	out := surveyed{Diagnostics: tn.plans[p.Name].Status.Diagnostics}
	for c, err := range tn.Ledger.Changes(tn.T.Context(), workflows.ObjectUID(p), 0) {
		if err != nil {
			tn.T.Fatal(err)
		}
		text, err := json.MarshalIndent(c, "", " ")
		if err != nil {
			tn.T.Fatal(err)
		}
		out.Changes = append(out.Changes, string(text))
	}
	return out
}
