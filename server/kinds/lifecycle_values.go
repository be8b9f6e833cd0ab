package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/suggest"
)

func invalid(path *field.Path, value any, format string, args ...any) field.ErrorList {
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf(format, args...))}
}

// localAddress parses the address of an object in the object's own namespace.
func localAddress(u *unstructured.Unstructured, path *field.Path, s string) (lang.Address, field.ErrorList) {
	a, err := lang.ParseAddress(s)
	switch {
	case err != nil:
		return a, invalid(path, s, "%s", err.Error())
	case a.Stored():
		return a, invalid(path, s, "must be the address of a provider's object: a plan does not create or change ConfigMaps and Secrets")
	case a.In(u.GetNamespace()).Namespace != "":
		return a, invalid(path, s, "must be in the object's own namespace: a plan changes only its own namespace")
	}
	return a.In(u.GetNamespace()), nil
}

func (s *served) address(u *unstructured.Unstructured) lang.Address {
	a := lang.Address{Type: s.Type, Name: u.GetName()}
	if s.Mode != v1alpha1.ModeManaged {
		a.Mode = s.Mode
	}
	return a
}

func checkDependency(_ context.Context, s *served, u *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	a, errs := localAddress(u, path, v.(string))
	if len(errs) == 0 && a == s.address(u) {
		return invalid(path, v, "must not be the object itself")
	}
	return errs
}

func checkIgnored(_ context.Context, s *served, _ *unstructured.Unstructured, path *field.Path, v any) field.ErrorList {
	name := v.(string)
	if name == "all" {
		return nil
	}
	first, _, _ := strings.Cut(name, ".")
	first, _, _ = strings.Cut(first, "[")
	if block := s.Schema.Block; block.Attribute(first) == nil && block.NestedBlock(first) == nil {
		return invalid(path, v, "there is no argument %q; name an argument of spec, without %q before it, or \"all\"",
			first, "spec.")
	}
	return nil
}

// checkTrigger checks an entry of replaceTriggeredBy: TYPE.NAME or KIND/NAME, or TYPE.NAME.ATTRIBUTE with further
// steps. Since an attribute may follow, a name with dots must be in brackets.
func checkTrigger(_ context.Context, s *served, u *unstructured.Unstructured, path *field.Path, v any) field.ErrorList {
	text := v.(string)
	bad := func() field.ErrorList {
		return invalid(path, v, `must be the address of a managed resource, or of an attribute of one, such as "sim_network.main", "sim-network/main" or "sim_network.main.id"`)
	}
	text, err := lang.TriggerExpression(text)
	if err != nil {
		return invalid(path, v, "%s", err.Error())
	}
	t, ok := triggerSteps(text, repetitionOf(u) != "")
	if !ok {
		return bad()
	}
	name, ok := traversalStep(t[1])
	if !ok {
		return bad()
	}
	a, errs := localAddress(u, path, fmt.Sprintf("%s[%q]", t.RootName(), name))
	switch {
	case len(errs) > 0 || slices.Contains(reservedWords(), a.Type):
		return bad()
	case a == s.address(u):
		return invalid(path, v, "must not be the object itself")
	case len(t) == 2:
		return nil
	}
	attribute, ok := traversalStep(t[2])
	if !ok {
		return bad()
	}
	// A provider for an unknown type may be installed later.
	for i, k := range s.kinds.ByType("", a.Type) {
		switch block := k.Schema.Block; {
		case block.Attribute(attribute) != nil || block.NestedBlock(attribute) != nil:
			return nil
		case i == 0:
			hint := fmt.Sprintf("see kubectl explain %s.status.attributes", k.GVK.Kind)
			if near := suggest.Nearest(attribute,
				slices.Sorted(maps.Keys(block.ImpliedType().AttributeTypes()))); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			errs = invalid(path, v, "a %s has no attribute %q; %s", k.GVK.Kind, attribute, hint)
		}
	}
	return errs
}

// triggerSteps returns the steps of an entry of replaceTriggeredBy, without the key of an instance. In a template, the
// key may be an expression, as in sim_network.n[count.index].id.
func triggerSteps(text string, template bool) (hcl.Traversal, bool) {
	e, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, false
	}
	t, ok := stepsOf(e, template)
	if len(t) > 2 {
		if _, keyed := t[2].(hcl.TraverseIndex); keyed {
			t = slices.Delete(slices.Clone(t), 2, 3)
		}
	}
	return t, ok && len(t) >= 2
}

// stepsOf returns the steps of a reference. keys permits indexes that are expressions, such as [each.key].
func stepsOf(e hclsyntax.Expression, keys bool) (hcl.Traversal, bool) {
	var before hclsyntax.Expression
	var last hcl.Traversal
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return e.Traversal, true
	case *hclsyntax.RelativeTraversalExpr:
		before, last = e.Source, e.Traversal
	case *hclsyntax.IndexExpr:
		if !keys {
			return nil, false
		}
		before, last = e.Collection, hcl.Traversal{hcl.TraverseIndex{Key: cty.DynamicVal}}
	default:
		return nil, false
	}
	t, ok := stepsOf(before, keys)
	return slices.Concat(t, last), ok
}

// reservedWords returns the first words of addresses of other objects than managed resources.
func reservedWords() []string {
	return []string{string(v1alpha1.ModeData), string(v1alpha1.ModeEphemeral), string(v1alpha1.ModeAction), "namespace"}
}

func traversalStep(t hcl.Traverser) (string, bool) {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return t.Name, true
	case hcl.TraverseIndex:
		if t.Key.Type() == cty.String && t.Key.IsKnown() && !t.Key.IsNull() {
			return t.Key.AsString(), true
		}
	}
	return "", false
}

func checkMoved(_ context.Context, s *served, u *unstructured.Unstructured, path *field.Path, v any) field.ErrorList {
	m, errs := fieldsOf(path, v, "from")
	if m == nil || len(errs) > 0 {
		return errs
	}
	from, ok := m["from"].(string)
	at := path.Child("from")
	switch {
	case m["from"] == nil:
		return field.ErrorList{field.Required(at,
			`address that the infrastructure is recorded under, such as "sim_network.old"`)}
	case !ok:
		return invalid(at, m["from"], "must be a string, got %s", describe(m["from"]))
	}
	a, errs := localAddress(u, at, from)
	switch {
	case len(errs) > 0:
		return errs
	case a.Mode != "":
		return invalid(at, from, "must be the address of a managed resource: nothing else has infrastructure to move")
	case a == s.address(u):
		return invalid(at, from, "must not be the object itself")
	case len(s.kinds.ByType("", a.Type)) > 0:
		return nil
	}
	// No record has such an address. The plan would create a resource that already exists.
	hint := "install the provider that has it, or correct the type"
	if near := suggest.Nearest(a.Type, s.kinds.managedTypes()); near != "" {
		a.Type = near
		hint = fmt.Sprintf("did you mean %q?", a.In(u.GetNamespace()))
	}
	return invalid(at, from, "no installed provider has resources of this type; %s", hint)
}

// fieldsOf returns an object that may have only the named fields, with errors for others. It returns nil if v is not an
// object.
func fieldsOf(path *field.Path, v any, names ...string) (map[string]any, field.ErrorList) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(path, v, "must be an object, got %s", describe(v))
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(names, name) {
			continue
		}
		hint := ""
		for _, n := range names {
			if strings.EqualFold(n, strings.ReplaceAll(name, "_", "")) {
				hint = n
			}
		}
		if hint == "" {
			hint = suggest.Nearest(name, names)
		}
		errs = append(errs, unknownFieldErrors([]fieldnames.Unknown{{Path: path.Child(name).String(),
			Hint: fieldnames.DidYouMean(hint)}})...)
	}
	return m, errs
}

// expression parses a value with templates and returns its errors. The result must have the type, unless that is
// cty.NilType.
func (s *served) expression(ctx context.Context, u *unstructured.Unstructured, path *field.Path, v any, self bool,
	want cty.Type) (*lang.Expression, field.ErrorList) {
	options := s.expressionOptions(u, path, self, want)
	options.Budget = lang.BudgetOf(ctx)
	e, diags := lang.ParseExpression(v, path.String(), options)
	var errs field.ErrorList
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: d.Attribute,
				BadValue: field.OmitValueType{}, Detail: diagnosticText(d)})
		}
	}
	return e, errs
}

// expressionOptions returns the options of an expression in a lifecycle, without a budget.
func (s *served) expressionOptions(u *unstructured.Unstructured, path *field.Path, self bool,
	want cty.Type) lang.ExpressionOptions {
	options := lang.ExpressionOptions{Functions: s.functions(), Namespace: u.GetNamespace(), Type: want,
		Repetition: repetitionOf(u)}
	if self {
		options.Self = s.Schema.Block
	}
	// Planning evaluates the ID or identity of an import.
	options.Settled = strings.HasPrefix(path.String(), "lifecycle."+fieldImport)
	return options
}

// diagnosticText returns the detail of a diagnostic, or its summary if there is no detail.
func diagnosticText(d v1alpha1.Diagnostic) string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Detail
}

// functions returns the signatures of the provider-defined functions.
func (s *served) functions() lang.Functions { return s.kinds.Functions() }

// Functions returns the functions of the installed providers.
func (k *Kinds) Functions() lang.Functions { return k.snapshot.Load().functions }

func checkCondition(ctx context.Context, s *served, u *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	m, errs := fieldsOf(path, v, "condition", "errorMessage")
	if m == nil {
		return errs
	}
	self := strings.HasPrefix(path.String(), "lifecycle."+fieldPostconditions)
	errs = append(errs, s.checkTruth(ctx, u, path.Child("condition"), m["condition"], self)...)
	at := path.Child("errorMessage")
	message, ok := m["errorMessage"].(string)
	switch {
	case m["errorMessage"] == nil || ok && message == "":
		return append(errs, field.Required(at, "the message for users if the condition is false, with the remedy"))
	case !ok:
		return append(errs, invalid(at, m["errorMessage"], "must be a string, got %s", describe(m["errorMessage"]))...)
	}
	_, more := s.expression(ctx, u, at, message, self, cty.String)
	return append(errs, more...)
}

// checkTruth checks a condition: a single expression with a reference and a boolean result.
func (s *served) checkTruth(ctx context.Context, u *unstructured.Unstructured, path *field.Path, v any,
	self bool) field.ErrorList {
	example := "${data.sim_image.base.size > 0}"
	if self {
		example = `${self.status == "active"}`
	}
	text, ok := v.(string)
	switch {
	case v == nil || ok && text == "":
		return field.ErrorList{field.Required(path, "an expression that is true or false, such as "+example)}
	case !ok:
		return invalid(path, v, "must be a string with an expression, such as %s, got %s", example, describe(v))
	case !strings.HasPrefix(text, "${") || !strings.HasSuffix(text, "}"):
		return invalid(path, text, "must be one expression, such as %s: text outside of ${...} makes it a string",
			example)
	}
	e, errs := s.expression(ctx, u, path, text, self, cty.Bool)
	if len(errs) == 0 && len(e.References()) == 0 && len(e.Own()) == 0 && !e.UsesKey() {
		return invalid(path, text, "must refer to something, as in %s: otherwise it checks nothing", example)
	}
	return errs
}

func checkImport(ctx context.Context, s *served, u *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	m, errs := fieldsOf(path, v, "id", "identity")
	if m == nil || len(errs) > 0 {
		return errs
	}
	id, identity := m["id"], m["identity"]
	switch {
	case id == nil && identity == nil:
		return field.ErrorList{field.Required(path, "id or identity of the existing resource")}
	case id != nil && identity != nil:
		return invalid(path, field.OmitValueType{}, "id and identity exclude each other; remove one of the two")
	case identity != nil:
		return s.checkIdentity(ctx, u, path.Child("identity"), identity)
	}
	at := path.Child("id")
	text, ok := id.(string)
	switch {
	case !ok:
		return invalid(at, id, "must be a string, got %s; put it in quotes", describe(id))
	case text == "":
		return field.ErrorList{field.Required(at, "ID of the existing resource, in the provider's own format")}
	}
	_, errs = s.expression(ctx, u, at, text, false, cty.String)
	return errs
}

// checkIdentity checks an identity with expressions.
func (s *served) checkIdentity(ctx context.Context, u *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	m, ok := v.(map[string]any)
	if !ok {
		return invalid(path, v, "must be an object, got %s", describe(v))
	}
	errs := s.ValidateIdentity(path, m)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		a := identityAttribute(s.Identity, name)
		if a == nil || m[name] == nil {
			continue
		}
		_, more := s.expression(ctx, u, path.Child(name), m[name], false, a.Type)
		errs = append(errs, more...)
	}
	return errs
}

// ValidateIdentity checks the attribute names of an identity for an import against the type's identity schema.
func (k Kind) ValidateIdentity(path *field.Path, m map[string]any) field.ErrorList {
	if k.Identity == nil {
		return field.ErrorList{field.Forbidden(path,
			fmt.Sprintf("the provider gives a %s no identity; use id instead", k.Type))}
	}
	var errs field.ErrorList
	var names []string
	for _, a := range k.Identity.Attributes {
		names = append(names, a.Name)
		if a.RequiredForImport && m[a.Name] == nil {
			errs = append(errs, field.Required(path.Child(a.Name),
				strings.TrimSpace(fmt.Sprintf("%s of the existing resource. %s", a.Type.FriendlyName(),
					a.Description))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch a := identityAttribute(k.Identity, name); {
		case a == nil:
			errs = append(errs, field.Forbidden(path.Child(name),
				fmt.Sprintf("unknown field %q; the identity of a %s has %s", path.Child(name), k.Type,
					strings.Join(names, ", "))))
		case !a.RequiredForImport && !a.OptionalForImport:
			errs = append(errs, field.Forbidden(path.Child(name),
				"only the provider sets it, so it cannot identify an import"))
		}
	}
	return errs
}

func identityAttribute(i *schema.Identity, name string) *schema.IdentityAttribute {
	if i == nil {
		return nil
	}
	for _, a := range i.Attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// expressionReferences returns the references of a lifecycle's expressions, even if other fields are invalid. own are
// those to the object's own result. It evaluates nothing.
func (s *served) expressionReferences(u *unstructured.Unstructured) (refs, own []lang.Reference) {
	m, _ := u.Object["lifecycle"].(map[string]any)
	add := func(path *field.Path, v any, self bool, want cty.Type) {
		if lang.HasTemplate(v) {
			others, selves := s.expressionOptions(u, path, self, want).References(v, path.String())
			refs, own = append(refs, others...), append(own, selves...)
		}
	}
	path := field.NewPath("lifecycle")
	for _, name := range []string{fieldPreconditions, fieldPostconditions} {
		list, _ := m[name].([]any)
		for i, v := range list {
			check, _ := v.(map[string]any)
			at := path.Child(name).Index(i)
			add(at.Child("condition"), check["condition"], name == fieldPostconditions, cty.Bool)
			add(at.Child("errorMessage"), check["errorMessage"], name == fieldPostconditions, cty.String)
		}
	}
	by, _ := m[fieldImport].(map[string]any)
	at := path.Child(fieldImport)
	add(at.Child("id"), by["id"], false, cty.String)
	add(at.Child("identity"), by["identity"], false, cty.NilType)
	return refs, own
}
