package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxOutdated bounds the queue of outdated plans. If it is full, the server drops further ones, because the approval of
// a plan checks every change again.
const maxOutdated = 1024

// Outdated is a plan that waits for approval, and one of its objects that was written after planning.
type Outdated struct {
	Namespace, Plan string
	// Object is KIND/NAME, such as "sim-network/main".
	Object string
}

// String returns NAMESPACE/PLAN for the log.
func (o Outdated) String() string { return o.Namespace + "/" + o.Plan }

// Outdated returns the plans that writes of objects made stale.
func (k *Kinds) Outdated() <-chan Outdated { return k.outdated }

// noteOutdated sends an Outdated if a written object has a generation that its waiting plan has not planned. The
// object's status names the plan and the planned generation.
func (k *Kinds) noteOutdated(obj runtime.Object) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	plan, _, _ := unstructured.NestedString(u.Object, "status", "pendingPlan")
	planned, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if plan == "" || u.GetGeneration() <= planned {
		return
	}
	select {
	case k.outdated <- Outdated{u.GetNamespace(), plan, u.GetKind() + "/" + u.GetName()}:
	default:
	}
}
