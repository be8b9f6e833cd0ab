package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestARefusedProviderConfigIsOneError makes a plan of three resources with a ProviderConfig that may not be used.
func TestARefusedProviderConfigIsOneError(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Config(nil)
	sc.Forbidden = map[string]bool{"team/providerconfigs/default": true}
	things("a", "b", "c")(sc)
	run := sc.newRun()
	po := sc.until(run, approving)
	d := po.Status.Diagnostics
	if len(d) != 1 || d[0].Severity != v1alpha1.SeverityError || d[0].Address != "ProviderConfig/default" {
		t.Fatalf("diagnostics: %+v", d)
	}
	for _, want := range []string{`may not use the ProviderConfig "default"`, "3 resources of the plan use it."} {
		if !strings.Contains(d[0].Detail, want) {
			t.Errorf("%q does not say %q", d[0].Detail, want)
		}
	}
}
