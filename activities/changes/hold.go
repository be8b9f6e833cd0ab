package changes

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Hold holds approved plans on a server whose database is a copy, because the server with the original may apply them, too.
// The zero value holds none.
type Hold struct {
	// Copied is true on a copy.
	Copied bool
	// Given is the number of approvals by persons that each plan of the copy had when the server started. It counts them,
	// because the clocks of two machines differ.
	Given map[types.UID]int
}

// MessageHeld is the message of a plan that a Hold holds.
const MessageHeld = "Waits: this server runs on a copy of its database, and the server with the original may apply the plan. " +
	"If that one never runs again, start this one once with --accept-restored. Otherwise cancel the plan here."

// Of reports whether a plan waits. A plan that a person approves on the copy does not, and neither does a cancelled one,
// which begins no change.
func (h Hold) Of(p *v1alpha1.Plan) bool {
	return h.Copied && p.Status.Cancel == nil && ByPersons(p) <= h.Given[p.UID]
}

// ByPersons returns the number of a plan's approvals by persons.
func ByPersons(p *v1alpha1.Plan) (n int) {
	for _, a := range p.AllApprovals() {
		if a.Automatic == nil {
			n++
		}
	}
	return n
}
