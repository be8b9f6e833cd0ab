package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"

	"k8s.io/apimachinery/pkg/api/meta"
)

// takesConfig gives the provider of a scenario an argument, or none.
func (sc *crashScenario) takesConfig(takes bool) {
	s := *cloudSchema()
	if !takes {
		s.Config = &schema.Schema{Block: &schema.Block{}}
	}
	sc.Catalog.Put(catalog.Entry{Name: "test", Schema: &s, Package: provider.Package{Version: "1.0.0"}})
}

// TestAProviderThatTakesConfigurationNeedsAProviderConfig plans with a provider that would find credentials by itself.
func TestAProviderThatTakesConfigurationNeedsAProviderConfig(t *testing.T) {
	for reason, test := range map[string]struct {
		takes, config bool
		planned       bool
	}{
		"no arguments, and no ProviderConfig": {planned: true},
		"an optional argument":                {takes: true},
		"a ProviderConfig":                    {takes: true, config: true, planned: true},
	} {
		sc := newCrashScenario(t)
		sc.takesConfig(test.takes)
		if !test.config {
			clear(sc.ProviderConfigs)
		}
		things("a", "b")(sc)
		po := sc.apply()
		if planned := !meta.IsStatusConditionFalse(po.Status.Conditions, v1alpha1.ConditionPlanned); planned != test.planned {
			t.Errorf("%s: planned %t: %s", reason, planned, sc.said(po))
		}
		if made := len(sc.cloud.things) == 2; made != test.planned {
			t.Errorf("%s: made %t", reason, made)
		}
		if said := sc.said(po); !test.planned && strings.Count(said, "| kubectl create -n team -f -") != 1 {
			t.Errorf("%s: said %q", reason, said)
		}
	}
}

// TestRecordsWithoutAProviderConfigAreDestroyed has a resource that an earlier version applied without a
// ProviderConfig.
func TestRecordsWithoutAProviderConfigAreDestroyed(t *testing.T) {
	sc := newCrashScenario(t)
	clear(sc.ProviderConfigs)
	sc.takesConfig(false)
	things("a")(sc)
	sc.apply()
	if rec := sc.recordOf("test-thing/a"); !rec.Exists() || rec.ProviderConfig != "" {
		t.Fatalf("the record is %+v", rec)
	}
	sc.takesConfig(true)
	sc.delete("test-thing/a")
	if said := sc.said(sc.apply()); !strings.Contains(said, "No ProviderConfig for the provider") || len(sc.cloud.things) != 1 {
		t.Errorf("without a ProviderConfig: said %q, and %d things are left", said, len(sc.cloud.things))
	}
	sc.Config(nil)
	sc.Forbidden["ann!team/providerconfigs/default"] = true
	if said := sc.said(sc.apply()); !strings.Contains(said, `use the ProviderConfig "default"`) && !strings.Contains(said, `may not use the ProviderConfig "default"`) || len(sc.cloud.things) != 1 {
		t.Errorf("without the right to use it: said %q, and %d things are left", said, len(sc.cloud.things))
	}
	delete(sc.Forbidden, "ann!team/providerconfigs/default")
	if po := sc.apply(); len(sc.cloud.things) != 0 {
		t.Errorf("with a ProviderConfig: said %q, and %d things are left", sc.said(po), len(sc.cloud.things))
	}
}

// TestAnAbsentProviderIsTheOnlyError plans by targets of a provider that is not ready.
func TestAnAbsentProviderIsTheOnlyError(t *testing.T) {
	sc := newCrashScenario(t)
	things("a", "b")(sc)
	sc.put("test-thing/b", map[string]any{"name": "${test_thing.a.id}"}, nil)
	sc.Catalog.Remove("test")
	sc.spec = v1alpha1.PlanSpec{Targets: []string{"test_thing.a"}, Replace: []string{"test_thing.a"}}
	said := sc.said(sc.apply())
	if !strings.Contains(said, `the provider "test" is not ready`) || strings.Contains(said, "No such resource") || strings.Contains(said, "There is no") {
		t.Errorf("said %q", said)
	}
}
