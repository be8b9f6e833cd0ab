package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/hykube/hykube/api/v1alpha1"
)

// A namespace is deleted in two phases. First, the server marks its resources for deletion and keeps everything else: a
// plan that destroys the resources needs ProviderConfigs and Secrets, and RoleBindings determine who may approve it.
// When no resource is left, Kubernetes' namespace deleter deletes the rest.

// undeleteSubresource reverts a deletion.
const undeleteSubresource = "undelete"

// emptyingDelay is the time after the deletion before a namespace without resources is closed, because an admitted
// create may still be in progress.
const emptyingDelay = 2 * time.Second

// continueNamespaceDeletion performs the next step for a deleted namespace. waits is true while the namespace exists.
func (s *Server) continueNamespaceDeletion(ctx context.Context, name string) (waits bool, err error) {
	ns, err := s.config.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ns.DeletionTimestamp == nil {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if undeleteRequested(ns) {
		return s.namespaceUndelete.resume(ctx, ns)
	}
	left, err := s.markResources(ctx, name)
	if err != nil {
		return true, err
	}
	count, example, err := s.wiring.InUse(ctx, ns)
	switch {
	case err != nil:
		return true, err
	case len(left) > 0 || count > 0:
		return true, s.setNamespaceConditions(ctx, ns, left, example)
	}
	if !s.deletions.close(name) {
		return s.deletions.has(namespaces, "", name), nil
	}
	if wait := emptyingDelay - time.Since(ns.DeletionTimestamp.Time); wait > 0 {
		return true, &laterError{wait}
	}
	err = s.emptier.Delete(ctx, name)
	if _, remain := errors.AsType[*deletion.ResourcesRemainingError](err); remain {
		return true, &laterError{time.Second}
	}
	return err != nil, err
}

// emptied returns the resources that are deleted with their namespace: all except PlanRecords. The record of who
// approved the destroy of a whole namespace is the most important one, so it outlives the namespace.
func (s *Server) emptied() ([]*metav1.APIResourceList, error) {
	lists, err := s.config.client.Discovery().ServerPreferredNamespacedResources()
	for _, l := range lists {
		if l.GroupVersion == v1alpha1.SchemeGroupVersion.String() {
			l.APIResources = slices.DeleteFunc(l.APIResources,
				func(r metav1.APIResource) bool { return r.Name == "planrecords" })
		}
	}
	return lists, err
}

// markResources marks the resources of a namespace with infrastructure for deletion. It returns their number by kind.
// The other objects stay until none is left, so that undelete keeps them.
func (s *Server) markResources(ctx context.Context, namespace string) (left map[kschema.GroupResource]int, err error) {
	objects := s.config.store.Objects()
	left = map[kschema.GroupResource]int{}
	for u, err := range objects.OfProviders(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		kind, served := s.kinds.Kind(u.GroupVersionKind())
		if !served {
			// its provider is not ready
			left[kschema.GroupResource{Group: u.GroupVersionKind().Group, Resource: u.GetKind()}]++
			continue
		}
		if kind.Mode != v1alpha1.ModeManaged {
			// a destroy may still need it through a ProviderConfig; it has no infrastructure, and is deleted at the end
			continue
		}
		if u.GetDeletionTimestamp() == nil {
			if len(u.GetFinalizers()) == 0 {
				// without infrastructure, a deletion would remove it at once, and undelete could not bring it back
				continue
			}
			if err := s.mark(ctx, kind.GVR, u); err != nil {
				return nil, err
			}
		}
		left[kind.GVR.GroupResource()]++
	}
	// A set needs no mark: a plan that destroys everything releases it. So an undelete of the namespace keeps it.
	for set, err := range objects.Sets(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		if len(set.Finalizers) > 0 {
			left[v1alpha1.Resource("resourcesets")]++
		}
	}
	for m, err := range objects.Modules(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		if len(m.Finalizers) > 0 {
			left[v1alpha1.Resource("modules")]++
		}
	}
	return left, nil
}

func (s *Server) mark(ctx context.Context, gvr kschema.GroupVersionResource, u *unstructured.Unstructured) error {
	s.deletions.phase.RLock()
	defer s.deletions.phase.RUnlock()
	if ns := u.GetNamespace(); !s.deletions.has(namespaces, "", ns) || s.deletions.isUndeleting(ns) {
		return nil // the deletion of the namespace was reverted or is being reverted
	}
	uid := u.GetUID()
	err := s.dynamic.Resource(gvr).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %q: %w", gvr.Resource, u.GetName(), err)
	}
	return nil
}

// setNamespaceConditions sets the conditions of a namespace with the reasons why it still exists, in Kubernetes'
// format.
func (s *Server) setNamespaceConditions(ctx context.Context, ns *corev1.Namespace, left map[kschema.GroupResource]int,
	example string) error {
	var parts []string
	total := 0
	for _, gr := range slices.SortedFunc(maps.Keys(left),
		func(a, b kschema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		parts = append(parts, fmt.Sprintf("%s has %d resource instances", gr, left[gr]))
		total += left[gr]
	}
	if len(parts) == 0 {
		parts = append(parts, "there is infrastructure of "+example)
	}
	advice := fmt.Sprintf("Make a plan that destroys their infrastructure, and approve it: kubectl hykube destroy --all -n %s. Until then kubectl hykube undelete namespace/%s keeps it all", ns.Name, ns.Name)
	want := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Reason: "SomeResourcesRemain",
			Message: "Some resources are remaining: " + strings.Join(parts, ", ") + ". " + advice},
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Reason: "SomeFinalizersRemain",
			Message: fmt.Sprintf("Some content in the namespace has finalizers remaining: %s in %d resource instances",
				v1alpha1.FinalizerState, total)},
	}
	return s.writeNamespaceStatus(ctx, ns, func(ns *corev1.Namespace) error {
		if ns.DeletionTimestamp == nil || undeleteRequested(ns) {
			return nil // the deletion was reverted or is being reverted
		}
		for _, c := range want {
			i := slices.IndexFunc(ns.Status.Conditions,
				func(old corev1.NamespaceCondition) bool { return old.Type == c.Type })
			c.LastTransitionTime = metav1.Now()
			switch {
			case i < 0:
				ns.Status.Conditions = append(ns.Status.Conditions, c)
			case ns.Status.Conditions[i].Message != c.Message || ns.Status.Conditions[i].Status != c.Status:
				ns.Status.Conditions[i] = c
			}
		}
		return nil
	})
}

// writeNamespaceStatus changes the status of a namespace. It retries after a conflict and writes nothing if nothing
// changes.
func (s *Server) writeNamespaceStatus(ctx context.Context, read *corev1.Namespace,
	change func(*corev1.Namespace) error) error {
	client := s.config.client.CoreV1().Namespaces()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		ns, err := client.Get(ctx, read.Name, metav1.GetOptions{})
		if err == nil && ns.UID != read.UID {
			err = apierrors.NewNotFound(corev1.Resource(namespaces), read.Name)
		}
		if err != nil {
			return err
		}
		before := ns.DeepCopy()
		if err := change(ns); err != nil || equality.Semantic.DeepEqual(before, ns) {
			return err
		}
		_, err = client.UpdateStatus(ctx, ns, metav1.UpdateOptions{})
		return err
	})
}

// lifecycleAdmission is Kubernetes' namespace admission, but allows plans in a namespace that is being deleted while
// resources remain in it.
type lifecycleAdmission struct {
	*lifecycle.Lifecycle
	deletions *deletions
}

func (l lifecycleAdmission) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if provider, ok := v1alpha1.ProviderOfGroup(a.GetResource().Group); ok && a.GetOperation() == admission.Create &&
		a.GetSubresource() == "" && l.deletions.has("providers", "", provider) {
		return admission.NewForbidden(a,
			fmt.Errorf("the provider %q is being deleted, so no object of its kinds can be created; kubectl hykube undelete provider/%s takes the deletion back", provider, provider))
	}
	if a.GetResource().GroupResource() == v1alpha1.Resource("validations") {
		return nil // Every user may create a Validation, and must not learn from it which namespaces exist.
	}
	err := l.Lifecycle.Admit(ctx, a, o)
	if err == nil || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	if a.GetSubresource() == undeleteSubresource {
		return admission.NewForbidden(a,
			fmt.Errorf("the namespace %q is being terminated; kubectl hykube undelete namespace/%s takes the deletion back, for the namespace and the objects that were marked with it",
				a.GetNamespace(), a.GetNamespace()))
	}
	switch a.GetResource().GroupResource() {
	case v1alpha1.Resource("planrecords"): // only the server creates these, for a plan that still exists
		return nil
	case v1alpha1.Resource("evaluations"), v1alpha1.Resource("queries"),
		v1alpha1.Resource("statepulls"): // these are not stored
		return nil
	case v1alpha1.Resource("plans"):
		if a.GetSubresource() == "objects" { // each object is checked separately, and the plan can be discarded
			return nil
		}
		if a.GetSubresource() == "" && l.deletions.isUndeleting(a.GetNamespace()) {
			return admission.NewForbidden(a, errors.New(messageUndeleting(a.GetNamespace())))
		}
		if a.GetSubresource() == "" && l.deletions.open(a.GetNamespace()) {
			return nil
		}
	}
	return err
}
