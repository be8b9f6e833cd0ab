package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/condition"
)

// partialList requests only the metadata of objects, so that the command does not read the values of Secrets.
const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Leaving lists the ProviderConfigs, Secrets and ConfigMaps of a namespace that are being deleted, and the reason why
// each still exists. It omits the objects that the user may not list, and ignores errors.
func Leaving(ctx context.Context, s *session.Session, namespace string) []string {
	var out []string
	add := func(name, waitsFor string) {
		out = append(out, name+": "+cmp.Or(printer.Flat(waitsFor), "It is being deleted"))
	}
	configs := v1alpha1.SchemeGroupVersion.WithResource("providerconfigs")
	if list, err := s.Resource(configs, namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			if u := &list.Items[i]; u.GetDeletionTimestamp() != nil {
				add("providerconfig/"+u.GetName(), inUse(u))
			}
		}
	}
	for _, kind := range []string{"secret", "configmap"} {
		raw, err := s.Hykube.Get().AbsPath("/api/v1/namespaces", namespace, kind+"s").SetHeader("Accept",
			partialList).Do(ctx).Raw()
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
func noteLeaving(ctx context.Context, s *session.Session, p *v1alpha1.Plan) {
	if p.Status.Summary == nil || p.Status.Summary.Delete == 0 {
		return
	}
	lines := Leaving(ctx, s, p.Namespace)
	if len(lines) == 0 {
		return
	}
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i], _, _ = strings.Cut(l, ":")
	}
	fmt.Fprintf(s.Out, "\n%s These are being deleted, too. The server removes them when no resource needs them: %s\nTo keep them: kubectl hykube undelete %s -n %s\n",
		s.Style.Yellow("Note:"), strings.Join(names, ", "), strings.Join(names, " "), p.Namespace)
}
