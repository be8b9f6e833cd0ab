package resourceset

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// MaxWaves is the maximum length of spec.rollout.waves, and MaxPause the maximum of spec.rollout.pause.
	MaxWaves = 10
	MaxPause = 24 * time.Hour
)

// PlanRollout returns the rollout of a plan that updates or replaces a number of instances; nil if nothing limits it.
func (s *Set) PlanRollout(instances int) *v1alpha1.PlanRollout {
	r := s.Rollout
	if r == nil || instances == 0 {
		return nil
	}
	out := &v1alpha1.PlanRollout{ResourceSet: s.Name, UID: s.UID, Pause: r.Pause}
	if r.MaxUnavailable != nil {
		out.MaxUnavailable = max(1, s.number(*r.MaxUnavailable))
	}
	if r.MaxFailures != nil {
		out.MaxFailures = s.number(*r.MaxFailures)
	}
	changed := int32(0) // by the waves so far
	for _, w := range r.Waves {
		if upTo := min(max(1, s.number(w)), int32(instances)); upTo > changed {
			out.Waves, changed = append(out.Waves, upTo-changed), upTo
		}
	}
	if rest := int32(instances) - changed; rest > 0 {
		out.Waves = append(out.Waves, rest)
	}
	return out
}

// number returns a number of instances, or a percentage of all of them, rounded down.
func (s *Set) number(v intstr.IntOrString) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, s.Len(), false)
	if err != nil {
		return 0 // the server accepts no other text
	}
	return int32(n)
}

// CheckNumber returns an error if a value is neither a number of at least minimum nor a percentage of at most 100%.
func CheckNumber(v intstr.IntOrString, minimum int) error {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, false)
	if err != nil || strings.HasPrefix(v.StrVal, "+") {
		return fmt.Errorf("must be a number or a percentage, such as 3 or \"10%%\"")
	}
	if n < minimum {
		return fmt.Errorf("must be at least %d", minimum)
	}
	if v.Type == intstr.String && n > 100 {
		return fmt.Errorf("must be at most 100%%")
	}
	return nil
}
