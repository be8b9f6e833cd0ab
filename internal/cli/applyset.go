package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

// The labels and annotations of the ApplySet specification:
// https://git.k8s.io/enhancements/keps/sig-cli/3659-kubectl-apply-prune#design-details-applyset-specification kubectl's
// package defines them, too, but imports a large part of kubectl.
const (
	partOfLabel          = "applyset.kubernetes.io/part-of"
	setIDLabel           = "applyset.kubernetes.io/id"
	toolingAnnotation    = "applyset.kubernetes.io/tooling"
	kindsAnnotation      = "applyset.kubernetes.io/contains-group-kinds"
	namespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	// setTool is the tool name in the annotation. The command does not change applysets of other tools.
	setTool = "kubectl-hykube"
)

// applySet is a set of objects that are applied together. Its parent, a Secret or ConfigMap, records the kinds and
// namespaces of its members.
type applySet struct {
	*session
	kind, namespace, name string
	// exists is true if the parent exists.
	exists bool
	// kinds and namespaces are those recorded in the parent.
	kinds      sets.Set[schema.GroupKind]
	namespaces sets.Set[string]
	// lost holds recorded kinds that the server does not serve.
	lost sets.Set[schema.GroupKind]
	// left holds the members that are not in the files.
	left []manifest
}

// newApplySet parses the value of --applyset: NAME, secret/NAME or configmap/NAME.
func newApplySet(s *session, text string) (*applySet, error) {
	set := &applySet{session: s, kind: "Secret", namespace: s.namespace, name: text}
	if resource, name, typed := strings.Cut(text, "/"); typed {
		switch strings.ToLower(resource) {
		case "secret", "secrets":
		case "configmap", "configmaps", "cm":
			set.kind = "ConfigMap"
		default:
			return nil, fmt.Errorf("--applyset=%s: the parent of an applyset is a Secret or a ConfigMap: write NAME, secret/NAME or configmap/NAME", text)
		}
		set.name = name
	}
	if set.name == "" || strings.Contains(set.name, "/") {
		return nil, fmt.Errorf("--applyset=%s: write NAME, secret/NAME or configmap/NAME", text)
	}
	return set, nil
}

func (a *applySet) String() string { return strings.ToLower(a.kind) + "/" + a.name }

// id returns the ID of the applyset for its labels, as the specification derives it from the parent.
func (a *applySet) id() string {
	sum := sha256.Sum256([]byte(a.name + "." + a.namespace + "." + a.kind + "."))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// canBelong reports whether objects of a kind can be members: providers' objects and their configuration.
// Cluster-scoped objects and plans are never pruned.
func canBelong(gk schema.GroupKind) bool {
	switch gk.Kind {
	case "Secret", "ConfigMap":
		return gk.Group == ""
	case "ProviderConfig", "ResourceSet", "Stack", "Notification":
		return gk.Group == v1alpha1.GroupName
	case "Role", "RoleBinding":
		return gk.Group == "rbac.authorization.k8s.io"
	}
	_, resource := v1alpha1.ProviderOfGroup(gk.Group)
	return resource
}

// addMembers labels the objects of the files as members.
func (a *applySet) addMembers(ms []manifest) error {
	var bad []error
	for _, m := range ms {
		labels := m.object.GetLabels()
		if _, found := labels[partOfLabel]; found {
			bad = append(bad, fmt.Errorf("%s: %s %q: --prune sets the label %s; take it out of the file", m.where(), m.object.GetKind(), m.object.GetName(), partOfLabel))
			continue
		}
		if !canBelong(m.object.GroupVersionKind().GroupKind()) {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[partOfLabel] = a.id()
		m.object.SetLabels(labels)
	}
	return errors.Join(bad...)
}

// read reads the parent.
func (a *applySet) read(ctx context.Context) error {
	a.exists, a.kinds, a.namespaces = false, sets.New[schema.GroupKind](), sets.New(a.namespace)
	parent, err := a.parent().Get(ctx, a.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read applyset %s: %w", a, explain(err, a.server()))
	}
	refuse := func(what string) error {
		return fmt.Errorf("applyset %s: a %s %q is there already, and %s: choose another name", a, a.kind, a.name, what)
	}
	tool, found := parent.GetAnnotations()[toolingAnnotation]
	if i := strings.LastIndexByte(tool, '/'); i >= 0 { // remove its version
		tool = tool[:i]
	}
	switch {
	case !found:
		return refuse("it is not the parent of an applyset")
	case tool != setTool:
		return refuse(fmt.Sprintf("it is the parent of an applyset of %s", tool))
	case parent.GetLabels()[setIDLabel] != a.id():
		return refuse("its label " + setIDLabel + " is not that of this applyset")
	}
	a.exists = true
	for _, text := range split(parent.GetAnnotations()[kindsAnnotation]) {
		a.kinds.Insert(schema.ParseGroupKind(text))
	}
	a.namespaces.Insert(split(parent.GetAnnotations()[namespacesAnnotation])...)
	return nil
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

// readMembers reads the applyset and finds the members that are not in the files. It returns an error for objects of
// the files that belong to another applyset.
func (a *applySet) readMembers(ctx context.Context, ms []manifest) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	written := map[string]manifest{}
	kinds, namespaces := a.kinds.Clone(), a.namespaces.Clone()
	for _, m := range ms {
		written[identity(m.object)] = m
		if gk := m.object.GroupVersionKind().GroupKind(); canBelong(gk) {
			kinds.Insert(gk)
			namespaces.Insert(m.object.GetNamespace())
		}
	}
	a.left, a.lost = nil, sets.New[schema.GroupKind]()
	var bad []error
	for _, gk := range slices.SortedFunc(maps.Keys(kinds), func(x, y schema.GroupKind) int { return cmp.Compare(x.String(), y.String()) }) {
		if !canBelong(gk) {
			continue
		}
		gvk := gk.WithVersion(versionOf(gk.Group))
		gvr, _, err := a.mapping(gvk)
		if meta.IsNoMatchError(err) {
			a.lost.Insert(gk)
			fmt.Fprintf(a.ErrOut, "Warning: the applyset %s may have members of the kind %s, which this server does not serve now. They are left alone.\n", a, gk)
			continue
		}
		if err != nil {
			return fmt.Errorf("find kind %q: %w", gk, explain(err, a.server()))
		}
		for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
			found, err := a.labelled(ctx, gvr, namespace)
			if err != nil {
				return err
			}
			for _, u := range found {
				u.SetGroupVersionKind(gvk) // items of a list may lack it
				owner := u.GetLabels()[partOfLabel]
				m, inFiles := written[identity(u)]
				switch {
				case inFiles && owner != a.id():
					bad = append(bad, fmt.Errorf("%s: %s %q belongs to another applyset, by its label %s=%s", m.where(), u.GetKind(), u.GetName(), partOfLabel, owner))
				case !inFiles && owner == a.id() && !a.isParent(u) && (isResource(u) || u.GetDeletionTimestamp() == nil):
					a.left = append(a.left, manifest{object: u, file: "applyset " + a.String(), pruned: true})
				}
			}
		}
	}
	return errors.Join(append(bad, a.dangling(ms)...)...)
}

// labelled lists the objects that belong to any applyset.
func (a *applySet) labelled(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for opts := (metav1.ListOptions{LabelSelector: partOfLabel, Limit: listPage}); ; {
		list, err := a.resource(gvr, namespace).List(ctx, opts)
		if opts.Continue = restOf(err); opts.Continue != "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the members of applyset %s: %w", a, explain(err, a.server()))
		}
		for i := range list.Items {
			if list.Items[i].GetLabels()[partOfLabel] != "" {
				out = append(out, &list.Items[i])
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}

// dangling returns an error for each reference in the files to a Secret or ConfigMap that is no longer in them. apply
// deletes these last, after all plans.
func (a *applySet) dangling(ms []manifest) []error {
	left := a.leftStored()
	var bad []error
	for _, m := range ms {
		for _, key := range slices.Sorted(maps.Keys(dataReferences(m.object))) {
			if kind, gone := left[key]; gone {
				name := key[strings.LastIndexByte(key, '/')+1:]
				bad = append(bad, fmt.Errorf("%s: %s %q refers to the %s %q, which is no longer in the files and would be deleted. Put it back into the files, or remove the reference",
					m.where(), m.object.GetKind(), m.object.GetName(), kind, name))
			}
		}
	}
	return bad
}

// stored returns "secret/NAMESPACE/NAME" or "configmap/NAMESPACE/NAME" for a reference to either, and "" for other
// references.
func stored(r template.Reference, namespace string) string {
	names := r.Subject()
	if len(names) > 2 && names[0] == "namespace" {
		namespace, names = names[1], names[2:]
	}
	if len(names) != 2 || names[0] != "secret" && names[0] != "configmap" {
		return ""
	}
	return names[0] + "/" + namespace + "/" + names[1]
}

// record writes the kinds and namespaces of the members to the parent. With keep, it also keeps those already recorded.
func (a *applySet) record(ctx context.Context, members []manifest, keep bool) error {
	kinds, namespaces := a.lost.Clone(), sets.New[string]()
	if keep {
		kinds, namespaces = kinds.Union(a.kinds), namespaces.Union(a.namespaces)
	}
	for _, m := range members {
		if gk := m.object.GroupVersionKind().GroupKind(); canBelong(gk) {
			kinds.Insert(gk)
			namespaces.Insert(cmp.Or(m.object.GetNamespace(), a.session.namespace))
		}
	}
	var texts []string
	for gk := range kinds {
		texts = append(texts, gk.String())
	}
	slices.Sort(texts)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": a.kind,
		"metadata": map[string]any{
			"name": a.name, "namespace": a.namespace,
			"labels": map[string]string{setIDLabel: a.id()},
			"annotations": map[string]string{
				toolingAnnotation:    setTool + "/" + Version,
				kindsAnnotation:      strings.Join(texts, ","),
				namespacesAnnotation: strings.Join(slices.Sorted(maps.Keys(namespaces.Delete(a.namespace))), ","),
			},
		},
	})
	if err != nil {
		return fmt.Errorf("encode applyset %s: %w", a, err)
	}
	_, err = a.parent().Patch(ctx, a.name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: setTool + "-applyset", FieldValidation: metav1.FieldValidationStrict, Force: new(true)})
	if err != nil {
		return fmt.Errorf("record applyset %s: %w", a, explain(err, a.server()))
	}
	return nil
}

// warnLeftSets warns about objects that are no longer members of an applyset, because they were recorded without
// --prune.
func (r *recorder) warnLeftSets(done []recorded) {
	n, example := 0, ""
	for _, d := range done {
		if d.leftSet {
			n++
			example = line(d.object, "")
		}
	}
	if n > 0 {
		fmt.Fprintf(r.ErrOut, "%s %s, such as %s, left an applyset, because this command has no --prune. A later --prune does not delete them. To add them again, apply the same files with --prune --applyset NAME.\n",
			r.style.Yellow("Warning:"), diff.Plural(n, "object"), strings.TrimSpace(example))
	}
}

func (a *applySet) isParent(u *unstructured.Unstructured) bool {
	return u.GetKind() == a.kind && u.GroupVersionKind().Group == "" && u.GetNamespace() == a.namespace && u.GetName() == a.name
}

func (a *applySet) parent() dynamic.ResourceInterface {
	return a.resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(a.kind) + "s"}, a.namespace)
}

func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetNamespace() + "/" + u.GetName()
}

// isResource reports whether plans change an object: an object of a provider's kind, or a ResourceSet.
func isResource(u *unstructured.Unstructured) bool {
	_, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group)
	return ok || isSet(u) || isModule(u)
}

// versionOf returns the API version of the kinds that can be members.
func versionOf(group string) string {
	if group == v1alpha1.GroupName {
		return v1alpha1.SchemeGroupVersion.Version
	}
	return v1alpha1.ResourceVersion // also the version of Secrets, ConfigMaps, Roles and RoleBindings
}
