package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file checks the template of a ResourceSet like an object of its kind.

// fieldRepeats is the member of v1alpha1.FieldInstance in which a template has its repetition.
const fieldRepeats = "repeats"

// Template is the template of a ResourceSet.
type Template struct {
	Namespace, APIVersion, Kind, Name string
	Repeats                           lang.Repetition
	Spec, Lifecycle                   map[string]any
	// Named has the objects that the set names outside of the template, each with the field that names it: the
	// ConfigMap with its keys, and the objects whose records its instances take over. The author of the set needs the
	// right to read them, as for references in the template.
	Named map[lang.Address]string
}

// TemplateOf returns the template of a set. A part that cannot be decoded is empty; the validation of the set reports
// it.
func TemplateOf(s *v1alpha1.ResourceSet) Template {
	t := Template{
		Namespace: s.Namespace, APIVersion: s.Spec.Template.APIVersion, Kind: s.Spec.Template.Kind,
		Name: resourceset.NameOf(s), Repeats: lang.RepeatForEach,
	}
	if s.Spec.Count != nil {
		t.Repeats = lang.RepeatCount
	}
	t.Spec, _ = resourceset.DecodeObject(s.Spec.Template.Spec)
	t.Lifecycle, _ = resourceset.DecodeObject(s.Spec.Template.Lifecycle)
	t.Named = map[lang.Address]string{}
	if from := s.Spec.ForEachFrom; from != nil {
		t.Named[lang.Address{Type: lang.TypeConfigMap, Name: from.ConfigMap.Name}] = "spec.forEachFrom.configMap.name"
	}
	for i, m := range s.Spec.Moved {
		if a, err := lang.ParseAddress(m.From); err == nil {
			t.Named[a] = fmt.Sprintf("spec.moved[%d].from", i)
		}
	}
	return t
}

// Object returns the template as an object of its kind.
func (t Template) Object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": t.APIVersion, "kind": t.Kind,
		"metadata":             map[string]any{"name": t.Name, "namespace": t.Namespace},
		v1alpha1.FieldInstance: map[string]any{fieldRepeats: string(t.Repeats)},
	}}
	if t.Spec != nil {
		u.Object["spec"] = t.Spec
	}
	if t.Lifecycle != nil {
		u.Object["lifecycle"] = t.Lifecycle
	}
	return u
}

// repetitionOf returns how a ResourceSet repeats a template; "" for an object that is no template.
func repetitionOf(u *unstructured.Unstructured) lang.Repetition {
	text, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, fieldRepeats)
	return lang.Repetition(text)
}

// templateKind returns the kind of a template. The error says why a ResourceSet cannot have it.
func (k *Kinds) templateKind(t Template) (*served, error) {
	gvk := kschema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
	if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); !ok {
		return nil, fmt.Errorf("%s is not the API group of a provider, such as sim.hykube.io/v1", gvk.GroupVersion())
	}
	if _, err := k.Served(gvk); err != nil {
		return nil, err
	}
	s := k.snapshot.Load().groups[gvk.Group].byKind[gvk.Kind]
	if s == nil || s.Mode != v1alpha1.ModeManaged {
		return nil, fmt.Errorf("%s is not a managed resource, and a ResourceSet repeats only these: write one object for each instance", gvk.Kind)
	}
	return s, nil
}

// TemplateKind returns the kind of a template. The error says why a ResourceSet cannot have it.
func (k *Kinds) TemplateKind(t Template) (Kind, error) {
	s, err := k.templateKind(t)
	if err != nil {
		return Kind{}, err
	}
	return s.Kind, nil
}

// ValidateTemplate validates a template as an object of its kind. old is the template before the change; nil for a new
// set. The fields of the errors are those of the set.
func (k *Kinds) ValidateTemplate(ctx context.Context, t Template, old *Template) field.ErrorList {
	path := field.NewPath("spec", "template")
	s, err := k.templateKind(t)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("kind"), t.Kind, err.Error())}
	}
	u := t.Object()
	errs := tooManyKeys(u.Object["spec"], field.NewPath("spec"))
	errs = append(errs, s.validateSpec(ctx, u)...)
	errs = append(errs, s.validateLifecycle(ctx, u)...)
	for _, name := range []string{fieldImport, fieldMoved} {
		if _, ok := t.Lifecycle[name]; ok {
			instead := map[string]string{fieldImport: "spec.imports", fieldMoved: "spec.moved"}[name]
			errs = append(errs, field.Forbidden(field.NewPath("lifecycle", name),
				fmt.Sprintf("it is for one instance: write %s of the ResourceSet, with the key of the instance",
					instead)))
		}
	}
	var before *unstructured.Unstructured
	if old != nil && old.APIVersion == t.APIVersion && old.Kind == t.Kind {
		before = old.Object()
	}
	errs = append(errs, s.refuseUnknownTypes(ctx, u, before)...)
	for _, e := range errs {
		if strings.HasPrefix(e.Field, "spec") || strings.HasPrefix(e.Field, "lifecycle") {
			e.Field = path.String() + "." + e.Field
		}
	}
	return errs
}

// set checks the template of a ResourceSet like an object of its kind.
func (c *check) set(ctx context.Context, u *unstructured.Unstructured) {
	set := &v1alpha1.ResourceSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
		c.add(v1alpha1.SeverityError, "spec", err.Error())
		return
	}
	before := len(c.problems)
	c.object(ctx, TemplateOf(set).Object())
	found := slices.DeleteFunc(c.problems[before:], func(p v1alpha1.ValidationProblem) bool {
		return strings.HasPrefix(p.Field, v1alpha1.FieldInstance) // Object sets the field, and the user did not
	})
	for i := range found {
		if found[i].Field != "" {
			found[i].Field = "spec.template." + found[i].Field
		}
	}
	c.problems = c.problems[:before+len(found)]
}

// TemplateWarnings returns the warnings about a template.
func (k *Kinds) TemplateWarnings(ctx context.Context, t Template) (out []string) {
	s, err := k.templateKind(t)
	if err != nil {
		return nil
	}
	u := t.Object()
	for _, w := range (strategy{kind: s, warns: isDeprecated(s.Schema.Block)}).WarningsOnCreate(ctx, u) {
		if strings.HasPrefix(w, "spec") || strings.HasPrefix(w, "lifecycle") { // others name no field
			w = "spec.template." + w
		}
		out = append(out, w)
	}
	return out
}

// AuthorizeDelete returns a Forbidden error if the author of a ResourceSet may not delete the instances of a template.
// The server does not know the plural of a kind that it does not serve. Then the author needs the right to all kinds of
// the provider.
func (k *Kinds) AuthorizeDelete(ctx context.Context, t Template) error {
	if _, err := k.templateKind(t); err == nil {
		return k.AuthorizeTemplate(ctx, t, false, store.VerbDelete)
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize deletion: the request has no user"))
	}
	if byServer(ctx) {
		return nil
	}
	group := kschema.FromAPIVersionAndKind(t.APIVersion, t.Kind).Group
	return authorizeSet(ctx, k.access.Asker(who), t,
		store.Right{Verb: store.VerbDelete, Namespace: t.Namespace, Group: group, Resource: "*"})
}

// authorizeSet returns a Forbidden error if the author of a ResourceSet lacks a right.
func authorizeSet(ctx context.Context, asker *store.Asker, t Template, right store.Right) error {
	may, err := asker.May(ctx, right)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !may {
		return apierrors.NewForbidden(v1alpha1.Resource("resourcesets"), t.Name, fmt.Errorf(
			"this change of the ResourceSet needs the right of its author to %s in the namespace %q, as for single objects, and user %q lacks it", right, t.Namespace, asker.Who.Username))
	}
	return nil
}

// AuthorizeTemplate returns a Forbidden error if the author of a ResourceSet lacks a right that the author of single
// objects would need: the verbs on the template's kind, and the rights to read the objects to which the template
// refers. changed is false if the template itself stays the same.
func (k *Kinds) AuthorizeTemplate(ctx context.Context, t Template, changed bool, verbs ...string) error {
	s, err := k.templateKind(t)
	if err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource("resourcesets"), t.Name, err)
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize template: the request has no user"))
	}
	if byServer(ctx) {
		return nil
	}
	asker := k.access.Asker(who)
	for _, verb := range verbs {
		right := store.Right{Verb: verb, Namespace: t.Namespace, Group: s.GVR.Group, Resource: s.GVR.Resource}
		if err := authorizeSet(ctx, asker, t, right); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	var named []lang.Reference
	for a, at := range t.Named {
		named = append(named, lang.NewReference(a, at))
	}
	return s.authorizeReferences(ctx, t.Object(), nil, named...)
}
