package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// decoder decodes the blocks of one module.
type decoder struct {
	converter
	config *Config
	// override is true for the blocks of an override file, which change other blocks.
	override bool
}

func (d *decoder) file(body hcl.Body) {
	content, diags := body.Content(fileSchema)
	d.note(diags)
	for _, b := range content.Blocks {
		if bad := d.badLabel(b); bad {
			continue
		}
		switch b.Type {
		case "terraform":
			d.terraform(b.Body)
		case "required_providers":
			d.requiredProviders(b.Body)
		case "provider":
			d.provider(b)
		case "variable":
			d.variable(b)
		case "locals":
			d.locals(b)
		case "output":
			d.output(b)
		case "module":
			d.call(b)
		case "resource":
			d.resource(b, "")
		case "data":
			d.resource(b, v1alpha1.ModeData)
		case "ephemeral":
			d.resource(b, v1alpha1.ModeEphemeral)
		case "action":
			d.action(b)
		case "moved":
			d.moved(b)
		case "import":
			d.importBlock(b)
		case "removed":
			d.removed(b)
		case "check":
			d.check(b)
		}
	}
}

// badLabel reports a label that is not a name.
func (d *decoder) badLabel(b *hcl.Block) bool {
	bad := false
	for i, label := range b.Labels {
		if !hclsyntax.ValidIdentifier(label) {
			d.fail(b.LabelRanges[i], "Invalid name",
				"A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.")
			bad = true
		}
	}
	return bad
}

// content decodes a body that has no other arguments and blocks than those of the schema.
func (d *decoder) content(body hcl.Body, s *hcl.BodySchema) *hcl.BodyContent {
	content, diags := body.Content(s)
	d.note(diags)
	return content
}

// duplicate reports a second block of a name. An override file may have one, and needs a first one.
func (d *decoder) duplicate(exists bool, what, name string, b *hcl.Block) bool {
	switch {
	case exists && !d.override:
		d.fail(b.DefRange, "Duplicate "+what+" declaration",
			"There is another %s %q in this module. Names must be unique within a module.", what, name)
		return true
	case !exists && d.override:
		d.fail(b.DefRange, "Missing base "+what+" to override",
			"There is no %s %q. An override file can only override a block of a primary file.", what, name)
		return true
	}
	return false
}

func (d *decoder) required(attrs hcl.Attributes, name string, b *hcl.Block) *hcl.Attribute {
	attr := attrs[name]
	if attr == nil && !d.override {
		d.fail(b.DefRange, "Missing required argument", "The argument %q is required, but no definition was found.",
			name)
	}
	return attr
}

// constant returns the value of an argument that must not have expressions. The argument may be absent: then fallback
// is returned.
func constant[T any](d *decoder, attr *hcl.Attribute, ty cty.Type, fallback T, read func(cty.Value) T) T {
	if attr == nil {
		return fallback
	}
	v, ok := d.literal(attr.Expr)
	if !ok {
		return fallback
	}
	v, err := convert.Convert(v, ty)
	if err != nil || v.IsNull() {
		d.fail(attr.Expr.Range(), "Unsuitable value type", "The argument %q must be a %s.", attr.Name,
			ty.FriendlyName())
		return fallback
	}
	return read(v)
}

func (d *decoder) text(attr *hcl.Attribute) string {
	return constant(d, attr, cty.String, "", cty.Value.AsString)
}

func (d *decoder) bool(attr *hcl.Attribute, fallback bool) bool {
	return constant(d, attr, cty.Bool, fallback, cty.Value.True)
}

// literal returns the value of an expression that is a constant.
func (d *decoder) literal(e hcl.Expression) (cty.Value, bool) {
	if native, ok := e.(hclsyntax.Expression); ok {
		if _, constant := constantOf(native); !constant {
			summary, detail := "Variables not allowed", "Variables may not be used here."
			if len(e.Variables()) == 0 {
				summary, detail = "Function calls not allowed", "Functions and operators may not be used here."
			}
			d.fail(e.Range(), summary, "%s", detail)
			return cty.NilVal, false
		}
	}
	v, diags := e.Value(nil)
	d.note(diags)
	return v, !diags.HasErrors()
}

// optional converts the expression of an argument; nil if it is absent.
func (d *decoder) optional(attrs hcl.Attributes, name, field string) *Expr {
	if attrs[name] == nil {
		return nil
	}
	return d.expr(attrs[name].Expr, diag.KeyField(field, name))
}

func (d *decoder) locals(b *hcl.Block) {
	attrs, diags := b.Body.JustAttributes()
	d.note(diags)
	for _, name := range sortedKeys(attrs) {
		attr := attrs[name]
		if name == "//" {
			continue
		}
		exists := d.config.Locals[name] != nil
		switch {
		case !hclsyntax.ValidIdentifier(name):
			d.fail(attr.NameRange, "Invalid local value name",
				"A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.")
		case exists && !d.override:
			d.fail(attr.NameRange, "Duplicate local value definition",
				"A local value named %q was already defined. Local value names must be unique within a module.", name)
		default:
			d.config.Locals[name] = d.expr(attr.Expr, diag.KeyField("local", name))
		}
	}
}

func (d *decoder) output(b *hcl.Block) {
	name := b.Labels[0]
	old := d.config.Outputs[name]
	if d.duplicate(old != nil, "output", name, b) {
		return
	}
	content, field := d.content(b.Body, outputSchema), diag.KeyField("output", name)
	out := &Output{Name: name, Range: b.DefRange}
	if old != nil {
		out = old
	}
	if attr := d.required(content.Attributes, "value", b); attr != nil {
		out.Value = d.expr(attr.Expr, diag.KeyField(field, "value"))
	}
	out.Sensitive, out.Ephemeral = d.bool(content.Attributes["sensitive"], out.Sensitive),
		d.bool(content.Attributes["ephemeral"], out.Ephemeral)
	if attr := content.Attributes["deprecated"]; attr != nil {
		out.Deprecated = d.text(attr)
	}
	d.text(content.Attributes["description"])
	if attr := content.Attributes["depends_on"]; attr != nil {
		out.DependsOn = d.targets(attr)
	}
	if conditions := d.conditions(content.Blocks, "precondition", field); conditions != nil {
		out.Preconditions = conditions
	}
	d.config.Outputs[name] = out
}

// conditions decodes the blocks of one type as conditions.
func (d *decoder) conditions(blocks hcl.Blocks, kind, field string) []Condition {
	var out []Condition
	for i, b := range blocks.OfType(kind) {
		content := d.content(b.Body, conditionSchema)
		at := diag.IndexField(diag.KeyField(field, kind), i)
		for _, name := range []string{"condition", "error_message"} {
			if content.Attributes[name] == nil {
				d.fail(b.DefRange, "Missing required argument",
					"The argument %q is required, but no definition was found.", name)
			}
		}
		c := Condition{d.optional(content.Attributes, "condition", at),
			d.optional(content.Attributes, "error_message", at)}
		if c.Condition != nil && c.Message != nil {
			out = append(out, c)
		}
	}
	return out
}

func (d *decoder) check(b *hcl.Block) {
	name := b.Labels[0]
	if d.duplicate(d.config.Checks[name] != nil, "check", name, b) {
		return
	}
	content := d.content(b.Body, checkSchema)
	check := &Check{Name: name, Range: b.DefRange,
		Assertions: d.conditions(content.Blocks, "assert", diag.KeyField("check", name))}
	if len(check.Assertions) == 0 {
		d.fail(b.DefRange, "Zero assert blocks", "Check blocks must have at least one assert block.")
	}
	for i, data := range content.Blocks.OfType("data") {
		if i > 0 {
			d.fail(data.DefRange, "Multiple data resource blocks", "A check block has at most one data block.")
			continue
		}
		if d.badLabel(data) {
			continue
		}
		if block := d.resource(data, v1alpha1.ModeData); block != nil {
			block.Check = name
		}
	}
	d.config.Checks[name] = check
}
