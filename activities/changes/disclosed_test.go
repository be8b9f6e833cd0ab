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
