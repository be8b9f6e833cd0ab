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

// ask is a set of the ways in which an expression reveals something of a value, other than passing the value on.
type ask uint8

const (
	// askValue reveals something of the value itself, such as the length of a list. askAll also reveals something of
	// its elements.
	askValue ask = 1 << iota
	askAll
	// askShown removes the mark of a sensitive value, as nonsensitive() does.
	askShown
)

// elements returns how an expression reveals the elements of a collection constructor, given how it reveals the
// collection.
func (how ask) elements() ask { return how &^ askValue }

// from returns how an expression reveals a collection, given how it reveals one element of the collection.
func (how ask) from() ask {
	if how&askValue != 0 {
		return how | askAll
	}
	return how
}

const nonsensitiveName = "nonsensitive"

// Asks reports whether the expression around the reference would reveal something of a sensitive value there. Without
// nonsensitive(), it considers the attributes that the schema marks sensitive. With nonsensitive(), it always returns
// true. Asks reads no values, so it does not know which values are sensitive because of other references.
func (r Reference) Asks(block *schema.Block) bool {
	at, within := sensitiveAt(block, r.steps)
	return r.asks&askShown != 0 || r.asks&(askValue|askAll) != 0 && at || r.asks&askAll != 0 && within
}

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

// asking maps the source range of each traversal of an expression to how the expression reveals the traversal's value.
type asking map[hcl.Range]ask

// walk visits an expression whose value is revealed as in how. locals maps each variable of an enclosing for expression
// to the references in its collection.
func (a asking) walk(e hclsyntax.Expression, how ask, locals map[string]places) {
	all := func(es ...hclsyntax.Expression) {
		for _, e := range es {
			a.walk(e, how|askAll, locals)
		}
	}
	switch e := e.(type) {
	case nil, *hclsyntax.LiteralValueExpr, *hclsyntax.AnonSymbolExpr:
	case *hclsyntax.ScopeTraversalExpr:
		a.note(e.Traversal, how, locals)
	case *hclsyntax.FunctionCallExpr:
		a.call(e, how, locals)
	case *hclsyntax.ConditionalExpr:
		all(e.Condition)
		a.walk(e.TrueResult, how, locals)
		a.walk(e.FalseResult, how, locals)
	case *hclsyntax.BinaryOpExpr:
		all(e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		all(e.Val)
	case *hclsyntax.IndexExpr:
		a.walk(e.Collection, how.from(), locals)
		all(e.Key)
	case *hclsyntax.SplatExpr:
		a.walk(e.Source, how.from()|askValue, locals)
		a.walk(e.Each, how, locals)
	case *hclsyntax.ForExpr:
		a.walk(e.CollExpr, how|askValue, locals)
		inner := maps.Clone(locals)
		if inner == nil {
			inner = map[string]places{}
		}
		through := places{}
		for _, t := range e.CollExpr.Variables() {
			through.add(t, locals)
		}
		inner[e.ValVar] = through
		if e.KeyVar != "" {
			inner[e.KeyVar] = through
		}
		a.walk(e.KeyExpr, how|askAll, inner)
		a.walk(e.CondExpr, how|askAll, inner)
		a.walk(e.ValExpr, how.elements(), inner)
	case *hclsyntax.TupleConsExpr:
		for _, e := range e.Exprs {
			a.walk(e, how.elements(), locals)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			if key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && key.ForceNonLiteral || hcl.ExprAsKeyword(item.KeyExpr) == "" {
				all(item.KeyExpr)
			}
			a.walk(item.ValueExpr, how.elements(), locals)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		a.walk(e.Wrapped, how, locals)
	case *hclsyntax.ParenthesesExpr:
		a.walk(e.Expression, how, locals)
	case *hclsyntax.TemplateExpr:
		for _, e := range e.Parts {
			a.walk(e, how, locals)
		}
	case *hclsyntax.TemplateWrapExpr:
		a.walk(e.Wrapped, how, locals)
	case *hclsyntax.TemplateJoinExpr:
		a.walk(e.Tuple, how, locals)
	case *hclsyntax.RelativeTraversalExpr:
		a.walk(e.Source, how.from(), locals)
	default:
		for _, t := range e.Variables() {
			a.note(t, how|askAll, locals)
		}
	}
}

// call visits the arguments of a function call.
func (a asking) call(c *hclsyntax.FunctionCallExpr, how ask, locals map[string]places) {
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
			how |= askShown
		case embeds && i >= from, name == "try":
			how = how.from()
		case slices.Contains(structural, name) && name != templateString:
			how = how.from() | askValue
		default:
			how |= askAll
		}
		if c.ExpandFinal && i == len(c.Args)-1 {
			how |= askValue
		}
		a.walk(arg, how, locals)
	}
}

func (a asking) note(t hcl.Traversal, how ask, locals map[string]places) {
	if _, local := locals[t.RootName()]; local {
		how = how.from()
	}
	at := places{}
	at.add(t, locals)
	for r := range at {
		a[r] |= how
	}
}

// places is a set of the source ranges of references.
type places map[hcl.Range]bool

// add adds a reference. For the variable of a for expression, it adds the references in its collection.
func (p places) add(t hcl.Traversal, locals map[string]places) {
	if through, local := locals[t.RootName()]; local {
		maps.Copy(p, through)
	} else {
		p[t.SourceRange()] = true
	}
}

// textOf returns the text of a template that has no expressions.
func textOf(e *hclsyntax.TemplateExpr) cty.Value {
	v, _ := e.Value(nil)
	return v
}
