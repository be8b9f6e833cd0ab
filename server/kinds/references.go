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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// references returns the references of an object's expressions. own are those to the object's own result.
func (s *served) references(ctx context.Context, u *unstructured.Unstructured) (refs, own []lang.Reference) {
	if spec, ok := u.Object["spec"].(map[string]any); ok && hasTemplate(spec) {
		config, _ := s.parseSpec(ctx, u.GetNamespace(), spec)
		refs = slices.Clone(config.References())
	}
	for _, e := range s.lifecycleExpressions(u) {
		refs, own = append(refs, e.References()...), append(own, e.Own()...)
	}
	return refs, own
}

// RefersTo reports whether an object refers to another object of its namespace, in an expression or in
// lifecycle.dependsOn.
func (k *Kinds) RefersTo(u *unstructured.Unstructured, to lang.Address) bool {
	g := k.snapshot.Load().groups[u.GroupVersionKind().Group]
	if g == nil || g.byKind[u.GetKind()] == nil {
		return false
	}
	refs, _ := g.byKind[u.GetKind()].references(context.Background(), u)
	if slices.ContainsFunc(refs, func(r lang.Reference) bool { return r.Address == to }) {
		return true
	}
	dependsOn, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	return slices.ContainsFunc(dependsOn, func(text string) bool {
		addr, err := lang.ParseAddress(text)
		return err == nil && addr == to
	})
}

// References returns the ConfigMaps, Secrets and objects of other namespaces that an object's expressions read, each
// with a field that refers to it.
func (k *Kinds) References(u *unstructured.Unstructured) map[lang.Address]string {
	g := k.snapshot.Load().groups[u.GroupVersionKind().Group]
	if g == nil || g.byKind[u.GetKind()] == nil {
		return nil
	}
	refs, _ := g.byKind[u.GetKind()].references(context.Background(), u)
	return ForeignReferences(refs)
}

// authorizeReferences rejects an object whose references its author may not read. The user who plans it may have that
// right, and would reveal the values. A change of spec or lifecycle requires the right for all references, including
// old ones, because it may change the destination of their values. old is nil for a new object.
func (s *served) authorizeReferences(ctx context.Context, u, old *unstructured.Unstructured) error {
	if old != nil && !changed(u, old, "spec") && !changed(u, old, "lifecycle") {
		return nil
	}
	refs, own := s.references(ctx, u)
	for _, r := range own {
		r.Address = s.address(u)
		refs = append(refs, r)
	}
	if len(refs) == 0 {
		return nil
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize references: the request has no user"))
	}
	if who.GetName() == user.APIServerUser {
		return nil
	}
	problems, err := s.kinds.MayRefer(ctx, who, u.GetNamespace(), refs, s.Mode == v1alpha1.ModeData || s.Mode == v1alpha1.ModeEphemeral)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewForbidden(s.GVR.GroupResource(), u.GetName(), errors.New(strings.Join(problems, "; ")))
}

// ForeignReferences returns the references to ConfigMaps, Secrets and objects of other namespaces, each with a field
// that refers to it. It returns nil if there are none.
func ForeignReferences(refs []lang.Reference) map[lang.Address]string {
	var out map[lang.Address]string
	for _, r := range refs {
		if r.Namespace == "" && !r.Stored() {
			continue
		}
		if out == nil {
			out = map[lang.Address]string{}
		}
		if _, there := out[r.Address]; !there {
			out[r.Address] = r.Field
		}
	}
	return out
}

// MayRefer returns the problems of a namespace's references: those that their author may not read, and those that would
// reveal a sensitive value that the author may not read. sent is true if a provider receives the spec during planning,
// before any approval. Such an object cannot pass a sensitive value on either.
func (k *Kinds) MayRefer(ctx context.Context, who user.Info, namespace string, refs []lang.Reference, sent bool) (problems []string, err error) {
	foreign, asked := ForeignReferences(refs), k.asked(refs, sent)
	for _, a := range slices.SortedFunc(maps.Keys(foreign), lang.Address.Compare) {
		problem, err := k.mayRead(ctx, who, namespace, a, "")
		if err != nil {
			return nil, fmt.Errorf("authorize reference to %s: %w", a, err)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s refers to %s, and %s", foreign[a], a, problem))
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(asked), lang.Address.Compare) {
		problem, err := k.mayRead(ctx, who, namespace, a, "state")
		if err != nil {
			return nil, fmt.Errorf("authorize reference to %s: %w", a, err)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s would show something of a sensitive value of %s, and %s", asked[a], a, problem))
		}
	}
	return problems, nil
}

// asked returns the objects of whose sensitive values the expressions would reveal something, each with a field that
// does. It omits Secrets, because a user who may read a Secret may reveal it. If sent is true, expressions in spec
// reveal the values that they pass on.
func (k *Kinds) asked(refs []lang.Reference, sent bool) map[lang.Address]string {
	out := map[lang.Address]string{}
	for _, r := range refs {
		if _, there := out[r.Address]; there || r.Stored() {
			continue
		}
		for _, kind := range k.ByType(r.Mode, r.Type) {
			if r.Asks(kind.Schema.Block) || sent && strings.HasPrefix(r.Field, "spec") && r.HoldsSensitive(kind.Schema.Block) {
				out[r.Address] = r.Field
				break
			}
		}
	}
	return out
}

// mayRead returns the reason why a user may not read the addressed object or its subresource, or "" if the user may.
func (k *Kinds) mayRead(ctx context.Context, who user.Info, namespace string, a lang.Address, subresource string) (problem string, err error) {
	if a.Namespace != "" {
		namespace = a.Namespace
	}
	var resources []kschema.GroupVersionResource
	switch {
	case a.Stored():
		resources = append(resources, corev1.SchemeGroupVersion.WithResource(a.Type+"s"))
	default:
		// If two providers have the type, a plan may find the object of either.
		for _, kind := range k.ByType(a.Mode, a.Type) {
			resources = append(resources, kind.GVR)
		}
		if len(resources) == 0 {
			return fmt.Sprintf("no installed provider has the type %q, so the server cannot check the right to read it; install the provider first", a.Type), nil
		}
	}
	for _, r := range resources {
		decision, _, err := k.config.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: "get", Namespace: namespace, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: subresource, Name: a.Name, ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return "", err
		}
		resource := r.GroupResource().String()
		if subresource != "" {
			resource += "/" + subresource
		}
		return fmt.Sprintf("user %q cannot get %s %q in the namespace %q: ask for the verb \"get\" on it", who.GetName(), resource, a.Name, namespace), nil
	}
	return "", nil
}

// authorizingCreate adds the check of references to the validation of a create.
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
