package changes

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestIndexesOfAnApproval(t *testing.T) {
	for want, indexes := range map[string][]int32{
		"": nil, "3": {3}, "0-2": {2, 0, 1}, "0-1,5,7-9": {9, 0, 1, 5, 7, 8, 5},
	} {
		got, err := FormatIndexes(indexes)
		if err != nil || got != want {
			t.Errorf("%v: %q, %v", indexes, got, err)
		}
		out, err := NotApprovedIndexes([]v1alpha1.PlanApproval{{LeftOut: got}, {}})
		wanted := slices.Compact(slices.Sorted(slices.Values(indexes)))
		if diff := cmp.Diff(wanted, slices.Sorted(maps.Keys(out))); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", got, err, diff)
		}
	}
	// A change that one of two approvals leaves out is left out.
	out, err := NotApprovedIndexes([]v1alpha1.PlanApproval{{LeftOut: "1"}, {LeftOut: "4-5"}})
	if diff := cmp.Diff([]int32{1, 4, 5}, slices.Sorted(maps.Keys(out))); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"x", "1-", "-1", "3-2", "1,,2"} {
		if out, err := NotApprovedIndexes([]v1alpha1.PlanApproval{{LeftOut: bad}}); err == nil {
			t.Errorf("%q: %v", bad, out)
		}
	}
	var scattered []int32
	for i := range int32(20000) {
		scattered = append(scattered, 2*i)
	}
	if text, err := FormatIndexes(scattered); err == nil {
		t.Errorf("an approval of %d characters", len(text))
	}
}
