package lang

import (
	"cmp"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Origin marks a sensitive or ephemeral value with an object that it comes from. The mark propagates through
// expressions with Sensitive and Ephemeral, and never occurs without one of them. A value that is made of several
// secrets has the origins of all of them.
type Origin struct {
	// Address always has a namespace, so that it names the same object in every scope.
	Address Address `json:"address"`
	// Key is the key of a Secret. It is empty for a whole Secret and for other objects.
	Key string `json:"key,omitempty"`
}

// FurtherOrigins stands for the origins that BoundOrigins omits. No user has a right to it.
var FurtherOrigins = Origin{}

// BoundOrigins returns at most limit origins, and FurtherOrigins in place of the others.
func BoundOrigins(origins []Origin, limit int) []Origin {
	if len(origins) <= limit {
		return origins
	}
	return append(slices.Clone(origins[:limit]), FurtherOrigins)
}

// Text returns the origin as an expression in a namespace would name it, such as "sim_password.db",
// "namespace.prod.sim_password.db" or "secret.db.password".
func (o Origin) Text(namespace string) string {
	if o == FurtherOrigins {
		return "further objects"
	}
	text := o.Address.In(namespace).String()
	if o.Key != "" {
		text += nameStep(o.Key)
	}
	return text
}

// Compare orders origins by address, then by key.
func (o Origin) Compare(other Origin) int {
	return cmp.Or(o.Address.Compare(other.Address), cmp.Compare(o.Key, other.Key))
}

// MarkOrigin adds an origin to each part of a value that is marked as sensitive or ephemeral.
func MarkOrigin(v cty.Value, o Origin) (cty.Value, error) {
	if !HasMarks(v) {
		return v, nil
	}
	return cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.HasMark(Sensitive) || v.HasMark(Ephemeral) {
			return v.Mark(o), nil
		}
		return v, nil
	})
}

// OriginsOf returns the origins of a value and of the values within it, sorted. It omits a whole Secret if it also
// returns keys of it.
func OriginsOf(v cty.Value) []Origin {
	if !HasMarks(v) {
		return nil
	}
	_, marks := v.UnmarkDeep()
	return OriginsIn(marks)
}

// OriginsIn is OriginsOf for marks.
func OriginsIn(marks cty.ValueMarks) []Origin {
	found := map[Origin]bool{}
	for m := range marks {
		if o, ok := m.(Origin); ok {
			found[o] = true
		}
	}
	for o := range maps.Clone(found) {
		if o.Key != "" {
			delete(found, Origin{Address: o.Address})
		}
	}
	return slices.SortedFunc(maps.Keys(found), Origin.Compare)
}

// RecordedMarks returns the marks that a state or a planned value keeps: Sensitive and its origins. It returns nil if
// the marks have no Sensitive.
func RecordedMarks(marks cty.ValueMarks) cty.ValueMarks {
	if _, secret := marks[Sensitive]; !secret {
		return nil
	}
	kept := cty.NewValueMarks(Sensitive)
	for m := range marks {
		if o, ok := m.(Origin); ok {
			kept[o] = struct{}{}
		}
	}
	return kept
}

// without removes a mark, and the origins unless the value is still sensitive or ephemeral.
func without(v cty.Value, removed mark) cty.Value {
	v, marks := v.Unmark()
	delete(marks, removed)
	_, secret := marks[Sensitive]
	_, ephemeral := marks[Ephemeral]
	if !secret && !ephemeral {
		maps.DeleteFunc(marks, func(m any, _ struct{}) bool { _, is := m.(Origin); return is })
	}
	return v.WithMarks(marks)
}

// WithoutOrigins returns a value without origins at any depth. It keeps other marks.
func WithoutOrigins(v cty.Value) cty.Value {
	if len(OriginsOf(v)) == 0 {
		return v
	}
	plain, marks := v.UnmarkDeepWithPaths()
	for _, m := range marks {
		maps.DeleteFunc(m.Marks, func(m any, _ struct{}) bool { _, is := m.(Origin); return is })
	}
	return plain.MarkWithPaths(marks)
}
