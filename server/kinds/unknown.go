package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/suggest"
	"github.com/hykube/hykube/server/rights"
)

// This file checks references to types and ProviderConfigs that do not exist. Plans check whether the objects exist,
// since users may create objects in any order.

// followedByPlan is the context key for a write whose object a plan checks next.
type followedByPlan struct{}

// FollowedByPlan returns a context for a write of one of several objects that a plan checks together next. In it, there
// are no warnings about references that the other objects may satisfy.
func FollowedByPlan(ctx context.Context) context.Context {
	return context.WithValue(ctx, followedByPlan{}, true)
}

// unknownType is a reference to a type that no installed provider has.
type unknownType struct {
	v1alpha1.Diagnostic
	typ string
	// certain is true if the provider of the type is installed. Otherwise another provider may have the type.
	certain bool
}

// unknownTypes returns the references to types that no installed provider has, in expressions, lifecycle.dependsOn and
// lifecycle.replaceTriggeredBy.
func (s *served) unknownTypes(ctx context.Context, u *unstructured.Unstructured) []unknownType {
	refs, _ := s.references(ctx, u)
	return s.kinds.unknownTypes(append(refs, s.lifecycleReferences(u)...))
}

// maxTypeHints is the number of unknown types with a hint. To find a similar name, the server compares all types.
const maxTypeHints = 100

func (k *Kinds) unknownTypes(refs []lang.Reference) []unknownType {
	var out []unknownType
	types, installed := k.types, map[string]bool{}
	for _, r := range refs {
		if r.Stored() || r.Named() || len(k.ByType(r.Mode, r.Type)) > 0 {
			continue
		}
		if len(out) == maxTypeHints {
			types = func(v1alpha1.Mode) []string { return nil }
		}
		if _, known := installed[r.Type]; !known {
			installed[r.Type] = k.providerInstalled(r.Type)
		}
		out = append(out, unknownType{lang.MissingType(r, types), r.Type, installed[r.Type]})
	}
	return out
}

// providerInstalled reports whether the provider of a type is installed. As in Terraform, a type's name begins with
// that of its provider. If the Provider object has another name, its other types identify it.
func (k *Kinds) providerInstalled(typ string) bool {
	provider, _, _ := strings.Cut(typ, "_")
	now := k.snapshot.Load()
	if now.groups[v1alpha1.ProviderGroup(provider)] != nil {
		return true
	}
	for key := range now.byType {
		if strings.HasPrefix(key.name, provider+"_") {
			return true
		}
	}
	return false
}

// types returns the types of a mode; "" means managed.
func (k *Kinds) types(mode v1alpha1.Mode) []string {
	if mode == "" {
		return k.managedTypes()
	}
	var out []string
	for _, kind := range k.Kinds("") {
		if kind.Mode == mode {
			out = append(out, kind.Type)
		}
	}
	return out
}

// refuseUnknownTypes rejects references to types that the installed providers lack. old is nil for a new object.
// Existing references may stay, so that users can still change the object after the provider's version changed.
func (s *served) refuseUnknownTypes(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	if old != nil && !changed(u, old, "spec") && !changed(u, old, "lifecycle") {
		return nil
	}
	before := sync.OnceValue(func() []unknownType {
		if old == nil {
			return nil
		}
		return s.kinds.unknownTypes(append(s.storedReferences(old), s.lifecycleReferences(old)...))
	})
	var errs field.ErrorList
	for _, t := range s.unknownTypes(ctx, u) {
		if t.certain && !slices.ContainsFunc(before(), func(b unknownType) bool { return b.typ == t.typ }) {
			errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: t.Attribute,
				BadValue: field.OmitValueType{}, Detail: t.Detail})
		}
	}
	return errs
}

// warnUnknown warns about types and a ProviderConfig that do not exist yet.
func (s *served) warnUnknown(ctx context.Context, u *unstructured.Unstructured) []string {
	if ctx.Value(followedByPlan{}) != nil {
		return nil
	}
	var out []string
	for _, t := range s.unknownTypes(ctx, u) {
		if !t.certain {
			out = append(out, fmt.Sprintf("%s: %s", t.Attribute, t.Detail))
		}
	}
	if text := s.warnProviderConfig(ctx, u); text != "" {
		out = append(out, text)
	}
	return out
}

// ReferenceWarnings returns the warnings about references to types and attributes that do not exist. The references are
// those of an object in a namespace.
func (k *Kinds) ReferenceWarnings(namespace string, refs []lang.Reference) (out []string) {
	for _, t := range k.unknownTypes(refs) {
		out = append(out, fmt.Sprintf("%s: %s", t.Attribute, t.Detail))
	}
	c := &check{Kinds: k, keys: map[lang.Address]*schema.Block{}}
	for _, d := range lang.CheckReferences(c.ofKnownTypes(refs), c.catalog(namespace)) {
		out = append(out, fmt.Sprintf("%s: %s", d.Attribute, d.Detail))
	}
	return out
}

// warnProviderConfig warns if the object's ProviderConfig does not exist or belongs to another provider.
func (s *served) warnProviderConfig(ctx context.Context, u *unstructured.Unstructured) string {
	named, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig")
	namespace := request.NamespaceValue(ctx)
	if s.kinds.config.ProviderConfigs == nil {
		return ""
	}
	if named == "" {
		return s.warnNoProviderConfig(ctx, namespace)
	}
	providers, err := s.kinds.config.ProviderConfigs(ctx, namespace, named)
	if err != nil {
		s.kinds.log.Warn("find the ProviderConfig of an object", "namespace", namespace, "name", named, "error", err)
		return ""
	}
	provider, exists := providers[named]
	switch {
	case exists && provider == s.Provider:
		return ""
	case exists:
		return fmt.Sprintf("lifecycle.providerConfig: %q configures the provider %q, not %q", named, provider,
			s.Provider)
	}
	text := fmt.Sprintf("lifecycle.providerConfig: there is no ProviderConfig %q in the namespace %q yet", named,
		namespace)
	var names []string
	for name, of := range providers {
		if of == s.Provider {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if near := suggest.Nearest(named, names); near != "" && s.mayListConfigs(ctx, namespace) {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// warnNoProviderConfig warns if plans for the object need a ProviderConfig, and the namespace has none for its provider
// yet.
func (s *served) warnNoProviderConfig(ctx context.Context, namespace string) string {
	if !s.kinds.takesConfiguration(s.Provider) {
		return ""
	}
	name, err := s.defaultConfig(ctx, namespace)
	if err != nil {
		s.kinds.log.Warn("find the ProviderConfig of an object", "namespace", namespace, "provider", s.Provider,
			"error", err)
		return ""
	}
	if name != "" {
		return ""
	}
	return fmt.Sprintf("the namespace %q has no ProviderConfig for the provider %q yet, which takes a configuration; plans need one named %q or %q",
		namespace, s.Provider, s.Provider, v1alpha1.DefaultProviderConfig)
}

// mayListConfigs reports whether the author of a request may list the ProviderConfigs of a namespace.
func (s *served) mayListConfigs(ctx context.Context, namespace string) bool {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	may, err := s.kinds.access.May(ctx, rights.IdentityOf(who),
		store.Right{Verb: "list", Namespace: namespace, Group: v1alpha1.GroupName, Resource: "providerconfigs"})
	return err == nil && may
}
