package resourceset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestPlanRollout(t *testing.T) {
	of := func(s string) *intstr.IntOrString { return new(intstr.Parse(s)) }
	list := func(values ...string) (out []intstr.IntOrString) {
		for _, v := range values {
			out = append(out, intstr.Parse(v))
		}
		return out
	}
	for why, tc := range map[string]struct {
		rollout   *v1alpha1.ResourceSetRollout
		instances int
		want      *v1alpha1.PlanRollout
	}{
		"none":                    {nil, 10, nil},
		"nothing to change":       {&v1alpha1.ResourceSetRollout{}, 0, nil},
		"defaults":                {&v1alpha1.ResourceSetRollout{}, 10, &v1alpha1.PlanRollout{Waves: []int32{10}}},
		"percentages":             {&v1alpha1.ResourceSetRollout{MaxUnavailable: of("15%"), MaxFailures: of("10%"), Waves: list("1", "25%")}, 20, &v1alpha1.PlanRollout{MaxUnavailable: 3, MaxFailures: 2, Waves: []int32{1, 4, 15}}},
		"at least one":            {&v1alpha1.ResourceSetRollout{MaxUnavailable: of("1%"), Waves: list("1%")}, 20, &v1alpha1.PlanRollout{MaxUnavailable: 1, Waves: []int32{1, 19}}},
		"fewer than the waves":    {&v1alpha1.ResourceSetRollout{Waves: list("2", "50%")}, 5, &v1alpha1.PlanRollout{Waves: []int32{2, 3}}},
		"a wave of those before":  {&v1alpha1.ResourceSetRollout{Waves: list("5", "10%")}, 20, &v1alpha1.PlanRollout{Waves: []int32{5, 15}}},
		"waves that are all":      {&v1alpha1.ResourceSetRollout{Waves: list("5", "100%")}, 20, &v1alpha1.PlanRollout{Waves: []int32{5, 15}}},
		"fewer than one wave has": {&v1alpha1.ResourceSetRollout{Waves: list("5")}, 3, &v1alpha1.PlanRollout{Waves: []int32{3}}},
	} {
		obj := object(count(20))
		obj.Spec.Rollout = tc.rollout
		set := expand(t, obj, nil)
		if tc.want != nil {
			tc.want.ResourceSet, tc.want.UID = set.Name, set.UID
		}
		if diff := cmp.Diff(tc.want, set.PlanRollout(tc.instances)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}
