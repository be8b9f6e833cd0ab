package kinds

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// maxExact is the limit below which a float64 represents every whole number.
const maxExact = 1 << 53

// maxScalarWarnings is the maximum number of warnings about scalars per write.
const maxScalarWarnings = 5

// scalarWarnings returns warnings about numbers and booleans where the schema has strings. A plan converts them, as
// Terraform does, but YAML changes values such as 1.10, 0012 and no. It also warns about numbers that lost digits.
func scalarWarnings(spec map[string]any, block *schema.Block) []string {
	var w scalars
	w.block("spec", spec, block)
	if n := len(w); n > maxScalarWarnings {
		return append(w[:maxScalarWarnings:maxScalarWarnings], fmt.Sprintf("and %d more numbers and booleans where the schema has strings", n-maxScalarWarnings))
	}
	return w
}

type scalars []string

func (w *scalars) block(path string, values map[string]any, b *schema.Block) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := path + "." + name
		if a := b.Attribute(name); a != nil {
			w.value(at, values[name], a.Type)
		} else if nb := b.NestedBlock(name); nb != nil {
			w.blocks(at, values[name], nb)
		}
	}
}

func (w *scalars) blocks(path string, v any, nb *schema.NestedBlock) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if m, ok := e.(map[string]any); ok {
				w.block(fmt.Sprintf("%s[%d]", path, i), m, nb.Block)
			}
		}
	case map[string]any:
		if nb.Nesting != schema.NestingMap {
			w.block(path, v, nb.Block)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if m, ok := v[key].(map[string]any); ok {
				w.block(path+"."+key, m, nb.Block)
			}
		}
	}
}

func (w *scalars) value(path string, v any, ty cty.Type) {
	switch v := v.(type) {
	case bool, int64, float64:
		if f, ok := v.(float64); ok && ty == cty.Number && math.Abs(f) >= maxExact && f == math.Trunc(f) {
			*w = append(*w, fmt.Sprintf("%s: the number is too large for JSON and may have lost digits; write it as an expression, such as \"${18446744073709551617}\"", path))
		}
		if ty == cty.String {
			*w = append(*w, fmt.Sprintf("%s: the schema has a string here, so %v becomes %q; put the value in quotes", path, v, fmt.Sprint(v)))
		}
	case []any:
		if ty.IsCollectionType() {
			for i, e := range v {
				w.value(fmt.Sprintf("%s[%d]", path, i), e, ty.ElementType())
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case ty.IsMapType():
				w.value(path+"."+key, v[key], ty.ElementType())
			case ty.IsObjectType() && ty.HasAttribute(key):
				w.value(path+"."+key, v[key], ty.AttributeType(key))
			}
		}
	}
}
