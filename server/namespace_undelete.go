package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/deletion"
)

// The undelete of a namespace has three steps. First, a condition of the namespace records the request; after that, the
// server marks no more resources. Second, the server removes the marks of the resources. Last, the namespace becomes
// active. Until then, both the request and the processing of deletions continue the undelete, so that neither a
// disconnected client nor a restart leaves it incomplete.

// undeleteLimit is the maximum time that a request spends on an undelete. Afterwards, the processing of deletions
// continues it.
const undeleteLimit = time.Minute

func undeleteRequested(ns *corev1.Namespace) bool {
	return slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
		return c.Type == v1alpha1.ConditionUndeleting && c.Status == corev1.ConditionTrue
	})
}

func messageUndeleting(namespace string) string {
	return fmt.Sprintf("the deletion of the namespace %q is being taken back; try again when kubectl get namespace %s says Active", namespace, namespace)
}

// undelete reverts the deletion of a namespace and of the resources that were marked with it. It fails if no resource
// in the namespace has infrastructure, since the content is then being deleted. A second call continues the first.
func (r *undeleteNamespaceREST) undelete(ctx context.Context, name string, dry bool) (runtime.Object, error) {
	ns, err := r.server.config.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case ns.DeletionTimestamp == nil:
		return nil, namespaceConflict(name, "it is not being deleted")
	case !undeleteRequested(ns):
		if err := r.request(ctx, ns, dry); err != nil {
			return nil, err
		}
	}
	if dry {
		return deletion.Undo(ctx, r.store, name, ns.UID, true, activate)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undeleteLimit)
	defer cancel()
	for {
		end, working := r.server.deletions.beginUndelete(name)
		if end != nil {
			defer end()
			out, err := r.finish(ctx, ns)
			if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				return out, err
			}
			return nil, r.continueLater(name, err)
		}
		select {
		case <-working:
		case <-ctx.Done():
			return nil, r.continueLater(name, ctx.Err())
		}
	}
}

// request records in a namespace's condition that its deletion is to be reverted.
func (r *undeleteNamespaceREST) request(ctx context.Context, ns *corev1.Namespace, dry bool) error {
	emptied := namespaceConflict(ns.Name,
		"nothing in it has infrastructure any more, and the server is emptying it; its deletion cannot be taken back")
	count, _, err := r.server.wiring.InUse(ctx, ns)
	switch {
	case err != nil:
		return err
	case count == 0:
		return emptied
	case dry:
		return nil
	}
	who := "a user"
	if u, ok := request.UserFrom(ctx); ok {
		who = u.GetName()
	}
	kept, err := r.server.deletions.keep(ns.Name, func() error {
		return r.server.writeNamespaceStatus(ctx, ns, func(ns *corev1.Namespace) error {
			if ns.DeletionTimestamp == nil {
				return namespaceConflict(ns.Name, "it is not being deleted")
			}
			ns.Status.Conditions = []corev1.NamespaceCondition{{
				Type: v1alpha1.ConditionUndeleting, Status: corev1.ConditionTrue,
				Reason: v1alpha1.ReasonUndeleteRequested, LastTransitionTime: metav1.Now(),
				Message: who + " took the deletion back. The namespace is Active again when the server has taken back the deletion of its resources.",
			}}
			return nil
		})
	})
	if err == nil && !kept {
		return emptied
	}
	return err
}

// drop removes the request, because the namespace was deleted again.
func (r *undeleteNamespaceREST) drop(ctx context.Context, name string) error {
	ns, err := r.server.config.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return r.server.deletions.drop(name, func() error {
		return r.server.writeNamespaceStatus(ctx, ns, func(ns *corev1.Namespace) error {
			ns.Status.Conditions = slices.DeleteFunc(ns.Status.Conditions,
				func(c corev1.NamespaceCondition) bool { return c.Type == v1alpha1.ConditionUndeleting })
			return nil
		})
	})
}

// resume continues the undelete of a namespace with an internal user, because the original request may have ended.
func (r *undeleteNamespaceREST) resume(ctx context.Context, ns *corev1.Namespace) (waits bool, err error) {
	end, working := r.server.deletions.beginUndelete(ns.Name)
	if working != nil {
		return true, &laterError{time.Second}
	}
	defer end()
	_, err = r.finish(request.WithUser(ctx, &user.DefaultInfo{Name: "the undelete of the namespace"}), ns)
	return err != nil, err
}

// finish removes the deletion marks of the resources and makes the namespace active.
func (r *undeleteNamespaceREST) finish(ctx context.Context, ns *corev1.Namespace) (out runtime.Object, err error) {
	waits, err := r.unmark(ctx, ns)
	if err == nil && waits != "" {
		err = fmt.Errorf("%s waits for its provider, which is not ready", waits)
	}
	if err != nil {
		return nil, err
	}
	err = r.server.deletions.finish(ns.Name, func() error {
		now, err := r.server.config.client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case now.UID == ns.UID && now.DeletionTimestamp == nil:
			out = now // another caller has finished it
			return nil
		case !undeleteRequested(now):
			return namespaceConflict(ns.Name, "it was deleted again meanwhile")
		}
		out, err = deletion.Undo(ctx, r.store, ns.Name, ns.UID, false, activate)
		return err
	})
	return out, err
}

func activate(obj runtime.Object) {
	ns := obj.(*corev1.Namespace)
	ns.Status.Phase, ns.Status.Conditions = corev1.NamespaceActive, nil
}

// unmark reverts the deletions of the resources that were marked with their namespace. It returns a resource whose
// provider is not ready, or "". Resources that were deleted earlier stay deleted. So do those that an approved plan
// destroys; a warning names these.
func (r *undeleteNamespaceREST) unmark(ctx context.Context, ns *corev1.Namespace) (waits string, err error) {
	s := r.server
	for u, err := range s.config.store.Objects().OfProviders(ctx, ns.Name) {
		if err != nil {
			return "", err
		}
		if marked := u.GetDeletionTimestamp(); marked == nil || marked.Before(ns.DeletionTimestamp) {
			continue
		}
		if !s.deletions.isUndeleting(ns.Name) {
			return "", namespaceConflict(ns.Name, "it was deleted again meanwhile")
		}
		name := u.GetKind() + "/" + u.GetName()
		kind, served := s.kinds.Kind(u.GroupVersionKind())
		if !served {
			waits = name
			continue
		}
		switch err := s.kinds.Undelete(ctx, kind, u); {
		case apierrors.IsConflict(err):
			warning.AddWarning(ctx, "", fmt.Sprintf("%s stays deleted: %v", name, err))
			s.log.Warn("an object stays deleted after the undelete of its namespace", "namespace", ns.Name, "object",
				name, "error", err)
		case err != nil && !apierrors.IsNotFound(err):
			return "", fmt.Errorf("undelete %s: %w", name, err)
		}
	}
	return waits, nil
}

// continueLater schedules the continuation of an undelete. It returns the error for the request that could not complete
// it.
func (r *undeleteNamespaceREST) continueLater(name string, err error) error {
	r.server.deletions.wake()
	return apierrors.NewServiceUnavailable(
		fmt.Sprintf("The deletion of namespace %q is not taken back yet, and the server tries again: %v. Until then no plan can be made in it.", name, err))
}

func namespaceConflict(name, why string) error {
	return apierrors.NewConflict(corev1.Resource(namespaces), name, errors.New(why))
}
