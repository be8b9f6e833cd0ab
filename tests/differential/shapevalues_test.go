package differential

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/shape"
)

// This file generates the values of generated types.

// block returns the arguments of a block. before holds its current arguments, most of which it keeps.
func (g *shaper) block(at string, b *shape.Block, before map[string]any) map[string]any {
	out := map[string]any{}
	for _, a := range b.Attributes {
		if !a.Settable() {
			continue
		}
		if before != nil && !g.one(4) {
			if v, ok := before[a.Name]; ok {
				out[a.Name] = v
			}
			if a.Required || !g.one(4) {
				continue
			}
		}
		if !a.Required && g.one(2) {
			delete(out, a.Name)
			if g.one(6) {
				out[a.Name] = nil
			}
			continue
		}
		old := before[a.Name]
		if a.Required && old == nil {
			old = struct{}{} // any value but null
		}
		out[a.Name] = g.attribute(at, a, old)
	}
	for _, n := range b.Blocks {
		old, had := before[n.Name]
		if before != nil && !g.one(3) {
			if had {
				out[n.Name] = old
			}
			continue
		}
		count := max(n.Min, g.IntN(4))
		if n.Max > 0 {
			count = min(n.Max, count)
		}
		switch n.Mode {
		case shape.Single, shape.Group:
			if count > 0 {
				was, _ := old.(map[string]any)
				out[n.Name] = g.block(at, n.Block, was)
			}
		case shape.Map:
			if m := g.keyed(count, old, func(was map[string]any) any { return g.block(at, n.Block, was) }); len(m) > 0 {
				out[n.Name] = m
			}
		default:
			if l := g.listed(count, old, func(was map[string]any) any { return g.block(at, n.Block, was) }); len(l) > 0 {
				out[n.Name] = l
			}
		}
	}
	return out
}

// keyed returns a map, and keeps some of its elements.
func (g *shaper) keyed(n int, old any, one func(was map[string]any) any) map[string]any {
	m := map[string]any{}
	before, _ := old.(map[string]any)
	for range n {
		key := g.key()
		was, _ := before[key].(map[string]any)
		m[key] = one(was)
	}
	return m
}

// listed returns a list, and keeps some of its elements, perhaps at other indexes.
func (g *shaper) listed(n int, old any, one func(was map[string]any) any) []any {
	out := []any{}
	before, _ := old.([]any)
	shift := g.IntN(2)
	for i := range n {
		var was map[string]any
		if i+shift < len(before) {
			was, _ = before[i+shift].(map[string]any)
			if was != nil && g.one(2) {
				out = append(out, was)
				continue
			}
		}
		out = append(out, one(was))
	}
	return out
}

func (g *shaper) key() string {
	return []string{"alpha", "beta", "gamma", "a b", "ü", "x.y"}[g.IntN(6)]
}

// attribute returns a value. old is the current value, or nil.
func (g *shaper) attribute(at string, a *shape.Attribute, old any) any {
	// A required argument must not become null. Hykube lets the provider validate the configuration earlier than
	// Terraform does.
	if ref := g.reference(at, a.ValueType()); ref != "" && g.one(6) && !a.Required {
		return "${" + ref + "}"
	}
	if a.Type != nil {
		if a.Required {
			return g.literal(a.Type, false)
		}
		return g.value(at, a.Type)
	}
	inner := &shape.Block{Attributes: a.Attributes}
	switch a.Mode {
	case shape.Single:
		was, _ := old.(map[string]any)
		return g.block(at, inner, was)
	case shape.Map:
		return g.keyed(g.IntN(4), old, func(was map[string]any) any { return g.block(at, inner, was) })
	}
	return g.listed(g.IntN(4), old, func(was map[string]any) any { return g.block(at, inner, was) })
}

// value returns a value of a type, with expressions.
func (g *shaper) value(at string, t tftypes.Type) any {
	if ref := g.reference(at, t); ref != "" && g.one(5) {
		switch g.IntN(4) {
		case 0:
			return "${try(" + ref + ", null)}"
		case 1:
			return "${true ? " + ref + " : null}"
		}
		return "${" + ref + "}"
	}
	switch t := t.(type) {
	case tftypes.List:
		return g.many(at, t.ElementType)
	case tftypes.Set:
		return g.many(at, t.ElementType)
	case tftypes.Map:
		m := map[string]any{}
		for range g.IntN(4) {
			m[g.key()] = g.value(at, t.ElementType)
		}
		return m
	case tftypes.Object:
		m := map[string]any{}
		for _, name := range sorted(t.AttributeTypes) {
			m[name] = g.value(at, t.AttributeTypes[name])
		}
		return m
	case tftypes.Tuple:
		l := []any{}
		for _, e := range t.ElementTypes {
			l = append(l, g.value(at, e))
		}
		return l
	}
	if t.Is(tftypes.String) && g.one(3) {
		return g.template(at)
	}
	if g.one(25) {
		return nil
	}
	return g.literal(t, false)
}

func (g *shaper) many(at string, t tftypes.Type) any {
	l := []any{}
	for range g.IntN(4) {
		l = append(l, g.value(at, t))
	}
	return l
}

// template returns a text with a part that may be unknown or secret.
func (g *shaper) template(at string) any {
	if g.one(8) {
		return "code ${secret.vault.code}"
	}
	if g.one(8) {
		return "${configmap.settings.color}"
	}
	other := g.earlier(at)
	if other == "" {
		return g.word()
	}
	s := g.shape(other)
	ref := other + "." + s.Key
	switch g.IntN(8) {
	case 0:
		return "<${" + ref + "}>"
	case 1:
		return "${upper(" + other + "." + s.Title + ")}"
	case 2:
		a := s.Block.Attributes[g.IntN(len(s.Block.Attributes))]
		if a.WriteOnly || strings.HasPrefix(other, "data.") && a.Type == nil {
			return "${" + ref + "}"
		}
		return "${jsonencode(" + other + "." + a.Name + ")}"
	case 3:
		return "%{ if " + ref + " != \"\" }yes %{ else }no ${" + ref + "}%{ endif }"
	case 4:
		return "${length(" + ref + ") > 3 ? \"long\" : " + ref + "}"
	case 5:
		if len(s.Block.Blocks) > 0 {
			n := s.Block.Blocks[g.IntN(len(s.Block.Blocks))]
			if n.Mode == shape.Single || n.Mode == shape.Group {
				return "${jsonencode(try(" + other + "." + n.Name + ", \"none\"))}"
			}
			return "${length(" + other + "." + n.Name + ")} of them"
		}
	}
	return "${" + ref + "}"
}

// reference returns a reference to an earlier value of the same type; "" if there is none.
func (g *shaper) reference(at string, t tftypes.Type) string {
	other := g.earlier(at)
	if other == "" {
		return ""
	}
	b := g.shape(other).Block
	var found []string
	look(b, other, func(a *shape.Attribute, expression string) {
		switch {
		case holdsWriteOnly(a) || !a.ValueType().Equal(t) || slices.ContainsFunc(a.Attributes, holdsComputed):
			// A provider rejects computed values in a configuration, even if it returned them.
		case strings.HasPrefix(other, "data.") && a.Type == nil: // D12
		case strings.HasPrefix(at, "data.") && a.Quirk == shape.Late: // D14
		case strings.Count(expression, ".")-strings.Count(other, ".") > 1:
			// The outer value may no longer exist at the destroy, which Terraform then rejects.
			found = append(found, "try("+expression+", null)")
		default:
			found = append(found, expression)
		}
	})
	if len(found) == 0 {
		return ""
	}
	return found[g.IntN(len(found))]
}

// look visits the values that an expression can refer to without a check. A single value may still be null.
func look(b *shape.Block, at string, visit func(a *shape.Attribute, expression string)) {
	for _, a := range b.Attributes {
		visit(a, at+"."+a.Name)
		if a.Mode == shape.Single && a.Computed {
			look(&shape.Block{Attributes: a.Attributes}, at+"."+a.Name, visit)
		}
	}
	for _, n := range b.Blocks {
		switch {
		case n.Mode == shape.Group, n.Mode == shape.Single && n.Min > 0:
			look(n.Block, at+"."+n.Name, visit)
		case n.Mode == shape.List && n.Min > 0:
			look(n.Block, at+"."+n.Name+"[0]", visit)
		}
	}
}

func (g *shaper) word() string {
	return []string{
		"alpha", "Beta", "GAMMA", "ü☃", "a b", "x.y", "", "two\nlines", "$${no}", "%%{no}", "true", "12", `{"a":1}`, "null", "e\u0301", `"quoted\"`, "${\"\"}",
	}[g.IntN(17)]
}

// literal returns a value of a type without expressions. exact is the value in a state, which is never converted.
func (g *shaper) literal(t tftypes.Type, exact bool) any {
	switch {
	case t.Is(tftypes.String):
		if exact {
			return []string{"rogue", "", "Alpha", "ü"}[g.IntN(4)]
		}
		if g.one(12) {
			return []any{7, true, 1.5}[g.IntN(3)]
		}
		return g.word()
	case t.Is(tftypes.Number):
		if exact {
			return []any{0, 1, -3, 2.5, 1 << 40}[g.IntN(5)]
		}
		return []any{
			0, 1, -7, 42, 3.5, 0.1, 1 << 53, int64(1<<53 + 1), "12", "0.1", "123456789012345678901234567890", "1e3", "-0.000000000000000000001", 1e6,
		}[g.IntN(14)]
	case t.Is(tftypes.Bool):
		if exact || !g.one(5) {
			return g.one(2)
		}
		return []string{"true", "false"}[g.IntN(2)]
	case t.Is(tftypes.DynamicPseudoType):
		if exact {
			return []any{
				nil, map[string]any{"value": "rogue", "type": "string"}, map[string]any{"value": []any{1, "a"}, "type": []any{"tuple", []any{"number", "string"}}},
			}[g.IntN(3)]
		}
		return []any{
			g.word(), 12, 0.5, true, []any{}, []any{1, "a", nil}, map[string]any{}, map[string]any{"a": 1, "b": []any{true, map[string]any{"c": "d"}}, "n": nil},
		}[g.IntN(8)]
	}
	switch t := t.(type) {
	case tftypes.Map:
		m := map[string]any{}
		for range g.IntN(3) {
			m[g.key()] = g.literal(t.ElementType, exact)
		}
		return m
	case tftypes.Object:
		m := map[string]any{}
		for _, name := range sorted(t.AttributeTypes) {
			m[name] = g.literal(t.AttributeTypes[name], exact)
		}
		return m
	case tftypes.Tuple:
		l := []any{}
		for _, e := range t.ElementTypes {
			l = append(l, g.literal(e, exact))
		}
		return l
	case tftypes.List:
		l := []any{}
		for range g.IntN(3) {
			l = append(l, g.literal(t.ElementType, exact))
		}
		return l
	}
	l := []any{}
	for range g.IntN(2) { // in a set, so that no two are equal
		l = append(l, g.literal(t.(tftypes.Set).ElementType, exact))
	}
	return l
}

func holdsWriteOnly(a *shape.Attribute) bool {
	return a.WriteOnly || slices.ContainsFunc(a.Attributes, holdsWriteOnly)
}

func holdsComputed(a *shape.Attribute) bool {
	return !a.Settable() || slices.ContainsFunc(a.Attributes, holdsComputed)
}

func blockHoldsWriteOnly(b *shape.Block) bool {
	return slices.ContainsFunc(b.Attributes, holdsWriteOnly) || slices.ContainsFunc(b.Blocks, func(n *shape.Nested) bool { return blockHoldsWriteOnly(n.Block) })
}
