package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// said returns the diagnostics of a plan and of its changes.
func (sc *crashScenario) said(po *v1alpha1.Plan) string {
	sc.T.Helper()
	var text strings.Builder
	note := func(d v1alpha1.Diagnostic) {
		text.WriteString(string(d.Severity) + " " + d.Summary + ": " + d.Detail + "\n")
	}
	for _, d := range po.Status.Diagnostics {
		note(d)
	}
	for c, err := range sc.Ledger.Changes(sc.T.Context(), po.UID, 0) {
		if err != nil {
			sc.T.Fatal(err)
		}
		for _, d := range c.Diagnostics {
			note(d)
		}
	}
	return text.String()
}

// owns records that an object of a namespace manages the thing x, with an identity if one is given.
func (sc *crashScenario) owns(namespace, name, config string, identity ...string) {
	sc.T.Helper()
	rec := &ledger.Instance{Object: v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: namespace, Name: name, UID: types.UID(namespace + name)}, Provider: "test"}
	rec.State = ledger.State{
		Type: "test_thing", ProviderConfig: config, Attributes: []byte(`{"id":"x","name":"x"}`), Identity: []byte(strings.Join(identity, "")),
	}
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
}

// TestAnImportOfManagedInfrastructure plans to import what another object manages. The plan fails, unless the other
// object reaches other infrastructure by its configuration and the requester may update that object. It names the other
// object to those who may read it.
func TestAnImportOfManagedInfrastructure(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, config string
		own               string
		forbidden         bool
		lost              string
		refused           bool
		want              string
	}{
		"here":                  {namespace: "team", refused: true, want: "Error Resource is managed already: test_thing.other manages the resource to import"},
		"there":                 {namespace: "ops", refused: true, want: "namespace.ops.test_thing.other manages the resource to import"},
		"there, and unreadable": {namespace: "ops", forbidden: true, refused: true, want: "An object of another namespace, which you may not read, manages"},
		"with equal arguments":  {namespace: "ops", config: "a", own: "a", refused: true, want: "manages the resource to import"},
		"with other arguments":  {namespace: "ops", config: "a", own: "b", want: "Warning Resource is managed already: namespace.ops.test_thing.other manages a resource with the same ID"},
		"without the right to the other": {namespace: "ops", config: "a", own: "b", lost: "ann!update:ops/test-things/other", refused: true,
			want: `Error Resource is managed already: namespace.ops.test_thing.other manages a resource with the same ID or identity. Its ProviderConfig, its identity or the case of its ID differs, but it may be the same resource. The import needs the verb "update" on test-things.test.hykube.io for that object, too`},
		"without any right to the other": {namespace: "ops", config: "a", own: "b", lost: "ann!update:ops/test-things/*", forbidden: true, refused: true,
			want: "An object of another namespace, which you may not read, manages a resource with the same ID or identity. Its"},
		"without the right, here":  {namespace: "team", config: "a", own: "b", lost: "ann!update:team/test-things/other", refused: true, want: "Error Resource is managed already: test_thing.other manages a resource"},
		"only readable by others":  {namespace: "ops", config: "a", own: "b", forbidden: true, want: "Warning Resource is managed already: An object of another namespace, which you may not read, manages"},
		"with arguments, and none": {namespace: "ops", config: "a", refused: true, want: "manages the resource to import"},
		"here, by another name":    {namespace: "team", config: "a", own: "a", refused: true, want: "test_thing.other manages the resource to import"},
		"with an expression":       {namespace: "ops", config: "${configmap.c.zone}", own: "b", refused: true, want: "manages the resource to import"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.Forbidden["ops/test-things/other"] = tc.forbidden
			sc.Forbidden[tc.lost] = true
			configure(sc.World, "ops")
			if tc.config == "" {
				tc.config = "test"
			} else {
				sc.ProviderConfigs[tc.namespace+"/c"] = providerConfig(tc.namespace, tc.config)
				tc.config = "c"
			}
			if tc.own != "" {
				sc.ProviderConfigs["team/default"] = providerConfig("team", tc.own)
				sc.ProviderConfigs["team/default"].Name = "default"
			}
			sc.owns(tc.namespace, "other", tc.config)
			sc.cloud.put("x", map[string]string{"name": "x"})
			sc.put("test-thing/a", m{"name": "x"}, imports("x"))
			po := sc.until(sc.newRun(), approving)
			if said := sc.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) {
				t.Errorf("failed %t, said %q", po.PlanFailed(), said)
			}
			if said := sc.said(po); tc.forbidden && (strings.Contains(said, "other manages") || strings.Contains(said, "ops")) {
				t.Error("it names an object that its maker may not read")
			}
		})
	}
}

// TestAnImportUnderAnotherIdentity plans to import an ID that another object has with another identity. The zone of the
// identity comes from the ProviderConfig, so a user could choose it to take over the resource. One ProviderConfig
// cannot name a resource in two ways.
func TestAnImportUnderAnotherIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, config, arguments, recorded, right string
		refused                                       bool
		want                                          string
	}{
		"another ProviderConfig": {"ops", "c", "a", "a", "!", true,
			`Error Resource is managed already: namespace.ops.test_thing.other manages a resource with the same ID or identity.`},
		"another ProviderConfig, and the right": {"ops", "c", "a", "a", "", false, "Warning Resource is managed already: namespace.ops.test_thing.other"},
		"equal arguments":                       {"ops", "c", "b", "a", "!", true, `The import needs the verb "update" on test-things.test.hykube.io`},
		"a ProviderConfig of this namespace":    {"team", "c", "a", "a", "!", true, "Error Resource is managed already: test_thing.other"},
		"the same ProviderConfig":               {"team", "default", "b", "a", "!", false, ""},
		"the same identity":                     {"ops", "c", "b", "b", "", true, "namespace.ops.test_thing.other manages the resource to import"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.ProviderConfigs[tc.namespace+"/c"] = providerConfig(tc.namespace, tc.arguments)
			sc.ProviderConfigs["team/default"] = providerConfig("team", "b")
			sc.ProviderConfigs["team/default"].Name = "default"
			sc.Forbidden["ann"+tc.right+"update:"+tc.namespace+"/test-things/other"] = tc.right != ""
			sc.owns(tc.namespace, "other", tc.config, `{"id":"x","zone":"`+tc.recorded+`"}`)
			sc.cloud.put("x", map[string]string{"name": "x"})
			sc.cloud.zone = "b"
			sc.put("test-thing/a", m{"name": "x"}, imports("x"))
			po := sc.until(sc.newRun(), approving)
			if said := sc.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) || tc.want == "" && said != "" {
				t.Errorf("failed %t, said %q", po.PlanFailed(), said)
			}
		})
	}
}

// needsRightTo makes a plan whose approver needs the right to update an object of the namespace "ops", and brings it to a
// phase with bob as its approver.
func (sc *crashScenario) needsRightTo(name string, phase int) (*planRun, *v1alpha1.Plan) {
	sc.T.Helper()
	run := sc.newRun()
	po := sc.until(run, approving)
	found, err := changes.Verify(sc.T.Context(), sc.Sources, po)
	needed := map[store.Right]bool{}
	for right, rerr := range found.Rights {
		err = errors.Join(err, rerr)
		needed[right] = true
	}
	if err != nil || len(found.Stale) > 0 || !needed[store.Right{Verb: "update", Namespace: "ops", Group: "test.hykube.io", Resource: "test-things", Name: name, Unnamed: true}] {
		sc.T.Fatalf("verified: %+v, %v; want the approver to need the right to the other object", found, err)
	}
	if phase != approving {
		sc.until(run, beginning)
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.Approval.By = &v1alpha1.Identity{Username: "bob"} })
		sc.until(run, phase)
	}
	return run, po
}

// TestAnImportBesideAnotherObjectTakesTheRightToIt plans an import of an ID that an object of another namespace has,
// with other arguments of its ProviderConfig. A user who lost the right to update that object makes the plan stale,
// before the approval and at the step. The message does not name the object.
func TestAnImportBesideAnotherObjectTakesTheRightToIt(t *testing.T) {
	const right = `update test-things.test.hykube.io on another object`
	for _, phase := range []int{approving, beginning, stepping} {
		for _, who := range []string{"", "ann", "bob"} {
			sc := newCrashScenario(t)
			sc.ProviderConfigs["ops/c"], sc.ProviderConfigs["team/default"] = providerConfig("ops", "a"), providerConfig("team", "b")
			sc.ProviderConfigs["team/default"].Name = "default"
			sc.owns("ops", "hidden", "c")
			sc.cloud.put("x", map[string]string{"name": "x"})
			sc.put("test-thing/a", m{"name": "x"}, imports("x"))
			run, po := sc.needsRightTo("hidden", phase)
			sc.Forbidden[who+"!update:ops/test-things/hidden"] = true
			message, want, reason := "", right, v1alpha1.StaleReason("")
			if phase == approving {
				found, err := changes.Verify(t.Context(), sc.Sources, po)
				if err != nil {
					t.Fatal(err)
				}
				for _, stale := range found.Stale {
					message, reason = message+stale.Why, stale.Stale
				}
				if who == "bob" {
					want = "" // the server checks the rights of an approver against Verification.Rights
				}
			} else {
				sc.resume(run)
				message, reason = sc.changeOf(run, 0).Message, sc.changeOf(run, 0).StaleReason
			}
			if who == "" {
				want = ""
			}
			if want == "" && message != "" || !strings.Contains(message, want) || strings.Contains(message, "hidden") || strings.Contains(message, "ops") {
				t.Errorf("phase %d, without the right of %q: %q, want %q", phase, who, message, want)
			}
			if (reason == v1alpha1.StaleMissingRights) != (want != "") {
				t.Errorf("phase %d, without the right of %q: stale because of %q", phase, who, reason)
			}
			if has := sc.recordOf("test-thing/a").Exists(); phase != approving && has != (want == "") {
				t.Errorf("phase %d, without the right of %q: imported %t", phase, who, has)
			}
		}
	}
}

// TestAnImportBesideAnotherObjectWaitsForAPerson plans an import for a stack with automatic approval. Another object has the ID, and
// its ProviderConfig differs in an argument that proves nothing. All users have all rights, and nevertheless a person decides.
func TestAnImportBesideAnotherObjectWaitsForAPerson(t *testing.T) {
	for _, owned := range []bool{false, true} {
		sc := newCrashScenario(t)
		sc.ProviderConfigs["ops/c"], sc.ProviderConfigs["team/default"] = providerConfig("ops", "a"), providerConfig("team", "b")
		sc.ProviderConfigs["team/default"].Name = "default"
		if owned {
			sc.owns("ops", "hidden", "c")
		}
		sc.cloud.put("x", map[string]string{"name": "x"})
		sc.put("test-thing/a", m{"name": "x"}, imports("x"))
		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Status.Stack, po.Status.AutomaticApproval = &v1alpha1.PlanStack{Stack: "s"}, &v1alpha1.AutomaticApproval{Granted: true}
		})
		po := sc.until(run, approving)
		if waits := strings.Contains(po.Status.AutomaticApproval.Message, "another object may manage the infrastructure of test_thing.a"); waits != owned || po.PlanFailed() {
			t.Errorf("owned %t: %+v, %s", owned, po.Status.AutomaticApproval, sc.said(po))
		}
	}
}

func providerConfig(namespace, arguments string) *v1alpha1.ProviderConfig {
	cfg := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"zone": "` + arguments + `"}`)}
	return cfg
}

// TestAnImportOfWhatThePlanForgets takes infrastructure from one object to another in one plan.
func TestAnImportOfWhatThePlanForgets(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "x"}, nil)
	sc.apply()
	id := ""
	for id = range sc.cloud.things {
	}
	sc.put("test-thing/a", m{"name": "x"}, m{"destroy": false})
	sc.delete("test-thing/a")
	sc.put("test-thing/b", m{"name": "x"}, imports(id))
	po := sc.apply()
	if sum := po.Status.Summary; sum == nil || sum.Import != 1 || sum.Forget != 1 || !sc.recordOf("test-thing/b").Exists() {
		t.Errorf("%+v: %s", sum, sc.said(po))
	}
}

// TestADestroyUnderAnotherObject destroys and replaces what another object manages, too. The plan warns, and says how
// to keep it.
func TestADestroyUnderAnotherObject(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "x"}, nil)
	sc.apply()
	sc.spec = v1alpha1.PlanSpec{Destroy: true}
	if said := sc.said(sc.until(sc.newRun(), approving)); strings.Contains(said, "Another object") {
		t.Errorf("no other object manages it: %s", said)
	}
	rec := sc.recordOf("test-thing/a")
	rec2 := &ledger.Instance{Object: rec.Object, Provider: rec.Provider, State: rec.State}
	rec2.Object.Name, rec2.Object.UID = "b", "uid-b"
	if err := sc.Ledger.Save(t.Context(), rec2); err != nil {
		t.Fatal(err)
	}
	const want = "Warning Another object manages the same infrastructure: test_thing.b manages the infrastructure that this plan destroys. To keep it there, set lifecycle.destroy: false on test_thing.a"
	if said := sc.said(sc.until(sc.newRun(), approving)); !strings.Contains(said, want) {
		t.Errorf("said %q", said)
	}
	sc.spec = v1alpha1.PlanSpec{}
	sc.taint("test-thing/a")
	if said := sc.said(sc.until(sc.newRun(), approving)); !strings.Contains(said, want) {
		t.Errorf("of a replace it said %q", said)
	}

	// An object of another namespace counts if its provider has the same arguments.
	if err := sc.Ledger.Forget(t.Context(), rec2); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{rec.Configuration.Arguments, "others"} {
		other := &ledger.Instance{Object: rec.Object, Provider: rec.Provider, State: rec.State}
		other.Object.Namespace, other.Object.Name, other.Object.UID, other.Configuration.Arguments = "ops", "c", types.UID("uid-"+arguments), arguments
		if err := sc.Ledger.Save(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		sc.spec = v1alpha1.PlanSpec{Destroy: true}
		warns := strings.Contains(sc.said(sc.until(sc.newRun(), approving)), "Warning Another object manages the same infrastructure: namespace.ops.test_thing.c manages")
		if warns != (arguments != "others") {
			t.Errorf("with the arguments %q of the other provider: warns %t", arguments, warns)
		}
		if err := sc.Ledger.Forget(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
}
