package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file accesses the instances of ResourceSets. An instance is no stored object: the index expands its set, and the
// ledger has its status.

// statusAttempts is the number of attempts to write a status when other writers conflict.
const statusAttempts = 10

// Set implements scope.Sets.
func (o *Objects) Set(ctx context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error) {
	if o.Index == nil {
		return nil, nil
	}
	return o.Index.SetAt(ctx, ref)
}

// Module implements scope.Sets.
func (o *Objects) Module(ctx context.Context, namespace, name string) (*resourceset.Module, error) {
	if o.Index == nil {
		return nil, nil
	}
	return o.Index.ModuleAt(ctx, namespace, name)
}

// Instance returns an instance of a ResourceSet with its status for a reader of its kind, or nil if there is none.
func (o *Objects) Instance(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	u, _, err := o.instance(ctx, ref)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	resourceset.HideValue(u)
	return u, nil
}

// instance returns an instance, and its status as the ledger has it. It returns store.ErrGone if there is none.
func (o *Objects) instance(ctx context.Context,
	ref v1alpha1.ObjectReference) (*unstructured.Unstructured, ledger.Status, error) {
	found, err := o.find(ctx, ref)
	if err != nil {
		return nil, ledger.Status{}, err
	}
	status, err := o.Ledger.Status(ctx,
		ledger.StatusKey{Namespace: ref.Namespace, Set: found.Instance.SetUID, UID: found.UID})
	if err != nil {
		return nil, ledger.Status{}, err
	}
	u := found.Unstructured(ref.Namespace)
	return u, status, setStatus(u, status.Value)
}

// find returns an instance without its status. It returns store.ErrGone if there is none.
func (o *Objects) find(ctx context.Context, ref v1alpha1.ObjectReference) (index.Found, error) {
	if o.Index == nil {
		return index.Found{}, store.ErrGone
	}
	found, ok, err := o.Index.Find(ctx, ref)
	if err != nil {
		return index.Found{}, err
	}
	if !ok || ref.UID != "" && ref.UID != found.UID {
		return index.Found{}, store.ErrGone
	}
	return found, nil
}

// setStatus sets the status of an instance: the stored one, or that of an instance that no plan has visited.
func setStatus(u *unstructured.Unstructured, stored json.RawMessage) error {
	status := map[string]any{"observedGeneration": int64(0)}
	if stored != nil {
		if err := utiljson.Unmarshal(stored, &status); err != nil {
			return fmt.Errorf("decode status of %s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}
	u.Object["status"] = status
	deleting := u.GetDeletionTimestamp() != nil
	switch {
	case deleting && (stored == nil || condition.IsTrue(u, v1alpha1.ConditionReady)):
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Set(c, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonDeleting, v1alpha1.MessageDeleting)
		})
	case !deleting && condition.Find(u,
		v1alpha1.ConditionReady)["reason"] == v1alpha1.ReasonDeleting: // by a plan before undelete
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Set(c, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonUndeleted,
				"the deletion of the set was taken back; make a Plan to see whether the resource needs changes")
		})
	case stored == nil:
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Set(c, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingPlan,
				"recorded; make a Plan to apply it")
		})
	}
	return nil
}

// instancesOf returns instances of a set with their statuses.
func (o *Objects) instancesOf(ctx context.Context, s index.SetInstances,
	instances []index.Node) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, n := range instances {
			u, err := o.withStatus(ctx, s.Namespace, index.Found{Object: n.Object, Record: n.Record, In: s.Set})
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// withStatus returns an instance with its status.
func (o *Objects) withStatus(ctx context.Context, namespace string, f index.Found) (*unstructured.Unstructured, error) {
	status, err := o.Ledger.Status(ctx, ledger.StatusKey{Namespace: namespace, Set: f.Instance.SetUID, UID: f.UID})
	if err != nil {
		return nil, err
	}
	u := f.Unstructured(namespace)
	if err := setStatus(u, status.Value); err != nil {
		return nil, err
	}
	if f.Record != nil && f.Record.Intent && status.Value == nil { // the status is written when the call ends
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Reconciling(c, 0, v1alpha1.ReasonApplying, "A change is in progress.")
		})
	}
	return u, nil
}

// Located returns an instance that the index has found, with its status, for a reader of its kind.
func (o *Objects) Located(ctx context.Context, l index.Located) (*unstructured.Unstructured, error) {
	u, err := o.withStatus(ctx, l.Namespace, l.Found)
	if err != nil {
		return nil, err
	}
	resourceset.HideValue(u)
	return u, nil
}

// Instances returns a page of the instances of a set, those that leave it last.
func (o *Objects) Instances(ctx context.Context, set *v1alpha1.ResourceSet, limit int,
	cont string) (*v1alpha1.ResourceSetInstanceList, error) {
	list := &v1alpha1.ResourceSetInstanceList{Items: []runtime.RawExtension{}}
	sets, err := o.Index.Sets(ctx, set.Namespace, set.Name)
	if err != nil || len(sets) == 0 {
		return list, err
	}
	page, next, err := pageOf(sets[0], limit, cont)
	if err != nil {
		return nil, err
	}
	for u, err := range o.instancesOf(ctx, sets[0], page) {
		if err != nil {
			return nil, err
		}
		resourceset.HideValue(u)
		raw, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode instance: %w", err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	list.Continue = next
	return list, nil
}

// Beginnings of the token of a page. The name of the last instance of the page before it follows.
const (
	afterInstance = "instance/"
	afterLeaving  = "leaving/"
)

// pageOf returns a page of the instances of a set, those that leave it last, and the token of the next page; "" for the
// last page. A token has a name and no position. So the set may change between two pages, and no other instance is left
// out.
func pageOf(s index.SetInstances, limit int, token string) (page []index.Node, next string, err error) {
	instances, leaving := s.Instances, s.Leaving
	if name, ok := strings.CutPrefix(token, afterInstance); ok {
		instances = namedAfter(instances, name)
	} else if name, ok := strings.CutPrefix(token, afterLeaving); ok {
		instances, leaving = nil, namedAfter(leaving, name)
	} else if token != "" {
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("the continue token %q is not that of an earlier page",
			token))
	}
	page = slices.Concat(instances, leaving)
	if len(page) <= limit {
		return page, "", nil
	}
	page, next = page[:limit], afterInstance
	if limit > len(instances) {
		next = afterLeaving
	}
	return page, next + page[limit-1].Object.Name, nil
}

// namedAfter returns the instances whose names come after a name. They are sorted by their names.
func namedAfter(instances []index.Node, name string) []index.Node {
	i, found := slices.BinarySearchFunc(instances, name,
		func(n index.Node, name string) int { return v1alpha1.CompareNames(n.Object.Name, name) })
	if found {
		i++
	}
	return instances[i:]
}

// updateInstanceStatus is UpdateStatus for an instance.
func (o *Objects) updateInstanceStatus(ctx context.Context, ref v1alpha1.ObjectReference,
	change func(*unstructured.Unstructured) map[string]any) error {
	for attempt := 1; ; attempt++ {
		u, stored, err := o.instance(ctx, ref)
		if err != nil {
			return err
		}
		status, err := json.Marshal(change(u))
		if err != nil {
			return fmt.Errorf("encode status of %s %q: %w", ref.Kind, ref.Name, err)
		}
		if bytes.Equal(status, stored.Value) {
			return nil
		}
		stored.Value = status
		err = o.Ledger.SaveStatus(ctx, stored)
		if !errors.Is(err, ledger.ErrConflict) || attempt == statusAttempts {
			return err
		}
	}
}

// NewInstanceStatus implements store.Objects. It does not make the object again: only the revision of the status shows
// whether another writer changed it, so the caller's write fails then.
func (o *Objects) NewInstanceStatus(ctx context.Context, known *unstructured.Unstructured,
	change func(*unstructured.Unstructured) map[string]any) (*store.InstanceStatus, error) {
	revision, ok := resourceset.StatusRevision(known)
	if !ok {
		return nil, nil
	}
	ref := refOf(known)
	found, err := o.find(ctx, ref)
	if err != nil || found.Generation != known.GetGeneration() ||
		found.Has(index.Deleting) != (known.GetDeletionTimestamp() != nil) {
		return nil, store.IgnoreGone(err)
	}
	now := change(known)
	status, err := json.Marshal(now)
	if err != nil {
		return nil, fmt.Errorf("encode status of %s %q: %w", ref.Kind, ref.Name, err)
	}
	before, _ := known.Object["status"].(map[string]any)
	if revision != 0 {
		if stored, err := json.Marshal(before); err != nil || bytes.Equal(status, stored) {
			return nil, err
		}
	}
	return &store.InstanceStatus{
		Namespace: ref.Namespace, Set: found.Instance.SetUID, UID: found.UID, Value: status, Revision: revision,
		Written: func() { o.recordEvent(ref, before, now, nil) },
	}, nil
}

// addInstanceFinalizer is AddFinalizer for an instance: it adds the finalizer to the set.
func (o *Objects) addInstanceFinalizer(ctx context.Context, read *unstructured.Unstructured) error {
	ref := refOf(read)
	found, ok, err := o.Index.Find(ctx, ref)
	switch {
	case err != nil:
		return err
	case !ok || found.UID != read.GetUID() || found.Generation != read.GetGeneration() || found.Has(index.Deleting):
		return store.ErrGone
	case found.In.Held:
		return nil
	case found.In.InModule():
		return o.writeModule(ctx, ref.Namespace, found.In.Name, found.In.UID, func(m *v1alpha1.Module) error {
			if m.DeletionTimestamp != nil {
				return store.ErrGone
			}
			if !slices.Contains(m.Finalizers, v1alpha1.FinalizerState) {
				m.Finalizers = append(m.Finalizers, v1alpha1.FinalizerState)
			}
			return nil
		})
	}
	return o.writeSet(ctx, ref.Namespace, found.In.Name, found.In.UID, func(s *v1alpha1.ResourceSet) error {
		if s.DeletionTimestamp != nil {
			return store.ErrGone
		}
		if !slices.Contains(s.Finalizers, v1alpha1.FinalizerState) {
			s.Finalizers = append(s.Finalizers, v1alpha1.FinalizerState)
		}
		return nil
	})
}

// removeInstanceFinalizer is RemoveFinalizer for an instance: with the last record of a set, it removes the finalizer
// of the set. Of an instance that left its set, it also removes the applied import and the status. ref has the set.
func (o *Objects) removeInstanceFinalizer(ctx context.Context, ref v1alpha1.ObjectReference) error {
	found, ok, err := o.Index.Find(ctx, ref)
	if err != nil {
		return err
	}
	if !ok || found.UID != ref.UID || found.Has(index.Deleting) {
		status := ledger.StatusKey{Namespace: ref.Namespace, Set: ref.SetUID, UID: ref.UID}
		if err := o.removeSpentImport(ctx, ref, status); err != nil {
			return err
		}
		if err := o.Ledger.ForgetStatus(ctx, status); err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
	if v1alpha1.OwnerKind(ref.Name) == "Module" {
		return o.RemoveModuleFinalizer(ctx, ref.Namespace, ref.Set, ref.SetUID)
	}
	return o.RemoveSetFinalizer(ctx, ref.Namespace, ref.Set, ref.SetUID)
}

// removeSpentImport removes the entry in spec.imports of an instance that left its set and was destroyed, if a plan
// applied it as the status says. A later instance with the key could not import the infrastructure again.
func (o *Objects) removeSpentImport(ctx context.Context, ref v1alpha1.ObjectReference, of ledger.StatusKey) error {
	template, key, _ := v1alpha1.ParseInstanceName(ref.Name)
	at := ref
	at.Name = template
	set, err := o.Set(ctx, at)
	if err != nil || set == nil || set.UID != ref.SetUID || !set.KeepsImport(key) {
		return err
	}
	status, err := o.Ledger.Status(ctx, of)
	if err != nil {
		return err
	}
	var applied struct{ Imported string }
	if len(status.Value) == 0 || json.Unmarshal(status.Value, &applied) != nil || applied.Imported == "" {
		return nil
	}
	return store.IgnoreGone(o.writeSet(ctx, ref.Namespace, ref.Set, ref.SetUID, func(s *v1alpha1.ResourceSet) error {
		s.Spec.Imports = slices.DeleteFunc(s.Spec.Imports, func(i v1alpha1.InstanceImport) bool {
			by := &v1alpha1.PlanImport{ID: i.ID}
			if i.Identity != nil {
				by.Identity = &runtime.RawExtension{Raw: resource.WithoutNulls(i.Identity.Raw)}
			}
			return i.Key == key.Text() && resource.SameImport(by, applied.Imported)
		})
		return nil
	}))
}

// RemoveSetFinalizer removes the finalizer of a set without records of instances. It does nothing if there are records,
// or if the set does not exist.
func (o *Objects) RemoveSetFinalizer(ctx context.Context, namespace, name string, uid types.UID) error {
	n, err := o.Index.Records(ctx, namespace, uid)
	if err != nil || n > 0 {
		return err
	}
	err = o.writeSet(ctx, namespace, name, uid, func(s *v1alpha1.ResourceSet) error {
		s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerState })
		return nil
	})
	return store.IgnoreGone(err)
}

// RemoveModuleFinalizer is RemoveSetFinalizer for a Module.
func (o *Objects) RemoveModuleFinalizer(ctx context.Context, namespace, name string, uid types.UID) error {
	n, err := o.Index.Records(ctx, namespace, uid)
	if err != nil || n > 0 {
		return err
	}
	err = o.writeModule(ctx, namespace, name, uid, func(m *v1alpha1.Module) error {
		m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerState })
		return nil
	})
	return store.IgnoreGone(err)
}

// UpdateModuleStatus is UpdateSetStatus for a Module.
func (o *Objects) UpdateModuleStatus(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.ModuleStatus)) error {
	err := Update(ctx, o.Client, index.StoredModules, namespace, name, "status", func(m *v1alpha1.Module) error {
		if m.UID != uid {
			return store.ErrGone
		}
		change(&m.Status)
		return nil
	})
	return store.IgnoreGone(asGone(err))
}

// writeModule is writeSet for a Module.
func (o *Objects) writeModule(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.Module) error) error {
	err := Update(ctx, o.Client, index.StoredModules, namespace, name, "", func(m *v1alpha1.Module) error {
		if m.UID != uid {
			return store.ErrGone
		}
		return change(m)
	})
	switch {
	case apierrors.IsNotFound(err):
		return store.ErrGone
	case err != nil && !errors.Is(err, store.ErrGone):
		return fmt.Errorf("write Module %q: %w", name, err)
	}
	return err
}

// UpdateSetStatus changes the status of a set. It does nothing if there is none with the UID.
func (o *Objects) UpdateSetStatus(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.ResourceSetStatus)) error {
	err := Update(ctx, o.Client, index.StoredSets, namespace, name, "status", func(s *v1alpha1.ResourceSet) error {
		if s.UID != uid {
			return store.ErrGone
		}
		change(&s.Status)
		return nil
	})
	return store.IgnoreGone(asGone(err))
}

// writeSet changes a set. It returns store.ErrGone if there is none with the UID.
func (o *Objects) writeSet(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.ResourceSet) error) error {
	err := Update(ctx, o.Client, index.StoredSets, namespace, name, "", func(s *v1alpha1.ResourceSet) error {
		if s.UID != uid {
			return store.ErrGone
		}
		return change(s)
	})
	switch {
	case apierrors.IsNotFound(err):
		return store.ErrGone
	case err != nil && !errors.Is(err, store.ErrGone):
		return fmt.Errorf("write ResourceSet %q: %w", name, err)
	}
	return err
}

func refOf(u *unstructured.Unstructured) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
		Name: u.GetName(), UID: u.GetUID()}
}
