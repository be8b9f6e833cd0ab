package activities

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"k8s.io/apimachinery/pkg/types"
)

// loses records that the object "lost" of the namespace "ops" began to create a thing; see losesAs.
func (sc *crashScenario) loses(name string) {
	sc.T.Helper()
	sc.losesAs("lost", 3, name)
}

// losesAs records that an object of the namespace "ops" began to create a thing with the ProviderConfig "c", whose zone is
// "theirs". As in every record of a first create, only the object names the provider and the type.
func (sc *crashScenario) losesAs(object string, index int32, name string) {
	sc.T.Helper()
	sc.ProviderConfigs["ops/c"] = providerConfig("ops", "theirs")
	ref := v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "ops", Name: object, UID: types.UID(object)}
	rec := &ledger.Instance{Object: ref, Intent: &ledger.Intent{Plan: "p", Change: index, Action: v1alpha1.ActionCreate}}
	rec.ProviderConfig = "c"
	planned, err := ctymsgpack.Marshal(cty.ObjectVal(map[string]cty.Value{
		"id": cty.UnknownVal(cty.String), "name": cty.StringVal(name), "size": cty.StringVal("7"), "uses": cty.UnknownVal(cty.String),
	}), cloudSchema().Resources["test_thing"].Block.ImpliedType())
	if err != nil {
		sc.T.Fatal(err)
	}
	c := &ledger.Change{Planned: planned}
	c.Index, c.Type, c.Object = index, "test_thing", ref
	if err := errors.Join(sc.Ledger.Save(sc.T.Context(), rec), sc.Ledger.SaveChange(sc.T.Context(), "p", c)); err != nil {
		sc.T.Fatal(err)
	}
}

// TestAPlanFromBeforeAFailedCreate makes two plans to create a resource. The create of one fails, and may nevertheless have made the
// resource. The other plan must not create a second one: its approver did not know of the first.
func TestAPlanFromBeforeAFailedCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		fault string
		known bool // the second plan is made after the failure
		state v1alpha1.ChangeState
	}{
		"it may exist":                   {"says connection closed", false, v1alpha1.ChangeStale},
		"it may exist, as the plan says": {"says connection closed", true, v1alpha1.ChangeDone},
		"it does not exist":              {"says 403 Forbidden", false, v1alpha1.ChangeDone},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.cloud.faults["create a"] = []string{tc.fault}
			first, second := sc.newRun(), sc.newRun()
			sc.until(first, stepping)
			if !tc.known {
				sc.until(second, stepping)
			}
			sc.resume(first)
			sc.resume(second)
			c := sc.changeOf(second, 0)
			made := sc.cloud.made["a"]
			if c.State != tc.state || made == 1 != (tc.state == v1alpha1.ChangeDone) {
				t.Errorf("the change of the second plan is %s (%s) and made %d, want %s", c.State, c.Message, made, tc.state)
			}
			if tc.state == v1alpha1.ChangeStale && (c.StaleReason != v1alpha1.StaleCreateUnknown || !strings.Contains(c.Message, `by the plan "p0"`)) {
				t.Errorf("it is stale because of %q: %s", c.StaleReason, c.Message)
			}
		})
	}
}

// TestImportsReadLostCreatesOnce imports resources while creates of others have unknown outcomes. Each import compares its resource
// with all of them, so their arguments are read once and not for each import.
func TestImportsReadLostCreatesOnce(t *testing.T) {
	reads := func(n int) int {
		sc := newCrashScenario(t)
		for i := range n {
			lost, found := fmt.Sprintf("lost-%d", i), fmt.Sprintf("found-%d", i)
			sc.losesAs(lost, int32(i), lost)
			sc.cloud.put(found, map[string]string{"name": found})
			sc.put("test-thing/"+found, m{"name": found}, imports(found))
		}
		kv := sc.ledgerKV.(crashStore).KV
		kv.Reads, kv.Lists = 0, 0
		if po := sc.apply(); po.PlanFailed() || sc.recordOf("test-thing/found-0").ID() != "found-0" {
			t.Fatalf("the plan says %q", sc.said(po))
		}
		return kv.Reads + kv.Lists
	}
	few, many := reads(5), reads(40)
	if many > 10*few {
		t.Errorf("%d reads for 5 imports and %d for 40, want at most ten times as many", few, many)
	}
}

// TestAnImportOfALostCreate plans to import what a create of another namespace may have made, whose answer was lost.
// Such a create has no ID.
func TestAnImportOfALostCreate(t *testing.T) {
	const may = "Resource is managed already: namespace.ops.test_thing.lost may have created the resource to import: its create is running, or has an unknown outcome"
	for name, tc := range map[string]struct {
		made, zone                                  string
		permitted, refused, planGone, server, alias bool
		want                                        string
	}{
		"without the right":                    {made: "x", zone: "theirs", refused: true, want: "Error " + may},
		"under another name of the type":       {made: "x", zone: "theirs", alias: true, refused: true, want: "Error " + may},
		"with the right":                       {made: "x", zone: "theirs", permitted: true, want: "Warning " + may},
		"of another name":                      {made: "y", zone: "theirs"},
		"of another name, and its plan gone":   {made: "y", zone: "theirs", planGone: true, refused: true, want: "Error " + may},
		"in another account":                   {made: "x", zone: "mine"},
		"in another account, the server's own": {made: "x", zone: "mine", server: true, refused: true, want: "Error " + may},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.zone(tc.zone)
			sc.loses(tc.made)
			if tc.planGone {
				if err := sc.Ledger.DropPlan(t.Context(), "p"); err != nil {
					t.Fatal(err)
				}
			}
			if tc.server {
				sc.passCredentials()
			}
			sc.Forbidden["ann!update:ops/test-things/lost"] = !tc.permitted
			sc.cloud.put("x", map[string]string{"name": "x", "size": "1"})
			kind := "test-thing/a"
			if tc.alias {
				kind = "test-box/a"
			}
			sc.put(kind, m{"name": "x", "size": "1"}, imports("x"))
			po := sc.until(sc.newRun(), approving)
			if said := sc.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) || tc.want == "" && said != "" {
				t.Errorf("failed %t, said %q, want %q", po.PlanFailed(), said, tc.want)
			}
		})
	}
}

// TestAnImportMeetsACreate imports what a create may have made that began after the plan was made.
func TestAnImportMeetsACreate(t *testing.T) {
	for _, phase := range []int{approving, beginning, stepping} {
		sc := newCrashScenario(t)
		sc.zone("theirs")
		sc.Forbidden["ann!update:ops/test-things/lost"] = true
		sc.cloud.put("x", map[string]string{"name": "x", "size": "1"})
		sc.put("test-thing/a", m{"name": "x", "size": "1"}, imports("x"))
		run := sc.newRun()
		po := sc.until(run, phase)
		sc.loses("x")
		if phase == approving {
			if found, err := changes.Verify(t.Context(), sc.Sources, po); err != nil || len(found.Stale) != 1 || found.Stale[0].Address != "test_thing.a" {
				t.Errorf("verified: %+v, %v", found, err)
			}
			continue
		}
		sc.resume(run)
		if sc.recordOf("test-thing/a").Exists() {
			t.Errorf("phase %d: imported what the create of another object may have made", phase)
		}
	}
}

// TestACreateEndsDuringTheCheck ends a create after the index was refreshed, so that the index does not have the ID of
// what it made.
func TestACreateEndsDuringTheCheck(t *testing.T) {
	sc := newCrashScenario(t)
	sc.zone("theirs")
	sc.loses("x")
	if err := sc.Index.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := sc.Ledger.Instance(t.Context(), v1alpha1.ObjectReference{Namespace: "ops", UID: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	rec.Provider, rec.Type, rec.Intent, rec.Attributes = "test", "test_thing", nil, []byte(`{"id":"x","name":"x"}`)
	if err := sc.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	e, _ := sc.Catalog.Get("test")
	for id, want := range map[string]int{"x": 1, "y": 0} {
		c := &ledger.Change{Refreshed: &ledger.State{Type: "test_thing", Attributes: []byte(`{"id":"` + id + `","name":"x"}`)}}
		c.Type, c.Importing, c.ProviderConfig = "test_thing", &v1alpha1.PlanImport{ID: id}, "default"
		c.Object = v1alpha1.ObjectReference{Namespace: "team", UID: "importing"}
		others, err := changes.OtherOwners(t.Context(), sc.Sources, c, e, c.Refreshed)
		if err != nil || len(others) != want {
			t.Errorf("%s: %+v, %v; want %d objects", id, others, err, want)
		}
	}
}

// TestOtherArgumentsReachALostCreate gives a ProviderConfig other arguments, with which the recorded ID is that of a
// resource that a create of another namespace may have made.
func TestOtherArgumentsReachALostCreate(t *testing.T) {
	const may = "namespace.ops.test_thing.lost may have created the resource that now has the ID of test_thing.a"
	for name, tc := range map[string]struct {
		made                string // the name of the thing with that ID under the new arguments
		permitted, planGone bool
		refused             bool
		want                string
	}{
		"without the right":                  {made: "x", refused: true, want: "Error Resource may belong to another object: " + may},
		"with the right":                     {made: "x", permitted: true, want: "Warning Resource may belong to another object: " + may},
		"of another name":                    {made: "y"},
		"unchanged, and its plan gone":       {made: "a", planGone: true},
		"of another name, and its plan gone": {made: "y", planGone: true, refused: true, want: "Error Resource may belong to another object: " + may},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.zone("mine")
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			sc.loses("x")
			if tc.planGone {
				if err := sc.Ledger.DropPlan(t.Context(), "p"); err != nil {
					t.Fatal(err)
				}
			}
			sc.zone("theirs")
			sc.cloud.things["id-1"] = map[string]string{"name": tc.made}
			sc.Forbidden["ann!update:ops/test-things/lost"] = !tc.permitted
			sc.spec = v1alpha1.PlanSpec{Destroy: true, Refresh: v1alpha1.RefreshNone}
			run := sc.newRun()
			po := sc.until(run, approving)
			if said := sc.said(po); po.PlanFailed() != tc.refused || !strings.Contains(said, tc.want) || tc.want == "" && strings.Contains(said, "may have made") {
				t.Errorf("failed %t, said %q, want %q", po.PlanFailed(), said, tc.want)
			}
			if !tc.permitted || tc.planGone {
				return
			}
			sc.Forbidden["ann!update:ops/test-things/lost"] = true
			if found, err := changes.Verify(t.Context(), sc.Sources, po); err != nil || len(found.Stale) != 1 || found.Stale[0].Address != "test_thing.a" {
				t.Errorf("verified: %+v, %v", found, err)
			}
		})
	}
}

// TestAStepReachesALostCreate destroys with a new value of a Secret, with which the ID is that of a resource that a
// create of another namespace may have made.
func TestAStepReachesALostCreate(t *testing.T) {
	for _, made := range []string{"x", "a"} {
		sc := newCrashScenario(t)
		sc.zoneOfSecret("mine")
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		sc.delete("test-thing/a")
		run := sc.newRun()
		sc.until(run, stepping)
		sc.loses("x")
		sc.Forbidden["ann!update:ops/test-things/lost"] = true
		sc.zoneOfSecret("theirs")
		sc.cloud.things["id-1"] = map[string]string{"name": made}
		sc.resume(run)
		if there := sc.cloud.things["id-1"] != nil; there != (made == "x") {
			t.Errorf("of a thing named %q: still there %t", made, there)
		}
	}
}

// TestACreateIsMadeAgain fails a create with errors that do not exclude that the resource exists, and with others. The
// next plan warns of the former, until the object has a resource.
func TestACreateIsMadeAgain(t *testing.T) {
	const again = "Warning An earlier create may have made the resource: A create of test_thing.a failed at "
	for name, tc := range map[string]struct {
		fault    string
		replaces bool
		want     string
	}{
		"a closed connection":        {"says EOF", false, "kubectl hykube import test-thing/a ID -n team."},
		"a conflict":                 {"says unexpected status 409", false, "kubectl hykube import test-thing/a ID -n team."},
		"a second instance":          {"says EOF", true, "If it exists, delete it there."},
		"a rejected request":         {"says https response error StatusCode: 400", false, ""},
		"a rejected second instance": {"says googleapi: Error 403: no", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			lifecycle := m{"createBeforeDestroy": true}
			if tc.replaces {
				sc.put("test-thing/a", m{"name": "before"}, lifecycle)
				sc.apply()
			}
			sc.put("test-thing/a", m{"name": "x"}, lifecycle)
			sc.cloud.faults["create x"] = []string{tc.fault}
			sc.apply()
			run := sc.newRun()
			said := sc.said(sc.until(run, approving))
			if strings.Contains(said, again) != (tc.want != "") || !strings.Contains(said, tc.want) {
				t.Errorf("the plan says %q, want %q", said, tc.want)
			}
			sc.resume(run)
			if failed := resource.StatusOf(sc.Stored["team:test-thing/a"]).FailedCreate; failed != "" || sc.cloud.made["x"] != 1 {
				t.Errorf("after it was made %d times, the status has %q", sc.cloud.made["x"], failed)
			}
		})
	}
}
