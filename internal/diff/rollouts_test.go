package diff

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestRollouts(t *testing.T) {
	p := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Rollouts: []v1alpha1.PlanRollout{
		{ResourceSet: "a", Waves: []int32{1, 4}, MaxUnavailable: 2, Pause: &metav1.Duration{Duration: time.Minute}, MaxFailures: 1},
		{ResourceSet: "b", Waves: []int32{5}, MaxFailures: 4},
		{ResourceSet: "c", Waves: []int32{5}, MaxFailures: 5},
	}}}
	want := []string{
		"Rollout of a: 2 at once; in waves of 1, 4 with a pause of 1m0s; no further instance after 2 failures.",
		"Rollout of b: no further instance after 5 failures.",
		"Rollout of c: failures do not stop it.",
	}
	if got := Rollouts(p); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
