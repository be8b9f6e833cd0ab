package activities

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAPlanSaysWhatItLeavesOut plans one object, to which objects outside of the plan refer. The plan counts those that
// refer to a value that it changes, and names three.
func TestAPlanSaysWhatItLeavesOut(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/hub", m{"name": "hub", "size": "1"}, nil)
	for i := range 4 {
		sc.put(fmt.Sprintf("test-thing/size-%d", i), m{"name": fmt.Sprintf("size-%d", i), "size": "${test_thing.hub.size}"}, nil)
	}
	sc.put("test-thing/name", m{"name": "name", "uses": "${test_thing.hub.name}"}, nil)
	sc.apply()
	sc.put("test-thing/hub", m{"name": "hub", "size": "2"}, nil)
	sc.put("test-thing/late", m{"name": "late", "size": "${test_thing.hub.size}"}, nil) // without infrastructure, it waits for a plan anyway
	sc.spec = v1alpha1.PlanSpec{Targets: []string{"test-thing/hub"}}
	po := sc.until(sc.newRun(), approving)
	const want = "Warning Resources that refer to the changes are left out: 4 resources that the plan leaves out refer to what it changes: test_thing.size-0, test_thing.size-1, test_thing.size-2 and 1 more. " +
		"When this plan is applied, plan them with kubectl hykube plan -n team, or apply with kubectl hykube apply --all -n team."
	if said := sc.said(po); !strings.Contains(said, want) || po.Status.Summary.Referrers != 4 {
		t.Errorf("%d referrers, and it said %q", po.Status.Summary.Referrers, said)
	}
	for name, spec := range map[string]v1alpha1.PlanSpec{
		"the whole namespace": {}, "nothing that changes": {Targets: []string{"test-thing/name"}, Exclude: []string{"test-thing/hub"}}, "a destroy": {Destroy: true},
	} {
		sc.spec = spec
		if po := sc.until(sc.newRun(), approving); strings.Contains(sc.said(po), "left out") {
			t.Errorf("a plan of %s said %q", name, sc.said(po))
		}
	}
	sc.put("test-thing/hub", m{"name": "other", "size": "1"}, nil) // which is a replacement
	sc.spec = v1alpha1.PlanSpec{Targets: []string{"test-thing/hub"}}
	if po := sc.until(sc.newRun(), approving); po.Status.Summary.Referrers != 1 || !strings.Contains(sc.said(po), "1 resource that the plan leaves out refers to what it changes: test_thing.name.") {
		t.Errorf("%d referrers, and it said %q", po.Status.Summary.Referrers, sc.said(po))
	}
}

// TestADestroyTakesDependentsAlong destroys one object. The plan says for each other one that it destroys which
// resource that refers to.
func TestADestroyTakesDependentsAlong(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
	sc.put("test-thing/c", m{"name": "c", "uses": "${test_thing.b.id}"}, nil)
	sc.apply()
	with := func(spec v1alpha1.PlanSpec) string {
		sc.spec = spec
		text := ""
		for c, err := range sc.Ledger.Changes(t.Context(), sc.until(sc.newRun(), approving).UID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%s<%s ", c.Address, c.DestroyedWith)
		}
		return text
	}
	if got := with(v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test-thing/a"}}); got != "test_thing.a< test_thing.b<test_thing.a test_thing.c<test_thing.b " {
		t.Error(got)
	}
	if got := with(v1alpha1.PlanSpec{Destroy: true}); strings.Contains(got, "<test") {
		t.Errorf("all of them are named: %s", got)
	}
}

// TestARenameWithoutMoved deletes an object and makes another one with its spec.
func TestARenameWithoutMoved(t *testing.T) {
	for name, tc := range map[string]struct {
		lifecycle m
		spec      m
		again     bool
		want      string
	}{
		"renamed":       {spec: m{"name": "x"}, want: "Warning Looks like a rename: test_thing.new has the type and the spec of test_thing.old, which the plan destroys."},
		"another spec":  {spec: m{"name": "y"}},
		"moved":         {spec: m{"name": "x"}, lifecycle: m{"moved": m{"from": "test_thing.old"}}},
		"two new twins": {spec: m{"name": "x"}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/old", m{"name": "x"}, nil)
			sc.apply()
			sc.delete("test-thing/old")
			sc.put("test-thing/new", tc.spec, tc.lifecycle)
			if tc.again {
				sc.put("test-thing/newer", tc.spec, nil)
			}
			said := sc.said(sc.until(sc.newRun(), approving))
			if tc.want == "" && strings.Contains(said, "rename") || !strings.Contains(said, tc.want) {
				t.Errorf("said %q", said)
			}
		})
	}
}

// TestAPlanReportsAllMissingObjects refers to objects, ConfigMaps, Secrets, keys and ProviderConfigs that are not there.
func TestAPlanReportsAllMissingObjects(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Data["configmaps/team/app"] = map[string][]byte{"region": []byte("eu")}
	sc.put("test-thing/object", m{"name": "${test_thing.gone.name}"}, nil)
	sc.put("test-thing/key", m{"name": "${configmap.app.reigon}", "size": "${secret.none.key}"}, nil)
	sc.put("test-thing/tried", m{"name": `${try(configmap.app.other, "none")}`}, nil)
	sc.put("test-thing/user", m{"name": "${test_thing.key.name}", "size": "${configmap.none.key}"}, nil)
	sc.put("test-thing/config", m{"name": "x"}, m{"providerConfig": "none"})
	said := sc.said(sc.until(sc.newRun(), approving))
	for _, want := range []string{`named "gone"`, `has no key "reigon"`, `no Secret "none"`, `no ConfigMap "none"`, `no ProviderConfig "none"`} {
		if strings.Count(said, want) != 1 {
			t.Errorf("the plan does not say %s once: %s", want, said)
		}
	}
	if strings.Contains(said, "other") {
		t.Errorf("try covers a key that is not there: %s", said)
	}
}
