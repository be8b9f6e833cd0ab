package planning

import (
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// TestResultsStayForDependants plans b and c, which depend on a, and d, which depends on c. One of them fails.
func TestResultsStayForDependants(t *testing.T) {
	w := activitiestest.NewWorld(t)
	planned := map[lang.Address]cty.Value{}
	var all []changes.Brief
	for i, deps := range [][]int32{{}, {0}, {0}, {2}} {
		r := w.Put("test-thing/"+string(rune('a'+i)), nil, nil)
		planned[r.Address] = cty.StringVal("known")
		c := activitiestest.ChangeOf(r, int32(i), deps...)
		c.Action = v1alpha1.ActionCreate
		all = append(all, changes.BriefOf(c))
	}
	pr := proposalOf(w, planned)
	pr.all = all
	known := func() (names string) {
		for _, c := range all {
			addr, err := lang.ParseAddress(c.Address)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := pr.plannedValue(addr); !ok {
				t.Errorf("%s has the recorded value", addr)
			} else if v.IsKnown() {
				names += addr.Name
			}
		}
		return names
	}
	source := newReleasing(pr)
	for _, step := range []struct {
		done int
		want string
	}{{0, "abcd"}, {1, "acd"}, {2, "cd"}} {
		source.Done(step.done)
		if got := known(); got != step.want {
			t.Errorf("after the change %d, the results of %q are known, want %q", step.done, got, step.want)
		}
	}
	source.Fail(3)
	if got := known(); got != "cd" {
		t.Errorf("after a failure, the results of %q are known", got)
	}
}
