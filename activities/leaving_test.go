package activities

import (
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAConfigIsDeletedMeanwhile deletes the ProviderConfig before a plan is made, or after it was approved. Nothing new
// is made with it, and nothing is destroyed for that; what exists is updated and destroyed.
func TestAConfigIsDeletedMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		before, change func(*crashScenario)
		want           []string
	}{
		"create":  {nil, things("a"), nil},
		"update":  {things("a"), func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) }, []string{"a 2"}},
		"replace": {things("a"), func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a2", "size": "1"}, nil) }, []string{"a 1"}},
		"replace, new first": {things("a"), func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": "a2", "size": "1"}, m{"createBeforeDestroy": true})
		}, []string{"a 1"}},
		"delete": {things("a"), func(sc *crashScenario) { sc.delete("test-thing/a") }, nil},
	} {
		for _, phase := range []int{surveying, beginning, stepping} {
			t.Run(name, func(t *testing.T) {
				sc := newCrashScenario(t)
				cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
				cfg.Namespace, cfg.Name = "team", "default"
				sc.ProviderConfigs["team/default"] = cfg
				if test.before != nil {
					test.before(sc)
					sc.apply()
				}
				test.change(sc)
				run := sc.newRun()
				sc.until(run, phase)
				gone := cfg.DeepCopy()
				gone.DeletionTimestamp = new(metav1.Now())
				sc.ProviderConfigs["team/default"] = gone
				sc.resume(run)
				if got := sc.cloud.there(); !slices.Equal(got, test.want) {
					t.Errorf("deleted in phase %d; in the cloud: %v, want %v; calls: %v", phase, got, test.want, sc.cloud.log)
				}
				if sc.lost() {
					t.Errorf("deleted in phase %d: a create is recorded as unknown", phase)
				}
			})
		}
	}
}

// TestAConfigIsDeletedBetweenTheHalves deletes the ProviderConfig while the old instance of a replacement is being
// destroyed: the new one is created, since the old one is gone.
func TestAConfigIsDeletedBetweenTheHalves(t *testing.T) {
	sc := newCrashScenario(t)
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	cfg.Namespace, cfg.Name = "team", "default"
	sc.ProviderConfigs["team/default"] = cfg
	things("a")(sc)
	sc.apply()
	sc.put("test-thing/a", m{"name": "a2", "size": "1"}, nil)
	sc.cloud.while = func() {
		gone := cfg.DeepCopy()
		gone.DeletionTimestamp = new(metav1.Now())
		sc.ProviderConfigs["team/default"] = gone
	}
	sc.apply()
	if got := sc.cloud.there(); !slices.Equal(got, []string{"a2 1"}) {
		t.Errorf("in the cloud: %v, want the new instance; calls: %v", got, sc.cloud.log)
	}
}
