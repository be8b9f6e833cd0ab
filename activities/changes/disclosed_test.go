package changes_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// TestAPlanThatDisclosesASecretWaits has a plan that gives secrets of other objects to a provider. It approves itself only if
// its requester and all contributors may read them.
func TestAPlanThatDisclosesASecretWaits(t *testing.T) {
	by := func(names ...string) (list []v1alpha1.Contributor) {
		for _, name := range names {
			list = append(list, v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}, Wrote: []string{"spec"}})
		}
		return list
	}
	password := ledger.Origin{Namespace: "prod", Type: "test_thing", Name: "db"}
	secret := ledger.Origin{Namespace: "prod", Type: "secret", Name: "key"}
	for reason, tc := range map[string]struct {
		discloses    []ledger.Origin
		contributors []v1alpha1.Contributor
		forbidden    []string
		why          string
	}{
		"no secret": {nil, by("bob"), []string{"bob!prod/test-things/state/db", "ann!prod/test-things/state/db"}, ""},
		"all may":   {[]ledger.Origin{password, secret}, by("bob"), nil, ""},
		"a contributor may not read the state": {
			[]ledger.Origin{password}, by("bob"), []string{"bob!prod/test-things/state/db"},
			`the change of test_thing.a would give the provider secrets of namespace.prod.test_thing.db, and the user "bob", who wrote spec, has no right to get test-things.test.hykube.io/state in the namespace "prod"`,
		},
		"a contributor may not get the Secret": {[]ledger.Origin{secret}, by("eve", "bob"), []string{"bob!prod/secrets/key"}, `secrets of namespace.prod.secret.key, and the user "bob"`},
		"the requester may not":                {[]ledger.Origin{password}, by("bob"), []string{"ann!prod/test-things/state/db"}, `the user "ann", who requested the plan, has no right to get`},
		"a type without a provider":            {[]ledger.Origin{{Namespace: "prod", Type: "gone_thing", Name: "a"}}, nil, []string{"prod/*/a"}, `secrets of namespace.prod.gone_thing.a`},
	} {
		w := activitiestest.NewWorld(t)
		for _, key := range tc.forbidden {
			w.Forbidden[key] = true
		}
		po := w.Plan()
		s := changes.NewSelfApproval(w.Sources, po)
		b := changes.Brief{Address: "test_thing.a", Object: v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: "a"},
			Action: v1alpha1.ActionCreate, Contributors: tc.contributors, Discloses: tc.discloses}
		if err := s.Add(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		why, err := s.Why(t.Context())
		if err != nil || tc.why == "" && why != "" || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %v\n got %s\nwant %s", reason, err, why, tc.why)
		}
		c := &ledger.Change{Discloses: tc.discloses}
		c.Contributors = tc.contributors
		if _, missing, err := changes.LackSecretRights(t.Context(), w.Sources, po, c); err != nil || len(missing) > 0 != (tc.why != "") {
			t.Errorf("%s: %v, %v", reason, missing, err)
		}
	}
}

// TestAWitnessApprovesASecretOfAnotherNamespace has a plan that gives a secret of another namespace to a provider. Whoever caused
// that cannot approve it alone, without the right to read the secret.
func TestAWitnessApprovesASecretOfAnotherNamespace(t *testing.T) {
	const annMayNot, eveMayNot = "ann!prod/test-things/state/db", "eve!prod/test-things/state/db"
	password := ledger.Origin{Namespace: "prod", Type: "test_thing", Name: "db"}
	own := ledger.Origin{Namespace: "team", Type: "test_thing", Name: "db"}
	for reason, tc := range map[string]struct {
		discloses []ledger.Origin
		approvers []string
		forbidden []string
		refused   bool
	}{
		"the requester approves it alone":           {[]ledger.Origin{password}, []string{"ann"}, []string{annMayNot}, true},
		"a contributor approves it alone":           {[]ledger.Origin{password}, []string{"eve"}, []string{eveMayNot}, true},
		"both approve it":                           {[]ledger.Origin{password}, []string{"ann", "eve"}, []string{annMayNot, eveMayNot}, true},
		"the requester may read it":                 {[]ledger.Origin{password}, []string{"ann"}, nil, false},
		"one of two approvers may read it":          {[]ledger.Origin{password}, []string{"ann", "eve"}, []string{annMayNot}, false},
		"a person who caused nothing approves it":   {[]ledger.Origin{password}, []string{"zoe"}, []string{annMayNot, eveMayNot, "zoe!prod/test-things/state/db"}, false},
		"that person approves it beside the others": {[]ledger.Origin{password}, []string{"ann", "zoe"}, []string{annMayNot, eveMayNot}, false},
		"a secret of the same namespace":            {[]ledger.Origin{own}, []string{"ann"}, []string{"ann!team/test-things/state/db"}, false},
		"no secret":                                 {nil, []string{"ann"}, []string{annMayNot}, false},
	} {
		w := activitiestest.NewWorld(t)
		for _, key := range tc.forbidden {
			w.Forbidden[key] = true
		}
		po := w.Plan()
		for i, name := range tc.approvers {
			approval := v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: name}}
			po.Status.Approvals = append(po.Status.Approvals, approval)
			if i == len(tc.approvers)-1 {
				po.Status.Approval = &approval
			}
		}
		c := activitiestest.ChangeOf(w.Put("test-thing/a", nil, nil), 0)
		c.Action, c.Discloses = v1alpha1.ActionCreate, tc.discloses
		c.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"spec"}}}
		err := changes.ActorsOf(w.Sources, po).Check(t.Context(), c, nil)
		if refused := err != nil && strings.Contains(err.Error(), "let another user approve it"); refused != tc.refused || err != nil && !refused {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestContributorsNeedTheRightsOfWhatFollows has a change by eve, and changes that follow from it. The plan approves itself only
// if she has the rights of these, too.
func TestContributorsNeedTheRightsOfWhatFollows(t *testing.T) {
	brief := func(name string, no bool, dependsOn ...int32) changes.Brief {
		return changes.Brief{Address: "test_thing." + name, NoSteps: no, DependsOn: dependsOn, Action: v1alpha1.ActionReplace,
			Object: v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: name}}
	}
	by := func(wrote string, b changes.Brief) changes.Brief {
		b.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{wrote}}}
		return b
	}
	for reason, tc := range map[string]struct {
		briefs []changes.Brief
		why    string
	}{
		"one that follows":        {[]changes.Brief{by("spec", brief("a", false)), brief("b", false, 0)}, `the user "eve", who wrote test_thing.a: spec of test_thing.b, has no right to`},
		"through a data source":   {[]changes.Brief{by("spec", brief("a", false)), brief("d", true, 0), brief("b", false, 1)}, `the user "eve", who wrote test_thing.a: spec of test_thing.b`},
		"one that does not":       {[]changes.Brief{by("spec", brief("a", false)), brief("b", false)}, ""},
		"what she wrote is equal": {[]changes.Brief{by("spec", brief("a", true)), brief("b", false, 0)}, ""},
		"labels change no value":  {[]changes.Brief{by(v1alpha1.WroteLabels, brief("a", false)), brief("b", false, 0)}, ""},
	} {
		w := activitiestest.NewWorld(t)
		w.Forbidden["eve!delete:team/test-things/b"] = true
		s := changes.NewSelfApproval(w.Sources, w.Plan())
		for i := range tc.briefs {
			if err := s.Add(t.Context(), &tc.briefs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if why, err := s.Why(t.Context()); err != nil || tc.why == "" && why != "" || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %v\n got %s\nwant %s", reason, err, why, tc.why)
		}
	}
}
