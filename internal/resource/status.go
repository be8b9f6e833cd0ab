package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// HasRun says whether this generation of an action was run. The record knows it also when the object could not be told.
func HasRun(r *Resource, rec *ledger.Instance) bool {
	recorded := rec.Plan != "" && rec.Intent == nil && rec.Object.Generation == r.Ref.Generation
	return recorded || StatusOf(r.Object).Good()
}

// Status is the status of an object of a dynamic kind.
type Status struct {
	Attributes map[string]any
	// Judged is the generation that a plan judged last: it was planned, refused, failed or applied. applied is the generation
	// that was applied last; 0 when there is none, or what was made is destroyed.
	Judged, Applied int64
	// Pending is the name of the plan that waits for approval and changes the object; empty when none does.
	Pending    string
	Generation int64
	deleting   bool
	forgets    bool // lifecycle.destroy is false
	Conditions []metav1.Condition
}

// StatusOf starts from the status that the object has.
func StatusOf(obj *unstructured.Unstructured) *Status {
	s := &Status{Generation: obj.GetGeneration(), deleting: obj.GetDeletionTimestamp() != nil}
	destroy, set, _ := unstructured.NestedBool(obj.Object, "lifecycle", "destroy")
	s.forgets = set && !destroy
	old, _ := obj.Object["status"].(map[string]any)
	s.Attributes, _ = old["attributes"].(map[string]any)
	s.Judged, _, _ = unstructured.NestedInt64(old, "observedGeneration")
	s.Pending, _, _ = unstructured.NestedString(old, "pendingPlan")
	var found bool
	if s.Applied, found, _ = unstructured.NestedInt64(old, "appliedGeneration"); !found {
		s.Applied = s.Judged // earlier versions wrote the one field, when something was applied
	}
	if list, ok := old["conditions"]; ok {
		if raw, err := json.Marshal(list); err == nil {
			// Conditions that cannot be read are written anew.
			_ = json.Unmarshal(raw, &s.Conditions)
		}
	}
	return s
}

// Good says whether the object is what its spec asks for, as far as is known. The outcome of a plan that left it alone does not
// change that.
func (s *Status) Good() bool {
	return s.Applied == s.Generation && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
}

// Drifted says whether a plan found the infrastructure changed, and nobody accepted or corrected that.
func (s *Status) Drifted() bool {
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDrifted)
}

// judge records that a plan judged a generation. No plan waits for approval to change the object any more, unless the caller says so.
func (s *Status) judge(generation int64) {
	s.Judged, s.Pending = max(s.Judged, generation), ""
}

// Ready says that a generation is applied.
func (s *Status) Ready(generation int64, message string) {
	s.judge(generation)
	s.Applied = generation
	condition.Ready(&s.Conditions, generation, v1alpha1.ReasonApplied, message)
}

// Stall says that nothing will happen until a person acts.
func (s *Status) Stall(generation int64, reason, message string) {
	s.judge(generation)
	condition.Stalled(&s.Conditions, generation, reason, message)
}

// Wait says that the object waits for a plan or for a person, and that nothing is wrong.
func (s *Status) Wait(generation int64, reason, message string) {
	s.judge(generation)
	condition.Waiting(&s.Conditions, generation, reason, message)
}

// Reconcile says that a change is being made.
func (s *Status) Reconcile(generation int64, message string) {
	s.judge(generation)
	condition.Reconciling(&s.Conditions, generation, v1alpha1.ReasonApplying, message)
}

// StallDeposed says that a replacement left old instances behind, which the next plan destroys.
func (s *Status) StallDeposed(generation int64, rec *ledger.Instance) {
	keys := make([]string, 0, len(rec.Deposed))
	for _, d := range rec.Deposed {
		keys = append(keys, d.Key)
	}
	s.Stall(generation, v1alpha1.ReasonReplaceIncomplete,
		fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it.", strings.Join(keys, ", ")))
}

// ReplaceIncomplete says whether the object says that a replacement left an old instance behind.
func (s *Status) ReplaceIncomplete() bool { return s.notReady(v1alpha1.ReasonReplaceIncomplete) }

// CreateUnknown says whether the object says that a create of it was begun and that its outcome is unknown.
func (s *Status) CreateUnknown() bool { return s.notReady(v1alpha1.ReasonCreateUnknown) }

func (s *Status) notReady(reason string) bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == reason
}

// AwaitMove says of an object that is marked as deleted which object takes its infrastructure over.
func (s *Status) AwaitMove(generation int64, to string) {
	if s.deleting {
		s.Wait(generation, v1alpha1.ReasonMoving, v1alpha1.MessageMoving(to))
	}
}

// Remove says that nothing is left of what was applied.
func (s *Status) Remove(generation int64, reason, message string) {
	s.Wait(generation, reason, message)
	s.Applied, s.Attributes = 0, nil
}

// ToMap is the status as it is stored.
func (s *Status) ToMap() map[string]any {
	list := make([]any, 0, len(s.Conditions))
	for i := range s.Conditions {
		if m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Conditions[i]); err == nil {
			list = append(list, m) // strings, numbers and a time always convert
		}
	}
	m := map[string]any{"observedGeneration": s.Judged, "appliedGeneration": s.Applied, "conditions": list}
	if s.Pending != "" {
		m["pendingPlan"] = s.Pending
	}
	if attributes := fitting(s.Attributes); len(attributes) > 0 {
		m["attributes"] = attributes
	}
	return m
}

// WriteStatus changes the status of an object, if the object is still there.
func WriteStatus(ctx context.Context, objects store.Objects, ref v1alpha1.ObjectReference, change func(*Status)) error {
	write := func(change func(*Status)) error {
		return objects.UpdateStatus(ctx, ref, func(obj *unstructured.Unstructured) map[string]any {
			s := StatusOf(obj)
			change(s)
			return s.ToMap()
		})
	}
	err := write(change)
	if apierrors.IsRequestEntityTooLargeError(err) {
		// The spec alone fills the object. Its outcome must be written all the same.
		err = write(func(s *Status) {
			change(s)
			s.Attributes = nil
		})
	}
	if err != nil && !errors.Is(err, store.ErrGone) {
		return err
	}
	return nil
}

// maxAttributes bounds, in bytes of JSON, what a status shows of the attributes: with a spec as large as an object may be, and
// conditions, the object has to stay within what the store takes. The state has all of them.
const maxAttributes = 256 << 10

// fitting leaves the largest attributes out until the rest fits.
func fitting(attributes map[string]any) map[string]any {
	type sized struct {
		name  string
		bytes int
	}
	var sizes []sized
	sum := 0
	for name, v := range attributes {
		js, err := json.Marshal(v)
		if err != nil {
			continue
		}
		sizes = append(sizes, sized{name, len(js)})
		sum += len(js)
	}
	if sum <= maxAttributes {
		return attributes
	}
	slices.SortFunc(sizes, func(a, b sized) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	out := maps.Clone(attributes)
	for _, s := range sizes {
		if sum <= maxAttributes {
			break
		}
		out[s.name] = fmt.Sprintf("(%d bytes, too large to be shown here; see the subresource state)", s.bytes)
		sum -= s.bytes
	}
	return out
}

// StallDrifted says that the infrastructure is not what the spec asks for, because it was changed outside of Hykube.
func (s *Status) StallDrifted(generation int64) {
	d := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDrifted)
	s.Stall(generation, d.Reason, d.Message+" The next plan shows how to change it back.")
}

// Settle writes the condition of an object that no plan changes.
func (s *Status) Settle(rec *ledger.Instance) {
	g := s.Judged
	switch applied := rec.Plan != "" && rec.Object.Generation == s.Generation && rec.Intent == nil; {
	case s.deleting && s.forgets:
		s.Wait(g, v1alpha1.ReasonForgetting, v1alpha1.MessageForgetting)
	case s.deleting:
		s.Wait(g, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
	case s.Drifted():
		s.StallDrifted(g)
	case rec.Tainted:
		s.Wait(g, v1alpha1.ReasonTainted, "marked to be replaced: the next plan replaces it")
	case applied && rec.Exists() && len(rec.Deposed) > 0:
		s.StallDeposed(g, rec)
	case applied && (rec.Exists() || rec.Mode == v1alpha1.ModeAction):
		s.Ready(g, v1alpha1.MessageApplied)
	default:
		s.Wait(g, v1alpha1.ReasonAwaitingPlan, "recorded, and no plan of it was approved; make a Plan to apply it")
	}
}
