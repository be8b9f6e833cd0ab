package loopback

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
)

// TestASetChangesBetweenPages changes a set after each page. The pages must have each instance that the set keeps, once and
// in order.
func TestASetChangesBetweenPages(t *testing.T) {
	nodes := func(names ...string) (out []index.Node) {
		for _, name := range names {
			out = append(out, index.Node{Object: &index.Object{Name: name}})
		}
		return out
	}
	keys := func(keys ...string) (out []index.Node) {
		for _, key := range keys {
			out = append(out, nodes(v1alpha1.InstanceName("web", v1alpha1.InstanceKey{Named: true, Name: key}))...)
		}
		return out
	}
	var count []index.Node
	for i := range 12 {
		count = append(count, nodes(fmt.Sprintf("web[%d]", i))...)
	}
	for name, test := range map[string]struct {
		before, after index.SetInstances
		limit         int
		kept          []index.Node
	}{
		"no change":                    {index.SetInstances{Instances: count}, index.SetInstances{Instances: count}, 5, count},
		"a listed key leaves":          {index.SetInstances{Instances: keys("a", "b", "c", "d", "e")}, index.SetInstances{Instances: keys("b", "c", "d", "e")}, 2, keys("b", "c", "d", "e")},
		"the last listed key leaves":   {index.SetInstances{Instances: keys("a", "b", "c", "d")}, index.SetInstances{Instances: keys("a", "c", "d"), Leaving: keys("b")}, 2, keys("a", "b", "c", "d")},
		"a key is added":               {index.SetInstances{Instances: keys("b", "c", "d")}, index.SetInstances{Instances: keys("a", "b", "c", "d")}, 2, keys("b", "c", "d")},
		"a key that needs quotes":      {index.SetInstances{Instances: keys(`a"`, "b/", "b%", "c")}, index.SetInstances{Instances: keys(`a"`, "b%", "b/", "c")}, 1, keys(`a"`, "b/", "c")},
		"a smaller count":              {index.SetInstances{Instances: count}, index.SetInstances{Instances: count[:4], Leaving: count[4:]}, 5, count},
		"an instance has left":         {index.SetInstances{Instances: count[:2], Leaving: count[2:]}, index.SetInstances{Instances: count[:2], Leaving: count[3:]}, 4, slices.Concat(count[:2], count[3:])},
		"the page ends with instances": {index.SetInstances{Instances: count[:3], Leaving: count[3:]}, index.SetInstances{Instances: count[:3], Leaving: count[3:]}, 3, count},
	} {
		var got []string
		add := func(s index.SetInstances, token string) string {
			page, next, err := pageOf(s, test.limit, token)
			if err != nil || len(page) > test.limit {
				t.Fatalf("%s: %d instances after %q, %v", name, len(page), token, err)
			}
			for _, n := range page {
				got = append(got, n.Object.Name)
			}
			return next
		}
		for token := add(test.before, ""); token != ""; {
			token = add(test.after, token)
		}
		at := -1
		for _, n := range test.kept {
			next := slices.Index(got, n.Object.Name)
			if next <= at {
				t.Errorf("%s: the pages have %q, which misses %s or has it too early", name, got, n.Object.Name)
			}
			at = next
		}
	}
	for _, token := range []string{"3", "web[0]", "leaving"} {
		if _, _, err := pageOf(index.SetInstances{Instances: count}, 1, token); err == nil {
			t.Errorf("the token %q has no error", token)
		}
	}
}
