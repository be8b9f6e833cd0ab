package changes

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

func TestWhyPerson(t *testing.T) {
	eve := v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"spec", "labels"}}
	del := []store.Right{{Verb: store.VerbDelete, Namespace: "team", Group: "sim.hykube.io", Resource: "sim-networks"}}
	for reason, tc := range map[string]struct {
		facts []PersonFact
		want  string
	}{
		"no fact: the plan approves itself": {},
		"a contributor may not approve": {
			[]PersonFact{{For: ForApproval, Address: "sim_network.a", Who: eve}},
			`the user "eve", who wrote spec, labels of sim_network.a, may not approve plans`,
		},
		"further changes are counted": {
			[]PersonFact{{For: ForApproval, Address: "sim_network.a", Who: eve, More: 2}},
			`the user "eve", who wrote spec, labels of sim_network.a and of 2 other resources, may not approve plans`,
		},
		"a contributor wrote an argument of the provider": {
			[]PersonFact{{For: ForApproval, Address: "sim_network.a", Who: v1alpha1.Contributor{Identity: eve.Identity, Wrote: []string{"Secret account: token"}}}},
			`the user "eve", who wrote Secret account: token of sim_network.a, may not approve plans; who wrote a new argument of a provider counts once for each resource ` +
				`that was applied with the former one, or until a user who may approve, and wrote none, makes a plan that leaves the resource unchanged ` +
				`(kubectl hykube plan --refresh=All); for a credential, which neither is an address nor chooses an account, set rotates: true in secretRefs of the ProviderConfig`,
		},
		"a contributor made a ProviderConfig again": {
			[]PersonFact{{For: ForApproval, Address: "sim_network.a", Who: v1alpha1.Contributor{Identity: eve.Identity, Wrote: []string{"ProviderConfig sim: provider"}}}},
			`the user "eve", who wrote ProviderConfig sim: provider of sim_network.a, may not approve plans; who wrote a new argument of a provider counts once for each resource ` +
				`that was applied with the former one, or until a user who may approve, and wrote none, makes a plan that leaves the resource unchanged ` +
				`(kubectl hykube plan --refresh=All)`,
		},
		"a contributor lacks the right of the change": {
			[]PersonFact{{For: ForRights, Address: "sim_network.a", Who: eve, Missing: del}},
			`the user "eve", who wrote spec, labels of sim_network.a, has no right to delete sim-networks.sim.hykube.io in the namespace "team"`,
		},
		"who requested the drift check lacks it": {
			[]PersonFact{{For: ForCheckRights, Address: "sim_network.a", Who: eve, Missing: del}},
			`the user "eve", who requested the drift check, has no right to delete sim-networks.sim.hykube.io in the namespace "team", which the change of sim_network.a needs`,
		},
		"not all users are known": {
			[]PersonFact{{For: ForUnknown, Address: "sim_network.a"}},
			`the server does not know all users who wrote what the change of sim_network.a follows from`,
		},
		"another object": {
			[]PersonFact{{For: ForOtherOwner, Address: "sim_network.a"}},
			`another object may manage the infrastructure of sim_network.a`,
		},
		"a forget": {
			[]PersonFact{{For: ForForget, Address: "sim_network.a"}},
			`it would forget the infrastructure of sim_network.a, and nobody deleted the object`,
		},
		"many facts": {
			[]PersonFact{{For: ForOtherOwner, Address: "a"}, {For: ForForget, Address: "b"}, {For: ForUnknown, Address: "c"}, {For: ForForget, Address: "d"}, {For: ForForget, Address: "e"}},
			`another object may manage the infrastructure of a; it would forget the infrastructure of b, and nobody deleted the object; the server does not know all users who wrote what the change of c follows from; and 2 more`,
		},
	} {
		if got := WhyPerson(tc.facts); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", reason, got, tc.want)
		}
	}
}

// approversOnly is an access in which only some users may approve plans. A user through others needs the right of each.
type approversOnly []string

func (a approversOnly) May(_ context.Context, who v1alpha1.Identity, _ store.Right) (bool, error) {
	return !slices.ContainsFunc(who.Usernames(), func(name string) bool { return !slices.Contains(a, name) }), nil
}

// noPolicies has no policies.
type noPolicies struct{}

func (noPolicies) Of(context.Context, string) (*store.PlanPolicies, error) {
	return &store.PlanPolicies{}, nil
}

func (noPolicies) Earlier(context.Context, string, int) ([]v1alpha1.PlanRecord, error) {
	return nil, nil
}

// TestWhyPersonThroughAWorkflow has an author of a stack, and what a worker of another user wrote for the author.
func TestWhyPersonThroughAWorkflow(t *testing.T) {
	alice := v1alpha1.Identity{Username: "alice"}
	through := v1alpha1.Identity{Username: "alice", Through: []v1alpha1.WorkflowUser{{Username: "mallory"}}}
	po := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{RequestedBy: &alice}}
	for reason, tc := range map[string]struct {
		approvers approversOnly
		wrote     []v1alpha1.Identity
		want      string
	}{
		"the author wrote it":                   {approversOnly{"alice"}, []v1alpha1.Identity{alice}, ""},
		"another user's worker wrote it":        {approversOnly{"alice"}, []v1alpha1.Identity{through}, `the user "alice through mallory", who wrote`},
		"both wrote it":                         {approversOnly{"alice"}, []v1alpha1.Identity{alice, through}, `the user "alice through mallory", who wrote`},
		"the worker's user may approve it, too": {approversOnly{"alice", "mallory"}, []v1alpha1.Identity{through}, ""},
	} {
		s := NewSelfApproval(&scope.Sources{Access: tc.approvers, Policies: noPolicies{}}, po)
		for _, who := range tc.wrote {
			if err := s.addContributor(t.Context(), &Brief{}, v1alpha1.Contributor{Identity: who}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if why, err := s.Why(t.Context()); err != nil || (why == "") != (tc.want == "") || !strings.HasPrefix(why, tc.want) {
			t.Errorf("%s: %q, %v, want %q", reason, why, err, tc.want)
		}
	}
	// The rights of the same user through others are not those of the user alone.
	s := NewSelfApproval(&scope.Sources{Access: approversOnly{"alice"}}, po)
	if ok, err := s.asker(alice).May(t.Context(), approvalOf(po)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := s.asker(through).May(t.Context(), approvalOf(po)); ok || err != nil {
		t.Errorf("the cached answer for alice counts for alice through mallory: %t, %v", ok, err)
	}
}
