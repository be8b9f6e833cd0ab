package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// zone gives the ProviderConfig "default" of the namespace "team" an argument.
func (sc *crashScenario) zone(zone string) {
	cfg := providerConfig("team", zone)
	cfg.Name = "default"
	sc.ProviderConfigs["team/default"] = cfg
}

// zoneOfSecret is like zone, but the argument comes from a Secret and rotates. A new value alone makes no plan stale.
func (sc *crashScenario) zoneOfSecret(zone string) {
	cfg := providerConfig("team", "")
	cfg.Name, cfg.Spec.Config = "default", nil
	cfg.Spec.SecretRefs = []v1alpha1.SecretArgument{{Argument: "zone", Name: "s", Key: "zone", Rotates: true}}
	sc.ProviderConfigs["team/default"] = cfg
	sc.Data["secrets/team/s"] = map[string][]byte{"zone": []byte(zone)}
}

// ownsIn records that the object "other" of the namespace "ops" manages a resource with the ProviderConfig "c", whose
// zone is "theirs".
func (sc *crashScenario) ownsIn(terraformType, id string) {
	sc.T.Helper()
	sc.ProviderConfigs["ops/c"] = providerConfig("ops", "theirs")
	kind := strings.ReplaceAll(terraformType, "_", "-")
	rec := &ledger.Instance{Object: v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: kind, Namespace: "ops", Name: "other", UID: types.UID("ops" + kind)}, Provider: "test"}
	rec.State = ledger.State{Type: terraformType, ProviderConfig: "c", Configuration: ledger.Configuration{Arguments: "theirs"}, Attributes: []byte(`{"id":"` + id + `","name":"x"}`)}
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
}

// passCredentials lets the provider have credentials of the server's environment.
func (sc *crashScenario) passCredentials() {
	e, _ := sc.Catalog.Get("test")
	e.Package.Grants = contain.Grants{Environment: []string{"TOKEN"}}
	sc.Catalog.Put(e)
}

// TestAnImportUnderAnotherType plans to import what another object manages under another type. A type with the same
// arguments is the same one. A provider may have several other types for one resource, so they take the right to the
// other object.
func TestAnImportUnderAnotherType(t *testing.T) {
	for name, tc := range map[string]struct {
		owned, zone       string
		forbidden, passed bool
		refused           bool
		want              string
	}{
		"another name":                          {owned: "test_box", zone: "theirs", refused: true, want: "namespace.ops.test_box.other manages the resource to import"},
		"another name, another zone":            {owned: "test_box", zone: "mine", forbidden: true, refused: true, want: `needs the verb "update" on test-boxs`},
		"other arguments":                       {owned: "test_label", zone: "theirs", forbidden: true, refused: true, want: `namespace.ops.test_label.other manages a resource of another type with the same ID or identity`},
		"other arguments, with the right":       {owned: "test_label", zone: "theirs"},
		"other arguments, another zone":         {owned: "test_label", zone: "mine", forbidden: true},
		"other arguments, the server's account": {owned: "test_label", zone: "mine", forbidden: true, passed: true, refused: true, want: `needs the verb "update" on test-labels`},
		"another ID":                            {owned: "test_thing", zone: "theirs", forbidden: true},
		"another case":                          {owned: "test_thing", zone: "theirs", forbidden: true, refused: true, want: "namespace.ops.test_thing.other manages a resource with the same ID or identity"},
		"another case, with the right":          {owned: "test_thing", zone: "theirs", want: "Warning Resource is managed already: namespace.ops.test_thing.other manages a resource with the same ID"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.zone(tc.zone)
			id := map[string]string{"another ID": "y", "another case": "X", "another case, with the right": "X"}[name]
			if id == "" {
				id = "x"
			}
			sc.ownsIn(tc.owned, id)
			if tc.passed {
				sc.passCredentials()
			}
			for _, plural := range []string{"test-things", "test-boxs", "test-labels"} {
				sc.Forbidden["ann!update:ops/"+plural+"/other"] = tc.forbidden
			}
			sc.cloud.put("x", map[string]string{"name": "x"})
			sc.put("test-thing/a", m{"name": "x"}, imports("x"))
			po := sc.until(sc.newRun(), approving)
			if said := sc.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) || tc.want == "" && said != "" {
				t.Errorf("failed %t, said %q, want %q", po.PlanFailed(), said, tc.want)
			}
		})
	}
}

// TestOtherArgumentsReachAnotherObject creates a resource, and gives its ProviderConfig the arguments of another
// object's resource with the same ID. Each kind of plan needs the right to update that object, and reads nothing
// without it.
func TestOtherArgumentsReachAnotherObject(t *testing.T) {
	const mayBelong = "namespace.ops.test_thing.other manages a resource with the same ID or identity. The arguments of the ProviderConfig of test_thing.a"
	plans := map[string]func(*crashScenario){
		"update":       func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) },
		"replace":      func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "b"}, nil) },
		"destroy":      func(sc *crashScenario) { sc.spec = v1alpha1.PlanSpec{Destroy: true} },
		"delete":       func(sc *crashScenario) { sc.delete("test-thing/a") },
		"refresh only": func(sc *crashScenario) { sc.spec = v1alpha1.PlanSpec{RefreshOnly: true} },
		"move": func(sc *crashScenario) {
			sc.delete("test-thing/a")
			sc.put("test-box/a", m{"name": "a"}, m{"moved": m{"from": "test_thing.a"}})
		},
		"without refresh": func(sc *crashScenario) {
			sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshNone, Destroy: true}
		},
	}
	for _, how := range []string{"with the right", "without it", "another zone", "another zone, the server's account", "the same arguments"} {
		for name, edit := range plans {
			t.Run(name+" "+how, func(t *testing.T) {
				sc := newCrashScenario(t)
				sc.zone("mine")
				sc.put("test-thing/a", m{"name": "a"}, nil)
				sc.apply()
				sc.ownsIn("test_thing", "id-1")
				zone, refused, want := "theirs", how == "without it" || how == "another zone, the server's account", mayBelong
				switch how {
				case "another zone":
					zone, want = "third", ""
				case "another zone, the server's account":
					zone = "third"
					sc.passCredentials()
				case "the same arguments":
					zone, want = "mine", ""
				}
				sc.zone(zone)
				sc.Forbidden["ann!update:ops/test-things/other"] = how != "with the right"
				edit(sc)
				sc.cloud.reads = 0
				po := sc.until(sc.newRun(), approving)
				said := sc.said(po)
				if name == "move" && how == "with the right" {
					want = "namespace.ops.test_thing.other manages a resource with the same ID or identity. The arguments of the ProviderConfig of test_box.a"
				}
				if po.PlanFailed() != refused || !strings.Contains(strings.ReplaceAll(said, "test_box.a", "test_thing.a"), strings.ReplaceAll(want, "test_box.a", "test_thing.a")) || want == "" && strings.Contains(said, "other manages") {
					t.Errorf("failed %t, said %q, want %q", po.PlanFailed(), said, want)
				}
				if refused && sc.cloud.reads > 0 {
					t.Error("the plan read the resource, which may be the other object's")
				}
			})
		}
	}
}

// TestARightToAnotherObjectIsKept plans to destroy a resource whose ID is another object's with the new arguments. A
// user who loses the right to that object makes the plan stale, before the approval and at the step.
func TestARightToAnotherObjectIsKept(t *testing.T) {
	for _, deposed := range []bool{false, true} {
		for _, phase := range []int{approving, beginning, stepping} {
			sc := newCrashScenario(t)
			sc.zone("mine")
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			if deposed {
				rec := sc.recordOf("test-thing/a")
				rec.Deposed = []ledger.Deposed{{Key: "0123abcd", State: rec.State}}
				rec.Attributes = []byte(`{"id":"id-2","name":"a"}`)
				if err := sc.Ledger.Save(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				sc.cloud.things["id-2"] = map[string]string{"name": "a"}
			}
			sc.ownsIn("test_thing", "id-1")
			sc.zone("theirs")
			sc.spec = v1alpha1.PlanSpec{Destroy: true}
			run, po := sc.needsRightTo("other", phase)
			sc.Forbidden["ann!update:ops/test-things/other"] = true
			if phase == approving {
				if found, err := changes.Verify(t.Context(), sc.Sources, po); err != nil || len(found.Stale) != 1 || found.Stale[0].Address != "test_thing.a" {
					t.Errorf("deposed %t: verified: %+v, %v", deposed, found, err)
				}
				continue
			}
			sc.resume(run)
			if sc.cloud.things["id-1"] == nil {
				t.Errorf("deposed %t, phase %d: destroyed what may be the other object's", deposed, phase)
			}
		}
	}
}

// TestAStepReachesAnotherObject destroys with arguments that reach a resource which another object took over after the
// plan was made.
func TestAStepReachesAnotherObject(t *testing.T) {
	sc := newCrashScenario(t)
	sc.zone("mine")
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.apply()
	sc.zone("theirs")
	sc.Forbidden["ann!update:ops/test-things/other"] = true
	sc.spec = v1alpha1.PlanSpec{Destroy: true}
	run := sc.newRun()
	sc.until(run, stepping)
	sc.ownsIn("test_thing", "id-1")
	sc.resume(run)
	if c := sc.changeOf(run, 0); sc.cloud.things["id-1"] == nil || c.StaleReason != v1alpha1.StaleMissingRights {
		t.Errorf("destroyed, or stale because of %q: %q", c.StaleReason, c.Message)
	}
}

// TestNotFoundWithOtherArguments gives a ProviderConfig arguments with which its resource is not found. A plan does not
// create the resource again. A refresh-only plan forgets it, with the right to delete, and so does the removal of the
// object.
func TestNotFoundWithOtherArguments(t *testing.T) {
	start := func(t *testing.T) *crashScenario {
		sc := newCrashScenario(t)
		sc.zone("mine")
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		sc.zone("theirs")
		clear(sc.cloud.things)
		return sc
	}
	const warned = "Warning Resource is not found with the new arguments"
	t.Run("plan", func(t *testing.T) {
		sc := start(t)
		po := sc.until(sc.newRun(), approving)
		if said := sc.said(po); !po.PlanFailed() || !strings.Contains(said, "Error Resource is not found with the new arguments") || !strings.Contains(said, "kubectl hykube refresh test_thing.a -n team") {
			t.Errorf("failed %t, said %q", po.PlanFailed(), said)
		}
		sc.zone("mine")
		sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
		if po := sc.apply(); po.PlanFailed() || sc.cloud.made["a"] != 2 {
			t.Errorf("with the earlier arguments: %s, made %v", sc.said(po), sc.cloud.made)
		}
	})
	t.Run("refresh only", func(t *testing.T) {
		sc := start(t)
		sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
		sc.Forbidden["ann!delete:team/test-things/a"] = true
		if po := sc.until(sc.newRun(), approving); !po.PlanFailed() {
			t.Errorf("a user who may not delete forgets the resource: %s", sc.said(po))
		}
		clear(sc.Forbidden)
		po := sc.apply()
		if sum := po.Status.Summary; sum == nil || sum.Forget != 1 || !strings.Contains(sc.said(po), warned) || sc.recordOf("test-thing/a").Exists() {
			t.Fatalf("%+v: %s", sum, sc.said(po))
		}
		if ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonForgotten {
			t.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		sc.spec = v1alpha1.PlanSpec{}
		if sc.apply(); sc.cloud.made["a"] != 2 {
			t.Errorf("made %v", sc.cloud.made)
		}
	})
	t.Run("delete", func(t *testing.T) {
		sc := start(t)
		sc.delete("test-thing/a")
		po := sc.apply()
		if sum := po.Status.Summary; sum == nil || sum.Forget != 1 || !strings.Contains(sc.said(po), warned) {
			t.Errorf("%+v: %s", sum, sc.said(po))
		}
	})
	t.Run("destroy without a refresh", func(t *testing.T) {
		sc := start(t)
		sc.spec = v1alpha1.PlanSpec{Destroy: true, Refresh: v1alpha1.RefreshNone}
		po := sc.apply()
		if sum := po.Status.Summary; sum == nil || sum.Forget != 1 || sum.Delete != 0 || !strings.Contains(sc.said(po), warned) {
			t.Errorf("%+v: %s", sum, sc.said(po))
		}
	})
	t.Run("move without a refresh", func(t *testing.T) {
		sc := start(t)
		sc.delete("test-thing/a")
		sc.put("test-thing/b", m{"name": "a"}, m{"moved": m{"from": "test_thing.a"}})
		sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshNone}
		if po := sc.until(sc.newRun(), approving); !po.PlanFailed() || !strings.Contains(sc.said(po), "Error Resource is not found with the new arguments") {
			t.Errorf("failed %t, said %q", po.PlanFailed(), sc.said(po))
		}
	})
	t.Run("seen with the new arguments", func(t *testing.T) {
		sc := start(t)
		sc.cloud.put("id-1", map[string]string{"name": "a"})
		sc.apply() // it reads the resource, and changes nothing
		clear(sc.cloud.things)
		sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
		if po := sc.apply(); po.PlanFailed() || sc.cloud.made["a"] != 2 {
			t.Errorf("%s, made %v", sc.said(po), sc.cloud.made)
		}
	})
}

// TestASecretChangesBeforeTheStep gives the provider other arguments after the plan was approved. A step reads the
// resource with them before it changes anything: a provider reports the destroy of a missing resource as a success.
func TestASecretChangesBeforeTheStep(t *testing.T) {
	for name, edit := range map[string]func(*crashScenario){
		"destroy": func(sc *crashScenario) { sc.delete("test-thing/a") },
		"update":  func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) },
		"deposed": func(sc *crashScenario) {
			rec := sc.recordOf("test-thing/a")
			rec.Deposed = []ledger.Deposed{{Key: "0123abcd", State: rec.State}}
			rec.Attributes = []byte(`{"id":"id-2","name":"a"}`)
			if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
				sc.T.Fatal(err)
			}
			sc.cloud.things["id-2"] = map[string]string{"name": "a"}
		},
	} {
		for _, found := range []bool{true, false} {
			sc := newCrashScenario(t)
			sc.zoneOfSecret("mine")
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			edit(sc)
			run := sc.newRun()
			sc.until(run, stepping)
			sc.zoneOfSecret("theirs")
			if !found {
				delete(sc.cloud.things, "id-1")
			}
			sc.resume(run)
			stale := false
			for c, err := range sc.Ledger.Changes(t.Context(), sc.plans.get(run.Name).UID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				stale = stale || c.StaleReason == v1alpha1.StaleProviderConfigChanged
			}
			if stale == found {
				t.Errorf("%s, found %t: stale %t", name, found, stale)
			}
			if found {
				continue
			}
			if rec := sc.recordOf("test-thing/a"); !rec.Exists() || name == "deposed" && len(rec.Deposed) == 0 {
				t.Errorf("%s: the record was removed", name)
			}
		}
	}
}

// TestAFailedChangeKeepsTheArguments fails to change resources with other arguments than before. Such a failure does
// not prove that the provider reached them, so their records keep the earlier arguments.
func TestAFailedChangeKeepsTheArguments(t *testing.T) {
	for name, edit := range map[string]func(*crashScenario){
		"delete a": func(sc *crashScenario) { sc.delete("test-thing/a") },
		"update a": func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) },
	} {
		for _, fails := range []bool{true, false} {
			sc := newCrashScenario(t)
			sc.zone("mine")
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			before := sc.recordOf("test-thing/a").Configuration
			sc.zone("theirs")
			edit(sc)
			if fails {
				sc.cloud.faults[name] = []string{"refused"}
			}
			object := sc.Stored["team:test-thing/a"]
			sc.apply()
			r, err := resource.Of(object, sc.Catalog)
			if err != nil {
				t.Fatal(err)
			}
			if after := sc.Instance(r).Configuration; (after == before) != fails {
				t.Errorf("%s, fails %t: %+v, before %+v", name, fails, after, before)
			}
		}
	}
}
