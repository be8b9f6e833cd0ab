package activities

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/runtime"
)

// accounts is a crashScenario whose provider reaches another account for each zone: "mine", which is the cloud of the scenario,
// and others. A configuration has a token, too.
type accounts struct {
	*crashScenario
	others map[string]*cloud
	// got lists the zones and tokens with which the provider was configured.
	got []string
}

func newAccounts(t *testing.T) *accounts {
	sc := &accounts{crashScenario: newCrashScenario(t), others: map[string]*cloud{}}
	sc.provides = func(conf provider.Configuration) tfprotov6.ProviderServer {
		argument := func(name string) string {
			if v := conf.Config.GetAttr(name); v.IsKnown() && !v.IsNull() {
				return v.AsString()
			}
			return ""
		}
		sc.got = append(sc.got, argument("zone")+" "+argument("token"))
		if zone := argument("zone"); zone != "mine" {
			return sc.account(zone)
		}
		return sc.cloud
	}
	sc.arguments(nil, map[string]string{"zone": "mine", "token": "t1"}, nil)
	return sc
}

// account returns the account of a zone other than "mine".
func (sc *accounts) account(zone string) *cloud {
	if sc.others[zone] == nil {
		sc.others[zone] = &cloud{t: sc.T, injector: sc.injector, things: map[string]map[string]string{}, faults: map[string][]string{}, made: map[string]int{}}
	}
	return sc.others[zone]
}

// arguments writes the ProviderConfig "default" with arguments, and with others that come from a Secret with their values. rotating
// lists those that rotate.
func (sc *accounts) arguments(config m, secret map[string]string, rotating []string) {
	cfg := providerConfig("team", "")
	cfg.Name, cfg.Spec.Config = "default", nil
	if config != nil {
		raw := `{`
		for _, name := range slices.Sorted(maps.Keys(config)) {
			raw += `"` + name + `": "` + config[name].(string) + `",`
		}
		cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(strings.TrimSuffix(raw, ",") + `}`)}
	}
	data := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		cfg.Spec.SecretRefs = append(cfg.Spec.SecretRefs, v1alpha1.SecretArgument{Argument: name, Name: "s", Key: name, Rotates: slices.Contains(rotating, name)})
		data[name] = []byte(secret[name])
	}
	sc.ProviderConfigs["team/default"] = cfg
	sc.Data["secrets/team/s"] = data
}

// rotate changes a value of the Secret, and nothing else.
func (sc *accounts) rotate(key, value string) {
	data := maps.Clone(sc.Data["secrets/team/s"])
	data[key] = []byte(value)
	sc.Data["secrets/team/s"] = data
}

// staleness returns the reasons and messages of the stale changes of a run, and whether a change was made.
func (sc *accounts) staleness(run *planRun) (reasons []v1alpha1.StaleReason, messages string, done bool) {
	sc.T.Helper()
	for c, err := range sc.Ledger.Changes(sc.T.Context(), sc.plans.get(run.Name).UID, 0) {
		if err != nil {
			sc.T.Fatal(err)
		}
		if c.StaleReason != "" {
			reasons, messages = append(reasons, c.StaleReason), messages+c.Message+"\n"
		}
		done = done || c.State == v1alpha1.ChangeDone
	}
	return reasons, messages, done
}

// depose makes the instance of the object "a" a deposed one, beside a current one.
func (sc *accounts) depose() {
	rec := sc.recordOf("test-thing/a")
	rec.Deposed = []ledger.Deposed{{Key: "0123abcd", State: rec.State}}
	rec.Attributes = []byte(`{"id":"id-2","name":"a"}`)
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
	sc.cloud.things["id-2"] = map[string]string{"name": "a"}
}

// accountChanges are the plans of the object "a", which exists, and whether they record what the provider found.
var accountChanges = map[string]func(*accounts){
	"create":  func(sc *accounts) { sc.put("test-thing/b", m{"name": "b"}, nil) },
	"update":  func(sc *accounts) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) },
	"replace": func(sc *accounts) { sc.put("test-thing/a", m{"name": "c"}, nil) },
	"replace, create first": func(sc *accounts) {
		sc.put("test-thing/a", m{"name": "c"}, m{"createBeforeDestroy": true})
	},
	"delete":  func(sc *accounts) { sc.delete("test-thing/a") },
	"destroy": func(sc *accounts) { sc.spec = v1alpha1.PlanSpec{Destroy: true} },
	"destroy without a refresh": func(sc *accounts) {
		sc.spec = v1alpha1.PlanSpec{Destroy: true, Refresh: v1alpha1.RefreshNone}
	},
	"deposed": (*accounts).depose,
	"import": func(sc *accounts) {
		sc.cloud.things["x"] = map[string]string{"name": "x"}
		sc.put("test-thing/b", m{"name": "x"}, imports("x"))
	},
	"move": func(sc *accounts) {
		sc.delete("test-thing/a")
		sc.put("test-box/a", m{"name": "a", "size": "2"}, m{"moved": m{"from": "test_thing.a"}})
	},
	"refresh": func(sc *accounts) {
		sc.cloud.things["id-1"]["size"] = "9"
		sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
	},
	"refresh, gone": func(sc *accounts) {
		delete(sc.cloud.things, "id-1")
		sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
	},
}

// TestAnApprovalIsBoundToTheAccount changes the Secret with the endpoint of a provider after a plan was made: before its
// approval, before it begins, and before its step. Each kind of change is stale, and the provider never gets the other endpoint
// and the token. With the value of the plan, the same change is made.
func TestAnApprovalIsBoundToTheAccount(t *testing.T) {
	for name, edit := range accountChanges {
		for _, phase := range []int{approving, beginning, stepping} {
			for _, restored := range []bool{false, true} {
				sc := newAccounts(t)
				sc.put("test-thing/a", m{"name": "a"}, nil)
				sc.apply()
				edit(sc)
				// The other account has another resource with the ID.
				sc.account("theirs").things = map[string]map[string]string{"id-1": {"name": "victim"}, "id-2": {"name": "victim"}, "x": {"name": "victim"}}
				run := sc.newRun()
				po := sc.until(run, phase)
				sc.rotate("zone", "theirs")
				if restored {
					sc.rotate("zone", "mine")
				}
				sc.got = nil
				if phase == approving {
					found, err := changes.Verify(t.Context(), sc.Sources, po)
					if err != nil || (len(found.Stale) > 0) == restored {
						t.Errorf("%s, restored %t: verified %+v, %v", name, restored, found.Stale, err)
					}
				}
				sc.resume(run)
				reasons, said, done := sc.staleness(run)
				if restored {
					if len(reasons) > 0 || !done {
						t.Errorf("%s, phase %d: with the value of the plan: %v %s", name, phase, reasons, said)
					}
					continue
				}
				if len(reasons) == 0 || done || slices.ContainsFunc(reasons, func(r v1alpha1.StaleReason) bool { return r != v1alpha1.StaleProviderConfigChanged }) ||
					!strings.Contains(said, `the arguments of the ProviderConfig "default"`) {
					t.Errorf("%s, phase %d: done %t, stale %v: %s", name, phase, done, reasons, said)
				}
				if log := sc.account("theirs").log; len(log) > 0 || slices.ContainsFunc(sc.got, func(s string) bool { return strings.HasPrefix(s, "theirs") }) {
					t.Errorf("%s, phase %d: the provider got %v, and the other account %v", name, phase, sc.got, log)
				}
			}
		}
	}
}

// TestTheDigestOfAPlanHasTheArguments makes one plan with several values of a Secret. Another value gives another digest, so the
// approval of one plan is none of the other. A rotated token gives another one, too, because it was part of what was read.
func TestTheDigestOfAPlanHasTheArguments(t *testing.T) {
	digest := func(zone string) string {
		sc := newAccounts(t)
		sc.rotate("zone", zone)
		sc.put("test-thing/a", m{"name": "a"}, nil)
		return sc.until(sc.newRun(), approving).Status.Digest
	}
	if mine, again, theirs := digest("mine"), digest("mine"), digest("theirs"); mine != again || mine == theirs {
		t.Errorf("digests %s and %s of one plan, and %s with another account", mine, again, theirs)
	}
}

// TestUnknownArgumentsAreBound makes plans with a ProviderConfig that refers to a resource of the plan, or to an ephemeral
// resource. The plan knows neither value, and it goes on with what its own steps make. Another value of the Secret, of another
// argument or of the reference itself makes the changes stale.
func TestUnknownArgumentsAreBound(t *testing.T) {
	for name, test := range map[string]struct {
		zone  string
		edit  func(*accounts)
		stale bool
	}{
		"a resource of the plan":                           {zone: "${test_box.net.id}"},
		"a resource of the plan, another token":            {zone: "${test_box.net.id}", edit: func(sc *accounts) { sc.rotate("token", "t2") }, stale: true},
		"a resource of the plan, another expression":       {zone: "${test_box.net.id}", edit: func(sc *accounts) { sc.zoneOf("theirs") }, stale: true},
		"a ConfigMap, unchanged":                           {zone: "${configmap.cm.zone}"},
		"a ConfigMap, another value":                       {zone: "${configmap.cm.zone}", edit: (*accounts).writeConfigMap, stale: true},
		"a ConfigMap and a resource, another value":        {zone: "${configmap.cm.zone}${test_box.net.id}", edit: (*accounts).writeConfigMap, stale: true},
		"a resource that exists already":                   {zone: "${test_box.old.size}"},
		"a resource that exists already, changed outside":  {zone: "${test_box.old.size}", edit: func(sc *accounts) { sc.recordSize("test-box/old", "theirs") }, stale: true},
		"a resource that exists already, with other token": {zone: "${test_box.old.size}", edit: func(sc *accounts) { sc.rotate("token", "t2") }, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newAccounts(t)
			sc.ProviderConfigs["team/plain"] = providerConfig("team", "mine")
			sc.ProviderConfigs["team/plain"].Name = "plain"
			sc.Data["configmaps/team/cm"] = map[string][]byte{"zone": []byte("mine")}
			plain := m{"providerConfig": "plain"}
			sc.put("test-box/old", m{"name": "old", "size": "mine"}, plain)
			sc.apply()
			sc.put("test-box/net", m{"name": "net"}, plain)
			sc.arguments(m{"zone": test.zone}, map[string]string{"token": "t1"}, nil)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			if test.edit != nil {
				test.edit(sc)
			}
			sc.resume(run)
			reasons, said, _ := sc.staleness(run)
			if stale := slices.Contains(reasons, v1alpha1.StaleProviderConfigChanged); stale != test.stale || len(reasons) > 0 && !stale {
				t.Errorf("stale %v: %s", reasons, said)
			}
			made := 0
			for _, c := range append(slices.Collect(maps.Values(sc.others)), sc.cloud) {
				made += c.made["a"]
			}
			if made != map[bool]int{true: 0, false: 1}[test.stale] {
				t.Errorf("made %d: %s", made, said)
			}
		})
	}
}

// zoneOf sets the zone of the ProviderConfig "default" in its spec.
func (sc *accounts) zoneOf(zone string) {
	cfg := sc.ProviderConfigs["team/default"].DeepCopy()
	cfg.Spec.SecretRefs = slices.DeleteFunc(cfg.Spec.SecretRefs, func(ref v1alpha1.SecretArgument) bool { return ref.Argument == "zone" })
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"zone": "` + zone + `"}`)}
	sc.ProviderConfigs["team/default"] = cfg
}

func (sc *accounts) writeConfigMap() {
	sc.Data["configmaps/team/cm"] = map[string][]byte{"zone": []byte("theirs")}
}

// recordSize records another size of a resource, as the apply of another plan does.
func (sc *accounts) recordSize(name, size string) {
	rec := sc.recordOf(name)
	rec.Attributes = []byte(strings.Replace(string(rec.Attributes), `"mine"`, `"`+size+`"`, 1))
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
}

// TestARotatedArgument replaces a token that rotates while plans wait. An update and a destroy go on if the provider reads the
// approved state with it, and are stale if it reads another one, or none. A create goes on. Another zone makes all of them stale.
func TestARotatedArgument(t *testing.T) {
	const same, differs, gone, zone = "the same", "another one", "none", "another zone"
	for name, edit := range accountChanges {
		for _, reads := range []string{same, differs, gone, zone} {
			sc := newAccounts(t)
			sc.arguments(nil, map[string]string{"zone": "mine", "token": "t1"}, []string{"token"})
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			edit(sc)
			run := sc.newRun()
			po := sc.until(run, approving)
			sc.rotate("token", "t2")
			if reads == zone {
				sc.rotate("zone", "theirs")
			}
			if found, err := changes.Verify(t.Context(), sc.Sources, po); err != nil || (len(found.Stale) > 0) != (reads == zone) {
				t.Errorf("%s, %s: verified %+v, %v", name, reads, found.Stale, err)
			}
			for id, thing := range sc.cloud.things {
				switch reads {
				case differs:
					sc.cloud.things[id] = map[string]string{"name": "victim", "size": thing["size"]}
				case gone:
					delete(sc.cloud.things, id)
				}
			}
			sc.resume(run)
			reasons, said, done := sc.staleness(run)
			want := reads != same
			switch name {
			case "create", "refresh", "refresh, gone": // nothing to compare; what was read with the approved token is recorded
				want = reads == zone
			case "replace, create first": // the new instance exists when the step reads the old one, so the change fails
				if want = reads == zone; reads == same != done {
					t.Errorf("%s, %s: done %t", name, reads, done)
				}
				done = !want
			}
			if (len(reasons) > 0) != want || done == want && name != "replace" {
				t.Errorf("%s, with the new token the provider reads %s: done %t, stale %v: %s", name, reads, done, reasons, said)
			}
			if reads == differs && slices.ContainsFunc(sc.cloud.log, func(s string) bool { return s == "delete victim" }) {
				t.Errorf("%s: destroyed another resource: %v", name, sc.cloud.log)
			}
		}
	}
}

// TestADestroyIsOfTheApprovedResource changes a resource after a plan to destroy it was made, with the same arguments. The
// step destroys nothing that differs from what the approver saw.
func TestADestroyIsOfTheApprovedResource(t *testing.T) {
	set := func(name, value string) func(*accounts) {
		return func(sc *accounts) {
			if sc.cloud.things["id-1"] = maps.Clone(sc.cloud.things["id-1"]); value == "" {
				delete(sc.cloud.things["id-1"], name)
			} else {
				sc.cloud.things["id-1"][name] = value
			}
		}
	}
	nothing := func(*accounts) {}
	for reason, test := range map[string]struct {
		before, between func(*accounts)
		refresh         v1alpha1.RefreshMode
		stale, gone     bool
	}{
		"unchanged":                     {before: nothing, between: nothing},
		"another resource with the ID":  {before: nothing, between: set("name", "victim"), stale: true},
		"a changed argument":            {before: nothing, between: set("size", "2"), stale: true},
		"a removed argument":            {before: set("size", "1"), between: set("size", ""), refresh: v1alpha1.RefreshChanged, stale: false},
		"gone":                          {before: nothing, between: func(sc *accounts) { delete(sc.cloud.things, "id-1") }, gone: true},
		"drift that the plan shows":     {before: set("size", "2"), between: nothing},
		"drift that goes on":            {before: set("size", "2"), between: set("size", "3")},
		"drift, and another resource":   {before: set("size", "2"), between: func(sc *accounts) { set("size", "3")(sc); set("name", "victim")(sc) }, stale: true},
		"drift without a refresh":       {before: set("size", "2"), between: nothing, refresh: v1alpha1.RefreshNone, stale: true},
		"unchanged without a refresh":   {before: nothing, between: nothing, refresh: v1alpha1.RefreshNone},
		"another one without a refresh": {before: nothing, between: set("name", "victim"), refresh: v1alpha1.RefreshNone, stale: true},
	} {
		for kind, edit := range map[string]func(*accounts){
			"delete":  func(sc *accounts) { sc.delete("test-thing/a"); sc.spec.Refresh = test.refresh },
			"destroy": func(sc *accounts) { sc.spec = v1alpha1.PlanSpec{Destroy: true, Refresh: test.refresh} },
			"deposed": func(sc *accounts) { sc.depose(); sc.spec.Refresh = test.refresh },
			"replace": func(sc *accounts) {
				sc.put("test-thing/a", m{"name": "c"}, nil)
				sc.spec.Refresh = test.refresh
			},
			"replace, create first": func(sc *accounts) {
				sc.put("test-thing/a", m{"name": "c"}, m{"createBeforeDestroy": true})
				sc.spec.Refresh = test.refresh
			},
		} {
			sc := newAccounts(t)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			test.before(sc)
			edit(sc)
			run := sc.newRun()
			sc.until(run, stepping)
			test.between(sc)
			sc.resume(run)
			there := sc.cloud.things["id-1"] != nil
			if want := test.stale; there != want {
				_, said, _ := sc.staleness(run)
				t.Errorf("%s of %s: it exists %t: %s, calls %v", kind, reason, there, said, sc.cloud.log)
			}
		}
	}
}

// TestRotatedArgumentsAreRead applies an update with a rotated token twice. Only the first step reads the resource, because its
// record then has the new token.
func TestRotatedArgumentsAreRead(t *testing.T) {
	sc := newAccounts(t)
	sc.arguments(nil, map[string]string{"zone": "mine", "token": "t1"}, []string{"token"})
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.apply()
	sc.spec.Refresh = v1alpha1.RefreshNone
	reads := []int{}
	for _, size := range []string{"1", "2"} {
		sc.put("test-thing/a", m{"name": "a", "size": size}, nil)
		run := sc.newRun()
		sc.until(run, stepping)
		sc.rotate("token", "t2")
		before := sc.cloud.reads
		sc.resume(run)
		reads = append(reads, sc.cloud.reads-before)
	}
	if diff := cmp.Diff([]int{1, 0}, reads); diff != "" {
		t.Error(diff)
	}
}

// TestArgumentsThatRotateAreNotInTheDigest compares the recorded arguments of two tokens.
func TestArgumentsThatRotateAreNotInTheDigest(t *testing.T) {
	recorded := func(token string) ledger.Configuration {
		sc := newAccounts(t)
		sc.arguments(nil, map[string]string{"zone": "mine", "token": token}, []string{"token"})
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		return sc.recordOf("test-thing/a").Configuration
	}
	one, two := recorded("t1"), recorded("t2")
	if one.Arguments != two.Arguments || one.Rotating == two.Rotating || one.Arguments == "" {
		t.Errorf("%+v and %+v", one, two)
	}
}

// check makes a plan of the drift check of a stack, which approves itself unless it finds a reason to wait.
func (sc *accounts) check() *planRun {
	sc.spec = v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll, Approval: v1alpha1.ApprovalAutomatic}
	run := sc.newRun()
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Status.Stack = &v1alpha1.PlanStack{Stack: "s", Trigger: v1alpha1.TriggerDriftCheck}
		po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
	})
	return run
}

// TestACheckWithOtherArgumentsRecordsNothing runs drift checks and refreshes with other arguments than those recorded. A check
// records neither changed attributes nor a forget. A refresh of a person does, once that person approves it.
func TestACheckWithOtherArgumentsRecordsNothing(t *testing.T) {
	type found int
	const (
		same found = iota
		changed
		gone
	)
	for reason, test := range map[string]struct {
		finds     found
		rotates   bool
		arguments func(*accounts)
		// nothing is true if a check records nothing.
		nothing bool
	}{
		"the same arguments, changed":         {changed, false, func(*accounts) {}, false},
		"the same arguments, gone":            {gone, false, func(*accounts) {}, false},
		"another endpoint, changed":           {changed, false, func(sc *accounts) { sc.zoneOf("theirs") }, true},
		"another endpoint, gone":              {gone, false, func(sc *accounts) { sc.zoneOf("theirs") }, true},
		"another endpoint, the same":          {same, false, func(sc *accounts) { sc.zoneOf("theirs") }, true},
		"a Secret with another endpoint":      {changed, false, func(sc *accounts) { sc.rotate("zone", "theirs") }, true},
		"a Secret with another endpoint, 404": {gone, false, func(sc *accounts) { sc.rotate("zone", "theirs") }, true},
		"a Secret with another token":         {changed, false, func(sc *accounts) { sc.rotate("token", "t2") }, true},
		"a rotated token, changed":            {changed, true, func(sc *accounts) { sc.rotate("token", "t2") }, false},
		"a rotated token, gone":               {gone, true, func(sc *accounts) { sc.rotate("token", "t2") }, true},
	} {
		for _, prevents := range []bool{false, true} {
			sc := newAccounts(t)
			rotating := []string{}
			if test.rotates {
				rotating = []string{"token"}
			}
			sc.arguments(nil, map[string]string{"zone": "mine", "token": "t1"}, rotating)
			sc.put("test-thing/a", m{"name": "a"}, m{"preventDestroy": prevents})
			sc.spec = v1alpha1.PlanSpec{}
			sc.apply()
			before := *sc.recordOf("test-thing/a")
			test.arguments(sc)
			for _, c := range []*cloud{sc.cloud, sc.account("theirs")} {
				switch test.finds {
				case same:
					c.things["id-1"] = map[string]string{"name": "a"}
				case changed:
					c.things["id-1"] = map[string]string{"name": "a", "size": "poison"}
				case gone:
					delete(c.things, "id-1")
				}
			}
			run := sc.check()
			po := sc.until(run, approving)
			if po.Status.FinishedAt == nil && !strings.Contains(po.Status.AutomaticApproval.Message, "another account") {
				po = sc.resume(run)
			}
			after := sc.recordOf("test-thing/a")
			unchanged := after.Digest() == before.Digest() && after.Configuration == before.Configuration
			if unchanged != test.nothing {
				t.Errorf("%s: recorded %+v, and before %+v: %s", reason, after.State, before.State, sc.said(po))
			}
			if stalled := po.Status.StalledFor() == v1alpha1.ReasonAccountChanged; stalled != (test.nothing && test.finds != same) {
				t.Errorf("%s: conditions %+v", reason, po.Status.Conditions)
			}
			if test.nothing && test.finds != same && !strings.Contains(sc.said(po), "Warning Account may have changed") {
				t.Errorf("%s: said %q", reason, sc.said(po))
			}
			// A person may record what the provider found.
			sc.spec = v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll}
			sc.apply()
			if after := sc.recordOf("test-thing/a"); test.finds == gone && after.Exists() || test.finds == changed && !strings.Contains(string(after.Attributes), "poison") ||
				test.finds == same && after.Configuration == before.Configuration {
				t.Errorf("%s: a refresh that a person approved recorded %+v", reason, after.State)
			}
		}
	}
}

// TestAMirrorIsNotTakenForTheAccount gives a provider an endpoint that answers as the account does, and later otherwise. Neither
// the plan of a stack nor one of a user who may not approve takes that endpoint for the account of the resource.
func TestAMirrorIsNotTakenForTheAccount(t *testing.T) {
	for who, test := range map[string]struct {
		stack, mayApprove, adopts bool
	}{
		"a stack":                      {stack: true, mayApprove: true},
		"a user":                       {},
		"a user who may approve plans": {mayApprove: true, adopts: true},
	} {
		sc := newAccounts(t)
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		before := sc.recordOf("test-thing/a").Configuration
		sc.account("mirror").things["id-1"] = map[string]string{"name": "a"}
		sc.rotate("zone", "mirror")
		sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
		sc.Forbidden["ann!approve:team/plans/*"] = !test.mayApprove
		run := sc.newRun()
		if test.stack {
			sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.Stack = &v1alpha1.PlanStack{Stack: "s"} })
		}
		po := sc.resume(run)
		if after := sc.recordOf("test-thing/a").Configuration; (after != before) != test.adopts || po.Status.Summary == nil {
			t.Errorf("%s: adopted %t: %s", who, after != before, sc.said(po))
		}
	}
}

// TestPlansThatApproveThemselvesWaitForAPerson makes plans of a stack that would correct drift which was read
// with other arguments. They wait for an approval, and say why.
func TestPlansThatApproveThemselvesWaitForAPerson(t *testing.T) {
	for _, drifted := range []bool{false, true} {
		sc := newAccounts(t)
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		sc.account("theirs").things["id-1"] = map[string]string{"name": "a"}
		if drifted {
			sc.account("theirs").things["id-1"]["size"] = "9"
		}
		sc.rotate("zone", "theirs")
		sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Status.Stack = &v1alpha1.PlanStack{Stack: "s"}
			po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		})
		po := sc.until(run, approving)
		if waits := strings.Contains(po.Status.AutomaticApproval.Message, "may be that of another account"); waits != drifted {
			t.Errorf("drifted %t: %+v", drifted, po.Status.AutomaticApproval)
		}
	}
}
