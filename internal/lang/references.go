package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/suggest"
)

// Reference is one reference of an expression to an object.
type Reference struct {
	Address
	// Attribute is the first step after the address, such as "id"; empty for a reference to the whole object.
	Attribute string
	// Field is the position of the reference, such as "spec.tags.net, column 3": the field's path and the column in its
	// template.
	Field string
	// written is the address as written in the expression, which may name the object's own namespace.
	written Address
	// explicit is true for a reference in a module that begins with "resource.".
	explicit bool
	// steps are all steps after the address.
	steps hcl.Traversal
	// reveals describes how the expression reveals the value.
	reveals reveal
	// key is the expression of the key of an instance, as in sim_network.n[count.index].id; nil if the reference has
	// none, or if the key is written out and so a part of the address. after are the steps after the key.
	key   hclsyntax.Expression
	after hcl.Traversal
}

// NewReference returns the reference of a field that names an object without an expression, such as
// lifecycle.dependsOn.
func NewReference(a Address, field string) Reference {
	return Reference{Address: a, written: a, Field: field}
}

// Roots of references that are not resource types.
const (
	rootNamespace = "namespace"
	rootSelf      = "self"
	rootCount     = "count"
	rootEach      = "each"
)

// reservedRoots maps names that have a meaning in Terraform, but not as the root of a reference here, to an
// explanation.
var reservedRoots = map[string]string{
	"action":      "an action has no result, so nothing can refer to it",
	rootCount:     "it is known only in the template of a ResourceSet with spec.count",
	"data":        "it must be followed by a type and a name, as in ${data.sim_image.base.id}",
	rootEach:      "it is known only in the template of a ResourceSet with spec.forEach",
	"ephemeral":   "it must be followed by a type and a name, as in ${ephemeral.sim_token.t.value}",
	"local":       "there are no local values; write the value itself, or put it into a ConfigMap and write ${configmap.NAME.KEY}",
	"module":      "it must be followed by the name of a Module and of its output, as in ${module.shop.url}",
	rootNamespace: "it must be followed by the name of a namespace and a reference, as in ${namespace.shared.sim_network.main.id}",
	"path":        "expressions cannot read files; write the value itself, or put it into a ConfigMap and write ${configmap.NAME.KEY}",
	"resource":    "write the reference without it, as in ${sim_network.main.id}",
	rootSelf:      "it is the object's own result, which only a postcondition can refer to",
	"terraform":   "there is no workspace; write the value itself",
	"var":         "there are no input variables; write the value itself, or put it into a ConfigMap and write ${configmap.NAME.KEY}",
}

// reference records the reference at the beginning of a traversal.
func (p *parser) reference(t hcl.Traversal, field string, reveals reveal, key instanceKeyExpr) {
	at := columnField(field, t.SourceRange())
	if p.repetition(t, at) {
		return
	}
	if t.RootName() == rootSelf && p.opts.self {
		p.ownRefs = append(p.ownRefs, Reference{steps: t[1:], Field: at, reveals: reveals})
		return
	}
	a, n, ok := p.address(t, at)
	if !ok {
		return
	}
	attr, _ := step(t, n)
	r := Reference{Address: a.In(p.opts.Namespace), written: a, Attribute: attr, steps: t[n:], Field: at,
		reveals: reveals}
	r.explicit = p.opts.Module != "" && t.RootName() == rootResource
	if key.expr != nil && (a.isValue() || n == len(t) && (a.hasInstances() || a.Mode == ModeModule) &&
		!v1alpha1.IsInstanceName(a.Name)) {
		r.key, r.after = key.expr, key.after
	}
	p.refs = append(p.refs, r)
}

// address reads [namespace.NS.][data.|ephemeral.]TYPE.NAME. n is the number of steps that the address takes.
func (p *parser) address(t hcl.Traversal, at string) (a Address, n int, ok bool) {
	if p.opts.Module != "" {
		return p.moduleAddress(t, at)
	}
	root := t.RootName()
	if root == rootNamespace {
		ns, ok := step(t, 1)
		if ok && !validNamespace(ns) {
			p.fail(at, "Invalid reference",
				"%q cannot be the name of a namespace. A name consists of lower case letters, digits and dashes.", ns)
			return Address{}, 0, false
		}
		if root, n = "", 2; ok {
			root, ok = step(t, n)
		}
		if !ok {
			p.fail(at, "Invalid reference", "%q alone is not a reference: %s.", rootNamespace,
				reservedRoots[rootNamespace])
			return Address{}, 0, false
		}
		if slices.Contains([]string{rootCount, rootEach, rootSelf, rootNamespace}, root) {
			p.fail(at, "Unsupported reference", "%q cannot be used after the name of a namespace.", root)
			return Address{}, 0, false
		}
		a.Namespace = ns
	}
	switch m := v1alpha1.Mode(root); m {
	case ModeModule:
		return p.outputAddress(a.Namespace, t, n, at)
	case v1alpha1.ModeData, v1alpha1.ModeEphemeral:
		n++
		a.Mode = m
		var ok bool
		if root, ok = step(t, n); !ok {
			p.fail(at, "Invalid reference", "%q alone is not a reference: %s. For literal text, write $${%s}.", m,
				reservedRoots[string(m)], m)
			return Address{}, 0, false
		}
	default:
		if why, reserved := reservedRoots[root]; reserved {
			p.fail(at, "Unsupported reference", "%q cannot be used here: %s.", root, why)
			return Address{}, 0, false
		}
	}
	if !validType(root) {
		p.fail(at, "Invalid reference", "%q is not a resource type. %s", root, typeHint(root))
		return Address{}, 0, false
	}
	name, ok := step(t, n+1)
	if !ok {
		p.fail(at, "Invalid reference",
			"%q must be followed by the name of %s, written out, as in ${%s}; a name with dots goes into brackets, as in ${%s}. For literal text, write $${%s}.",
			root, nounOf(a.Mode, root), example(a, root, ".main"), example(a, root, `["my.name"]`), root)
		return Address{}, 0, false
	}
	if !validName(name) {
		p.fail(at, "Invalid reference",
			"%q cannot be the name of %s. A name consists of lower case letters, digits, dashes and dots.", name,
			nounOf(a.Mode, root))
		return Address{}, 0, false
	}
	a.Type, a.Name = root, name
	if key, ok := keyStep(t, n+2); ok && a.hasInstances() {
		return a.Instance(key), n + 3, true
	}
	return a, n + 2, true
}

func example(a Address, ty, name string) string {
	attr := ".id"
	if a.Mode == "" && (ty == TypeConfigMap || ty == TypeSecret) {
		attr = ".key"
	}
	a.Type = ty
	return strings.TrimSuffix(a.String(), ".") + name + attr
}

func nounOf(m v1alpha1.Mode, ty string) string {
	switch {
	case m == v1alpha1.ModeData:
		return "a data source"
	case m == v1alpha1.ModeEphemeral:
		return "an ephemeral resource"
	case ty == TypeConfigMap:
		return "a ConfigMap"
	case ty == TypeSecret:
		return "a Secret"
	default:
		return "a resource"
	}
}

func typeHint(word string) string {
	switch strings.ToLower(word) {
	case TypeConfigMap, TypeSecret:
		return fmt.Sprintf("Write %s.", strings.ToLower(word))
	}
	mode, ty := v1alpha1.ParseKind(word)
	if !validType(ty) {
		return "Write it as ${TYPE.NAME.ATTRIBUTE}, such as ${sim_network.main.id}."
	}
	if mode != v1alpha1.ModeManaged {
		ty = string(mode) + "." + ty
	}
	return fmt.Sprintf("References use Terraform's type names, so write %s instead of %s.", ty, word)
}

// step returns the i-th step of a traversal if it is a name.
func step(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch s := t[i].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// Catalog gives the checks of references access to schemas and existing objects.
type Catalog struct {
	// Block returns the schema of the addressed object by its mode and type, or nil if no provider has the type. For a
	// ConfigMap or Secret, the block has an attribute for each key; nil means that the keys are not known.
	Block func(Address) *schema.Block
	// Exists reports whether the object exists, or the ResourceSet whose template has the address.
	Exists func(Address) bool
	// Repeats returns how the ResourceSet repeats its template that has the address; "" for other objects. It may be
	// nil.
	Repeats func(Address) Repetition
	// Types lists the known types of a mode; "" means managed. Names lists the objects of the address's mode and type
	// in the referring object's namespace. Both may be nil; they only serve to suggest similar names.
	Types func(v1alpha1.Mode) []string
	Names func(Address) []string
}

// quiet returns the catalog without suggestions, for callers that ignore the text of the diagnostics.
func (in Catalog) quiet() Catalog {
	in.Types, in.Names = nil, nil
	return in
}

func (in Catalog) types(m v1alpha1.Mode) []string {
	if in.Types == nil {
		return nil
	}
	return in.Types(m)
}

// maxHints is the number of problems with a suggestion. The search for similar names takes longer than all other
// checks.
const maxHints = 100

// CheckReferences reports references to types, objects and attributes that do not exist, and suggests similar names. If
// it reports nothing, Config.CheckTypes and Expression.CheckTypes check the types.
func CheckReferences(refs []Reference, in Catalog) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, r := range refs {
		if r.Named() {
			continue // the module's loader has checked it
		}
		if len(diags) == maxHints {
			in = in.quiet()
		}
		block := in.Block(r.Address)
		wrong, hasWrongKey := in.instanceProblem(r)
		switch {
		case hasWrongKey:
			diags = append(diags, wrong)
		case block == nil && !r.Stored():
			diags = append(diags, MissingType(r, in.types))
		case in.lacksInstance(r.Address):
			// The expression may permit it, as with try(). The evaluation of CheckTypes reports it.
		case !in.Exists(r.Address):
			var names []string
			// The user may lack the right to list the objects of another namespace.
			if in.Names != nil && r.Namespace == "" {
				names = in.Names(r.Address)
			}
			diags = append(diags, missingObject(r, names))
		case block != nil && in.repeats(r.Address) == "":
			if d, missing := missingAttribute(r, block); missing {
				diags = append(diags, d)
			}
		}
	}
	return diags
}

// MissingType returns the diagnostic for a reference to a type that no installed provider has, and suggests a similar
// type. types lists the known types of a mode; "" means managed.
func MissingType(r Reference, types func(v1alpha1.Mode) []string) v1alpha1.Diagnostic {
	what := "resource"
	if r.Mode != "" {
		what = strings.TrimPrefix(strings.TrimPrefix(nounOf(r.Mode, r.Type), "an "), "a ")
	}
	hint := ""
	// The mode may be wrong: "data." missing or superfluous.
	for _, m := range []v1alpha1.Mode{"", v1alpha1.ModeData, v1alpha1.ModeEphemeral} {
		if m != r.Mode && slices.Contains(types(m), r.Type) {
			other := r.written
			other.Mode = m
			hint = fmt.Sprintf(" There is %s of the type: did you mean %s?", nounOf(m, r.Type), other.Expression())
			break
		}
	}
	if hint == "" {
		names := types(r.Mode)
		if r.Mode == "" {
			names = append(slices.Clone(names), TypeConfigMap, TypeSecret)
		}
		hint = diag.DidYouMean(r.Type, names)
	}
	if hint == "" {
		hint = " Install the provider that has it, or correct the name."
	}
	return diag.Errorf(r.Field, fmt.Sprintf("Reference to an unknown %s type", what), "There is no %s type %q.%s", what,
		r.Type, hint)
}

func missingObject(r Reference, names []string) v1alpha1.Diagnostic {
	near := ""
	if n := suggest.Nearest(r.Name, names); n != "" {
		other := r.written
		other.Name = n
		near = fmt.Sprintf(" Did you mean %s?", other.Expression())
	}
	where := "this namespace"
	if r.Namespace != "" {
		where = fmt.Sprintf("the namespace %q", r.Namespace)
	}
	return diag.Errorf(r.Field, "Reference to a missing resource",
		"There is no %s named %q in %s.%s Create it, or correct the reference to %s.", r.Kind(), r.Name, where, near,
		r.written.Expression())
}

// missingAttribute follows the steps of a reference into the schema. It stops without a problem where the schema does
// not define the type.
func missingAttribute(r Reference, block *schema.Block) (v1alpha1.Diagnostic, bool) {
	ty, what := block.ImpliedType(), article(r.Kind())
	for i, s := range r.steps {
		name, named := step(r.steps, i)
		if attr, ok := s.(hcl.TraverseAttr); ok && !ty.IsObjectType() && !ty.IsMapType() &&
			ty != cty.DynamicPseudoType {
			return wrongStep(r, what, ty, attr), true
		}
		switch {
		case ty.IsObjectType() && named:
			if !ty.HasAttribute(name) {
				names := sortedKeys(ty.AttributeTypes())
				hint := diag.DidYouMean(name, names)
				switch {
				case hint == "" && r.Stored():
					hint = fmt.Sprintf(" See kubectl get %s %s -o yaml.", r.Type, r.Name)
				case hint == "":
					hint = fmt.Sprintf(" See kubectl explain %s.status.attributes.", r.Kind())
				}
				noun := "attribute"
				if r.Stored() {
					noun = "key"
					what = fmt.Sprintf("The %s %q", r.Kind(), r.Name)
				}
				return diag.Errorf(r.Field, "Reference to a missing attribute", "%s has no %s %q.%s",
					sentenceStart(what), noun, name, hint), true
			}
			ty, what = ty.AttributeType(name), fmt.Sprintf("the attribute %q", name)
		case ty.IsMapType(), ty.IsListType() && isIndex(s):
			ty, what = ty.ElementType(), "an element of it"
		default:
			// Only the evaluation can check a tuple, a dynamic value or an index.
			return v1alpha1.Diagnostic{}, false
		}
	}
	return v1alpha1.Diagnostic{}, false
}

func wrongStep(r Reference, what string, ty cty.Type, s hcl.TraverseAttr) v1alpha1.Diagnostic {
	hint := " Remove the part after it."
	switch {
	case ty.IsListType():
		hint = fmt.Sprintf(" Name one element, as in [0].%s, or all of them, as in [*].%s.", s.Name, s.Name)
	case ty.IsSetType():
		hint = fmt.Sprintf(" Write [*].%s for all elements, or one(...) for the only element.", s.Name)
	}
	return diag.Errorf(r.Field, "Unsupported attribute", "%s is %s, which has no attribute %q.%s", sentenceStart(what),
		article(ty.FriendlyName()), s.Name, hint)
}

func isIndex(s hcl.Traverser) bool { _, ok := s.(hcl.TraverseIndex); return ok }
