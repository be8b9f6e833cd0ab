package speculation

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
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

// releaseWait is the maximum time that the server takes to release objects after their infrastructure was destroyed.
const releaseWait = 10 * time.Second

// PruneFlags holds the flags of verbs that prune.
type PruneFlags struct {
	Prune    bool
	applySet string
}

// Add adds the flags.
func (f *PruneFlags) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.Prune, "prune", false,
		"Also delete the members of the applyset that the files no longer contain, and destroy their infrastructure")
	fs.StringVar(&f.applySet, "applyset", "",
		"With --prune, the Secret that records the members of the set; the first apply creates it: NAME, or configmap/NAME for a ConfigMap")
}

// Validate returns an error for flags with which some members would be neither planned nor in the files.
func (f *PruneFlags) Validate(files *manifest.Flags, planning *operation.PlanFlags) error {
	switch {
	case !f.Prune && f.applySet != "":
		return errors.New("--applyset is for --prune: add --prune")
	case !f.Prune:
		return nil
	case !files.Given():
		return errors.New("--prune deletes objects that you removed from the files: name the files with -f PATH")
	case f.applySet == "":
		return errors.New("--prune needs the name of the set of these files, the same name each time: add --applyset NAME. A Secret of that name records the set")
	case !planning.Empty() || len(planning.Exclude) > 0:
		return errors.New("--prune plans all objects of the files, and all that you removed from them: it excludes --target, -l and --exclude")
	}
	return nil
}

// Manifests reads the files. Files without objects are an error, except with --prune, where they prune all members. A
// path without files is always an error, because with --prune a mistake would delete everything.
func (f *PruneFlags) Manifests(ctx context.Context, s *session.Session,
	files *manifest.Flags) ([]manifest.Manifest, error) {
	ms, err := manifest.Read(ctx, s, files)
	empty, ok := errors.AsType[*manifest.NoObjectsError](err)
	switch {
	case !f.Prune || !ok:
		return ms, err
	case empty.Files == 0:
		return nil, fmt.Errorf("%w. With --prune that would delete all members of the applyset %q. To delete them all, keep a file that contains only a comment", err, f.applySet)
	}
	return nil, nil
}

// Set returns the applyset in the flags and labels the objects of the files as its members. It returns nil without
// --prune.
func (f *PruneFlags) Set(s *session.Session, ms []manifest.Manifest) (*ApplySet, error) {
	if !f.Prune {
		return nil, nil
	}
	set, err := newApplySet(s, f.applySet)
	if err != nil {
		return nil, err
	}
	return set, set.addMembers(ms)
}

// RepeatFlags returns the flags that make a command prune the same files.
func (f *PruneFlags) RepeatFlags() string {
	if !f.Prune {
		return ""
	}
	return " --prune --applyset " + f.applySet
}

// staysUntilDestroyed reports whether a resource stays, marked for deletion, until a plan has destroyed its
// infrastructure.
func staysUntilDestroyed(u *unstructured.Unstructured) bool {
	return addrs.IsResource(u) && len(u.GetFinalizers()) > 0
}

// MayPrune returns an error, before the question, if the user lacks the right to delete pruned objects.
func (a *ApplySet) MayPrune(ctx context.Context) error {
	seen := map[string]bool{}
	var refused []string
	for _, m := range a.Left {
		gvr, _, err := a.Mapping(m.Object.GroupVersionKind())
		if err != nil {
			return fmt.Errorf("find kind %q: %w", m.Object.GetKind(), a.Explain(err))
		}
		key := gvr.GroupResource().String() + " in namespace " + m.Object.GetNamespace()
		if seen[key] {
			continue
		}
		seen[key] = true
		if !planapi.Allowed(ctx, a.Session, "delete", gvr, "", m.Object.GetNamespace()) {
			refused = append(refused, fmt.Sprintf("  %s: that needs the verb \"delete\" on %s",
				record.Line(m.Object, "left the files"), key))
		}
	}
	if len(refused) > 0 {
		return &exit.Error{Code: exit.Refused,
			Cause: fmt.Errorf("you may not delete objects that you removed from the files:\n%s\nNothing was recorded",
				strings.Join(refused, "\n"))}
	}
	return nil
}

// Mark deletes the resources that are no longer in the files. Those with infrastructure stay until a plan has destroyed
// it.
func (a *ApplySet) Mark(ctx context.Context) error {
	client, err := objects.Quiet(a.Session)
	if err != nil {
		return err
	}
	for _, m := range a.Left {
		if addrs.IsResource(m.Object) {
			if err := a.remove(ctx, client, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes a pruned object, unless another object has its name now.
func (a *ApplySet) remove(ctx context.Context, client dynamic.Interface, m manifest.Manifest) error {
	if m.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	gvr, _, err := a.Mapping(m.Object.GroupVersionKind())
	if err == nil {
		err = client.Resource(gvr).Namespace(m.Object.GetNamespace()).Delete(ctx, m.Object.GetName(),
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(m.Object.GetUID()))})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune %s %q: %w", m.Object.GetKind(), m.Object.GetName(), a.Explain(err))
	}
	fmt.Fprintln(a.Out, record.Line(m.Object, "pruned"))
	return nil
}

// Finish deletes the pruned objects other than resources, and records the new content of the applyset. It deletes
// objects that resources need for their destroy only after those resources.
func (a *ApplySet) Finish(ctx context.Context, ms []manifest.Manifest) error {
	var resources, others []manifest.Manifest
	for _, m := range a.Left {
		if addrs.IsResource(m.Object) {
			resources = append(resources, m)
		} else {
			others = append(others, m)
		}
	}
	stay := a.remaining(ctx, resources, releaseWait)
	if len(stay) > 0 && len(others) > 0 {
		fmt.Fprintf(a.ErrOut, "%s still exists, so these stay, too. To delete them later, run the same command again:\n", record.Line(stay[0].Object, "was not destroyed and"))
		for _, m := range others {
			fmt.Fprintln(a.ErrOut, "  "+record.Line(m.Object, ""))
		}
		return a.Record(ctx, append(append(stay, others...), ms...), false)
	}
	var failed []error
	for _, m := range others {
		failed = append(failed, a.remove(ctx, a.Objects, m))
	}
	stay = append(stay, a.remaining(ctx, others, 0)...)
	return errors.Join(append(failed, a.Record(ctx, append(stay, ms...), false))...)
}

// remaining returns the objects that still exist after the wait.
func (a *ApplySet) remaining(ctx context.Context, ms []manifest.Manifest, wait time.Duration) []manifest.Manifest {
	var out []manifest.Manifest
	deadline := time.Now().Add(wait)
	for _, m := range ms {
		for {
			gvr, _, err := a.Mapping(m.Object.GroupVersionKind())
			if err == nil {
				var u *unstructured.Unstructured
				u, err = a.Resource(gvr, m.Object.GetNamespace()).Get(ctx, m.Object.GetName(), metav1.GetOptions{})
				if err == nil && u.GetUID() != m.Object.GetUID() {
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
			session.Pause(ctx, 100*time.Millisecond)
		}
	}
	return out
}

// prunedRef returns the reference to a pruned resource for a plan.
func prunedRef(u *unstructured.Unstructured) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
		Name: u.GetName(), UID: u.GetUID()}
}

// This file reports, before the question of an apply, which objects outside of the files it affects.

// leftStored maps "secret/NAMESPACE/NAME" or "configmap/NAMESPACE/NAME" of each pruned Secret and ConfigMap to its
// kind.
func (a *ApplySet) leftStored() map[string]string {
	left := map[string]string{}
	for _, l := range a.Left {
		if k := l.Object.GetKind(); k == "Secret" || k == "ConfigMap" {
			left[strings.ToLower(k)+"/"+l.Object.GetNamespace()+"/"+l.Object.GetName()] = k
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
		used.Insert(Stored(r, u.GetNamespace()))
	}
	secretRefs, _, _ := unstructured.NestedSlice(u.Object, "spec", "secretRefs")
	for _, ref := range secretRefs {
		ref, _ := ref.(map[string]any)
		used.Insert(fmt.Sprintf("secret/%s/%v", u.GetNamespace(), ref["name"]))
	}
	return used
}

// WarnReferrers warns about objects outside of the files that read a pruned Secret or ConfigMap. It searches the
// namespaces of the pruned objects, as far as the user may.
func (a *ApplySet) WarnReferrers(ctx context.Context) error {
	left := a.leftStored()
	if len(left) == 0 {
		return nil
	}
	leaving, namespaces := sets.New[string](), sets.New[string]()
	for _, l := range a.Left {
		leaving.Insert(identity(l.Object))
		if left[strings.ToLower(l.Object.GetKind())+"/"+l.Object.GetNamespace()+"/"+l.Object.GetName()] != "" {
			namespaces.Insert(l.Object.GetNamespace())
		}
	}
	kinds, err := a.ResourceKinds(ctx)
	if err != nil {
		return err
	}
	kinds = append(kinds, session.Kind{GVR: v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"),
		Kind: "ProviderConfig"})
	by := map[string][]string{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		_, err := objects.EachObject(ctx, a.Session, kinds, namespace, "",
			func(k session.Kind, u *unstructured.Unstructured) {
				u.SetGroupVersionKind(k.GVR.GroupVersion().WithKind(k.Kind)) // items of a list may lack it
				if leaving.Has(identity(u)) {
					return
				}
				for key := range dataReferences(u) {
					if left[key] != "" {
						by[key] = append(by[key], strings.ToLower(k.Kind)+"/"+u.GetName()+" in namespace "+namespace)
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
			a.Style.Yellow("Warning:"), left[key], key[strings.LastIndexByte(key, '/')+1:],
			strings.Join(printer.Cut(names, printer.ListedChanges, "%d more"), ", "))
	}
	return nil
}

// WarnLeavingSets warns about objects of the files that would cease to be members of an applyset, because the command
// has no --prune.
func (sp *Speculation) WarnLeavingSets(ctx context.Context) {
	a := &ApplySet{Session: sp.Session}
	written, listed := sets.New[string](), sets.New[string]()
	var leaving []string
	for _, m := range sp.Manifests {
		if m.Object.GetLabels()[record.PartOfLabel] == "" {
			written.Insert(identity(m.Object))
		}
	}
	for _, m := range sp.Manifests {
		gvk, namespace := m.Object.GroupVersionKind(), m.Object.GetNamespace()
		if key := gvk.String() + "/" + namespace; !canBelong(gvk.GroupKind()) || listed.Has(key) {
			continue
		} else {
			listed.Insert(key)
		}
		gvr, _, err := sp.Mapping(gvk)
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
				leaving = append(leaving, strings.TrimSpace(record.Line(u, "")))
			}
		}
	}
	if len(leaving) > 0 {
		slices.Sort(leaving)
		fmt.Fprintf(sp.ErrOut, "%s recording the files without --prune takes %s, such as %s, out of an applyset. A later --prune does not delete them. To keep them in the set, apply the same files with --prune --applyset NAME.\n",
			sp.Style.Yellow("Warning:"), diff.Plural(len(leaving), "object"), leaving[0])
	}
}
