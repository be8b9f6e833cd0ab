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

// ask is a way in which an expression makes something of a value visible, beside passing it on.
type ask uint8

const (
	// askValue looks at the value itself, such as how long a list is; askAll at what it holds, too.
	askValue ask = 1 << iota
	askAll
	// askShown takes the mark of a sensitive value away.
	askShown
)

// elements is how the elements are asked about of a collection that is written out.
func (how ask) elements() ask { return how &^ askValue }

// from is how a collection is asked about of whose elements one is.
func (how ask) from() ask {
	if how&askValue != 0 {
		return how | askAll
	}
	return how
}

const nonsensitiveName = "nonsensitive"

// Asks says whether the expression around a reference would show something of a sensitive value there: of what the schema calls
// sensitive, or, with nonsensitive(), of any. It reads no values, so it says nothing of what is sensitive for another reason.
func (r Reference) Asks(block *schema.Block) bool {
	at, within := sensitiveAt(block, r.steps)
	return r.asks&askShown != 0 || r.asks&(askValue|askAll) != 0 && at || r.asks&askAll != 0 && within
}

// HoldsSensitive says whether the schema calls sensitive what the reference names, or something within.
func (r Reference) HoldsSensitive(block *schema.Block) bool {
	_, within := sensitiveAt(block, r.steps)
	return within
}

// sensitiveAt says whether the schema calls sensitive where steps lead to, or something within.
func sensitiveAt(b *schema.Block, steps hcl.Traversal) (at, within bool) {
	attrs, blocks := b.Attributes, b.Blocks
	for i := range steps {
		name, named := step(steps, i)
		if !named {
			continue // an element has the schema of all of them
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

// asking finds the traversals of an expression that it asks about, by where they are written.
type asking map[hcl.Range]ask

// walk visits an expression whose own value is asked about as how says. locals are what the variables of the for expressions
// around it go through.
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

// call is walk for the arguments of a function.
func (a asking) call(c *hclsyntax.FunctionCallExpr, how ask, locals map[string]places) {
	name := strings.TrimPrefix(c.Name, corePrefix)
	from, embeds := embedding[name]
	if name == "format" && len(c.Args) > 0 {
		verbs, literal := c.Args[0].(*hclsyntax.TemplateExpr)
		embeds = literal && verbs.IsStringLiteral() && wholly(textOf(verbs))
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

// places are where references are written.
type places map[hcl.Range]bool

// add adds a reference, or all that the variable of a for expression goes through.
func (p places) add(t hcl.Traversal, locals map[string]places) {
	if through, local := locals[t.RootName()]; local {
		maps.Copy(p, through)
	} else {
		p[t.SourceRange()] = true
	}
}

// textOf is the text of a template without expressions.
func textOf(e *hclsyntax.TemplateExpr) cty.Value {
	v, _ := e.Value(nil)
	return v
}
