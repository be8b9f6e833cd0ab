package diff

import (
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Rollouts returns a line for each rollout of a plan: the pace at which the apply changes the instances of a set.
func Rollouts(plan *v1alpha1.Plan) (lines []string) {
	for _, r := range plan.Status.Rollouts {
		var parts []string
		if r.MaxUnavailable > 0 {
			parts = append(parts, Count(int(r.MaxUnavailable))+" at once")
		}
		if len(r.Waves) > 1 {
			sizes := make([]string, len(r.Waves))
			for i, n := range r.Waves {
				sizes[i] = Count(int(n))
			}
			waves := "in waves of " + strings.Join(sizes, ", ")
			if r.Pause != nil && r.Pause.Duration > 0 {
				waves += fmt.Sprintf(" with a pause of %s", r.Pause.Duration)
			}
			parts = append(parts, waves)
		}
		all := int32(0)
		for _, n := range r.Waves {
			all += n
		}
		if r.MaxFailures < all {
			parts = append(parts, "no further instance after "+Plural(int(r.MaxFailures)+1, "failure"))
		} else {
			parts = append(parts, "failures do not stop it")
		}
		lines = append(lines, fmt.Sprintf("Rollout of %s: %s.", Clean(r.ResourceSet, false), strings.Join(parts, "; ")))
	}
	return lines
}
