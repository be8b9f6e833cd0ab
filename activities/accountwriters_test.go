package activities

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writtenAccounts is a scenario whose ProviderConfig and Secret have writers.
type writtenAccounts struct {
	*accounts
	at time.Time
	// unapplied is an object whose plan was not applied; "" if there is none.
	unapplied string
}

// newWrittenAccounts has a ProviderConfig that eve wrote, and a Secret whose zone she wrote, and whose token bot wrote. The token
// rotates.
func newWrittenAccounts(t *testing.T) *writtenAccounts {
	sc := &writtenAccounts{accounts: newAccounts(t), at: time.Now()}
	sc.arguments(nil, map[string]string{"zone": "mine", "token": "t1"}, []string{"token"})
	sc.Wrote = map[store.Written]store.Writers{}
	sc.made("config-1", "eve")
	sc.wrote("zone", "eve")
	sc.wrote("token", "bot")
	return sc
}

// by is a write that is later than all before.
func (sc *writtenAccounts) by(who, part string) v1alpha1.Contributor {
	sc.at = sc.at.Add(time.Second)
	return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: who}, Wrote: []string{part}, At: metav1.NewMicroTime(sc.at)}
}

// made records who made the ProviderConfig.
func (sc *writtenAccounts) made(uid, who string) {
	cfg := sc.ProviderConfigs["team/default"]
	cfg.UID, cfg.Status.Contributors = types.UID(uid), []v1alpha1.Contributor{sc.by(who, "secretRefs")}
}

// wrote records who wrote a key of the Secret.
func (sc *writtenAccounts) wrote(key, who string) {
	of := store.Written{Kind: "Secret", Namespace: "team", Name: "s"}
	list := slices.Clone(sc.Wrote[of].List)
	list = slices.DeleteFunc(list, func(c v1alpha1.Contributor) bool { return c.Wrote[0] == key })
	sc.Wrote[of] = store.Writers{List: append(list, sc.by(who, key))}
}

// writes changes the zone or the token.
func (sc *writtenAccounts) writes(who, key, value string) {
	sc.rotate(key, value)
	sc.wrote(key, who)
}

// plan plans an object, which it makes if there is none, and returns the contributors in the order of their names. finish applies the
// plan after the approval of a user, or of itself for "".
func (sc *writtenAccounts) plan(name string, spec m) (who []string, finish func(approver string)) {
	sc.put(name, spec, nil)
	return sc.planned()
}

func (sc *writtenAccounts) planned() (who []string, finish func(approver string)) {
	run := sc.newRun()
	po := sc.until(run, approving)
	return slices.Sorted(slices.Values(contributor.Names(po.Status.Contributors))), func(approver string) {
		sc.T.Helper()
		sc.unapplied = ""
		run.approver = approver
		if po = sc.until(run, beginning); approver == "" {
			sc.approvesItself(run)
		}
		if po = sc.resume(run); !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionReady) {
			sc.T.Fatalf("the plan was not applied: %s", sc.said(po))
		}
	}
}

// approvesItself turns the approval of a plan into one of itself.
func (sc *writtenAccounts) approvesItself(run *planRun) {
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionApproved).Reason = v1alpha1.ReasonAutomatic
	})
}

// asks checks who contributes to a further create of a type.
func (sc *writtenAccounts) asks(when, kind, want string) func(approver string) {
	sc.T.Helper()
	delete(sc.Stored, "team:"+sc.unapplied)
	name := fmt.Sprintf("n%d", sc.plans.len())
	who, finish := sc.plan(kind+"/"+name, m{"name": name})
	sc.unapplied = kind + "/" + name
	if got := strings.Join(who, " "); got != want {
		sc.T.Errorf("%s, the contributors are %q, want %q", when, got, want)
	}
	return finish
}

// TestAnAccountIsApprovedOnce creates things with arguments that others wrote. They contribute until a person who is none of them
// approved such a create. Every later write of them, and every other form of approval, makes them contribute again.
func TestAnAccountIsApprovedOnce(t *testing.T) {
	sc := newWrittenAccounts(t)
	sc.asks("before an approval", "test-thing", "bot eve")("")
	sc.asks("after a plan that approved itself", "test-thing", "bot eve")("eve")
	sc.asks("after an approval by a writer", "test-thing", "bot eve")("bot")
	sc.asks("after an approval by the writer of a credential", "test-thing", "bot eve")("ann")
	sc.asks("after an approval by another person", "test-thing", "")("ann")
	sc.asks("for another type", "test-box", "bot eve")

	sc.writes("bot", "token", "t2")
	sc.asks("after the same user replaced the credential", "test-thing", "bot eve")
	sc.writes("bot", "token", "t1")
	sc.asks("after the same user wrote the approved credential again", "test-thing", "")("")
	sc.writes("mallory", "token", "t1")
	sc.asks("after another user wrote the same credential", "test-thing", "eve mallory")
	sc.writes("bot", "token", "t3")
	sc.asks("after the first user replaced it again", "test-thing", "bot eve")("ann")
	sc.asks("after a person approved the new credential", "test-thing", "")("ann")
	sc.asks("for a type that nobody approved", "test-box", "bot eve")("ann")
	sc.writes("bot", "token", "t4")
	sc.asks("of another type, after the credential was replaced", "test-box", "bot eve")("ann")
	sc.asks("after a person approved that for another type", "test-thing", "")("")

	sc.writes("eve", "zone", "theirs")
	sc.asks("after another account", "test-thing", "bot eve")
	sc.writes("eve", "zone", "mine")
	sc.asks("after the arguments were rolled back", "test-thing", "bot eve")("")
	sc.asks("after the rolled back arguments were applied by themselves", "test-thing", "bot eve")("ann")
	sc.asks("after a person approved them again", "test-thing", "")

	sc.made("config-2", "mallory")
	sc.asks("after the ProviderConfig was made again", "test-thing", "bot eve mallory")
}

// TestADisclosureToAnApprovedAccountAsks gives secrets of objects to a provider whose arguments were approved for the type, and whose
// writer may read no Secret. The writers contribute to such changes. These are applied after an approval, also if they transform
// what another resource got from the Secret. Other creates ask nobody.
func TestADisclosureToAnApprovedAccountAsks(t *testing.T) {
	sc := newWrittenAccounts(t)
	sc.Data["secrets/team/db"] = map[string][]byte{"password": []byte("hunter22")}
	sc.asks("before an approval", "test-thing", "bot eve")("ann")
	sc.Forbidden["eve!team/secrets/db"] = true
	for _, secret := range []string{"${secret.db.password}", "${upper(secret.db.password)}", "${upper(test_thing.n1.size)}"} {
		name := fmt.Sprintf("n%d", sc.plans.len())
		who, finish := sc.plan("test-thing/"+name, m{"name": name, "size": secret})
		if !slices.Contains(who, "bot") || !slices.Contains(who, "eve") {
			t.Errorf("%s: the contributors are %v, want bot and eve", secret, who)
		}
		finish("ann")
	}
	sc.asks("for a create without a secret", "test-thing", "")("")
}

// TestADisclosureToTheAccountOfAResource gives a secret to a resource that exists, whose account a person approved without it. The writers
// of the arguments contribute. A later change of the resource, and another value of the secret, ask nobody about them.
func TestADisclosureToTheAccountOfAResource(t *testing.T) {
	sc := newWrittenAccounts(t)
	sc.Data["secrets/team/db"] = map[string][]byte{"password": []byte("hunter22")}
	sc.asks("before an approval", "test-thing", "bot eve")("ann")
	sc.Forbidden["eve!team/secrets/db"] = true
	for _, step := range []struct {
		size, password string
		want           []string
	}{
		{"2", "hunter22", nil},
		{"${secret.db.password}", "hunter22", []string{"bot", "eve"}},
		{"${upper(secret.db.password)}", "hunter22", nil},
		{"${upper(secret.db.password)}", "hunter33", nil},
	} {
		sc.Data["secrets/team/db"] = map[string][]byte{"password": []byte(step.password)}
		who, finish := sc.plan("test-thing/n0", m{"name": "n0", "size": step.size})
		who = slices.DeleteFunc(who, func(name string) bool { return name == "others" }) // the Secret has no writer in this test
		if !slices.Equal(who, step.want) {
			t.Errorf("%s of %s: the contributors are %v, want %v", step.size, step.password, who, step.want)
		}
		finish("ann")
	}
}

// TestArgumentsThatAreWrittenAfterTheSurvey writes arguments of a provider after a plan found who contributes to it, and before it
// configures the provider. The writer contributes, also if the arguments were approved for the type, and if a plan applied the resource
// with the former ones.
func TestArgumentsThatAreWrittenAfterTheSurvey(t *testing.T) {
	elsewhere := func(sc *writtenAccounts) { sc.account("theirs").things["id-1"] = map[string]string{"name": "n0"} }
	zone := func(sc *writtenAccounts) { sc.writes("mallory", "zone", "theirs") }
	config := func(sc *writtenAccounts) {
		sc.arguments(m{"zone": "theirs"}, map[string]string{"token": "t1"}, []string{"token"})
		sc.made("config-2", "mallory")
	}
	for why, test := range map[string]struct {
		changes func(*writtenAccounts)
		writes  func(*writtenAccounts)
	}{
		"a Secret, and a create":         {func(sc *writtenAccounts) { sc.put("test-thing/b", m{"name": "b"}, nil) }, zone},
		"a Secret, and an update":        {func(sc *writtenAccounts) { sc.put("test-thing/n0", m{"name": "n0", "size": "2"}, nil) }, zone},
		"a Secret, and a delete":         {func(sc *writtenAccounts) { sc.delete("test-thing/n0") }, zone},
		"a ProviderConfig, and a create": {func(sc *writtenAccounts) { sc.put("test-thing/b", m{"name": "b"}, nil) }, config},
		"a ProviderConfig, and an update": {func(sc *writtenAccounts) {
			sc.put("test-thing/n0", m{"name": "n0", "size": "2"}, nil)
		}, config},
	} {
		for _, late := range []bool{true, false} {
			sc := newWrittenAccounts(t)
			sc.asks("before an approval", "test-thing", "bot eve")("ann")
			elsewhere(sc)
			test.changes(sc)
			run := sc.newRun()
			sc.until(run, proposing)
			if late {
				test.writes(sc)
			}
			who := contributor.Names(sc.until(run, approving).Status.Contributors)
			if slices.Contains(who, "mallory") != late || !late && len(who) > 0 {
				t.Errorf("%s: the contributors are %v; mallory wrote: %t", why, who, late)
			}
		}
	}
}

// TestARotationAfterAPlanApprovedItself replaces a token between the approval of a create and its step. The create goes on if a person
// approved the plan. It is stale if the plan approved itself because of the approval of an earlier plan with the former token.
func TestARotationAfterAPlanApprovedItself(t *testing.T) {
	for _, itself := range []bool{true, false} {
		sc := newWrittenAccounts(t)
		sc.asks("before an approval", "test-thing", "bot eve")("ann")
		sc.put("test-thing/b", m{"name": "b"}, nil)
		run := sc.newRun()
		if po := sc.until(run, beginning); len(po.Status.Contributors) > 0 {
			t.Fatalf("the contributors are %v", po.Status.Contributors)
		}
		if itself {
			sc.approvesItself(run)
		}
		sc.writes("bot", "token", "t2")
		sc.resume(run)
		reasons, said, done := sc.staleness(run)
		if stale := slices.Contains(reasons, v1alpha1.StaleProviderConfigChanged); stale != itself || done == itself || (sc.cloud.made["b"] > 0) == itself {
			t.Errorf("the plan approved itself: %t; stale %v, done %t: %s", itself, reasons, done, said)
		}
	}
}

// TestUnknownWritersAreNotApproved has a ProviderConfig with a writer whose name or time the server does not know. No approval covers
// that one.
func TestUnknownWritersAreNotApproved(t *testing.T) {
	for name, unknown := range map[string]v1alpha1.Contributor{"others": {More: true}, "old": {Identity: v1alpha1.Identity{Username: "old"}, Wrote: []string{"config"}}} {
		sc := newWrittenAccounts(t)
		cfg := sc.ProviderConfigs["team/default"]
		cfg.Status.Contributors = append(cfg.Status.Contributors, unknown)
		for range 2 {
			who, finish := sc.plan(fmt.Sprintf("test-thing/n%d", sc.plans.len()), m{"name": "n"})
			if !slices.Contains(who, name) || !slices.Contains(who, "eve") {
				t.Errorf("the contributors are %v, want %s and eve", who, name)
			}
			finish("ann")
		}
	}
}

// TestOtherArgumentsThanTheRecordedOnes approves the arguments of a provider for creates. The writers contribute to the changes of a
// resource that was recorded with other ones, until a plan has applied it with them.
func TestOtherArgumentsThanTheRecordedOnes(t *testing.T) {
	sc := newWrittenAccounts(t)
	sc.asks("before an approval", "test-thing", "bot eve")("ann")
	name := "n0"
	sc.account("mirror").things["id-1"] = map[string]string{"name": name}
	sc.writes("eve", "zone", "mirror")
	sc.asks("for a create with other arguments", "test-thing", "bot eve")("ann")
	who, finish := sc.plan("test-thing/"+name, m{"name": name, "size": "2"})
	if !slices.Equal(who, []string{"bot", "eve"}) {
		t.Errorf("the contributors of a resource that is recorded with other arguments are %v", who)
	}
	finish("ann")
	if who, _ = sc.plan("test-thing/"+name, m{"name": name, "size": "3"}); len(who) > 0 {
		t.Errorf("after an apply, the contributors are %v", who)
	}
}

// TestAnUnchangedResourceKeepsWhoWroteItsValues makes a plan without changes after an edit of the ProviderConfig. The record does not
// keep the writer. The writer contributes to the deletion of the resource until a plan without changes is of a person who did not
// write the arguments.
func TestAnUnchangedResourceKeepsWhoWroteItsValues(t *testing.T) {
	for who, test := range map[string]struct {
		requester string
		stack     bool
		want      []string
	}{
		"the writer":     {requester: "mallory", want: []string{"bot", "eve", "mallory"}},
		"a stack":        {requester: "ann", stack: true, want: []string{"bot", "eve", "mallory"}},
		"another person": {requester: "ann"},
	} {
		sc := newWrittenAccounts(t)
		sc.asks("before an approval", "test-thing", "bot eve")("ann")
		cfg := sc.ProviderConfigs["team/default"].DeepCopy()
		cfg.Spec.Meta = nil
		sc.arguments(m{"zone": "mine"}, map[string]string{"token": "t1"}, []string{"token"})
		next := sc.ProviderConfigs["team/default"]
		next.UID, next.Status.Contributors = cfg.UID, append(cfg.Status.Contributors, sc.by("mallory", "config.zone"))
		sc.wrote("zone", "eve") // nothing reads this key any more

		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Status.RequestedBy = &v1alpha1.Identity{Username: test.requester}
			if test.stack {
				po.Status.Stack = &v1alpha1.PlanStack{Stack: "s"}
			}
		})
		if po := sc.resume(run); po.Status.Summary == nil || po.Status.Summary.NoOp != 1 {
			t.Fatalf("%s: the plan is not without changes: %s", who, sc.said(po))
		}
		if list := sc.recordOf("test-thing/n0").Contributors; len(list) > 0 {
			t.Errorf("%s: the record has the contributors %v", who, list)
		}
		sc.delete("test-thing/n0")
		if got, _ := sc.planned(); !slices.Equal(got, test.want) {
			t.Errorf("%s: the contributors of the deletion are %v, want %v", who, got, test.want)
		}
	}
}

// TestANewValueOfASecretCountsUntilAPlanReadTheResource writes another value of an argument. Its writer contributes to the deletion of a
// resource until a plan without changes read the resource, or until a plan with changes that read it was applied.
func TestANewValueOfASecretCountsUntilAPlanReadTheResource(t *testing.T) {
	for why, test := range map[string]struct {
		refresh v1alpha1.RefreshMode
		creates bool
		want    []string
	}{
		"a plan that reads nothing":                      {want: []string{"bot", "eve"}},
		"a plan without changes":                         {refresh: v1alpha1.RefreshAll},
		"an approved plan with changes, reading nothing": {creates: true, want: []string{"bot", "eve"}},
		"an approved plan with changes":                  {refresh: v1alpha1.RefreshAll, creates: true},
	} {
		sc := newWrittenAccounts(t)
		sc.asks("before an approval", "test-thing", "bot eve")("ann")
		sc.account("mirror").things["id-1"] = map[string]string{"name": "n0"}
		sc.writes("eve", "zone", "mirror")
		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Spec.Refresh, po.Status.RequestedBy = test.refresh, &v1alpha1.Identity{Username: "ann"}
		})
		if run.approver = "ann"; test.creates {
			sc.put("test-thing/more", m{"name": "more"}, nil)
		}
		if po := sc.resume(run); !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionReady) {
			t.Fatalf("%s: the plan has not ended: %s", why, sc.said(po))
		}
		sc.delete("test-thing/n0")
		if got, _ := sc.planned(); !slices.Equal(got, test.want) {
			t.Errorf("%s: the contributors of the deletion are %v, want %v", why, got, test.want)
		}
	}
}
