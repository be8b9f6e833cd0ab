package module

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file converts the bodies of blocks to specs with templates: arguments and nested blocks to fields, expressions
// to ${...} around the text of the file, and dynamic blocks to one expression for all blocks of a type.

// converter converts parts of files. Its positions map the fields of the results to the files.
type converter struct {
	files     Files
	positions Positions
	diags     diag.Diagnostics
}

func (c *converter) fail(r hcl.Range, summary, format string, args ...any) {
	c.diags = append(c.diags, diag.Errorf(place(r.Filename, r.Start.Line, r.Start.Column), summary, format, args...))
}

func (c *converter) warn(r hcl.Range, summary, format string, args ...any) {
	c.diags = append(c.diags, warning(place(r.Filename, r.Start.Line, r.Start.Column), summary, format, args...))
}

func (c *converter) note(diags hcl.Diagnostics) { c.diags = append(c.diags, fromHCL(diags)...) }

// expr converts an expression.
func (c *converter) expr(e hcl.Expression, field string) *Expr {
	return &Expr{Value: c.value(e, field), Field: field, Range: e.Range(), of: c.positions}
}

// value returns an expression as a JSON value with templates.
func (c *converter) value(e hcl.Expression, field string) any {
	native, ok := e.(hclsyntax.Expression)
	if !ok {
		return c.jsonValue(e, field)
	}
	if v, constant := constantOf(native); constant {
		c.positions.block(field, e.Range())
		return v
	}
	c.positions.simple(field, e.Range(), len("${"))
	return "${" + c.source(e.Range()) + "}"
}

// source returns the text of an expression. The marker at the end of a heredoc needs a line of its own.
func (c *converter) source(r hcl.Range) string {
	text := string(r.SliceBytes(c.files[r.Filename]))
	if strings.Contains(text, "<<") {
		text += "\n"
	}
	return text
}

// constantOf returns an expression without references and operations as a JSON value with templates.
func constantOf(e hclsyntax.Expression) (any, bool) {
	constant := true
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr, *hclsyntax.TemplateExpr, *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr,
			*hclsyntax.ParenthesesExpr:
		case *hclsyntax.ObjectConsKeyExpr:
			constant = constant && !n.ForceNonLiteral
		case *hclsyntax.UnaryOpExpr:
			_, literal := n.Val.(*hclsyntax.LiteralValueExpr)
			constant = constant && literal
		default:
			constant = false
		}
		return nil
	})
	if !constant {
		return nil, false
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() {
		return nil, false // internal/lang reports the error
	}
	return jsonOf(v), true
}

// jsonOf returns a constant value as a JSON value whose strings are templates.
func jsonOf(v cty.Value) any {
	switch ty := v.Type(); {
	case v.IsNull():
		return nil
	case ty == cty.String:
		return lang.EscapeTemplate(v.AsString())
	case ty == cty.Bool:
		return v.True()
	case ty == cty.Number:
		if i, accuracy := v.AsBigFloat().Int64(); accuracy == 0 {
			return i
		}
		return json.Number(v.AsBigFloat().Text('g', -1))
	case ty.IsObjectType() || ty.IsMapType():
		out := make(map[string]any, v.LengthInt())
		for name, member := range v.AsValueMap() {
			out[lang.EscapeTemplate(name)] = jsonOf(member)
		}
		return out
	default:
		out := make([]any, 0, v.LengthInt())
		for _, e := range v.AsValueSlice() {
			out = append(out, jsonOf(e))
		}
		return out
	}
}

// jsonValue converts an expression in JSON syntax, whose strings are templates already.
func (c *converter) jsonValue(e hcl.Expression, field string) any {
	c.positions.jsonText(field, e.Range())
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		out := make(map[string]any, len(pairs))
		for _, pair := range pairs {
			if key, diags := pair.Key.Value(nil); !diags.HasErrors() {
				out[key.AsString()] = c.jsonValue(pair.Value, diag.KeyField(field, key.AsString()))
			}
		}
		return out
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = c.jsonValue(item, diag.IndexField(field, i))
		}
		return out
	}
	v, diags := e.Value(nil) // without a context, a string is its text
	c.note(diags)
	switch {
	case diags.HasErrors() || v.IsNull():
		return nil
	case v.Type() == cty.String:
		return v.AsString()
	}
	return jsonOf(v)
}

// jsonText notes the text of a string, whose first line begins after the quote.
func (p Positions) jsonText(field string, r hcl.Range) {
	p[field] = position{file: r.Filename, start: r.Start, lines: []lineOrigin{{r.Start.Line, r.Start.Column}}}
}

// escapeBlock is the name of a block with arguments whose names are those of meta-arguments.
const escapeBlock = "_"

// spec converts the body of a block, without the arguments and blocks of the given names.
func (c *converter) spec(body hcl.Body, without []string, field string) map[string]any {
	if native, ok := body.(*hclsyntax.Body); ok {
		return c.native(native, without, field)
	}
	out := map[string]any{}
	attrs, diags := body.JustAttributes()
	c.note(diags)
	for name, attr := range attrs {
		if name == "//" || slices.Contains(without, name) {
			continue
		}
		out[name] = c.jsonValue(attr.Expr, diag.KeyField(field, name))
	}
	c.jsonDynamic(out, field, firstRange(attrs))
	return out
}

func firstRange(attrs hcl.Attributes) hcl.Range {
	for _, a := range attrs {
		return a.Range
	}
	return hcl.Range{}
}

func (c *converter) native(body *hclsyntax.Body, without []string, field string) map[string]any {
	out := make(map[string]any, len(body.Attributes)+len(body.Blocks))
	for name, attr := range body.Attributes {
		if !slices.Contains(without, name) {
			out[name] = c.value(attr.Expr, diag.KeyField(field, name))
		}
	}
	for _, group := range c.groups(body, without) {
		at := diag.KeyField(field, group.name)
		switch {
		case group.name == escapeBlock:
			for _, b := range group.blocks {
				for name, v := range c.native(b.Body, nil, field) {
					out[name] = v
				}
			}
		case group.dynamic:
			c.positions.block(at, group.blocks[0].TypeRange)
			text := newTextBuilder(c)
			text.raw("${")
			text.blocks(group)
			text.raw("}")
			first := group.blocks[0].TypeRange
			c.positions[at] = position{file: first.Filename, start: first.Start, lines: text.lines}
			out[group.name] = text.String()
		case len(group.blocks[0].Labels) > 0:
			out[group.name] = c.labelled(group, at)
		default:
			list := make([]any, len(group.blocks))
			for i, b := range group.blocks {
				item := diag.IndexField(at, i)
				c.positions.block(item, b.TypeRange)
				list[i] = c.native(b.Body, nil, item)
			}
			c.positions.block(at, group.blocks[0].TypeRange)
			out[group.name] = list
		}
	}
	return out
}

// labelled returns blocks with labels as objects by their labels.
func (c *converter) labelled(group *group, field string) map[string]any {
	out := map[string]any{}
	for _, b := range group.blocks {
		at, inner := field, out
		for i, label := range b.Labels {
			at = diag.KeyField(at, label)
			if i == len(b.Labels)-1 {
				if _, twice := inner[label]; twice {
					c.fail(b.TypeRange, "Duplicate block", "There are two %s blocks with the label %q.", group.name,
						label)
				}
				inner[label] = c.native(b.Body, nil, at)
				break
			}
			next, ok := inner[label].(map[string]any)
			if !ok {
				next = map[string]any{}
				inner[label] = next
			}
			inner = next
		}
		c.positions.block(at, b.TypeRange)
	}
	c.positions.block(field, group.blocks[0].TypeRange)
	return out
}

// group is the nested blocks of one type, in their order. A dynamic block is of the type that its label names.
type group struct {
	name    string
	blocks  []*hclsyntax.Block
	dynamic bool
}

func (c *converter) groups(body *hclsyntax.Body, without []string) []*group {
	var out []*group
	byName := map[string]*group{}
	for _, b := range body.Blocks {
		name, dynamic := b.Type, b.Type == "dynamic"
		if slices.Contains(without, name) {
			continue
		}
		if dynamic {
			if len(b.Labels) != 1 {
				c.fail(b.TypeRange, "Missing name for dynamic",
					"A dynamic block has one label, the type of the blocks that it makes.")
				continue
			}
			name = b.Labels[0]
		}
		g := byName[name]
		if g == nil {
			g = &group{name: name}
			byName[name] = g
			out = append(out, g)
		}
		g.blocks, g.dynamic = append(g.blocks, b), g.dynamic || dynamic
	}
	return out
}

// textBuilder writes an expression. Each line of the result has text of one line of a file at most.
type textBuilder struct {
	strings.Builder
	c     *converter
	lines []lineOrigin
}

func newTextBuilder(c *converter) *textBuilder {
	return &textBuilder{c: c, lines: make([]lineOrigin, 1)}
}

// raw writes text that is not in a file.
func (b *textBuilder) raw(s string) {
	b.WriteString(s)
	for range strings.Count(s, "\n") {
		b.lines = append(b.lines, lineOrigin{})
	}
}

// source writes an expression of a file, in parentheses and on lines of its own.
func (b *textBuilder) source(r hcl.Range) {
	b.raw("(\n")
	text := b.c.source(r)
	b.lines[len(b.lines)-1] = lineOrigin{r.Start.Line, r.Start.Column - 1}
	b.WriteString(text)
	for i := range strings.Count(text, "\n") {
		b.lines = append(b.lines, lineOrigin{r.Start.Line + 1 + i, 0})
	}
	b.raw("\n)")
}

// blocks writes a tuple of objects for blocks, or an object for blocks with labels.
func (b *textBuilder) blocks(g *group) {
	first := g.blocks[0]
	labelled := len(first.Labels) > 0
	if g.dynamic {
		labelled = slices.ContainsFunc(g.blocks, func(block *hclsyntax.Block) bool {
			if block.Type == "dynamic" {
				return block.Body.Attributes["labels"] != nil
			}
			return len(block.Labels) > 0
		})
	}
	join := "concat("
	if labelled {
		join = "merge("
	}
	b.raw(join)
	for i, block := range g.blocks {
		if i > 0 {
			b.raw(", ")
		}
		switch {
		case block.Type == "dynamic":
			b.dynamic(block, labelled)
		case labelled:
			for _, label := range block.Labels {
				b.raw("{" + quoted(label) + " = ")
			}
			b.object(block.Body, nil)
			b.raw(strings.Repeat("}", len(block.Labels)))
		default:
			b.raw("[")
			b.object(block.Body, nil)
			b.raw("]")
		}
	}
	b.raw(")")
}

// dynamic writes the for expression for a dynamic block.
func (b *textBuilder) dynamic(block *hclsyntax.Block, labelled bool) {
	forEach, labels := block.Body.Attributes["for_each"], block.Body.Attributes["labels"]
	iterator, content := block.Labels[0], (*hclsyntax.Block)(nil)
	for name, attr := range block.Body.Attributes {
		switch name {
		case "for_each", "labels":
		case "iterator":
			if iterator = hcl.ExprAsKeyword(attr.Expr); iterator == "" {
				b.c.fail(attr.Expr.Range(), "Invalid expression",
					"A single static variable reference is required: only attribute access and indexing with constant keys. No calculations, function calls, template expressions, etc are allowed here.")
			}
		default:
			b.c.fail(attr.NameRange, "Unsupported argument",
				"An argument named %q is not expected here. Did you mean to define it in the content block?", name)
		}
	}
	for _, inner := range block.Body.Blocks {
		switch {
		case inner.Type != "content":
			b.c.fail(inner.TypeRange, "Unsupported block type", "Blocks of type %q are not expected here.", inner.Type)
		case content != nil:
			b.c.fail(inner.TypeRange, "Extraneous content block",
				"Only one nested content block is allowed for each dynamic block.")
		default:
			content = inner
		}
	}
	if forEach == nil || content == nil {
		b.c.fail(block.TypeRange, "Missing argument of a dynamic block",
			"A dynamic block needs the argument for_each and one content block.")
		b.raw("[]")
		return
	}
	open, end := "[", "]"
	if labelled {
		open, end = "{", "}"
	}
	b.raw(open + "for " + iterator + " in [for key, value in ")
	b.source(forEach.Expr.Range())
	b.raw(" : {key = key, value = value}] : ")
	if !labelled {
		b.object(content.Body, nil)
		b.raw(end)
		return
	}
	label, inner := b.labels(labels)
	b.source(label)
	b.raw(" => ")
	for _, r := range inner {
		b.raw("{")
		b.source(r)
		b.raw(" = ")
	}
	b.object(content.Body, nil)
	b.raw(strings.Repeat("}", len(inner)) + end)
}

// labels returns the expressions of the labels of a dynamic block: the first, and the others.
func (b *textBuilder) labels(attr *hclsyntax.Attribute) (hcl.Range, []hcl.Range) {
	if attr == nil {
		return hcl.Range{}, nil
	}
	items, diags := hcl.ExprList(attr.Expr)
	b.c.note(diags)
	ranges := make([]hcl.Range, len(items))
	for i, e := range items {
		ranges[i] = e.Range()
	}
	if len(ranges) == 0 {
		return attr.Expr.Range(), nil
	}
	return ranges[0], ranges[1:]
}

// object writes a body as an object.
func (b *textBuilder) object(body *hclsyntax.Body, without []string) {
	b.raw("{")
	for _, name := range sortedKeys(body.Attributes) {
		b.raw("\n" + quoted(name) + " = ")
		b.source(body.Attributes[name].Expr.Range())
		b.raw(",")
	}
	for _, g := range b.c.groups(body, without) {
		b.raw("\n" + quoted(g.name) + " = ")
		b.blocks(g)
		b.raw(",")
	}
	b.raw("\n}")
}

// quoted returns a string of the expression language.
func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always has a form in JSON
	return lang.EscapeTemplate(string(text))
}

// jsonDynamic replaces the dynamic blocks in an object of JSON syntax.
func (c *converter) jsonDynamic(object map[string]any, field string, r hcl.Range) {
	dynamic := map[string][]any{}
	for _, one := range listOf(object["dynamic"]) {
		blocks, ok := one.(map[string]any)
		if !ok {
			return
		}
		for name, block := range blocks {
			dynamic[name] = append(dynamic[name], listOf(block)...)
		}
	}
	for _, name := range sortedKeys(dynamic) {
		var parts []string
		if static, ok := object[name]; ok {
			parts = append(parts, c.jsonBlocks(static, r))
		}
		for _, one := range dynamic[name] {
			parts = append(parts, c.jsonDynamicText(name, one, r))
		}
		object[name] = "${concat(" + strings.Join(parts, ", ") + ")}"
		at := diag.KeyField(field, name)
		c.positions[at] = position{file: r.Filename,
			start: c.positions[diag.KeyField(diag.KeyField(field, "dynamic"), name)].start}
	}
	delete(object, "dynamic")
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func (c *converter) jsonBlocks(v any, r hcl.Range) string {
	items := make([]string, 0, 1)
	for _, one := range listOf(v) {
		items = append(items, c.jsonText(one, r))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (c *converter) jsonDynamicText(name string, v any, r hcl.Range) string {
	block, ok := v.(map[string]any)
	content, isObject := block["content"].(map[string]any)
	_, repeats := block["for_each"]
	if !ok || !isObject || !repeats {
		c.fail(r, "Missing argument of a dynamic block",
			"A dynamic block needs the argument for_each and one content block.")
		return "[]"
	}
	iterator := name
	if written, ok := block["iterator"].(string); ok {
		iterator = written
	}
	if block["labels"] != nil || !hclsyntax.ValidIdentifier(iterator) {
		c.fail(r, "Unsupported dynamic block",
			"In JSON syntax, a dynamic block has no labels, and its iterator is a name. Write the block in a .tf file.")
		return "[]"
	}
	for _, key := range sortedKeys(block) {
		if !slices.Contains([]string{"content", "for_each", "iterator", "//"}, key) {
			c.fail(r, "Unsupported argument",
				"An argument named %q is not expected in a dynamic block. Did you mean to define it in the content block?", key)
		}
	}
	c.jsonDynamic(content, "", r)
	return fmt.Sprintf("[for %s in [for key, value in (%s) : {key = key, value = value}] : %s]", iterator,
		c.jsonText(block["for_each"], r), c.jsonText(content, r))
}

// jsonText returns a JSON value with templates as an expression.
func (c *converter) jsonText(v any, r hcl.Range) string {
	switch v := v.(type) {
	case map[string]any:
		items := make([]string, 0, len(v))
		for _, key := range sortedKeys(v) {
			if key != "//" {
				items = append(items, "("+c.templateText(key, r)+") = "+c.jsonText(v[key], r))
			}
		}
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		items := make([]string, len(v))
		for i, e := range v {
			items[i] = c.jsonText(e, r)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return c.templateText(v, r)
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

// templateText returns a template as an expression.
func (c *converter) templateText(s string, r hcl.Range) string {
	e, diags := hclsyntax.ParseTemplate([]byte(s), r.Filename, hcl.InitialPos)
	c.note(diags)
	if diags.HasErrors() {
		return `""`
	}
	switch e := e.(type) {
	case *hclsyntax.TemplateWrapExpr:
		return "(" + string(e.Wrapped.Range().SliceBytes([]byte(s))) + "\n)"
	case *hclsyntax.TemplateExpr:
		var out strings.Builder
		for _, part := range e.Parts {
			switch part := part.(type) {
			case *hclsyntax.LiteralValueExpr:
				text, _ := json.Marshal(part.Val.AsString())
				out.WriteString(lang.EscapeTemplate(string(text[1 : len(text)-1])))
			case *hclsyntax.ConditionalExpr, *hclsyntax.TemplateJoinExpr:
				c.fail(r, "Unsupported dynamic block",
					"In JSON syntax, a template in a dynamic block has no directives. Write the block in a .tf file.")
			default:
				out.WriteString("${" + string(part.Range().SliceBytes([]byte(s))) + "\n}")
			}
		}
		return `"` + out.String() + `"`
	}
	return quoted(s)
}
