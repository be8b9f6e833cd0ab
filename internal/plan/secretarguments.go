package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// SecretArgument is an argument with a secret that comes from other objects.
type SecretArgument struct {
	Path    cty.Path
	Origins []lang.Origin
	// Hidden is true if the schema declares the argument sensitive or write-only, so that no other object shows the
	// secret after the provider received it. A plan has no value of a WriteOnly one.
	Hidden, WriteOnly bool
}

// SecretArguments returns the arguments of a configuration whose secrets come from other objects, in a stable order.
func SecretArguments(block *schema.Block, config cty.Value) []SecretArgument {
	if !lang.HasMarks(config) {
		return nil
	}
	var out []SecretArgument
	_, marks := config.UnmarkDeepWithPaths()
	for _, m := range marks {
		if origins := lang.OriginsIn(m.Marks); len(origins) > 0 {
			out = append(out, SecretArgument{Path: m.Path, Origins: origins, Hidden: hidden(block, m.Path),
				WriteOnly: writeOnly(block, m.Path)})
		}
	}
	return out
}

// ValueAt returns the value at a path without its marks; ok is false if there is none.
func ValueAt(v cty.Value, p cty.Path) (at cty.Value, ok bool) {
	if v == cty.NilVal {
		return v, false
	}
	return follow(lang.WithoutMarks(v), p)
}

// OriginsAt returns the origins of the part of a value whose mark is at a path.
func OriginsAt(v cty.Value, at cty.Path) []lang.Origin {
	if !lang.HasMarks(v) {
		return nil
	}
	_, marks := v.UnmarkDeepWithPaths()
	for _, m := range marks {
		if m.Path.Equals(at) {
			return lang.OriginsIn(m.Marks)
		}
	}
	return nil
}

// Gives reports whether a planned value has a secret of an object at a path, or in what contains the path.
func Gives(planned cty.Value, at cty.Path, of lang.Address) bool {
	if !lang.HasMarks(planned) {
		return false
	}
	_, marks := planned.UnmarkDeepWithPaths()
	return slices.ContainsFunc(marks, func(m cty.PathValueMarks) bool {
		return at.HasPrefix(m.Path) && slices.ContainsFunc(lang.OriginsIn(m.Marks),
			func(o lang.Origin) bool { return o.Address == of })
	})
}

// hidden reports whether the path leads to, or into, an attribute that the schema declares sensitive or write-only.
func hidden(b *schema.Block, p cty.Path) bool {
	return declared(b, p, func(a *schema.Attribute) bool { return a.Sensitive || a.WriteOnly })
}
