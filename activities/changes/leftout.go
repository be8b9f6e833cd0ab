package changes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// maxLeftOut is the maximum length of the indexes in an approval.
const maxLeftOut = 32 << 10

// FormatIndexes returns indexes in the format of status.approval.leftOut, such as "0-3,7". It returns an error if they
// are too many for an approval.
func FormatIndexes(indexes []int32) (string, error) {
	indexes = slices.Compact(slices.Sorted(slices.Values(indexes)))
	var parts []string
	for from := 0; from < len(indexes); {
		to := from
		for to+1 < len(indexes) && indexes[to+1] == indexes[to]+1 {
			to++
		}
		text := strconv.Itoa(int(indexes[from]))
		if to > from {
			text += "-" + strconv.Itoa(int(indexes[to]))
		}
		parts, from = append(parts, text), to+1
	}
	text := strings.Join(parts, ",")
	if len(text) > maxLeftOut {
		return "", fmt.Errorf("the %d changes that it leaves out are too many and too scattered for one approval: make a plan of the others, with --target or --exclude", len(indexes))
	}
	return text, nil
}

// NotApprovedIndexes returns the indexes of the changes that an approval of a plan leaves out: status.approval.leftOut
// of all of them.
func NotApprovedIndexes(approvals []v1alpha1.PlanApproval) (map[int32]bool, error) {
	out := map[int32]bool{}
	for _, a := range approvals {
		if a.LeftOut == "" {
			continue
		}
		for part := range strings.SplitSeq(a.LeftOut, ",") {
			first, last, isRange := strings.Cut(part, "-")
			if !isRange {
				last = first
			}
			from, err := strconv.ParseInt(first, 10, 32)
			to, err2 := strconv.ParseInt(last, 10, 32)
			if err != nil || err2 != nil || from > to {
				return nil, fmt.Errorf("the approval of the plan leaves out %q, which are no indexes of changes",
					a.LeftOut)
			}
			for i := from; i <= to; i++ {
				out[int32(i)] = true
			}
		}
	}
	return out, nil
}
