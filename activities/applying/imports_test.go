package applying

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// TestAnImportThatIsNotRecordedYetIsClaimed begins the imports of one resource for two objects. The second must not
// begin while the first may still record the resource.
func TestAnImportThatIsNotRecordedYetIsClaimed(t *testing.T) {
	w := activitiestest.NewWorld(t)
	var steps []*stepRun
	for i, name := range []string{"a", "b"} {
		r := w.Put("test-thing/"+name, nil, nil)
		c := activitiestest.ChangeOf(r, int32(i))
		c.Type, c.Importing, c.Refreshed = "test_thing", &v1alpha1.PlanImport{ID: "x"}, &ledger.State{Attributes: []byte(`{"id":"x"}`)}
		s := stepOf(w, r, c)
		if i > 0 {
			s.Applier = steps[0].Applier
		}
		steps = append(steps, s)
	}
	release, err := steps[0].claimImport(t.Context(), steps[0].resource)
	if err != nil {
		t.Fatal(err)
	}
	_, err = steps[1].claimImport(t.Context(), steps[1].resource)
	if changes.StaleReasonOf(err) != v1alpha1.StaleImportedElsewhere || !strings.Contains(err.Error(), "test_thing.a ") {
		t.Errorf("got %v while another import is not recorded yet", err)
	}
	release()
	if _, err := steps[1].claimImport(t.Context(), steps[1].resource); err != nil {
		t.Errorf("after the other import failed: %v", err)
	}
}
