package activities

import (
	"maps"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

// survey surveys and, if sc.compares is set, again in pages of one object. The results must be the same.
func (sc *crashScenario) survey(p workflows.Plan) (workflows.Surveyed, error) {
	ctx := sc.T.Context()
	before, revisions := sc.plans.get(p.Name).Status.DeepCopy(), sc.revisions()
	selected, err := sc.planner.Survey(ctx, p)
	if err != nil || !sc.compares || !maps.Equal(revisions, sc.revisions()) { // the steps of another plan run concurrently
		return selected, err
	}
	atOnce := sc.surveyed(p)
	sc.plans.change(p.Name, func(po *v1alpha1.Plan) { po.Status = *before })
	inPages := *sc.planner
	inPages.PageSize = 1
	again, err := inPages.Survey(ctx, p) // the scenario continues with its changes
	if err != nil || !maps.Equal(revisions, sc.revisions()) {
		return again, err
	}
	if diff := cmp.Diff(selected, again, cmpopts.IgnoreFields(workflows.Surveyed{}, "Whole")); diff != "" {
		sc.T.Errorf("%s: the result of the survey in pages differs (-at once +in pages):\n%s", p.Name, diff)
	}
	if diff := cmp.Diff(atOnce, sc.surveyed(p), cmpopts.IgnoreUnexported(ledger.Change{}), cmpopts.IgnoreFields(ledger.Change{}, "Basis")); diff != "" {
		sc.T.Errorf("%s: the survey in pages differs (-at once +in pages):\n%s", p.Name, diff)
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
