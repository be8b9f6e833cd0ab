package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// said are the diagnostics of a plan, and of its changes.
func (tn *crashScenario) said(po *v1alpha1.Plan) string {
	tn.T.Helper()
	var text strings.Builder
	note := func(d v1alpha1.Diagnostic) {
		text.WriteString(string(d.Severity) + " " + d.Summary + ": " + d.Detail + "\n")
	}
	for _, d := range po.Status.Diagnostics {
		note(d)
	}
	for c, err := range tn.Ledger.Changes(tn.T.Context(), po.UID, 0) {
		if err != nil {
			tn.T.Fatal(err)
		}
		for _, d := range c.Diagnostics {
			note(d)
		}
	}
	return text.String()
}

// owns records that an object of a namespace manages the thing x.
func (tn *crashScenario) owns(namespace, name, config string) {
	tn.T.Helper()
	rec := &ledger.Instance{Object: v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: namespace, Name: name, UID: types.UID(namespace + name)}, Provider: "test"}
	rec.State = ledger.State{Type: "test_thing", ProviderConfig: config, Attributes: []byte(`{"id":"x","name":"x"}`)}
	if err := tn.Ledger.Save(tn.T.Context(), rec); err != nil {
		tn.T.Fatal(err)
	}
}

// TestAnImportOfManagedInfrastructure plans to import what another object manages. The plan fails, unless the other object reaches other
// infrastructure by its configuration. It names the other object to those who may read it.
func TestAnImportOfManagedInfrastructure(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, config string
		own               string
		forbidden         bool
		refused           bool
		want              string
	}{
		"here":                           {namespace: "team", refused: true, want: "Error Resource is managed already: test_thing.other manages the resource to import"},
		"there":                          {namespace: "ops", refused: true, want: "namespace.ops.test_thing.other manages the resource to import"},
		"there, and unreadable":          {namespace: "ops", forbidden: true, refused: true, want: "An object of another namespace, which you may not read, manages"},
		"with equal arguments":           {namespace: "ops", config: "a", own: "a", refused: true, want: "manages the resource to import"},
		"with other arguments":           {namespace: "ops", config: "a", own: "b", want: "Warning Resource is managed already: namespace.ops.test_thing.other manages a resource with the same ID"},
		"with a configuration, and none": {namespace: "ops", config: "a", want: "Warning Resource is managed already"},
	} {
		t.Run(name, func(t *testing.T) {
			tn := newCrashScenario(t)
			tn.Forbidden["ops/test-things/other"] = tc.forbidden
			if tc.config != "" {
				tn.ProviderConfigs["ops/c"] = providerConfig("ops", tc.config)
				tc.config = "c"
			}
			if tc.own != "" {
				tn.ProviderConfigs["team/default"] = providerConfig("team", tc.own)
				tn.ProviderConfigs["team/default"].Name = "default"
			}
			tn.owns(tc.namespace, "other", tc.config)
			tn.cloud.put("x", map[string]string{"name": "x"})
			tn.put("test-thing/a", m{"name": "x"}, imports("x"))
			po := tn.until(tn.newRun(), approving)
			if said := tn.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) {
				t.Errorf("failed %t, said %q", po.PlanFailed(), said)
			}
			if tc.forbidden && strings.Contains(tn.said(po), "other manages") {
				t.Error("it names an object that its maker may not read")
			}
		})
	}
}

func providerConfig(namespace, arguments string) *v1alpha1.ProviderConfig {
	cfg := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"zone": "` + arguments + `"}`)}
	return cfg
}

// TestAnImportOfWhatThePlanForgets takes infrastructure from one object to another in one plan.
func TestAnImportOfWhatThePlanForgets(t *testing.T) {
	tn := newCrashScenario(t)
	tn.put("test-thing/a", m{"name": "x"}, nil)
	tn.apply()
	id := ""
	for id = range tn.cloud.things {
	}
	tn.put("test-thing/a", m{"name": "x"}, m{"destroy": false})
	tn.delete("test-thing/a")
	tn.put("test-thing/b", m{"name": "x"}, imports(id))
	po := tn.apply()
	if sum := po.Status.Summary; sum == nil || sum.Import != 1 || sum.Forget != 1 || !tn.recordOf("test-thing/b").Exists() {
		t.Errorf("%+v: %s", sum, tn.said(po))
	}
}

// TestADestroyUnderAnotherObject destroys and replaces what another object manages, too. The plan warns, and says how to keep it.
func TestADestroyUnderAnotherObject(t *testing.T) {
	tn := newCrashScenario(t)
	tn.put("test-thing/a", m{"name": "x"}, nil)
	tn.apply()
	tn.spec = v1alpha1.PlanSpec{Destroy: true}
	if said := tn.said(tn.until(tn.newRun(), approving)); strings.Contains(said, "Another object") {
		t.Errorf("nobody else has it: %s", said)
	}
	rec := tn.recordOf("test-thing/a")
	rec2 := &ledger.Instance{Object: rec.Object, Provider: rec.Provider, State: rec.State}
	rec2.Object.Name, rec2.Object.UID = "b", "uid-b"
	if err := tn.Ledger.Save(t.Context(), rec2); err != nil {
		t.Fatal(err)
	}
	const want = "Warning Another object manages the same infrastructure: test_thing.b manages the infrastructure that this plan destroys. To keep it there, set lifecycle.destroy: false on test_thing.a"
	if said := tn.said(tn.until(tn.newRun(), approving)); !strings.Contains(said, want) {
		t.Errorf("said %q", said)
	}
	tn.spec = v1alpha1.PlanSpec{}
	tn.taint("test-thing/a")
	if said := tn.said(tn.until(tn.newRun(), approving)); !strings.Contains(said, want) {
		t.Errorf("of a replace it said %q", said)
	}
}
