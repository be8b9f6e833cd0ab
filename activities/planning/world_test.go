package planning

import (
	"context"
	"log/slog"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// plannerOf plans in a world that has no Plan objects.
func plannerOf(w *activitiestest.World) *Planner {
	return New(w.Sources, nil, changes.CancelReader{}, slog.New(slog.DiscardHandler))
}

// proposalOf is the planning of a plan in which some resources were planned already.
func proposalOf(w *activitiestest.World, planned map[lang.Address]cty.Value) *proposal {
	pr := &proposal{Planner: plannerOf(w), plan: w.Plan(), forced: map[string]bool{}, results: newResults()}
	for addr, v := range planned {
		pr.planned[addr] = &expected{planned: v}
	}
	pr.scope = w.NewScope(pr.plan, "team", pr.plannedValue)
	w.T.Cleanup(func() {
		if err := pr.scope.Close(context.Background()); err != nil {
			w.T.Error(err)
		}
	})
	return pr
}
