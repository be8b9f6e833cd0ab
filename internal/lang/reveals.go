package lang

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// reveal is a set of the ways in which an expression reveals something of a value, other than passing the value on.
type reveal uint8

const (
	// revealValue reveals something of the value itself, such as the length of a list. revealAll also reveals something
	// of its elements.
	revealValue reveal = 1 << iota
	revealAll
	// revealUnmarked removes the mark of a sensitive value, as nonsensitive() does.
	revealUnmarked
)

// ofElements returns how an expression reveals the elements of a collection constructor, given how it reveals the
// collection.
func (how reveal) ofElements() reveal { return how &^ revealValue }

// ofCollection returns how an expression reveals a collection, given how it reveals one element of the collection.
func (how reveal) ofCollection() reveal {
	if how&revealValue != 0 {
		return how | revealAll
	}
	return how
}

const nonsensitiveName = "nonsensitive"

// RevealsSensitive reports whether the expression around the reference would reveal something of a sensitive value. It
// returns true within nonsensitive(). Otherwise it considers the attributes that the schema marks sensitive. It reads
// no values, so it does not know which values are sensitive because of other references.
func (r Reference) RevealsSensitive(block *schema.Block) bool {
	at, within := sensitiveAt(block, r.steps)
	return r.Unmarked() || r.reveals&(revealValue|revealAll) != 0 && at || r.reveals&revealAll != 0 && within
}

// Unmarked reports whether the expression removes the mark of a sensitive value, because the reference is within a call
// of nonsensitive().
func (r Reference) Unmarked() bool { return r.reveals&revealUnmarked != 0 }

// HoldsSensitive reports whether the schema marks the referenced value, or a value within it, as sensitive.
func (r Reference) HoldsSensitive(block *schema.Block) bool {
	_, within := sensitiveAt(block, r.steps)
	return within
}

// sensitiveAt follows the steps into the schema. It reports whether the schema marks the value at their end, or a value
// within it, as sensitive.
func sensitiveAt(b *schema.Block, steps hcl.Traversal) (at, within bool) {
	attrs, blocks := b.Attributes, b.Blocks
	for i := range steps {
		name, named := step(steps, i)
		if !named {
			continue // all elements have the same schema
		}
		a := slices.IndexFunc(attrs, func(a *schema.Attribute) bool { return a.Name == name })
		nb := slices.IndexFunc(blocks, func(b *schema.NestedBlock) bool { return b.TypeName == name })
		switch {
		case a >= 0 && attrs[a].Sensitive:
			return true, true
		case a >= 0 && attrs[a].Nested != nil:
			attrs, blocks = attrs[a].Nested.Attributes, nil
		case a >= 0:
			return false, false
		case nb >= 0:
			attrs, blocks = blocks[nb].Block.Attributes, blocks[nb].Block.Blocks
		}
	}
	return false, schema.HasSensitive(&schema.Block{Attributes: attrs, Blocks: blocks})
}

// revealed maps the source range of each traversal of an expression to how the expression reveals the traversal's
// value.
type revealed map[hcl.Range]reveal

// expression adds the traversals of an expression whose value is revealed as in how. variables maps each variable of an
// enclosing for expression to the references in its collection.
func (m revealed) expression(e hclsyntax.Expression, how reveal, variables map[string]ranges) {
	switch e := e.(type) {
	case nil, *hclsyntax.LiteralValueExpr, *hclsyntax.AnonSymbolExpr:
	case *hclsyntax.ScopeTraversalExpr:
		m.traversal(e.Traversal, how, variables)
	case *hclsyntax.FunctionCallExpr:
		m.call(e, how, variables)
	case *hclsyntax.ForExpr:
		m.loop(e, how, variables)
	case *hclsyntax.ObjectConsExpr:
		m.object(e, how, variables)
	case *hclsyntax.TupleConsExpr:
		m.each(how.ofElements(), variables, e.Exprs...)
	case *hclsyntax.ConditionalExpr:
		m.expression(e.Condition, how|revealAll, variables)
		m.each(how, variables, e.TrueResult, e.FalseResult)
	case *hclsyntax.BinaryOpExpr:
		m.each(how|revealAll, variables, e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		m.expression(e.Val, how|revealAll, variables)
	case *hclsyntax.IndexExpr:
		m.expression(e.Collection, how.ofCollection(), variables)
		m.expression(e.Key, how|revealAll, variables)
	case *hclsyntax.SplatExpr:
		m.expression(e.Source, how.ofCollection()|revealValue, variables)
		m.expression(e.Each, how, variables)
	case *hclsyntax.RelativeTraversalExpr:
		m.expression(e.Source, how.ofCollection(), variables)
	case *hclsyntax.ObjectConsKeyExpr:
		m.expression(e.Wrapped, how, variables)
	case *hclsyntax.ParenthesesExpr:
		m.expression(e.Expression, how, variables)
	case *hclsyntax.TemplateExpr:
		m.each(how, variables, e.Parts...)
	case *hclsyntax.TemplateWrapExpr:
		m.expression(e.Wrapped, how, variables)
	case *hclsyntax.TemplateJoinExpr:
		m.expression(e.Tuple, how, variables)
	default:
		for _, t := range e.Variables() {
			m.traversal(t, how|revealAll, variables)
		}
	}
}

func (m revealed) each(how reveal, variables map[string]ranges, es ...hclsyntax.Expression) {
	for _, e := range es {
		m.expression(e, how, variables)
	}
}

// loop adds the traversals of a for expression.
func (m revealed) loop(e *hclsyntax.ForExpr, how reveal, variables map[string]ranges) {
	m.expression(e.CollExpr, how|revealValue, variables)
	inner := maps.Clone(variables)
	if inner == nil {
		inner = map[string]ranges{}
	}
	collection := ranges{}
	for _, t := range e.CollExpr.Variables() {
		collection.add(t, variables)
	}
	inner[e.ValVar] = collection
	if e.KeyVar != "" {
		inner[e.KeyVar] = collection
	}
	m.each(how|revealAll, inner, e.KeyExpr, e.CondExpr)
	m.expression(e.ValExpr, how.ofElements(), inner)
}

// object adds the traversals of an object constructor.
func (m revealed) object(e *hclsyntax.ObjectConsExpr, how reveal, variables map[string]ranges) {
	for _, item := range e.Items {
		if key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && key.ForceNonLiteral ||
			hcl.ExprAsKeyword(item.KeyExpr) == "" {
			m.expression(item.KeyExpr, how|revealAll, variables)
		}
		m.expression(item.ValueExpr, how.ofElements(), variables)
	}
}

// call adds the traversals in the arguments of a function call.
func (m revealed) call(c *hclsyntax.FunctionCallExpr, how reveal, variables map[string]ranges) {
	name := strings.TrimPrefix(c.Name, corePrefix)
	from, embeds := embedding[name]
	if name == "format" && len(c.Args) > 0 {
		verbs, literal := c.Args[0].(*hclsyntax.TemplateExpr)
		embeds = literal && verbs.IsStringLiteral() && printsWholeArguments(textOf(verbs))
	}
	for i, arg := range c.Args {
		how := how
		switch {
		case name == nonsensitiveName:
			how |= revealUnmarked
		case embeds && i >= from, name == "try":
			how = how.ofCollection()
		case slices.Contains(structural, name) && name != templateString:
			how = how.ofCollection() | revealValue
		default:
			how |= revealAll
		}
		if c.ExpandFinal && i == len(c.Args)-1 {
			how |= revealValue
		}
		m.expression(arg, how, variables)
	}
}

func (m revealed) traversal(t hcl.Traversal, how reveal, variables map[string]ranges) {
	if _, ok := variables[t.RootName()]; ok {
		how = how.ofCollection()
	}
	at := ranges{}
	at.add(t, variables)
	for r := range at {
		m[r] |= how
	}
}

// ranges is a set of the source ranges of references.
type ranges map[hcl.Range]bool

// add adds a reference. For the variable of a for expression, it adds the references in its collection.
func (p ranges) add(t hcl.Traversal, variables map[string]ranges) {
	if collection, ok := variables[t.RootName()]; ok {
		maps.Copy(p, collection)
	} else {
		p[t.SourceRange()] = true
	}
}

// textOf returns the text of a template that has no expressions.
func textOf(e *hclsyntax.TemplateExpr) cty.Value {
	v, _ := e.Value(nil)
	return v
}
