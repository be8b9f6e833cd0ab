package kinds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/store"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// references returns the references of the expressions of a request's object. own are those to the object's own result.
func (s *served) references(ctx context.Context, u *unstructured.Unstructured) (refs, own []lang.Reference) {
	if spec, ok := u.Object["spec"].(map[string]any); ok && lang.HasTemplate(spec) {
		config, _ := s.parseSpec(ctx, u, u.GetNamespace(), spec)
		refs = slices.Clone(config.References())
	}
	ofLifecycle, own := s.expressionReferences(u)
	return append(refs, ofLifecycle...), own
}

// storedReferences returns the references of a stored object's expressions. It evaluates nothing, because the budget of
// the request does not include stored objects.
func (s *served) storedReferences(u *unstructured.Unstructured) []lang.Reference {
	var refs []lang.Reference
	if spec, ok := u.Object["spec"].(map[string]any); ok && lang.HasTemplate(spec) {
		refs = s.specOptions(u, u.GetNamespace()).References(spec)
	}
	ofLifecycle, _ := s.expressionReferences(u)
	return append(refs, ofLifecycle...)
}

// RefersTo reports whether an object refers to an address for which to returns true, in an expression or in
// lifecycle.dependsOn.
func (k *Kinds) RefersTo(u *unstructured.Unstructured, to func(lang.Address) bool) bool {
	g := k.snapshot.Load().groups[u.GroupVersionKind().Group]
	if g == nil || g.byKind[u.GetKind()] == nil {
		return false
	}
	refs := g.byKind[u.GetKind()].storedReferences(u)
	if slices.ContainsFunc(refs, func(r lang.Reference) bool { return to(r.Address) }) {
		return true
	}
	dependsOn, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	return slices.ContainsFunc(dependsOn, func(text string) bool {
		addr, err := lang.ParseAddress(text)
		return err == nil && to(addr)
	})
}

// References returns the ConfigMaps, Secrets and objects of other namespaces that an object's expressions read, each
// with a field that refers to it.
func (k *Kinds) References(u *unstructured.Unstructured) map[lang.Address]string {
	g := k.snapshot.Load().groups[u.GroupVersionKind().Group]
	if g == nil || g.byKind[u.GetKind()] == nil {
		return nil
	}
	return foreignReferences(g.byKind[u.GetKind()].storedReferences(u))
}

// authorizeReferences rejects an object whose references its author may not read, or whose ProviderConfig its author
// may not use. The user who plans it may have that right, and would reveal the values. A change of spec or lifecycle
// requires the right for all references, including old ones, because it may change the destination of their values. old
// is nil for a new object. named are further references of the author.
func (s *served) authorizeReferences(ctx context.Context, u, old *unstructured.Unstructured,
	named ...lang.Reference) error {
	if old != nil && !changed(u, old, "spec") && !changed(u, old, "lifecycle") {
		return nil
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize references: the request has no user"))
	}
	if who.GetName() == user.APIServerUser {
		return nil
	}
	asker := s.kinds.access.Asker(who)
	refs, own := s.references(ctx, u)
	refs = slices.Concat(refs, s.lifecycleReferences(u), movedFrom(u))
	refs = append(refs, named...)
	for _, r := range own {
		r.Address = s.address(u)
		refs = append(refs, r)
	}
	problems, err := s.kinds.mayRefer(ctx, asker, u.GetNamespace(), refs,
		s.Mode == v1alpha1.ModeData || s.Mode == v1alpha1.ModeEphemeral)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	problem, err := s.mayUse(ctx, asker, u)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if problem != "" {
		problems = append(problems, problem)
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewForbidden(s.GVR.GroupResource(), u.GetName(), errors.New(strings.Join(problems, "; ")))
}

// foreignReferences returns the references to ConfigMaps, Secrets and objects of other namespaces, each with a field
// that refers to it. It returns nil if there are none.
func foreignReferences(refs []lang.Reference) map[lang.Address]string {
	var out map[lang.Address]string
	for _, r := range refs {
		if r.Namespace == "" && !r.Stored() {
			continue
		}
		if out == nil {
			out = map[lang.Address]string{}
		}
		if _, exists := out[r.Address]; !exists {
			out[r.Address] = r.Field
		}
	}
	return out
}

// lifecycleReferences returns the objects that a lifecycle names without an expression: in dependsOn and
// replaceTriggeredBy.
func (s *served) lifecycleReferences(u *unstructured.Unstructured) []lang.Reference {
	var refs []lang.Reference
	path := field.NewPath("lifecycle")
	dependsOn, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	for i, text := range dependsOn {
		if a, err := lang.ParseAddress(text); err == nil {
			refs = append(refs, lang.NewReference(a, path.Child("dependsOn").Index(i).String()))
		}
	}
	triggers, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "replaceTriggeredBy")
	for i, text := range triggers {
		if text, err := lang.TriggerExpression(text); err == nil {
			at := path.Child("replaceTriggeredBy").Index(i).String()
			named, _ := lang.ExpressionOptions{Namespace: u.GetNamespace(),
				Repetition: repetitionOf(u)}.References("${"+text+"}", at)
			for _, r := range named {
				r.Field = at // without the column, which would count the braces
				refs = append(refs, r)
			}
		}
	}
	return refs
}

// movedFrom returns the reference in lifecycle.moved.from, to the object whose infrastructure this object gets.
func movedFrom(u *unstructured.Unstructured) []lang.Reference {
	from, _, _ := unstructured.NestedString(u.Object, "lifecycle", fieldMoved, "from")
	a, err := lang.ParseAddress(from)
	if err != nil {
		return nil
	}
	return []lang.Reference{lang.NewReference(a, field.NewPath("lifecycle", fieldMoved, "from").String())}
}

// MayRefer returns the problems of a namespace's references: those that their author may not read, and those that would
// reveal a sensitive value that the author may not read. sent is true if a provider receives the spec during planning,
// before any approval. References in such a spec reveal a sensitive value by passing it on.
func (k *Kinds) MayRefer(ctx context.Context, who user.Info, namespace string, refs []lang.Reference,
	sent bool) (problems []string, err error) {
	return k.mayRefer(ctx, k.access.Asker(who), namespace, refs, sent)
}

func (k *Kinds) mayRefer(ctx context.Context, asker *store.Asker, namespace string, refs []lang.Reference,
	sent bool) (problems []string, err error) {
	fields := map[lang.Address]string{}
	for _, r := range refs {
		if _, exists := fields[r.Address]; !exists {
			fields[r.Address] = r.Field
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(fields), lang.Address.Compare) {
		problem, err := k.mayRead(ctx, asker, namespace, a, "")
		if err != nil {
			return nil, fmt.Errorf("authorize reference to %s: %w", a, err)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s refers to %s, and %s", fields[a], a, problem))
		}
	}
	asked := k.revealed(refs, sent)
	for _, a := range slices.SortedFunc(maps.Keys(asked), lang.Address.Compare) {
		problem, err := k.mayRead(ctx, asker, namespace, a, "state")
		if err != nil {
			return nil, fmt.Errorf("authorize reference to %s: %w", a, err)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s would reveal something about a sensitive value of %s, and %s",
				asked[a], a, problem))
		}
	}
	return problems, nil
}

// mayUse returns the reason why the author may not use the ProviderConfig that plans would use for the object; "" if
// the author may. If the object names no ProviderConfig and no default exists, mayUse checks the right to the name
// "default".
func (s *served) mayUse(ctx context.Context, asker *store.Asker,
	u *unstructured.Unstructured) (problem string, err error) {
	namespace := u.GetNamespace()
	all, err := asker.May(ctx, store.UseOf(namespace, ""))
	if all || err != nil {
		return "", err
	}
	name, at := "", "the object"
	if named, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig"); named != "" {
		name, at = named, "lifecycle.providerConfig"
	} else if name, err = s.defaultConfig(ctx, namespace); err != nil {
		return "", err
	}
	if name == "" {
		if !s.kinds.takesConfiguration(s.Provider) {
			return "", nil
		}
		name = v1alpha1.DefaultProviderConfig
	}
	ok, err := asker.May(ctx, store.UseOf(namespace, name))
	if ok || err != nil {
		return "", err
	}
	return fmt.Sprintf("%s uses the ProviderConfig %q, and user %q cannot use it in the namespace %q: ask for the verb \"use\" on providerconfigs.hykube.io",
		at, name, asker.Who.Username, namespace), nil
}

// defaultConfig returns the name of the default ProviderConfig for the object's provider; "" if none exists.
func (s *served) defaultConfig(ctx context.Context, namespace string) (string, error) {
	for _, name := range []string{v1alpha1.DefaultProviderConfig, s.Provider} {
		if s.kinds.config.ProviderConfig == nil {
			break
		}
		provider, err := s.kinds.config.ProviderConfig(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		if provider == s.Provider {
			return name, nil
		}
	}
	return "", nil
}

// takesConfiguration reports whether the provider's configuration has arguments.
func (k *Kinds) takesConfiguration(provider string) bool {
	return k.ProviderConfigBlock(provider).HasArguments()
}

// revealed returns the objects of whose sensitive values the expressions would reveal something, each with a field that
// does. It omits Secrets, because a user who may read a Secret may reveal it. If sent is true, expressions in spec
// reveal the values that they pass on. Those in lifecycle.import always do, because planning sends the ID to the
// provider.
func (k *Kinds) revealed(refs []lang.Reference, sent bool) map[lang.Address]string {
	out := map[lang.Address]string{}
	for _, r := range refs {
		if _, exists := out[r.Address]; exists || r.Stored() {
			continue
		}
		for _, kind := range k.ByType(r.Mode, r.Type) {
			passes := sent && strings.HasPrefix(r.Field, "spec") || strings.HasPrefix(r.Field, "lifecycle.import")
			if r.RevealsSensitive(kind.Schema.Block) || passes && r.HoldsSensitive(kind.Schema.Block) {
				out[r.Address] = r.Field
				break
			}
		}
	}
	return out
}

// mayRead returns the reason why a user may not read the addressed object or its subresource, or "" if the user may.
func (k *Kinds) mayRead(ctx context.Context, asker *store.Asker, namespace string, a lang.Address,
	subresource string) (problem string, err error) {
	if a.Namespace != "" {
		namespace = a.Namespace
	}
	var resources []kschema.GroupVersionResource
	switch {
	case a.Stored():
		resources = append(resources, corev1.SchemeGroupVersion.WithResource(a.Type+"s"))
	case a.IsModuleOutput():
		resources, a.Name = append(resources, v1alpha1.SchemeGroupVersion.WithResource("modules")),
			v1alpha1.RootModule(a.Module)
	default:
		// If two providers have the type, a plan may find the object of either.
		for _, kind := range k.ByType(a.Mode, a.Type) {
			resources = append(resources, kind.GVR)
		}
		if len(resources) == 0 {
			// The server cannot know the resource of the type before the provider is installed, so it requires the
			// right to all resources.
			if ok, err := asker.May(ctx, store.Right{Verb: store.VerbGet, Namespace: namespace, Group: "*",
				Resource: "*", Name: a.ObjectName()}); ok || err != nil {
				return "", err
			}
			return fmt.Sprintf("no installed provider has the type %q, so the server cannot check the right to read it; install the provider first", a.Type), nil
		}
	}
	for _, r := range resources {
		right := store.Right{Verb: store.VerbGet, Namespace: namespace, Group: r.Group, Resource: r.Resource,
			Name: a.ObjectName()}
		if subresource != "" {
			right.Resource += "/" + subresource
		}
		ok, err := asker.May(ctx, right)
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf("user %q cannot get %s %q in the namespace %q: ask for the verb \"get\" on it",
				asker.Who.Username, right.Target(), a.Name, namespace), nil
		}
	}
	return "", nil
}

// authorizingCreate adds the check of references to the validation of a create, and authorizingUpdate to that of an
// update.
func (s *served) authorizingCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		return s.authorizeReferences(ctx, obj.(*unstructured.Unstructured), nil)
	}
}

func (s *served) authorizingUpdate(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := validate(ctx, obj, old); err != nil {
			return err
		}
		return s.authorizeReferences(ctx, obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
	}
}
