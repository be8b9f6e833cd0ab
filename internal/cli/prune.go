package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

// releaseWait is the maximum time that the server takes to release objects after their infrastructure was destroyed.
const releaseWait = 10 * time.Second

// pruneFlags holds the flags of verbs that prune.
type pruneFlags struct {
	prune    bool
	applySet string
}

func (f *pruneFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.prune, "prune", false, "Also delete the members of the applyset that the files no longer contain, and destroy their infrastructure")
	fs.StringVar(&f.applySet, "applyset", "", "With --prune, the Secret that records the members of the set; the first apply creates it: NAME, or configmap/NAME for a ConfigMap")
}

// validate returns an error for flags with which some members would be neither planned nor in the files.
func (f *pruneFlags) validate(files *fileFlags, planning *planFlags) error {
	switch {
	case !f.prune && f.applySet != "":
		return errors.New("--applyset is for --prune: add --prune")
	case !f.prune:
		return nil
	case !files.given():
		return errors.New("--prune deletes objects that you removed from the files: name the files with -f PATH")
	case f.applySet == "":
		return errors.New("--prune needs the name of the set of these files, the same name each time: add --applyset NAME. A Secret of that name records the set")
	case !planning.empty() || len(planning.exclude) > 0:
		return errors.New("--prune plans all objects of the files, and all that you removed from them: it excludes --target, -l and --exclude")
	}
	return nil
}

// manifests reads the files. Files without objects are an error, except with --prune, where they prune all members. A
// path without files is always an error, because with --prune a mistake would delete everything.
func (f *pruneFlags) manifests(ctx context.Context, s *session, files *fileFlags) ([]manifest, error) {
	ms, err := s.manifests(ctx, files)
	empty, ok := errors.AsType[*noObjectsError](err)
	switch {
	case !f.prune || !ok:
		return ms, err
	case empty.files == 0:
		return nil, fmt.Errorf("%w. With --prune that would delete all members of the applyset %q. To delete them all, keep a file that contains only a comment", err, f.applySet)
	}
	return nil, nil
}

// set returns the applyset in the flags and labels the objects of the files as its members. It returns nil without
// --prune.
func (f *pruneFlags) set(s *session, ms []manifest) (*applySet, error) {
	if !f.prune {
		return nil, nil
	}
	set, err := newApplySet(s, f.applySet)
	if err != nil {
		return nil, err
	}
	return set, set.addMembers(ms)
}

// repeatFlags returns the flags that make a command prune the same files.
func (f *pruneFlags) repeatFlags() string {
	if !f.prune {
		return ""
	}
	return " --prune --applyset " + f.applySet
}

// held reports whether a resource stays, marked for deletion, until a plan has destroyed its infrastructure.
func held(u *unstructured.Unstructured) bool { return isResource(u) && len(u.GetFinalizers()) > 0 }

// mayPrune returns an error, before the question, if the user lacks the right to delete pruned objects.
func (a *applySet) mayPrune(ctx context.Context) error {
	seen := map[string]bool{}
	var refused []string
	for _, m := range a.left {
		gvr, _, err := a.mapping(m.object.GroupVersionKind())
		if err != nil {
			return fmt.Errorf("find kind %q: %w", m.object.GetKind(), explain(err, a.server()))
		}
		key := gvr.GroupResource().String() + " in namespace " + m.object.GetNamespace()
		if seen[key] {
			continue
		}
		seen[key] = true
		if !a.allowed(ctx, "delete", gvr, "", m.object.GetNamespace()) {
			refused = append(refused, fmt.Sprintf("  %s: that needs the verb \"delete\" on %s", line(m.object, "left the files"), key))
		}
	}
	if len(refused) > 0 {
		return &exitError{ExitRefused, fmt.Errorf("you may not delete objects that you removed from the files:\n%s\nNothing was recorded", strings.Join(refused, "\n"))}
	}
	return nil
}

// mark deletes the resources that are no longer in the files. Those with infrastructure stay until a plan has destroyed
// it.
func (a *applySet) mark(ctx context.Context) error {
	client, err := a.quiet()
	if err != nil {
		return err
	}
	for _, m := range a.left {
		if isResource(m.object) {
			if err := a.remove(ctx, client, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes a pruned object, unless another object has its name now.
func (a *applySet) remove(ctx context.Context, client dynamic.Interface, m manifest) error {
	if m.object.GetDeletionTimestamp() != nil {
		return nil
	}
	gvr, _, err := a.mapping(m.object.GroupVersionKind())
	if err == nil {
		err = client.Resource(gvr).Namespace(m.object.GetNamespace()).Delete(ctx, m.object.GetName(),
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(m.object.GetUID()))})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune %s %q: %w", m.object.GetKind(), m.object.GetName(), explain(err, a.server()))
	}
	fmt.Fprintln(a.Out, line(m.object, "pruned"))
	return nil
}

// finish deletes the pruned objects other than resources, and records the new content of the applyset. It deletes
// objects that resources need for their destroy only after those resources.
func (a *applySet) finish(ctx context.Context, ms []manifest) error {
	var resources, others []manifest
	for _, m := range a.left {
		if isResource(m.object) {
			resources = append(resources, m)
		} else {
			others = append(others, m)
		}
	}
	stay := a.remaining(ctx, resources, releaseWait)
	if len(stay) > 0 && len(others) > 0 {
		fmt.Fprintf(a.ErrOut, "%s still exists, so these stay, too. To delete them later, run the same command again:\n", line(stay[0].object, "was not destroyed and"))
		for _, m := range others {
			fmt.Fprintln(a.ErrOut, "  "+line(m.object, ""))
		}
		return a.record(ctx, append(append(stay, others...), ms...), false)
	}
	var failed []error
	for _, m := range others {
		failed = append(failed, a.remove(ctx, a.objects, m))
	}
	stay = append(stay, a.remaining(ctx, others, 0)...)
	return errors.Join(append(failed, a.record(ctx, append(stay, ms...), false))...)
}

// remaining returns the objects that still exist after the wait.
func (a *applySet) remaining(ctx context.Context, ms []manifest, wait time.Duration) []manifest {
	var out []manifest
	deadline := time.Now().Add(wait)
	for _, m := range ms {
		for {
			gvr, _, err := a.mapping(m.object.GroupVersionKind())
			if err == nil {
				var u *unstructured.Unstructured
				u, err = a.resource(gvr, m.object.GetNamespace()).Get(ctx, m.object.GetName(), metav1.GetOptions{})
				if err == nil && u.GetUID() != m.object.GetUID() {
					break
				}
			}
			if apierrors.IsNotFound(err) {
				break
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				out = append(out, m)
				break
			}
			pause(ctx, 100*time.Millisecond)
		}
	}
	return out
}

// prunedRef returns the reference to a pruned resource for a plan.
func prunedRef(u *unstructured.Unstructured) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()}
}

// This file reports, before the question of an apply, which objects outside of the files it affects.

// leftStored maps "secret/NAMESPACE/NAME" or "configmap/NAMESPACE/NAME" of each pruned Secret and ConfigMap to its
// kind.
func (a *applySet) leftStored() map[string]string {
	left := map[string]string{}
	for _, l := range a.left {
		if k := l.object.GetKind(); k == "Secret" || k == "ConfigMap" {
			left[strings.ToLower(k)+"/"+l.object.GetNamespace()+"/"+l.object.GetName()] = k
		}
	}
	return left
}

// dataReferences returns the Secrets and ConfigMaps that an object reads, as "secret/NAMESPACE/NAME" and the like.
func dataReferences(u *unstructured.Unstructured) sets.Set[string] {
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

// warnReferrers warns about objects outside of the files that read a pruned Secret or ConfigMap. It searches the
// namespaces of the pruned objects, as far as the user may.
func (a *applySet) warnReferrers(ctx context.Context) error {
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
			u.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.kind)) // items of a list may lack it
			if leaving.Has(identity(u)) {
				return
			}
			for key := range dataReferences(u) {
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
		fmt.Fprintf(a.ErrOut, "%s %s %q is no longer in the files and will be deleted, but objects outside the files refer to it: %s\n",
			a.style.Yellow("Warning:"), left[key], key[strings.LastIndexByte(key, '/')+1:], strings.Join(cut(names, listedChanges, "%d more"), ", "))
	}
	return nil
}

// warnLeavingSets warns about objects of the files that would cease to be members of an applyset, because the command
// has no --prune.
func (sp *speculation) warnLeavingSets(ctx context.Context) {
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
			continue // the warning needs the right to list
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
		fmt.Fprintf(sp.ErrOut, "%s recording the files without --prune takes %s, such as %s, out of an applyset. A later --prune does not delete them. To keep them in the set, apply the same files with --prune --applyset NAME.\n",
			sp.style.Yellow("Warning:"), diff.Plural(len(leaving), "object"), leaving[0])
	}
}
