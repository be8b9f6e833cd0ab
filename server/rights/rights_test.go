package rights

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

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
