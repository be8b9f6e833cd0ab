package activities

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// messageApplied is the message of the condition Ready of a resource that is applied.
const messageApplied = "The infrastructure is what the spec asks for."

// status is the status of an object of a dynamic kind.
type status struct {
	attributes map[string]any
	// judged is the generation that a plan judged last: it was planned, refused, failed or applied. applied is the generation
	// that was applied last; 0 when there is none, or what was made is destroyed.
	judged, applied int64
	// pending is the name of the plan that waits for approval and changes the object; empty when none does.
	pending    string
	generation int64
	deleting   bool
	conditions []metav1.Condition
}

// statusOf starts from the status that the object has.
func statusOf(obj *unstructured.Unstructured) *status {
	s := &status{generation: obj.GetGeneration(), deleting: obj.GetDeletionTimestamp() != nil}
	old, _ := obj.Object["status"].(map[string]any)
	s.attributes, _ = old["attributes"].(map[string]any)
	s.judged, _, _ = unstructured.NestedInt64(old, "observedGeneration")
	s.pending, _, _ = unstructured.NestedString(old, "pendingPlan")
	var found bool
	if s.applied, found, _ = unstructured.NestedInt64(old, "appliedGeneration"); !found {
		s.applied = s.judged // earlier versions wrote the one field, when something was applied
	}
	if list, ok := old["conditions"]; ok {
		if raw, err := json.Marshal(list); err == nil {
			// Conditions that cannot be read are written anew.
			_ = json.Unmarshal(raw, &s.conditions)
		}
	}
	return s
}

// good says whether the object is what its spec asks for, as far as is known. The outcome of a plan that left it alone does not
// change that.
func (s *status) good() bool {
	return s.applied == s.generation && meta.IsStatusConditionTrue(s.conditions, v1alpha1.ConditionReady)
}

// drifted says whether a plan found the infrastructure changed, and nobody accepted or corrected that.
func (s *status) drifted() bool {
	return meta.IsStatusConditionTrue(s.conditions, v1alpha1.ConditionDrifted)
}

// judge records that a plan judged a generation. No plan waits for approval to change the object any more, unless the caller says so.
func (s *status) judge(generation int64) {
	s.judged, s.pending = max(s.judged, generation), ""
}

// ready says that a generation is applied.
func (s *status) ready(generation int64, message string) {
	s.judge(generation)
	s.applied = generation
	condition.Ready(&s.conditions, generation, v1alpha1.ReasonApplied, message)
}

// stall says that nothing will happen until a person acts.
func (s *status) stall(generation int64, reason, message string) {
	s.judge(generation)
	condition.Stalled(&s.conditions, generation, reason, message)
}

// wait says that the object waits for a plan or for a person, and that nothing is wrong.
func (s *status) wait(generation int64, reason, message string) {
	s.judge(generation)
	condition.Waiting(&s.conditions, generation, reason, message)
}

// reconcile says that a change is being made.
func (s *status) reconcile(generation int64, message string) {
	s.judge(generation)
	condition.Reconciling(&s.conditions, generation, v1alpha1.ReasonApplying, message)
}

// stallDeposed says that a replacement left old instances behind, which the next plan destroys.
func (s *status) stallDeposed(generation int64, rec *ledger.Instance) {
	keys := make([]string, 0, len(rec.Deposed))
	for _, d := range rec.Deposed {
		keys = append(keys, d.Key)
	}
	s.stall(generation, v1alpha1.ReasonReplaceIncomplete,
		fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it.", strings.Join(keys, ", ")))
}

// replaceIncomplete says whether the object says that a replacement left an old instance behind.
func (s *status) replaceIncomplete() bool {
	ready := meta.FindStatusCondition(s.conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonReplaceIncomplete
}

// remove says that nothing is left of what was applied.
func (s *status) remove(generation int64, reason, message string) {
	s.wait(generation, reason, message)
	s.applied, s.attributes = 0, nil
}

func (s *status) toMap() map[string]any {
	list := make([]any, 0, len(s.conditions))
	for i := range s.conditions {
		if m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.conditions[i]); err == nil {
			list = append(list, m) // strings, numbers and a time always convert
		}
	}
	m := map[string]any{"observedGeneration": s.judged, "appliedGeneration": s.applied, "conditions": list}
	if s.pending != "" {
		m["pendingPlan"] = s.pending
	}
	if attributes := fitting(s.attributes); len(attributes) > 0 {
		m["attributes"] = attributes
	}
	return m
}

// writeStatus changes the status of an object, if the object is still there.
func (a *Activities) writeStatus(ctx context.Context, ref v1alpha1.ObjectReference, change func(*status)) error {
	write := func(change func(*status)) error {
		return a.Objects.UpdateStatus(ctx, ref, func(obj *unstructured.Unstructured) map[string]any {
			s := statusOf(obj)
			change(s)
			return s.toMap()
		})
	}
	err := write(change)
	if apierrors.IsRequestEntityTooLargeError(err) {
		// The spec alone fills the object. Its outcome must be written all the same.
		err = write(func(s *status) {
			change(s)
			s.attributes = nil
		})
	}
	if err != nil && !errors.Is(err, ErrGone) {
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
