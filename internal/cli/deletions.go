package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// inDeletion reports whether the server rejected an object because the object or its namespace is being deleted.
func inDeletion(err error) bool {
	return apierrors.HasStatusCause(err, v1alpha1.CauseBeingDeleted) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// beingDeleted returns the error for files with objects that are being deleted. It names each object and the commands
// that help.
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
	say("To create new ones, destroy these first, then run the same command again:", "destroy", destroy)
	if other {
		b.WriteString("Objects of other kinds are removed when their finalizers are removed: wait for that, then run the same command again.\n")
	}
	return errors.New(strings.TrimSuffix(b.String(), "\n"))
}

// ref returns KIND/NAME of an object, as undelete and destroy accept it.
func ref(m manifest) string {
	return strings.ToLower(m.object.GetKind()) + "/" + m.object.GetName()
}

// inNamespace returns the flag -n for a namespace; "" for a cluster-scoped object.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// namespaceTerminates reports whether a namespace is being deleted. It returns false if the user may not get the
// namespace.
func (s *session) namespaceTerminates(ctx context.Context, name string) bool {
	ns, err := s.resource(namespaces, "").Get(ctx, name, metav1.GetOptions{})
	return err == nil && ns.GetDeletionTimestamp() != nil
}

// partialList requests only the metadata of objects, so that the command does not read the values of Secrets.
const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// leaving lists the ProviderConfigs, Secrets and ConfigMaps of a namespace that are being deleted, and the reason why
// each still exists. It omits the objects that the user may not list, and ignores errors.
func (s *session) leaving(ctx context.Context, namespace string) []string {
	var out []string
	add := func(name, waitsFor string) {
		out = append(out, name+": "+cmp.Or(flat(waitsFor), "It is being deleted"))
	}
	configs := v1alpha1.SchemeGroupVersion.WithResource("providerconfigs")
	if list, err := s.resource(configs, namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			if u := &list.Items[i]; u.GetDeletionTimestamp() != nil {
				add("providerconfig/"+u.GetName(), inUse(u))
			}
		}
	}
	for _, kind := range []string{"secret", "configmap"} {
		raw, err := s.hykube.Get().AbsPath("/api/v1/namespaces", namespace, kind+"s").SetHeader("Accept", partialList).Do(ctx).Raw()
		list := &metav1.PartialObjectMetadataList{}
		if err != nil || json.Unmarshal(raw, list) != nil {
			continue
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.DeletionTimestamp != nil {
				add(kind+"/"+m.Name, m.Annotations[v1alpha1.AnnotationInUseBy])
			}
		}
	}
	slices.Sort(out)
	return out
}

// inUse returns the message of an object's condition InUse.
func inUse(u *unstructured.Unstructured) string {
	message, _ := condition.Find(u, v1alpha1.ConditionInUse)["message"].(string)
	return message
}

// noteLeaving prints a note about the objects that the server removes after a destroy, although the plan does not list
// them.
func (s *session) noteLeaving(ctx context.Context, p *v1alpha1.Plan) {
	if p.Status.Summary == nil || p.Status.Summary.Delete == 0 {
		return
	}
	lines := s.leaving(ctx, p.Namespace)
	if len(lines) == 0 {
		return
	}
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i], _, _ = strings.Cut(l, ":")
	}
	fmt.Fprintf(s.Out, "\n%s These are being deleted, too. The server removes them when no resource needs them: %s\nTo keep them: kubectl hykube undelete %s -n %s\n",
		s.style.Yellow("Note:"), strings.Join(names, ", "), strings.Join(names, " "), p.Namespace)
}
