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
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// HasRun reports whether this generation of an action has run. It also reads the ledger record, because the status
// write may have failed.
func HasRun(r *Resource, rec *ledger.Instance) bool {
	recorded := rec.Plan != "" && rec.Intent == nil && rec.Object.Generation == r.Ref.Generation
	return recorded || StatusOf(r.Object).Good()
}

// Status is the status of an object of a dynamic kind.
type Status struct {
	Attributes map[string]any
	// Observed is the last generation that an apply, or a plan without changes, processed. Applied is the last applied
	// generation; 0 before the first apply and after a destroy.
	Observed, Applied int64
	// Imported is the import that a plan applied, as JSON, and MovedFrom the address in lifecycle.moved that a plan
	// applied. They remain when the infrastructure is gone. A destroy or forget removes Imported.
	Imported, MovedFrom string
	// FailedCreate is the time and the plan of a create that failed and may nevertheless have made the resource. It
	// remains until the object has a resource.
	FailedCreate string
	// Contributors are the users who wrote the object since a plan last applied it.
	Contributors []v1alpha1.Contributor
	Generation   int64
	deleting     bool
	forgets      bool // lifecycle.destroy is false
	Conditions   []metav1.Condition
}

// StatusOf reads the status of an object.
func StatusOf(obj *unstructured.Unstructured) *Status {
	s := &Status{Generation: obj.GetGeneration(), deleting: obj.GetDeletionTimestamp() != nil}
	destroy, set, _ := unstructured.NestedBool(obj.Object, "lifecycle", "destroy")
	s.forgets = set && !destroy
	old, _ := obj.Object["status"].(map[string]any)
	s.Attributes, _ = old["attributes"].(map[string]any)
	s.Observed, _, _ = unstructured.NestedInt64(old, "observedGeneration")
	s.Imported, _, _ = unstructured.NestedString(old, "imported")
	s.MovedFrom, _, _ = unstructured.NestedString(old, "movedFrom")
	s.FailedCreate, _, _ = unstructured.NestedString(old, "failedCreate")
	s.Contributors = contributor.Of(old)
	s.Applied, _, _ = unstructured.NestedInt64(old, "appliedGeneration")
	if list, ok := old["conditions"]; ok {
		if raw, err := json.Marshal(list); err == nil {
			// Invalid conditions are replaced.
			_ = json.Unmarshal(raw, &s.Conditions)
		}
	}
	return s
}

// Good reports whether the object's current generation is applied and the object is ready. A plan without changes of
// the object does not affect the result.
func (s *Status) Good() bool {
	return s.Applied == s.Generation && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
}

// ShowsInfrastructure reports whether the status says that a plan applied infrastructure, which exists as far as is
// known. After an incomplete replacement, the record alone tells what is left.
func (s *Status) ShowsInfrastructure() bool { return s.Applied != 0 && !s.ReplaceIncomplete() }

// Drifted reports whether a plan found a change outside of Hykube that is neither accepted nor corrected.
func (s *Status) Drifted() bool {
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDrifted)
}

// observe records that a generation was processed. If the current generation is recorded, it stays. The generations of
// an instance of a ResourceSet are hashes without an order.
func (s *Status) observe(generation int64) {
	if s.Observed != s.Generation {
		s.Observed = generation
	}
}

// Ready records that a generation is applied, so that the infrastructure no longer differs from the spec.
func (s *Status) Ready(generation int64, message string) {
	s.observe(generation)
	s.Applied = generation
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDrifted)
	condition.Ready(&s.Conditions, generation, v1alpha1.ReasonApplied, message)
}

// Stall records that nothing will happen until the user acts.
func (s *Status) Stall(generation int64, reason, message string) {
	s.observe(generation)
	condition.Stalled(&s.Conditions, generation, reason, message)
}

// Wait records that the object waits for a plan or a user, without an error.
func (s *Status) Wait(generation int64, reason, message string) {
	s.observe(generation)
	condition.Waiting(&s.Conditions, generation, reason, message)
}

// Reconcile records that a change is in progress.
func (s *Status) Reconcile(generation int64, message string) {
	s.observe(generation)
	condition.Reconciling(&s.Conditions, generation, v1alpha1.ReasonApplying, message)
}

// StallDeposed records that a replacement left deposed instances, which the next plan destroys.
func (s *Status) StallDeposed(generation int64, rec *ledger.Instance) {
	keys := make([]string, 0, len(rec.Deposed))
	for _, d := range rec.Deposed {
		keys = append(keys, d.Key)
	}
	s.Stall(generation, v1alpha1.ReasonReplaceIncomplete,
		fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it.", strings.Join(keys, ", ")))
}

// ReplaceIncomplete reports whether the status says that a replacement left a deposed instance.
func (s *Status) ReplaceIncomplete() bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonReplaceIncomplete
}

// Remove records that the applied infrastructure no longer exists.
func (s *Status) Remove(generation int64, reason, message string) {
	s.Wait(generation, reason, message)
	s.Applied, s.Attributes, s.Imported = 0, nil, ""
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDrifted)
}

// ToMap returns the status in its stored form.
func (s *Status) ToMap() map[string]any {
	list := make([]any, 0, len(s.Conditions))
	for i := range s.Conditions {
		if m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Conditions[i]); err == nil {
			list = append(list, m) // strings, numbers and a time always convert
		}
	}
	m := map[string]any{"observedGeneration": s.Observed, "appliedGeneration": s.Applied, "conditions": list}
	if s.Imported != "" {
		m["imported"] = s.Imported
	}
	if s.MovedFrom != "" {
		m["movedFrom"] = s.MovedFrom
	}
	if s.FailedCreate != "" {
		m["failedCreate"] = s.FailedCreate
	}
	if len(s.Contributors) > 0 {
		m["contributors"] = contributor.ToList(s.Contributors)
	}
	if attributes := fitting(s.Attributes); len(attributes) > 0 {
		m["attributes"] = attributes
	}
	return m
}

// WriteStatus changes the status of an object. It does nothing if the object no longer exists. known is the object as
// the caller knows it, or nil; see store.Objects.
func WriteStatus(ctx context.Context, objects store.Objects, ref v1alpha1.ObjectReference,
	known *unstructured.Unstructured, change func(*Status)) error {
	write := func(change func(*Status)) error {
		return objects.UpdateStatus(ctx, ref, known, changed(change))
	}
	err := write(change)
	if apierrors.IsRequestEntityTooLargeError(err) {
		// The object is too large because of its spec. Write the outcome without the attributes.
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

// NewInstanceStatus returns the status of an instance of a ResourceSet after change, for a caller that writes it; see
// store.Objects.
func NewInstanceStatus(ctx context.Context, objects store.Objects, known *unstructured.Unstructured,
	change func(*Status)) (*store.InstanceStatus, error) {
	return objects.NewInstanceStatus(ctx, known, changed(change))
}

// changed returns the change of an object's status as a function from the object to its new status.
func changed(change func(*Status)) func(*unstructured.Unstructured) map[string]any {
	return func(obj *unstructured.Unstructured) map[string]any {
		s := StatusOf(obj)
		change(s)
		return s.ToMap()
	}
}

// maxAttributes is the maximum size of the attributes in a status, in bytes of JSON. Together with the largest spec and
// the conditions, the object must fit into the store. The recorded state holds all attributes.
const maxAttributes = 256 << 10

// fitting replaces the largest attributes by a note until the rest fits.
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
	slices.SortFunc(sizes, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
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

// Drift records that the infrastructure differs from the spec because of a change outside of Hykube.
func (s *Status) Drift(generation int64, reason, message string) {
	condition.Set(&s.Conditions, generation, v1alpha1.ConditionDrifted, true, reason, message)
	s.Stall(generation, reason, message)
}

// Settle sets the conditions of an object whose deposed instances were destroyed.
func (s *Status) Settle(rec *ledger.Instance) {
	applied := rec.Plan != "" && rec.Object.Generation == s.Generation && rec.Intent == nil
	switch g := s.Observed; {
	case s.deleting && s.forgets:
		s.Wait(g, v1alpha1.ReasonForgetting, v1alpha1.MessageForgetting)
	case s.deleting:
		s.Wait(g, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
	case s.Drifted():
		d := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDrifted)
		s.Stall(g, d.Reason, d.Message)
	case rec.Tainted:
		s.Wait(g, v1alpha1.ReasonTainted, "tainted: the next plan replaces it")
	case applied && len(rec.Deposed) > 0:
		s.StallDeposed(g, rec)
	case applied && rec.Exists():
		s.Ready(g, v1alpha1.MessageApplied)
	default:
		s.Wait(g, v1alpha1.ReasonAwaitingPlan, "recorded, but no plan of it was approved; make a Plan to apply it")
	}
}
