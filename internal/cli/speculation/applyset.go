package speculation

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
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/version"
	"github.com/hykube/hykube/internal/template"
)

// The labels and annotations of the ApplySet specification:
// https://git.k8s.io/enhancements/keps/sig-cli/3659-kubectl-apply-prune#design-details-applyset-specification kubectl's
// package defines them, too, but imports a large part of kubectl.
const (
	setIDLabel           = "applyset.kubernetes.io/id"
	toolingAnnotation    = "applyset.kubernetes.io/tooling"
	kindsAnnotation      = "applyset.kubernetes.io/contains-group-kinds"
	namespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	// setTool is the tool name in the annotation. The command does not change applysets of other tools.
	setTool = "kubectl-hykube"
)

// ApplySet is a set of objects that are applied together. Its parent, a Secret or ConfigMap, records the kinds and
// namespaces of its members.
type ApplySet struct {
	*session.Session
	kind, namespace, name string
	// exists is true if the parent exists.
	exists bool
	// kinds and namespaces are those recorded in the parent.
	kinds      sets.Set[schema.GroupKind]
	namespaces sets.Set[string]
	// lost holds recorded kinds that the server does not serve.
	lost sets.Set[schema.GroupKind]
	// Left holds the members that are not in the files.
	Left []manifest.Manifest
}

// newApplySet parses the value of --applyset: NAME, secret/NAME or configmap/NAME.
func newApplySet(s *session.Session, text string) (*ApplySet, error) {
	set := &ApplySet{Session: s, kind: "Secret", namespace: s.Namespace, name: text}
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

// String returns the name of the parent, as --applyset names it.
func (a *ApplySet) String() string { return strings.ToLower(a.kind) + "/" + a.name }

// id returns the ID of the applyset for its labels, as the specification derives it from the parent.
func (a *ApplySet) id() string {
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
func (a *ApplySet) addMembers(ms []manifest.Manifest) error {
	var bad []error
	for _, m := range ms {
		labels := m.Object.GetLabels()
		if _, found := labels[record.PartOfLabel]; found {
			bad = append(bad, fmt.Errorf("%s: %s %q: --prune sets the label %s; take it out of the file", m.Where(),
				m.Object.GetKind(), m.Object.GetName(), record.PartOfLabel))
			continue
		}
		if !canBelong(m.Object.GroupVersionKind().GroupKind()) {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[record.PartOfLabel] = a.id()
		m.Object.SetLabels(labels)
	}
	return errors.Join(bad...)
}

// read reads the parent.
func (a *ApplySet) read(ctx context.Context) error {
	a.exists, a.kinds, a.namespaces = false, sets.New[schema.GroupKind](), sets.New(a.namespace)
	parent, err := a.parent().Get(ctx, a.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read applyset %s: %w", a, a.Explain(err))
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
func (a *ApplySet) readMembers(ctx context.Context, ms []manifest.Manifest) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	written := map[string]manifest.Manifest{}
	kinds, namespaces := a.kinds.Clone(), a.namespaces.Clone()
	for _, m := range ms {
		written[identity(m.Object)] = m
		if gk := m.Object.GroupVersionKind().GroupKind(); canBelong(gk) {
			kinds.Insert(gk)
			namespaces.Insert(m.Object.GetNamespace())
		}
	}
	a.Left, a.lost = nil, sets.New[schema.GroupKind]()
	var bad []error
	for _, gk := range slices.SortedFunc(maps.Keys(kinds),
		func(x, y schema.GroupKind) int { return cmp.Compare(x.String(), y.String()) }) {
		if !canBelong(gk) {
			continue
		}
		gvk := gk.WithVersion(versionOf(gk.Group))
		gvr, _, err := a.Mapping(gvk)
		if meta.IsNoMatchError(err) {
			a.lost.Insert(gk)
			fmt.Fprintf(a.ErrOut, "Warning: the applyset %s may have members of the kind %s, which this server does not serve now. They are left alone.\n", a, gk)
			continue
		}
		if err != nil {
			return fmt.Errorf("find kind %q: %w", gk, a.Explain(err))
		}
		for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
			found, err := a.labelled(ctx, gvr, namespace)
			if err != nil {
				return err
			}
			for _, u := range found {
				u.SetGroupVersionKind(gvk) // items of a list may lack it
				owner := u.GetLabels()[record.PartOfLabel]
				m, inFiles := written[identity(u)]
				switch {
				case inFiles && owner != a.id():
					bad = append(bad, fmt.Errorf("%s: %s %q belongs to another applyset, by its label %s=%s", m.Where(),
						u.GetKind(), u.GetName(), record.PartOfLabel, owner))
				case !inFiles && owner == a.id() && !a.IsParent(u) &&
					(addrs.IsResource(u) || u.GetDeletionTimestamp() == nil):
					a.Left = append(a.Left, manifest.Manifest{Object: u, File: "applyset " + a.String(), Pruned: true})
				}
			}
		}
	}
	return errors.Join(append(bad, a.dangling(ms)...)...)
}

// labelled lists the objects that belong to any applyset.
func (a *ApplySet) labelled(ctx context.Context, gvr schema.GroupVersionResource,
	namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for opts := (metav1.ListOptions{LabelSelector: record.PartOfLabel, Limit: session.ListPage}); ; {
		list, err := a.Resource(gvr, namespace).List(ctx, opts)
		if opts.Continue = session.RestOf(err); opts.Continue != "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the members of applyset %s: %w", a, a.Explain(err))
		}
		for i := range list.Items {
			if list.Items[i].GetLabels()[record.PartOfLabel] != "" {
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
func (a *ApplySet) dangling(ms []manifest.Manifest) []error {
	left := a.leftStored()
	var bad []error
	for _, m := range ms {
		for _, key := range slices.Sorted(maps.Keys(dataReferences(m.Object))) {
			if kind, gone := left[key]; gone {
				name := key[strings.LastIndexByte(key, '/')+1:]
				bad = append(bad, fmt.Errorf("%s: %s %q refers to the %s %q, which is no longer in the files and would be deleted. Put it back into the files, or remove the reference",
					m.Where(), m.Object.GetKind(), m.Object.GetName(), kind, name))
			}
		}
	}
	return bad
}

// Stored returns "secret/NAMESPACE/NAME" or "configmap/NAMESPACE/NAME" for a reference to either, and "" for other
// references.
func Stored(r template.Reference, namespace string) string {
	names := r.Subject()
	if len(names) > 2 && names[0] == "namespace" {
		namespace, names = names[1], names[2:]
	}
	if len(names) != 2 || names[0] != "secret" && names[0] != "configmap" {
		return ""
	}
	return names[0] + "/" + namespace + "/" + names[1]
}

// Record writes the kinds and namespaces of the members to the parent. With keep, it also keeps those already recorded.
func (a *ApplySet) Record(ctx context.Context, members []manifest.Manifest, keep bool) error {
	kinds, namespaces := a.lost.Clone(), sets.New[string]()
	if keep {
		kinds, namespaces = kinds.Union(a.kinds), namespaces.Union(a.namespaces)
	}
	for _, m := range members {
		if gk := m.Object.GroupVersionKind().GroupKind(); canBelong(gk) {
			kinds.Insert(gk)
			namespaces.Insert(cmp.Or(m.Object.GetNamespace(), a.Session.Namespace))
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
				toolingAnnotation:    setTool + "/" + version.Version,
				kindsAnnotation:      strings.Join(texts, ","),
				namespacesAnnotation: strings.Join(slices.Sorted(maps.Keys(namespaces.Delete(a.namespace))), ","),
			},
		},
	})
	if err != nil {
		return fmt.Errorf("encode applyset %s: %w", a, err)
	}
	_, err = a.parent().Patch(ctx, a.name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: setTool + "-applyset", FieldValidation: metav1.FieldValidationStrict,
			Force: new(true)})
	if err != nil {
		return fmt.Errorf("record applyset %s: %w", a, a.Explain(err))
	}
	return nil
}

// IsParent reports whether an object is the parent of the set.
func (a *ApplySet) IsParent(u *unstructured.Unstructured) bool {
	return u.GetKind() == a.kind && u.GroupVersionKind().Group == "" && u.GetNamespace() == a.namespace &&
		u.GetName() == a.name
}

func (a *ApplySet) parent() dynamic.ResourceInterface {
	return a.Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(a.kind) + "s"}, a.namespace)
}

func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetNamespace() + "/" + u.GetName()
}

// versionOf returns the API version of the kinds that can be members.
func versionOf(group string) string {
	if group == v1alpha1.GroupName {
		return v1alpha1.SchemeGroupVersion.Version
	}
	return v1alpha1.ResourceVersion // also the version of Secrets, ConfigMaps, Roles and RoleBindings
}
