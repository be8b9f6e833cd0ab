package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/api/meta"
)

// TestVerbsOfChanges lists the verbs that each change takes on the kind of its object.
func TestVerbsOfChanges(t *testing.T) {
	for reason, test := range map[string]struct {
		change v1alpha1.PlanChange
		want   string
	}{
		"create":                {v1alpha1.PlanChange{Action: v1alpha1.ActionCreate}, "create"},
		"update":                {v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate}, "update"},
		"replace":               {v1alpha1.PlanChange{Action: v1alpha1.ActionReplace}, "create delete"},
		"delete":                {v1alpha1.PlanChange{Action: v1alpha1.ActionDelete}, "delete"},
		"forget":                {v1alpha1.PlanChange{Action: v1alpha1.ActionForget}, "delete"},
		"read":                  {v1alpha1.PlanChange{Action: v1alpha1.ActionRead}, "get"},
		"run":                   {v1alpha1.PlanChange{Action: v1alpha1.ActionInvoke}, "update"},
		"nothing":               {v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp}, "get"},
		"import":                {v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Importing: &v1alpha1.PlanImport{}}, "create"},
		"import and update":     {v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Importing: &v1alpha1.PlanImport{}}, "create update"},
		"move":                  {v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old"}, "update"},
		"an action of tomorrow": {v1alpha1.PlanChange{Action: "Paint"}, "get"},
	} {
		if got := strings.Join(changes.Verbs(&ledger.Change{PlanChange: test.change}), " "); got != test.want {
			t.Errorf("%s takes %s, want %s", reason, got, test.want)
		}
	}
}

// TestAPlanOfASetTakesTheRightToItsKeys makes plans of an instance whose values come from a ConfigMap. A plan that destroys
// the instance shows none of them.
func TestAPlanOfASetTakesTheRightToItsKeys(t *testing.T) {
	const name = `test-thing/web["a"]`
	for reason, test := range map[string]struct {
		source  string
		destroy bool
		want    string
	}{
		"a ConfigMap that she may not get": {source: "keys", want: `user "ann", who made the plan, has no right to get configmaps in the namespace "team".`},
		"another ConfigMap":                {source: "others"},
		"values of the set":                {},
		"a destroy":                        {source: "keys", destroy: true},
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		sc.put(name, m{"name": "${each.value}"}, nil)
		of := m{"set": "web", "setUID": "s", "key": "a", "value": "v"}
		if test.source != "" {
			of["source"] = test.source
		}
		sc.Stored["team:"+name].Object[v1alpha1.FieldInstance] = map[string]any(of)
		if test.destroy {
			sc.apply()
			sc.spec.Destroy = true
		}
		sc.Forbidden["team/configmaps/keys"] = true
		po := sc.until(sc.newRun(), approving)
		var texts []string
		for _, d := range po.Status.Diagnostics {
			texts = append(texts, d.Detail)
		}
		failed := meta.IsStatusConditionFalse(po.Status.Conditions, v1alpha1.ConditionPlanned)
		if failed != (test.want != "") || failed && (len(texts) != 1 || !strings.Contains(texts[0], test.want)) {
			t.Errorf("%s: failed %t: %q, want %q", reason, failed, texts, test.want)
		}
	}
}

// TestAPlanFindsInfrastructureWhoseAddressIsTaken makes a plan beside the record of an instance that no object shows, because
// another set has its address. If that instance leaves, too, the plan destroys it first. A record of a data source is no such infrastructure.
func TestAPlanFindsInfrastructureWhoseAddressIsTaken(t *testing.T) {
	const name = "test-thing/web[0]"
	for _, leaving := range []bool{false, true} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		sc.put(name, m{"name": "a"}, nil)
		sc.Stored["team:"+name].Object[v1alpha1.FieldInstance] = map[string]any{"set": "other", "setUID": "o", "index": int64(0), "leaving": leaving}
		rec := &ledger.Instance{Provider: "test", State: ledger.State{Type: "test_thing", Attributes: []byte(`{"id":"i"}`)}, Object: v1alpha1.ObjectReference{
			APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: "web[0]", UID: "hidden", Set: "fleet", SetUID: "s"}}
		if err := sc.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		data := &ledger.Instance{Provider: "test", Mode: v1alpha1.ModeData, State: ledger.State{Type: "test_image", Attributes: []byte(`{"id":"i"}`)}, Object: v1alpha1.ObjectReference{
			APIVersion: "test.hykube.io/v1", Kind: "data-test-image", Namespace: "team", Name: "module.shop:all", UID: "data", Set: "shop", SetUID: "m"}}
		if err := sc.Ledger.Save(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		po := sc.until(sc.newRun(), approving)
		d := po.Status.Diagnostics
		if failed := len(d) == 1 && d[0].Summary == "Ambiguous address" && d[0].Address == "test_thing.web[0]" && strings.Contains(d[0].Detail, `left the ResourceSet "fleet" and still has infrastructure`); failed == leaving || len(d) > 1 {
			t.Errorf("the other one leaves, too: %t: %+v", leaving, d)
		}
	}
}

// TestAPlanTakesTheRightsOfItsRequester makes plans of a user who lacks a right.
func TestAPlanTakesTheRightsOfItsRequester(t *testing.T) {
	for reason, test := range map[string]struct {
		lost        []string
		speculative bool
		want        string // empty when the plan is made
		calls       []string
	}{
		"every right":                      {},
		"no right to create":               {lost: []string{"create:team/test-things/*"}, want: `user "ann", who made the plan, has no right to create test-things.test.hykube.io in the namespace "team".`},
		"no right to create nor to delete": {lost: []string{"create:team/test-things/*", "delete:team/test-things/*"}, want: "create test-things.test.hykube.io, delete test-things.test.hykube.io in"},
		"the right to all but one":         {lost: []string{"create:team/test-things/b"}, want: "create test-things.test.hykube.io in"},
		"no right to read one of them":     {lost: []string{"team/test-things/a"}, want: "get test-things.test.hykube.io in"},
		"a speculative plan":               {speculative: true, lost: []string{"create:team/test-things/*", "delete:team/test-things/*"}},
		"a speculative plan reads":         {speculative: true, lost: []string{"team/test-things/a"}, want: "get test-things.test.hykube.io in"},
		"another user lacks it":            {lost: []string{"bob!create:team/test-things/*"}},
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		sc.put("test-thing/gone", m{"name": "gone"}, nil)
		sc.apply()
		sc.delete("test-thing/gone")
		things("a", "b", "c")(sc)
		for _, key := range test.lost {
			sc.Forbidden[key] = true
		}
		sc.spec.Speculative = test.speculative
		calls := slices.Clone(sc.cloud.log)
		po := sc.until(sc.newRun(), approving)
		var texts []string
		for _, d := range po.Status.Diagnostics {
			texts = append(texts, d.Detail)
		}
		failed := meta.IsStatusConditionFalse(po.Status.Conditions, v1alpha1.ConditionPlanned)
		if failed != (test.want != "") || failed && (len(texts) != 1 || !strings.Contains(texts[0], test.want)) {
			t.Errorf("%s: failed %t: %q, want %q", reason, failed, texts, test.want)
		}
		if diff := cmp.Diff(calls, slices.Clone(sc.cloud.log)); diff != "" {
			t.Errorf("%s: the plan changed something:\n%s", reason, diff)
		}
	}
}

// TestAMoveTakesTheRightToReadItsSource plans a lifecycle.moved that names an object without a record. The plan shows
// that there is none, so its requester needs "get" on that object.
func TestAMoveTakesTheRightToReadItsSource(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Config(nil)
	sc.put("test-thing/n", m{"name": "n"}, m{"moved": m{"from": "test_thing.secret"}})
	sc.Forbidden["ann!team/test-things/secret"] = true
	po := sc.until(sc.newRun(), approving)
	if said := sc.said(po); !po.PlanFailed() || !strings.Contains(said, "no right to get test-things.test.hykube.io") || strings.Contains(said, "No resource to move") {
		t.Errorf("without the right, the plan says %q", said)
	}
	delete(sc.Forbidden, "ann!team/test-things/secret")
	po = sc.until(sc.newRun(), approving)
	if said := sc.said(po); po.PlanFailed() || !strings.Contains(said, "No resource to move") {
		t.Errorf("with the right, the plan says %q", said)
	}
}

// TestALostRightStopsTheApply takes a right from the user who made a plan, or one of those who approved it, before the
// apply begins and in the middle of it. The next plan, with the right, makes the change.
func TestALostRightStopsTheApply(t *testing.T) {
	for _, test := range []struct {
		lost, user, right string
	}{
		{"ann!update:team/test-things/*", `"ann", who made `, `update test-things.test.hykube.io in the namespace "team"`},
		{"bob!update:team/test-things/*", `"bob", who approved `, `update test-things.test.hykube.io`},
		{"ann!team/providerconfigs/default", `"ann", who made `, `use the ProviderConfig "default"`},
		{"carol!update:team/test-things/*", `"carol", who approved `, `update test-things.test.hykube.io`},
		{"carol!approve:team/plans/*", `"carol", who approved `, `approve plans.hykube.io`},
		{"bob!team/providerconfigs/default", `"bob", who approved `, `use the ProviderConfig "default"`},
	} {
		for _, phase := range []int{beginning, stepping} {
			sc := newCrashScenario(t)
			sc.Config(nil)
			things("a", "b")(sc)
			sc.apply()
			sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
			run := sc.newRun()
			sc.until(run, beginning)
			sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
				po.Status.Approval.By = &v1alpha1.Identity{Username: "bob"}
				carol := *po.Status.Approval
				carol.By = &v1alpha1.Identity{Username: "carol"}
				po.Status.Approvals = []v1alpha1.PlanApproval{carol, *po.Status.Approval}
			})
			sc.until(run, phase)
			calls := slices.Clone(sc.cloud.log)
			sc.Forbidden[test.lost] = true
			po := sc.resume(run)
			c := sc.changeOf(run, 0)
			if c.StaleReason != v1alpha1.StaleMissingRights || !strings.Contains(c.Message, test.user) || !strings.Contains(c.Message, test.right) {
				t.Errorf("%s, phase %d: %s %s: %s", test.lost, phase, c.State, c.StaleReason, c.Message)
			}
			if diff := cmp.Diff(calls, slices.Clone(sc.cloud.log)); diff != "" {
				t.Errorf("%s, phase %d: the provider was called:\n%s", test.lost, phase, diff)
			}
			if !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Errorf("%s, phase %d: conditions %+v", test.lost, phase, po.Status.Conditions)
			}
			delete(sc.Forbidden, test.lost)
			sc.apply()
			if got := sc.cloud.log[len(sc.cloud.log)-1]; got != "update a" {
				t.Errorf("%s, phase %d: with the right the next plan made %q", test.lost, phase, got)
			}
		}
	}
}

// TestAStepIsCheckedAfterItsWait changes rights and objects while a step waits for its provider.
func TestAStepIsCheckedAfterItsWait(t *testing.T) {
	for reason, test := range map[string]struct {
		destroy bool
		change  func(*crashScenario)
		reason  v1alpha1.StaleReason
		right   string
	}{
		"the requester loses the right to update": {false, func(sc *crashScenario) { sc.Forbidden["ann!update:team/test-things/*"] = true }, v1alpha1.StaleMissingRights, "update test-things"},
		"the requester loses the right to use":    {false, func(sc *crashScenario) { sc.Forbidden["ann!team/providerconfigs/default"] = true }, v1alpha1.StaleMissingRights, `use the ProviderConfig "default"`},
		"the requester loses the right to delete": {true, func(sc *crashScenario) { sc.Forbidden["ann!delete:team/test-things/*"] = true }, v1alpha1.StaleMissingRights, "delete test-things"},
		"the object is edited":                    {false, func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "3"}, nil) }, v1alpha1.StaleObjectChanged, ""},
		"the object to destroy is protected":      {true, func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a"}, m{"preventDestroy": true}) }, v1alpha1.StaleObjectChanged, ""},
		"the deletion is taken back":              {true, func(sc *crashScenario) { sc.Stored["team:test-thing/a"].SetDeletionTimestamp(nil) }, v1alpha1.StaleUndeleted, ""},
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		things("a")(sc)
		sc.apply()
		if sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil); test.destroy {
			sc.delete("test-thing/a")
		}
		run := sc.newRun()
		sc.until(run, stepping)
		calls := slices.Clone(sc.cloud.log)
		sc.provides = func(provider.Configuration) tfprotov6.ProviderServer {
			if test.change != nil {
				test.change(sc)
				test.change = nil
			}
			return sc.cloud
		}
		sc.resume(run)
		if c := sc.changeOf(run, 0); c.State != v1alpha1.ChangeStale || c.StaleReason != test.reason || !strings.Contains(c.Message, test.right) {
			t.Errorf("%s: %s %s: %s", reason, c.State, c.StaleReason, c.Message)
		}
		if diff := cmp.Diff(calls, slices.Clone(sc.cloud.log)); diff != "" {
			t.Errorf("%s: the provider was called:\n%s", reason, diff)
		}
	}
}

// TestConditionsOfPlansQuoteNoObject fails the planning, and then the apply, of an object with an error that only
// readers of the object may see.
func TestConditionsOfPlansQuoteNoObject(t *testing.T) {
	for field, reason := range map[string]string{"preconditions": v1alpha1.ReasonPlanFailed, "postconditions": v1alpha1.ReasonApplyFailed} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		condition := "${self.id == \"none\"}"
		if field == "preconditions" {
			condition = "${1 > 2}"
		}
		sc.put("test-thing/a", m{"name": "a"}, m{field: []any{m{"condition": condition, "errorMessage": "hunter2"}}})
		po := sc.apply()
		if said := sc.said(po); !strings.Contains(said, "hunter2") || po.Status.StalledFor() != reason {
			t.Fatalf("%s: %s: %s", field, po.Status.StalledFor(), said)
		}
		for _, c := range po.Status.Conditions {
			if strings.Contains(c.Message, "hunter2") {
				t.Errorf("%s: the condition %s says %q", field, c.Type, c.Message)
			}
		}
		if stalled := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionStalled); !strings.Contains(stalled.Message, "test_thing.a") {
			t.Errorf("%s: %q does not name the object", field, stalled.Message)
		}
	}
}

// knownUsers are the users whom the server still knows.
type knownUsers map[string]bool

func (u knownUsers) Current(who v1alpha1.Identity) (v1alpha1.Identity, bool) {
	return who, u[who.Username]
}

// TestAWaitingPlanOfAUserWithoutRights asks why no approval can apply a plan that waits, after its requester lost rights. A user who
// is not in the token file any more is named as such.
func TestAWaitingPlanOfAUserWithoutRights(t *testing.T) {
	for why, test := range map[string]struct {
		lost  []string
		users knownUsers
		want  string
	}{
		"every right":                        {},
		"the right to make plans alone":      {lost: []string{"ann!create:team/plans/*"}},
		"the right of a change, and to plan": {lost: []string{"ann!create:team/plans/*", "ann!create:team/test-things/*"}, want: `the user "ann", who made the plan, has no right to create test-things.test.hykube.io`},
		"she is in the token file": {lost: []string{"ann!create:team/plans/*", "ann!create:team/test-things/*"}, users: knownUsers{"ann": true},
			want: `the user "ann", who made the plan, has no right to create test-things.test.hykube.io`},
		"she left the token file": {lost: []string{"ann!create:team/plans/*", "ann!create:team/test-things/*"}, users: knownUsers{},
			want: `the user "ann", who made the plan, has no rights: the token file of the server names the user no more`},
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		things("a")(sc)
		po := sc.until(sc.newRun(), approving)
		for _, key := range test.lost {
			sc.Forbidden[key] = true
		}
		sources := *sc.Sources
		if test.users != nil {
			sources.Users = test.users
		}
		got, err := changes.LostRights(t.Context(), &sources, po)
		if err != nil || (got != "") != (test.want != "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, %v", why, got, err)
		}
	}
}
