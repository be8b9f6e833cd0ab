package index

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
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
	// readiness is the condition Ready, and observed the observed generation. The zero handle means that there is no
	// condition.
	readiness unique.Handle[Readiness]
	observed  int64
}

// Readiness is the status and the reason of a condition Ready. Instances share it.
type Readiness struct {
	Status metav1.ConditionStatus
	Reason string
}

// Readiness returns the condition Ready of an instance, as a reader of the instance sees it.
func (n Node) Readiness() Readiness {
	s, never := n.Object.Instance.status, unique.Handle[Readiness]{}
	now := Readiness{Status: metav1.ConditionUnknown}
	if s.readiness != never {
		now = s.readiness.Value()
	}
	stored, ready := s.revision != 0, now.Status == metav1.ConditionTrue
	switch {
	case !stored && n.Record != nil && n.Record.Intent: // the status is written when the call ends
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonApplying}
	case n.Object.Has(KeysUnknown):
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonKeysUnknown}
	case n.Object.Has(Deleting) && (!stored || ready):
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonDeleting}
	case !n.Object.Has(Deleting) && now.Reason == v1alpha1.ReasonDeleting: // the deletion of the set was taken back
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonUndeleted}
	case !stored, s.observed != n.Object.Generation && v1alpha1.OutdatedByEdit(now.Reason, ready):
		return Readiness{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlan}
	}
	return now
}

// setInstanceFacts sets the flags that depend on the status of an instance.
func (o *Object) setInstanceFacts(s instanceStatus) {
	o.Revision += s.revision
	o.setFacts(resource.Facts{Good: s.ready && s.applied == o.Generation, Stalled: s.stalled, Failed: s.failed,
		Drifted: s.drifted})
	o.Instance.Stalled, o.Instance.Applying, o.Instance.status = s.stalled && !s.cancelled, s.applying, s
}

// statusOf returns the status of an instance; zero if it has none, or if the namespace is nil.
func (ns *namespace) statusOf(uid types.UID) instanceStatus {
	if ns == nil {
		return instanceStatus{}
	}
	if o := ns.objectOf(uid); o != nil && o.Instance != nil {
		return o.Instance.status
	}
	return ns.statuses[uid]
}

// applyStatus applies a change of the status of an instance.
func (x *Index) applyStatus(c ledger.Status) {
	x.changed[c.Namespace] = true
	x.unsaved++
	ns := x.namespace(c.Namespace)
	before, next := ns.statusOf(c.UID), instanceStatus{}
	if c.Value != nil {
		next = statusOf(c)
	}
	if before.revision > c.Revision {
		return
	}
	o := ns.objectOf(c.UID)
	if o == nil || o.Instance == nil {
		if next == (instanceStatus{}) {
			delete(ns.statuses, c.UID)
		} else {
			ns.statuses[ns.ownUID(c.UID)] = next
		}
		return
	}
	x.touch(c.Namespace, o.Instance.Set, v1alpha1.InModule(o.Name))
	changed, instance := *o, *o.Instance
	changed.Instance = &instance
	changed.Flags &^= Good | Drifted | Stalled | Failed
	changed.Revision -= before.revision
	changed.setInstanceFacts(next)
	ns.putAt(ns.uids[c.UID], &changed)
}

// dropStatuses removes all statuses.
func (x *Index) dropStatuses() {
	x.feed.interrupt()
	for name, ns := range x.namespaces {
		uids := slices.Collect(maps.Keys(ns.statuses))
		for _, n := range ns.nodes {
			if n.Object != nil && n.Object.Instance != nil && n.Object.Instance.status != (instanceStatus{}) {
				uids = append(uids, n.Object.UID)
			}
		}
		for _, uid := range uids {
			x.applyStatus(ledger.Status{StatusKey: ledger.StatusKey{Namespace: name, UID: uid},
				Revision: math.MaxInt64})
		}
	}
}

func statusOf(c ledger.Status) instanceStatus {
	j, err := resource.FactsIn(c.Value)
	if err != nil {
		return instanceStatus{revision: c.Revision}
	}
	return instanceStatus{
		revision: c.Revision, applied: j.Applied, drifted: j.Drifted, ready: j.Good, stalled: j.Stalled,
		failed: j.Failed, cancelled: j.Cancelled,
		applying: j.Applying, readiness: readinessIn(j), observed: j.Observed,
	}
}

// readinessIn returns the shared condition Ready of a status.
func readinessIn(j resource.StoredFacts) (r unique.Handle[Readiness]) {
	if j.Ready == "" {
		return r
	}
	return unique.Make(Readiness{metav1.ConditionStatus(strings.Clone(string(j.Ready))), strings.Clone(j.Reason)})
}
