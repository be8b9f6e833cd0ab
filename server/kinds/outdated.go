package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxOutdated bounds the queue of outdated plans. If it is full, the server drops further ones, because the approval of
// a plan checks every change again.
const maxOutdated = 1024

// Outdated is a plan that waits for approval, and one of its objects that was written or deleted after planning.
type Outdated struct {
	Namespace, Plan string
	// Object is KIND/NAME, such as "sim-network/main".
	Object string
}

// String returns NAMESPACE/PLAN for the log.
func (o Outdated) String() string { return o.Namespace + "/" + o.Plan }

// Outdated returns the plans that writes and deletions of objects made stale.
func (k *Kinds) Outdated() <-chan Outdated { return k.outdated }

// noteOutdated sends an Outdated if a written object has a generation that its waiting plan has not planned. The
// object's status names the plan and the planned generation.
func (k *Kinds) noteOutdated(obj runtime.Object) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if planned, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); u.GetGeneration() > planned {
		k.sendOutdated(u)
	}
}

// noteDeleted sends an Outdated for an object that was deleted or marked for deletion. before is the object as it was.
func (k *Kinds) noteDeleted(before *unstructured.Unstructured, dryRun []string) {
	if len(dryRun) == 0 && before.GetDeletionTimestamp() == nil {
		k.sendOutdated(before)
	}
}

// sendOutdated sends an Outdated if a plan waits for the object.
func (k *Kinds) sendOutdated(u *unstructured.Unstructured) {
	plan, _, _ := unstructured.NestedString(u.Object, "status", "pendingPlan")
	if plan == "" {
		return
	}
	select {
	case k.outdated <- Outdated{u.GetNamespace(), plan, u.GetKind() + "/" + u.GetName()}:
	default:
	}
}
