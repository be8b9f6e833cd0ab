package changes

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Hold holds approved plans on a server whose database is a copy or was restored, because the server with the original
// may apply them, too. The zero value holds none.
type Hold struct {
	// Copied is true on a copy.
	Copied bool
	// Given is the number of approvals by persons that each plan of the copy had when the server started. It counts
	// them, because the clocks of two machines differ.
	Given map[types.UID]int
	// Restored returns what follows from a restore; nil for a database that was not restored.
	Restored func() Restored
}

// Restored is the state of a restored database.
type Restored struct {
	// Frozen reports whether a namespace is not thawed: none of its plans is applied. nil means never; "" is a
	// namespace that was not thawed on its own.
	Frozen func(namespace string) bool
	// Waiting has the plans that were approved before the thaw, and wait for an administrator.
	Waiting map[types.UID]bool
}

// The messages of plans that a Hold holds, and of approvals on a frozen server.
const (
	MessageHeld = "Waits: this server runs on a copy of its database, and the server with the original may apply the plan. " +
		"If that one never runs again, start this one once with --accept-restored. Otherwise cancel the plan here."
	MessageFrozen = "This server is frozen, because its database was restored from a backup: it applies no plan. " +
		"Compare the infrastructure with kubectl hykube plan --refresh-only in each namespace. " +
		"Then an administrator lets the server act with kubectl hykube thaw NAMESPACE, or --all."
	MessageWaits = "Waits: the plan was approved before the restored database was thawed, and the infrastructure may have changed since. " +
		"Cancel it and make a new plan. Or an administrator lets such plans of the namespace go on with kubectl hykube thaw NAMESPACE --plans."
)

// Frozen reports whether no plan of a namespace is applied.
func (h Hold) Frozen(namespace string) bool {
	return h.Restored != nil && h.Restored().frozen(namespace)
}

func (r Restored) frozen(namespace string) bool { return r.Frozen != nil && r.Frozen(namespace) }

// Of returns why a plan waits: a reason and a message of its condition Ready; "" if it does not wait. A plan that a
// person approves on the copy does not, and neither does a cancelled one, which begins no change.
func (h Hold) Of(p *v1alpha1.Plan) (reason, message string) {
	if p.Status.Cancel != nil {
		return "", ""
	}
	var after Restored
	if h.Restored != nil {
		after = h.Restored()
	}
	switch {
	case after.frozen(p.Namespace):
		return v1alpha1.ReasonServerFrozen, MessageFrozen
	case after.Waiting[p.UID]:
		return v1alpha1.ReasonServerFrozen, MessageWaits
	case h.Copied && ByPersons(p) <= h.Given[p.UID]:
		return v1alpha1.ReasonServerCopied, MessageHeld
	}
	return "", ""
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
