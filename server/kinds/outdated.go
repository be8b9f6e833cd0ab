package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxOutdated bounds the outdated plans that nobody has received yet. The approval of a plan finds every stale change, so a lost one
// only shows late.
const maxOutdated = 1024

// Outdated is a plan that waits for approval, and an object of it that was written after planning.
type Outdated struct {
	Namespace, Plan string
	// Object is the kind and the name of the object, such as "sim-network/main".
	Object string
}

// String is for the log.
func (o Outdated) String() string { return o.Namespace + "/" + o.Plan }

// Outdated returns the plans that writes of objects made stale.
func (k *Kinds) Outdated() <-chan Outdated { return k.outdated }

// noteOutdated looks at an object that was written. Its status names the plan that waits for approval, and the generation that the plan
// is bound to.
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
