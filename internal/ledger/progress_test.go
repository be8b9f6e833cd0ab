package ledger

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/types"
)

// TestProgressOfAChangeWithoutValues writes the progress of changes whose values were dropped, one of them stored by an
// older version.
func TestProgressOfAChangeWithoutValues(t *testing.T) {
	l := newLedger()
	planned := &Change{PlanChange: v1alpha1.PlanChange{Address: "sim_network.a", Action: v1alpha1.ActionCreate}, Planned: []byte{0xc1}}
	planned.Preconditions.State, planned.DependencyVersions = "none", map[string]string{"Provider/sim": "1"}
	if err := l.SavePlanned(t.Context(), "new", planned); err != nil {
		t.Fatal(err)
	}
	old := `{"index":0,"address":"sim_network.a","action":"Create","state":"Pending","bound":{"state":"none"},"planned":"wQ==","seen":{"Provider/sim":"1"}}`
	if _, err := l.kv.Put(t.Context(), changeKey("old", 0), []byte(old), 0); err != nil {
		t.Fatal(err)
	}
	for _, plan := range []types.UID{"new", "old"} {
		for _, state := range []v1alpha1.ChangeState{v1alpha1.ChangeStale, v1alpha1.ChangeSkipped} {
			load := func() *Change {
				c, err := l.Change(t.Context(), plan, 0)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			c, earlier := load(), load()
			c.DropValues()
			if c.Planned != nil || c.DependencyVersions != nil || c.Address != "sim_network.a" {
				t.Errorf("%s: %+v", plan, c)
			}
			if err := l.SaveChange(t.Context(), plan, c); err == nil {
				t.Errorf("%s: a change without its values was stored", plan)
			}
			c.State = state
			for range 2 { // the second write follows the first
				if err := l.SaveProgress(t.Context(), plan, c); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.SaveProgress(t.Context(), plan, earlier); !errors.Is(err, ErrConflict) {
				t.Errorf("%s: an earlier progress replaced a later one: %v", plan, err)
			}
			got := load()
			if got.State != state || got.Action != v1alpha1.ActionCreate || !bytes.Equal(got.Planned, []byte{0xc1}) || got.Preconditions.State != "none" || got.DependencyVersions["Provider/sim"] != "1" {
				t.Errorf("%s: stored %+v", plan, got)
			}
		}
	}
}
