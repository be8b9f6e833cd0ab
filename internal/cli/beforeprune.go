package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

// This file says before the question of an apply which objects outside the files the apply concerns.

// leftStored are the kinds of the Secrets and ConfigMaps that left the files, each by "secret/NAMESPACE/NAME".
func (a *applySet) leftStored() map[string]string {
	left := map[string]string{}
	for _, l := range a.left {
		if k := l.object.GetKind(); k == "Secret" || k == "ConfigMap" {
			left[strings.ToLower(k)+"/"+l.object.GetNamespace()+"/"+l.object.GetName()] = k
		}
	}
	return left
}

// reads are the Secrets and ConfigMaps that an object reads, each as "secret/NAMESPACE/NAME".
func reads(u *unstructured.Unstructured) sets.Set[string] {
	refs, _, _ := template.Evaluate(u.Object["spec"])
	lifecycle, _, _ := template.Evaluate(u.Object["lifecycle"])
	used := sets.New[string]()
	for _, r := range append(refs, lifecycle...) {
		used.Insert(stored(r, u.GetNamespace()))
	}
	secretRefs, _, _ := unstructured.NestedSlice(u.Object, "spec", "secretRefs")
	for _, ref := range secretRefs {
		ref, _ := ref.(map[string]any)
		used.Insert(fmt.Sprintf("secret/%s/%v", u.GetNamespace(), ref["name"]))
	}
	return used
}

// tellReferrers warns of objects outside the files that read a Secret or ConfigMap which left them. It looks into the namespaces of
// what left, as far as the user may.
func (a *applySet) tellReferrers(ctx context.Context) error {
	left := a.leftStored()
	if len(left) == 0 {
		return nil
	}
	leaving, namespaces := sets.New[string](), sets.New[string]()
	for _, l := range a.left {
		leaving.Insert(identity(l.object))
		if left[strings.ToLower(l.object.GetKind())+"/"+l.object.GetNamespace()+"/"+l.object.GetName()] != "" {
			namespaces.Insert(l.object.GetNamespace())
		}
	}
	kinds, err := a.resourceKinds(ctx)
	if err != nil {
		return explain(err, a.server())
	}
	kinds = append(kinds, kind{v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"), "ProviderConfig"})
	by := map[string][]string{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		_, err := a.eachObject(ctx, kinds, namespace, "", func(k kind, u *unstructured.Unstructured) {
			u.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.kind)) // items of a list need not say it
			if leaving.Has(identity(u)) {
				return
			}
			for key := range reads(u) {
				if left[key] != "" {
					by[key] = append(by[key], strings.ToLower(k.kind)+"/"+u.GetName()+" in namespace "+namespace)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		names := by[key]
		slices.Sort(names)
		fmt.Fprintf(a.ErrOut, "%s %s %q left the files and will be deleted, and objects outside the files refer to it: %s\n",
			a.style.Yellow("Warning:"), left[key], key[strings.LastIndexByte(key, '/')+1:], strings.Join(cut(names, listedChanges, "%d more"), ", "))
	}
	return nil
}

// tellLeavingSets warns of objects of the files that are members of an applyset, and would be no more, since the command has no --prune.
func (sp *speculation) tellLeavingSets(ctx context.Context) {
	a := &applySet{session: sp.session}
	written, listed := sets.New[string](), sets.New[string]()
	var leaving []string
	for _, m := range sp.ms {
		if m.object.GetLabels()[partOfLabel] == "" {
			written.Insert(identity(m.object))
		}
	}
	for _, m := range sp.ms {
		gvk, namespace := m.object.GroupVersionKind(), m.object.GetNamespace()
		if key := gvk.String() + "/" + namespace; !canBelong(gvk.GroupKind()) || listed.Has(key) {
			continue
		} else {
			listed.Insert(key)
		}
		gvr, _, err := sp.mapping(gvk)
		if err != nil {
			continue
		}
		members, err := a.labelled(ctx, gvr, namespace)
		if err != nil {
			continue // it is a warning, for those who may look
		}
		for _, u := range members {
			u.SetGroupVersionKind(gvk)
			if written.Has(identity(u)) {
				leaving = append(leaving, strings.TrimSpace(line(u, "")))
			}
		}
	}
	if len(leaving) > 0 {
		slices.Sort(leaving)
		fmt.Fprintf(sp.ErrOut, "%s recording the files without --prune takes %s, such as %s, out of an applyset. No later --prune deletes what left; the same files with --prune --applyset NAME bring it back.\n",
			sp.style.Yellow("Warning:"), diff.Plural(len(leaving), "object"), leaving[0])
	}
}
