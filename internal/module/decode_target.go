package module

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// This file reads addresses: those in depends_on, moved, import, removed, provider and providers.

// targets reads the addresses of depends_on.
func (d *decoder) targets(attr *hcl.Attribute) []Target {
	items, diags := hcl.ExprList(attr.Expr)
	d.note(diags)
	var out []Target
	for i, e := range items {
		if t, ok := d.target(e, diag.IndexField(attr.Name, i), true); ok {
			out = append(out, t)
		}
	}
	return out
}

// target reads the address of a module, a block or an instance. With loose, it may also be a reference to another
// value, whose steps after the address are left out.
func (d *decoder) target(e hcl.Expression, field string, loose bool) (Target, bool) {
	t := Target{Range: e.Range(), Text: string(e.Range().SliceBytes(d.files[e.Range().Filename]))}
	native, ok := d.nativeOf(e)
	if !ok {
		return t, false
	}
	steps, ok := d.steps(native, field)
	if !ok || len(steps) == 0 {
		d.fail(e.Range(), "Invalid address",
			"An address is that of a resource or a module, such as sim_network.main, module.net or module.net[\"eu\"].sim_network.main.")
		return t, false
	}
	for len(steps) >= 2 && steps[0].name == "module" && steps[0].key == nil {
		step := TargetStep{Name: steps[1].name}
		steps = steps[2:]
		if step.Name == "" {
			break
		}
		if len(steps) > 0 && steps[0].key != nil {
			step.Key, steps = steps[0].key, steps[1:]
		}
		t.Steps = append(t.Steps, step)
	}
	if len(steps) == 0 && len(t.Steps) > 0 || loose && len(t.Steps) > 0 {
		return t, true
	}
	if len(steps) > 0 && slices.Contains([]string{"resource", "data", "ephemeral", "action"}, steps[0].name) {
		if steps[0].name != "resource" {
			t.Block.Mode = v1alpha1.Mode(steps[0].name)
		}
		steps = steps[1:]
	}
	if len(steps) < 2 || steps[0].name == "" || steps[1].name == "" {
		d.fail(e.Range(), "Invalid address",
			"An address is that of a resource or a module, such as sim_network.main, module.net or module.net[\"eu\"].sim_network.main.")
		return t, false
	}
	t.Block.Type, t.Block.Name, steps = steps[0].name, steps[1].name, steps[2:]
	if len(steps) > 0 && steps[0].key != nil {
		t.Key, steps = steps[0].key, steps[1:]
	}
	if len(steps) > 0 && !loose {
		d.fail(e.Range(), "Invalid address", "Resource specification must not include attributes.")
		return t, false
	}
	return t, true
}

// nativeOf returns an expression in native syntax. A string of JSON syntax has the text of one.
func (d *decoder) nativeOf(e hcl.Expression) (hclsyntax.Expression, bool) {
	native, ok := e.(hclsyntax.Expression)
	if key, isKey := native.(*hclsyntax.ObjectConsKeyExpr); isKey {
		native = key.Wrapped
	}
	if _, quoted := native.(*hclsyntax.TemplateExpr); ok && !quoted {
		return native, true
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
		d.fail(e.Range(), "Invalid expression",
			"A single static variable reference is required: only attribute access and indexing with constant keys. No calculations, function calls, template expressions, etc are allowed here.")
		return nil, false
	}
	parsed, diags := hclsyntax.ParseExpression([]byte(v.AsString()), e.Range().Filename, e.Range().Start)
	d.note(diags)
	return parsed, !diags.HasErrors()
}

// addressStep is a step of an address: a name, or the key of an instance.
type addressStep struct {
	name string
	key  *Expr
}

// steps returns the steps of an address. A key may be an expression, as in an import block with for_each.
func (d *decoder) steps(e hclsyntax.Expression, field string) ([]addressStep, bool) {
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return d.traversal(e.Traversal, field)
	case *hclsyntax.RelativeTraversalExpr:
		before, ok := d.steps(e.Source, field)
		after, okAfter := d.traversal(e.Traversal, field)
		return append(before, after...), ok && okAfter
	case *hclsyntax.IndexExpr:
		before, ok := d.steps(e.Collection, field)
		return append(before, addressStep{key: d.expr(e.Key, field+".key")}), ok
	}
	return nil, false
}

func (d *decoder) traversal(t hcl.Traversal, field string) ([]addressStep, bool) {
	var out []addressStep
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = append(out, addressStep{name: s.Name})
		case hcl.TraverseAttr:
			out = append(out, addressStep{name: s.Name})
		case hcl.TraverseIndex:
			out = append(out, addressStep{key: &Expr{Value: jsonOf(s.Key), Field: field, Range: s.SrcRange,
				of: d.positions}})
		default:
			return nil, false
		}
	}
	return out, true
}

// providerRef reads a reference to a provider configuration: aws, aws.west, or aws.by_region["west"].
func (d *decoder) providerRef(e hcl.Expression, field string) (*ProviderRef, bool) {
	native, ok := d.nativeOf(e)
	if !ok {
		return nil, false
	}
	steps, ok := d.steps(native, field)
	ref := &ProviderRef{}
	if ok && len(steps) > 0 {
		ref.Name, steps = steps[0].name, steps[1:]
	}
	if ok && len(steps) > 0 && steps[0].key == nil {
		ref.Alias, steps = steps[0].name, steps[1:]
	}
	if ok && len(steps) > 0 && ref.Alias != "" {
		ref.Key, steps = steps[0].key, steps[1:]
	}
	if !ok || ref.Name == "" || len(steps) > 0 {
		d.fail(e.Range(), "Invalid provider configuration reference",
			"A provider configuration reference is the name of a provider, optionally with an alias, such as aws or aws.west.")
		return nil, false
	}
	return ref, true
}

func (d *decoder) moved(b *hcl.Block) {
	content := d.content(b.Body, movedSchema)
	from, to := d.required(content.Attributes, "from", b), d.required(content.Attributes, "to", b)
	if from == nil || to == nil {
		return
	}
	m := &Moved{Range: b.DefRange}
	var okFrom, okTo bool
	m.From, okFrom = d.target(from.Expr, "moved.from", false)
	m.To, okTo = d.target(to.Expr, "moved.to", false)
	if okFrom && okTo && (m.From.Block == BlockID{}) != (m.To.Block == BlockID{}) {
		d.fail(b.DefRange, "Invalid \"moved\" addresses",
			"The \"from\" and \"to\" addresses must either both refer to resources or both refer to modules.")
		return
	}
	if okFrom && okTo {
		d.config.Moved = append(d.config.Moved, m)
	}
}

func (d *decoder) importBlock(b *hcl.Block) {
	if len(d.config.Path) > 0 {
		d.fail(b.DefRange, "Invalid import configuration",
			"An import block was detected in %q. Import blocks are only allowed in the root module.", d.config.Dir)
		return
	}
	content := d.content(b.Body, importSchema)
	to := d.required(content.Attributes, "to", b)
	if to == nil {
		return
	}
	field := diag.IndexField("import", len(d.config.Imports))
	target, ok := d.target(to.Expr, diag.KeyField(field, "to"), false)
	i := &Import{
		To: target, Range: b.DefRange, ForEach: d.optional(content.Attributes, "for_each", field),
		ID: d.optional(content.Attributes, "id", field), Identity: d.optional(content.Attributes, "identity", field),
	}
	if (i.ID == nil) == (i.Identity == nil) {
		d.fail(b.DefRange, "Invalid import block",
			"An import block must have either the argument \"id\" or the argument \"identity\".")
		return
	}
	if attr := content.Attributes["provider"]; attr != nil {
		i.Provider, _ = d.providerRef(attr.Expr, diag.KeyField(field, "provider"))
	}
	if ok {
		d.config.Imports = append(d.config.Imports, i)
	}
}

func (d *decoder) removed(b *hcl.Block) {
	content := d.content(b.Body, removedSchema)
	from := d.required(content.Attributes, "from", b)
	d.refuseProvisioners(content.Blocks)
	r := &Removed{Range: b.DefRange, Destroy: true}
	for _, inner := range content.Blocks.OfType("lifecycle") {
		lifecycle := d.content(inner.Body, schemaOf([]string{"destroy"}))
		r.Destroy = d.bool(lifecycle.Attributes["destroy"], true)
	}
	if from == nil {
		return
	}
	target, ok := d.target(from.Expr, "removed.from", false)
	if !ok {
		return
	}
	if target.Key != nil {
		d.fail(from.Expr.Range(), "Resource instance address not allowed",
			"Resource address must be a resource (e.g. \"test_instance.foo\"), not a resource instance (e.g. \"test_instance.foo[1]\").")
		return
	}
	r.From = target
	d.config.Removed = append(d.config.Removed, r)
}
