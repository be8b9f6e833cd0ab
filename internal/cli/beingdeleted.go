package cli

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
)

// inDeletion says whether the API refused an object because that object, or its namespace, is being deleted.
func inDeletion(err error) bool {
	return apierrors.HasStatusCause(err, v1alpha1.CauseBeingDeleted) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// beingDeleted is the error of files that declare objects which are being deleted: recording would not keep them. It names each, and
// the ways out.
func (s *session) beingDeleted(ctx context.Context, ms []manifest) error {
	var b strings.Builder
	b.WriteString("the files declare objects that are being deleted, and recording them would not keep them:\n")
	var order []string
	undelete, destroy, other := map[string][]string{}, map[string][]string{}, false
	for _, m := range ms {
		namespace, name := m.object.GetNamespace(), ref(m)
		fmt.Fprintf(&b, "  %s: %s %q", m.where(), m.object.GetKind(), m.object.GetName())
		if terminating := namespace != "" && s.namespaceTerminates(ctx, namespace); terminating {
			fmt.Fprintf(&b, ", with the namespace %q", namespace)
			namespace, name = "", "namespace/"+namespace
		} else if isResource(m.object) {
			destroy[namespace] = append(destroy[namespace], name)
		} else if _, ok := parseFixed(name); !ok {
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
	say("To have new ones in their place, destroy these first, then run the same command again:", "destroy", destroy)
	if other {
		b.WriteString("Other kinds are gone once their finalizers are removed: wait for that, then run the same command again.\n")
	}
	return errors.New(strings.TrimSuffix(b.String(), "\n"))
}

// ref is an object as undelete and destroy read it.
func ref(m manifest) string {
	return strings.ToLower(m.object.GetKind()) + "/" + m.object.GetName()
}

// inNamespace is the flag that chooses a namespace; empty for cluster scope.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// namespaceTerminates says whether a namespace is being deleted, as far as the user may see it.
func (s *session) namespaceTerminates(ctx context.Context, name string) bool {
	ns, err := s.resource(namespaces, "").Get(ctx, name, metav1.GetOptions{})
	return err == nil && ns.GetDeletionTimestamp() != nil
}
