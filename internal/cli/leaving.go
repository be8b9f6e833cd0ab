package cli

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
	"github.com/hykube/hykube/internal/condition"
)

// partialList asks for the metadata of objects alone: the values of Secrets are nobody's business here.
const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// leaving are the ProviderConfigs, Secrets and ConfigMaps of a namespace that are being deleted, with what each waits for, as far as the
// user may list them. Errors only make it shorter: it is a note.
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

// inUse is the message of the condition InUse of an object.
func inUse(u *unstructured.Unstructured) string {
	message, _ := condition.Find(u, v1alpha1.ConditionInUse)["message"].(string)
	return message
}

// noteLeaving says under a plan that destroys what goes with it although the plan does not list it.
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
	fmt.Fprintf(s.Out, "\n%s These are being deleted, too, and go once no resource needs them: %s\nTo keep them: kubectl hykube undelete %s -n %s\n",
		s.style.Yellow("Note:"), strings.Join(names, ", "), strings.Join(names, " "), p.Namespace)
}
