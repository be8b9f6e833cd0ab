package changes

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
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
