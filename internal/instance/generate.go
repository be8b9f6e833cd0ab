package instance

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// GenerateConfig returns the configuration that would produce a state. A provider with the capability generates it
// itself. Otherwise GenerateConfig omits computed, deprecated and secret attributes, as the schema declares them. A
// null in the result may be omitted from a spec.
func (t *Type) GenerateConfig(ctx context.Context, s State) (cty.Value, error) {
	if !s.Exists() {
		return cty.NullVal(t.Schema.Block.ImpliedType()), nil
	}
	v, marks := s.Value.UnmarkDeepWithPaths()
	if !t.GeneratesConfig {
		return withoutMarked(generate(t.Schema.Block, v), marks), nil
	}
	state, err := t.encode(v)
	if err != nil {
		return cty.NilVal, err
	}
	resp, err := t.Provider.GenerateResourceConfig(ctx,
		&tfprotov6.GenerateResourceConfigRequest{TypeName: t.Name, State: state})
	if err != nil {
		return cty.NilVal, fmt.Errorf("generate configuration of %s: %w", t.Name, err)
	}
	if _, err := diag.Answer("generate configuration", resp.Diagnostics); err != nil {
		return cty.NilVal, err
	}
	config, err := t.decode(resp.Config)
	if err != nil {
		return cty.NilVal, fmt.Errorf(
			"generate configuration of %s: the provider answered with a value that does not fit its schema: %w", t.Name,
			err)
	}
	if config.IsNull() || !config.IsWhollyKnown() {
		return cty.NilVal, fmt.Errorf(
			"generate configuration of %s: the provider answered with nothing, or with unknown values, which is a bug of the provider", t.Name)
	}
	return withoutMarked(withoutSensitive(t.Schema.Block, config), marks), nil
}

// generate returns a configuration that could have produced a state of the block.
func generate(b *schema.Block, state cty.Value) cty.Value {
	state = withoutDeprecated(b, withoutSensitive(b, plan.AsConfig(b, state)))
	return eachAttribute(b, state, func(p cty.Path, a *schema.Attribute, v cty.Value) cty.Value {
		null := cty.NullVal(v.Type())
		switch {
		case a.Deprecated:
			return null
		case len(p) == 1 && a.Name == "id" && a.Optional && a.Computed:
			// The legacy SDK adds id to every type, but refuses it in a configuration.
			return null
		case a.Optional && v.Type() == cty.String && v.AsString() == "":
			return null // an empty string means the same to the legacy SDK
		}
		return v
	})
}

// withoutDeprecated removes the outermost deprecated blocks, except those with MinItems.
func withoutDeprecated(b *schema.Block, v cty.Value) cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return v
	}
	vals := v.AsValueMap()
	for _, nb := range b.Blocks {
		if !nb.Block.Deprecated || nb.MinItems > 0 {
			continue
		}
		switch ty := vals[nb.TypeName].Type(); nb.Nesting {
		case schema.NestingSingle:
			vals[nb.TypeName] = cty.NullVal(ty)
		case schema.NestingList:
			vals[nb.TypeName] = cty.EmptyTupleVal
			if ty.IsListType() {
				vals[nb.TypeName] = cty.ListValEmpty(ty.ElementType())
			}
		case schema.NestingMap:
			vals[nb.TypeName] = cty.EmptyObjectVal
			if ty.IsMapType() {
				vals[nb.TypeName] = cty.MapValEmpty(ty.ElementType())
			}
		case schema.NestingSet:
			vals[nb.TypeName] = cty.SetValEmpty(ty.ElementType())
		}
	}
	return cty.ObjectVal(vals)
}

// withoutSensitive sets sensitive and write-only attributes to null.
func withoutSensitive(b *schema.Block, v cty.Value) cty.Value {
	return eachAttribute(b, v, func(_ cty.Path, a *schema.Attribute, v cty.Value) cty.Value {
		if a.Sensitive || a.WriteOnly {
			return cty.NullVal(v.Type())
		}
		return v
	})
}

// eachAttribute rebuilds a value: it replaces each non-null attribute by the result of f, innermost first.
func eachAttribute(b *schema.Block, v cty.Value, f func(cty.Path, *schema.Attribute, cty.Value) cty.Value) cty.Value {
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if a := attributeAt(b, p); a != nil && v.IsKnown() && !v.IsNull() {
			return f(p, a, v), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.NullVal(v.Type()) // on an error, show nothing
	}
	return out
}

// attributeAt returns the attribute at the end of a path, or nil if the path ends elsewhere.
func attributeAt(b *schema.Block, p cty.Path) *schema.Attribute {
	if len(p) == 0 {
		return nil
	}
	last, ok := p[len(p)-1].(cty.GetAttrStep)
	if !ok {
		return nil
	}
	find, nested := b.Attribute, b.NestedBlock
	for _, step := range p[:len(p)-1] {
		s, ok := step.(cty.GetAttrStep)
		if !ok {
			continue
		}
		if nb := nested(s.Name); nb != nil {
			find, nested = nb.Block.Attribute, nb.Block.NestedBlock
			continue
		}
		a := find(s.Name)
		if a == nil || a.Nested == nil {
			return nil // within the value of an attribute without nested attributes
		}
		find, nested = a.Nested.Attribute, func(string) *schema.NestedBlock { return nil }
	}
	return find(last.Name)
}

// withoutMarked sets the marked values to null: a reference made them secret.
func withoutMarked(v cty.Value, marks []cty.PathValueMarks) cty.Value {
	drop := cty.NewPathSet()
	for _, m := range marks {
		drop.Add(m.Path)
	}
	return withoutPathSet(v, drop)
}
