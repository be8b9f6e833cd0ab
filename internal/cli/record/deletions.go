package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/session"
)

// InDeletion reports whether the server rejected an object because the object or its namespace is being deleted.
func InDeletion(err error) bool {
	return apierrors.HasStatusCause(err, v1alpha1.CauseBeingDeleted) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// BeingDeleted returns the error for files with objects that are being deleted. It names each object and the commands
// that help.
func BeingDeleted(ctx context.Context, s *session.Session, ms []manifest.Manifest) error {
	var b strings.Builder
	b.WriteString("the files declare objects that are being deleted, and recording them would not keep them:\n")
	var order []string
	undelete, destroy, other := map[string][]string{}, map[string][]string{}, false
	for _, m := range ms {
		namespace, name := m.Object.GetNamespace(), ref(m)
		fmt.Fprintf(&b, "  %s: %s %q", m.Where(), m.Object.GetKind(), m.Object.GetName())
		if terminating := namespace != "" && NamespaceTerminates(ctx, s, namespace); terminating {
			fmt.Fprintf(&b, ", with the namespace %q", namespace)
			namespace, name = "", "namespace/"+namespace
		} else if addrs.IsResource(m.Object) {
			destroy[namespace] = append(destroy[namespace], name)
		} else if _, ok := session.ParseFixed(name); !ok {
			other = true
			b.WriteString("\n")
			continue
		}
		b.WriteString("\n")
		if !slices.Contains(order, namespace) {
			order = append(order, namespace)
		}
		if !slices.Contains(undelete[namespace], name) {
			undelete[namespace] = append(undelete[namespace], name)
		}
	}
	say := func(head, verb string, of map[string][]string) {
		if len(of) > 0 {
			b.WriteString(head + "\n")
		}
		for _, namespace := range order {
			if names := of[namespace]; len(names) > 0 {
				fmt.Fprintf(&b, "  kubectl hykube %s %s%s\n", verb, strings.Join(names, " "), inNamespace(namespace))
			}
		}
	}
	say("To keep them, take the deletion back, then run the same command again:", "undelete", undelete)
	say("To create new ones, destroy these first, then run the same command again:", "destroy", destroy)
	if other {
		b.WriteString("Objects of other kinds are removed when their finalizers are removed: wait for that, then run the same command again.\n")
	}
	return errors.New(strings.TrimSuffix(b.String(), "\n"))
}

// ref returns KIND/NAME of an object, as undelete and destroy accept it.
func ref(m manifest.Manifest) string {
	return strings.ToLower(m.Object.GetKind()) + "/" + m.Object.GetName()
}

// inNamespace returns the flag -n for a namespace; "" for a cluster-scoped object.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// NamespaceTerminates reports whether a namespace is being deleted. It returns false if the user may not get the
// namespace.
func NamespaceTerminates(ctx context.Context, s *session.Session, name string) bool {
	ns, err := s.Resource(session.Namespaces, "").Get(ctx, name, metav1.GetOptions{})
	return err == nil && ns.GetDeletionTimestamp() != nil
}
