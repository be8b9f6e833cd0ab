package applying

import (
	"log/slog"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

func stepOf(w *activitiestest.World, r *resource.Resource, c *ledger.Change) *stepRun {
	return &stepRun{Applier: &Applier{Sources: w.Sources, Logger: slog.New(slog.DiscardHandler)}, Step: changes.Step{Plan: w.Plan(), Change: c}, resource: r}
}

// planned encodes what a change of a resource was planned with.
func planned(t *testing.T, r *resource.Resource, v cty.Value) []byte {
	t.Helper()
	raw, err := ctymsgpack.Marshal(v, r.Schema.Block.ImpliedType())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
