package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/suggest"
)

// Check validates objects without recording them: each as in a create, and their references to each other as in a plan.
// Of stored objects it reads only ProviderConfigs. Each object must have its namespace. If ctx ends, Check stops and
// returns the error of ctx.
func (k *Kinds) Check(ctx context.Context, objects []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error) {
	c := &check{
		Kinds: k, written: map[lang.Address]*unstructured.Unstructured{}, names: map[lang.Address][]string{},
		near:      map[lang.Address]string{},
		providers: map[string]bool{}, configs: map[types.NamespacedName]string{}, warned: map[string]bool{},
		keys: map[lang.Address]*schema.Block{}, dependencies: make([][]lang.Address, len(objects)),
	}
	for _, u := range objects {
		switch u.GroupVersionKind().GroupKind() {
		case v1alpha1.Kind("Provider"):
			c.providers[u.GetName()] = true
		case v1alpha1.Kind("ProviderConfig"):
			c.configs[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}], _,
				_ = unstructured.NestedString(u.Object, "spec", "provider")
		}
		if a, ok := addressed(u); ok {
			if c.written[a] == nil {
				c.names[typeOf(a)] = append(c.names[typeOf(a)], a.Name)
			}
			c.written[a] = u
		}
	}
	for i, u := range objects {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.index = int32(i)
		c.object(ctx, u)
	}
	c.cycles(ctx, objects)
	return c.problems, ctx.Err()
}

type check struct {
	*Kinds
	// written maps addresses, all with a namespace, to the objects.
	written map[lang.Address]*unstructured.Unstructured
	// names lists the names of the objects of each type; see typeOf.
	names map[lang.Address][]string
	// near caches the most similar name for each missing address, and keys caches the results of keysOf.
	near map[lang.Address]string
	keys map[lang.Address]*schema.Block
	// dependencies lists, for each object, the addresses in its expressions and in lifecycle.dependsOn.
	dependencies [][]lang.Address
	// providers is the set of names of the Providers among the objects.
	providers map[string]bool
	// configs maps the ProviderConfigs among the objects to their providers.
	configs map[types.NamespacedName]string
	// warned is the set of warnings about ProviderConfigs. Each is made once.
	warned   map[string]bool
	index    int32
	problems []v1alpha1.ValidationProblem
}

// addressed returns the address of an object, with its namespace.
func addressed(u *unstructured.Unstructured) (lang.Address, bool) {
	a := lang.Address{Namespace: u.GetNamespace(), Name: u.GetName()}
	gvk := u.GroupVersionKind()
	if _, ours := v1alpha1.ProviderOfGroup(gvk.Group); ours {
		mode, typ := v1alpha1.ParseKind(gvk.Kind)
		if mode != v1alpha1.ModeManaged {
			a.Mode = mode
		}
		a.Type = typ
		return a, true
	}
	switch {
	case gvk.Group == "" && gvk.Kind == "ConfigMap":
		a.Type = lang.TypeConfigMap
	case gvk.Group == "" && gvk.Kind == "Secret":
		a.Type = lang.TypeSecret
	default:
		return a, false
	}
	return a, true
}

func (c *check) add(severity v1alpha1.Severity, field, message string) {
	c.problems = append(c.problems,
		v1alpha1.ValidationProblem{Index: c.index, Severity: severity, Field: field, Message: message})
}

func (c *check) object(ctx context.Context, u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if gvk.GroupKind() == v1alpha1.Kind("ProviderConfig") {
		c.providerOf(u)
		c.configReferences(u)
		return
	}
	if gvk.GroupKind() == v1alpha1.Kind("ResourceSet") {
		c.set(ctx, u)
		return
	}
	provider, ours := v1alpha1.ProviderOfGroup(gvk.Group)
	if !ours {
		return
	}
	g := c.snapshot.Load().groups[gvk.Group]
	if g == nil {
		if !c.providers[provider] {
			c.add(v1alpha1.SeverityError, "apiVersion",
				fmt.Sprintf("no provider %q is installed, and no Provider among these objects has that name, so its kinds cannot be checked; %s", provider, c.similarProvider(provider)))
		}
		return
	}
	if gvk.Version != g.version.Version {
		c.add(v1alpha1.SeverityError, "apiVersion", fmt.Sprintf("must be %s", g.version))
		return
	}
	s := g.byKind[gvk.Kind]
	if s == nil {
		hint := ""
		if near := suggest.Nearest(gvk.Kind, slices.Collect(maps.Keys(g.byKind))); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		c.add(v1alpha1.SeverityError, "kind", fmt.Sprintf("provider %q has no kind %q%s", provider, gvk.Kind, hint))
		return
	}
	ctx = withParsedSpec(ctx)
	errs := strategy{typer: typer{c.codecs.scheme}, kind: s}.validate(ctx, u)
	c.dependencies[c.index] = s.dependencies(ctx, u)
	for _, e := range errs {
		at := e.Field
		if at == "<nil>" {
			at = ""
		}
		c.add(v1alpha1.SeverityError, at, e.ErrorBody())
	}
	for _, d := range s.warnings(ctx, u) {
		c.add(d.Severity, d.Attribute, d.Detail)
	}
	if text := c.warnProviderConfig(ctx, s, u); text != "" && !c.warned[text] {
		c.warned[text] = true
		c.add(v1alpha1.SeverityWarning, "", text)
	}
	if len(errs) == 0 {
		c.references(ctx, s, u)
	}
}

// warnProviderConfig warns if an object that names no ProviderConfig needs one, and neither the objects nor the
// namespace have it. It does not warn a user who may not list the ProviderConfigs of the namespace.
func (c *check) warnProviderConfig(ctx context.Context, s *served, u *unstructured.Unstructured) string {
	if named, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig"); named != "" {
		return "" // references checks the name
	}
	for _, name := range []string{v1alpha1.DefaultProviderConfig, s.Provider} {
		if c.configs[types.NamespacedName{Namespace: u.GetNamespace(), Name: name}] == s.Provider {
			return ""
		}
	}
	if !s.mayListConfigs(ctx, u.GetNamespace()) {
		return ""
	}
	return s.warnNoProviderConfig(ctx, u.GetNamespace())
}

// references checks an object's references: the types and attributes of all of them. It reports a missing object only
// if its name is similar to that of another object in the validation.
func (c *check) references(ctx context.Context, s *served, u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	config, _ := s.parseSpec(ctx, u, u.GetNamespace(), spec)
	refs := slices.Clone(config.References())
	ofLifecycle, _ := s.expressionReferences(u)
	refs = append(refs, ofLifecycle...)
	c.unknown(s.unknownTypes(ctx, u))
	c.providerConfigOf(s, u)
	catalog := c.catalog(u.GetNamespace())
	for _, d := range append(lang.CheckReferences(c.ofKnownTypes(refs), catalog), config.CheckTypes(catalog)...) {
		c.add(d.Severity, d.Attribute, strings.TrimSpace(d.Summary+": "+d.Detail))
	}
	for _, r := range refs {
		if ctx.Err() != nil {
			return
		}
		if near := c.similarName(qualified(r.Address, u.GetNamespace())); near != "" {
			c.add(v1alpha1.SeverityWarning, r.Field,
				fmt.Sprintf("no %s %q is among these objects; did you mean %q?", r.Kind(), r.Name, near))
		}
	}
}

// maxSimilar is the maximum number of missing addresses for which a validation looks for a similar name.
const maxSimilar = 1000

// similarName returns the name among the objects that is most similar to the name of an address. It returns "" if the
// address is among the objects, or if no name is similar.
func (c *check) similarName(a lang.Address) string {
	if c.written[a] != nil {
		return ""
	}
	near, known := c.near[a]
	if !known && len(c.near) < maxSimilar {
		near = suggest.Nearest(a.Name, c.names[typeOf(a)])
		c.near[a] = near
	}
	return near
}

// typeOf returns an address without its name.
func typeOf(a lang.Address) lang.Address {
	a.Name = ""
	return a
}

// catalog returns the catalog for references of a namespace's objects. It treats every object as existing, since only a
// plan checks that.
func (c *check) catalog(namespace string) lang.Catalog {
	return lang.Catalog{Block: c.block(namespace), Exists: func(lang.Address) bool { return true }, Types: c.types}
}

// qualified returns an address with its namespace.
func qualified(a lang.Address, namespace string) lang.Address {
	if a.Namespace == "" {
		a.Namespace = namespace
	}
	return a
}

// block returns a function that gives the schema of an address: that of its type, or one with the keys of a ConfigMap
// or Secret in the validation.
func (c *check) block(namespace string) func(lang.Address) *schema.Block {
	return func(a lang.Address) *schema.Block {
		if a.Stored() {
			a = qualified(a, namespace)
			if _, known := c.keys[a]; !known {
				c.keys[a] = keysOf(c.written[a])
			}
			return c.keys[a]
		}
		kinds := c.ByType(a.Mode, a.Type)
		if len(kinds) == 0 {
			return nil
		}
		return kinds[0].Schema.Block
	}
}

// keysOf returns a schema with an attribute for each key of a ConfigMap or Secret. It returns nil if the keys are not
// known.
func keysOf(u *unstructured.Unstructured) *schema.Block {
	if u == nil {
		return nil
	}
	out := &schema.Block{}
	for _, f := range []string{"data", "stringData", "binaryData"} {
		values, _ := u.Object[f].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			out.Attributes = append(out.Attributes, &schema.Attribute{Name: key, Type: cty.String, Computed: true})
		}
	}
	return out
}

// ProviderConfigBlock returns the schema of an installed provider's configuration, or nil if the provider is not
// installed.
func (k *Kinds) ProviderConfigBlock(provider string) *schema.Block {
	g := k.snapshot.Load().groups[v1alpha1.ProviderGroup(provider)]
	if g == nil {
		return nil
	}
	return g.configuration()
}
