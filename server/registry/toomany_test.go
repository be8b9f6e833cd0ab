package registry

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// TestSetsOfANamespaceAreLimitedTogether adds sets to a namespace that has some, and changes the count of one.
func TestSetsOfANamespaceAreLimitedTogether(t *testing.T) {
	set := func(name string, n int32) *v1alpha1.ResourceSet {
		s := &v1alpha1.ResourceSet{}
		s.Name, s.Spec.Count = name, &n
		return s
	}
	byKey := &v1alpha1.ResourceSet{}
	byKey.Name = "keys"
	stored := []*v1alpha1.ResourceSet{set("a", resourceset.MaxCount), byKey, set("b", resourceset.MaxTotal-resourceset.MaxCount-10)}
	all := func(yield func(*v1alpha1.ResourceSet, error) bool) {
		for _, s := range stored {
			if !yield(s, nil) {
				return
			}
		}
	}
	for name, test := range map[string]struct {
		set     *v1alpha1.ResourceSet
		refused bool
	}{
		"as many as are left":    {set: set("c", 10)},
		"one more":               {set: set("c", 11), refused: true},
		"the set itself":         {set: set("b", resourceset.MaxTotal-resourceset.MaxCount)},
		"the set itself, larger": {set: set("b", resourceset.MaxTotal-resourceset.MaxCount+1), refused: true},
		"a set with keys":        {set: byKey},
	} {
		errs := refuseTooMany(test.set, all)
		if (len(errs) > 0) != test.refused || test.refused && !strings.Contains(errs.ToAggregate().Error(), "use another namespace") {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
