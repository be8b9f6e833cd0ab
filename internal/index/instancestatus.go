package index

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// This file keeps the statuses of the instances of ResourceSets, which are in the ledger.

// instanceStatus has the facts from the status of an instance on which its entry depends.
type instanceStatus struct {
	revision, applied int64
	// drifted is the generation for which drift was recorded; 0 if there is none.
	drifted int64
	// stalled, failed and cancelled are those of resource.Facts.
	ready, stalled, failed, cancelled, applying bool
}

// setInstanceFacts sets the flags that depend on the status of an instance.
func (o *Object) setInstanceFacts(s instanceStatus) {
	o.Revision += s.revision
	o.setFacts(resource.Facts{Good: s.ready && s.applied == o.Generation, Stalled: s.stalled, Failed: s.failed, Drifted: s.drifted})
	o.Instance.Stalled, o.Instance.Applying = s.stalled && !s.cancelled, s.applying
}

// applyStatus applies a change of the status of an instance.
func (x *Index) applyStatus(c ledger.Status) {
	x.changed[c.Namespace] = true
	ns := x.namespace(c.Namespace)
	before, next := ns.statuses[c.UID], instanceStatus{}
	if c.Value != nil {
		next = statusOf(c)
	}
	if before.revision > c.Revision {
		return
	}
	if next == (instanceStatus{}) {
		delete(ns.statuses, c.UID)
	} else {
		ns.statuses[ns.ownUID(c.UID)] = next
	}
	o := ns.objectOf(c.UID)
	if o == nil || o.Instance == nil {
		return
	}
	x.touch(c.Namespace, o.Instance.Set)
	changed, instance := *o, *o.Instance
	changed.Instance = &instance
	changed.Flags &^= Good | Drifted | Stalled | Failed
	changed.Revision -= before.revision
	changed.setInstanceFacts(next)
	ns.putAt(ns.uids[c.UID], &changed)
}

func statusOf(c ledger.Status) instanceStatus {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	var status map[string]any
	if err := utiljson.Unmarshal(c.Value, &status); err != nil {
		return instanceStatus{revision: c.Revision}
	}
	u.Object["status"] = status
	applied, _, _ := unstructured.NestedInt64(status, "appliedGeneration")
	u.SetGeneration(applied)
	j := resource.FactsOf(u)
	return instanceStatus{
		revision: c.Revision, applied: applied, drifted: j.Drifted, ready: j.Good, stalled: j.Stalled, failed: j.Failed, cancelled: j.Cancelled,
		applying: condition.IsTrue(u, v1alpha1.ConditionReconciling),
	}
}
