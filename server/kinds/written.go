package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// maxWritten bounds the queue of written objects. If it is full, the server drops further ones, because the approval of
// a plan checks every change again.
const maxWritten = 1024

// Written is an object that was written, deleted or marked for deletion since a plan last applied it.
type Written struct {
	Namespace string
	// Object is KIND/NAME, such as "sim-network/main".
	Object string
	UID    types.UID
	// Generation is the written generation, and 0 for an object that was deleted or marked for deletion.
	Generation int64
}

// Written returns the objects that were written, deleted or marked for deletion.
func (k *Kinds) Written() <-chan Written { return k.written }

// noteWritten sends an object that has a generation which no plan has applied.
func (k *Kinds) noteWritten(obj runtime.Object) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if applied, _, _ := unstructured.NestedInt64(u.Object, "status",
		"observedGeneration"); u.GetGeneration() > applied {
		k.sendWritten(u, u.GetGeneration())
	}
}

// noteDeleted sends an object that was deleted or marked for deletion. before is the object as it was.
func (k *Kinds) noteDeleted(before *unstructured.Unstructured, dryRun []string) {
	if len(dryRun) == 0 && before.GetDeletionTimestamp() == nil {
		k.sendWritten(before, 0)
	}
}

func (k *Kinds) sendWritten(u *unstructured.Unstructured, generation int64) {
	select {
	case k.written <- Written{u.GetNamespace(), u.GetKind() + "/" + u.GetName(), u.GetUID(), generation}:
	default:
	}
}
