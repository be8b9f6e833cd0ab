package rights

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// TestAsker asks about all objects of a namespace before it asks about one, each question once.
func TestAsker(t *testing.T) {
	var asked []string
	access := Access{authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked = append(asked, a.GetVerb()+" "+a.GetResource()+"/"+a.GetSubresource()+"/"+a.GetName())
		if a.GetUser().GetName() != "alice" || !slices.Equal(a.GetUser().GetGroups(), []string{"dev"}) || a.GetNamespace() != "team" || !a.IsResourceRequest() {
			return authorizer.DecisionNoOpinion, "", errors.New("asked about another user")
		}
		if a.GetResource() == "sim-networks" && (a.GetName() == "mine" || a.GetVerb() == "get") {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	asker := access.Asker(&user.DefaultInfo{Name: "alice", Groups: []string{"dev"}})
	right := func(verb, resource, name string) store.Right {
		return store.Right{Verb: verb, Namespace: "team", Group: "sim.hykube.io", Resource: resource, Name: name}
	}
	missing, err := asker.Missing(t.Context(), []store.Right{
		right("get", "sim-networks", "one"), right("get", "sim-networks", "two"), right("update", "sim-networks", "mine"),
		right("update", "sim-networks", "other"), right("update", "sim-networks", "another"), right("get", "sim-disks/state", "db"), store.UseOf("team", "default"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `get sim-disks.sim.hykube.io/state, update sim-networks.sim.hykube.io, use the ProviderConfig "default" in the namespace "team"`
	if got := store.ListRights(missing); got != want {
		t.Errorf("missing: %s\nwant %s", got, want)
	}
	questions := []string{
		"get sim-networks//", "update sim-networks//", "update sim-networks//mine", "update sim-networks//other",
		"get sim-disks/state/", "get sim-disks/state/db", "use providerconfigs//", "use providerconfigs//default",
	}
	if !slices.Equal(asked, questions) {
		t.Errorf("asked %q\nwant  %q", asked, questions)
	}
	if ok, err := access.Asker(&user.DefaultInfo{Name: "bob"}).May(t.Context(), right("get", "sim-networks", "")); ok || err == nil {
		t.Errorf("an authorizer that failed allowed it: %t, %v", ok, err)
	}
}

// TestAskerIsBounded asks about no more than a thousand single objects of one kind.
func TestAskerIsBounded(t *testing.T) {
	asked := 0
	access := Access{authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		asked++
		return authorizer.DecisionNoOpinion, "", nil
	})}
	asker := access.Asker(&user.DefaultInfo{Name: "alice"})
	for i := range 5000 {
		if ok, err := asker.May(t.Context(), store.Right{Verb: "get", Namespace: "team", Resource: "configmaps", Name: string(rune('a' + i))}); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if asked != 1001 {
		t.Errorf("asked %d questions", asked)
	}
}

// TestCurrentUsers gives users, and those through whom they acted, the groups that the token file gives now.
func TestCurrentUsers(t *testing.T) {
	now := map[string][]string{"alice": {"dev"}, "mallory": {"dev"}}
	users := Users{Narrow: func(who user.Info) (user.Info, bool) {
		groups, ok := now[who.GetName()]
		return &user.DefaultInfo{Name: who.GetName(), Groups: groups}, ok
	}}
	through := func(name string, named bool) v1alpha1.WorkflowUser {
		return v1alpha1.WorkflowUser{Username: name, Groups: []string{"dev", "on-call"}, TokenFile: named}
	}
	for why, tc := range map[string]struct {
		who    v1alpha1.Identity
		named  bool
		groups []string // of the user, and then of each of the others
	}{
		"a user who left a group":           {v1alpha1.Identity{Username: "alice", Groups: []string{"dev", "on-call"}, TokenFile: true}, true, []string{"dev"}},
		"a user who is gone":                {v1alpha1.Identity{Username: "bob", Groups: []string{"dev"}, TokenFile: true}, false, []string{""}},
		"a certificate":                     {v1alpha1.Identity{Username: "bob", Groups: []string{"on-call"}}, true, []string{"on-call"}},
		"through one who left a group":      {v1alpha1.Identity{Username: "bob", Groups: []string{"on-call"}, Through: []v1alpha1.WorkflowUser{through("mallory", true)}}, true, []string{"on-call", "dev"}},
		"through one who is gone":           {v1alpha1.Identity{Username: "alice", Groups: []string{"dev"}, TokenFile: true, Through: []v1alpha1.WorkflowUser{through("eve", true)}}, false, []string{"", ""}},
		"through one who has a certificate": {v1alpha1.Identity{Username: "alice", TokenFile: true, Through: []v1alpha1.WorkflowUser{through("eve", false)}}, true, []string{"dev", "dev,on-call"}},
	} {
		before := slices.Clone(tc.who.Through)
		got, named := users.Current(tc.who)
		groups := []string{strings.Join(got.Groups, ",")}
		for _, u := range got.Through {
			groups = append(groups, strings.Join(u.Groups, ","))
		}
		if named != tc.named || !slices.Equal(groups, tc.groups) {
			t.Errorf("%s: named %t with the groups %q", why, named, groups)
		}
		if !equality.Semantic.DeepEqual(before, tc.who.Through) {
			t.Errorf("%s: it changed the identity that it got", why)
		}
	}
}
