package shape

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var unknown = tftypes.UnknownValue

// fields returns the parts of an object; nil if the object is null or unknown.
func fields(v tftypes.Value) map[string]tftypes.Value {
	var m map[string]tftypes.Value
	if v.IsKnown() && !v.IsNull() {
		_ = v.As(&m) // it is an object, or a map
	}
	return m
}

// elements returns the elements of a list, a set or a tuple.
func elements(v tftypes.Value) []tftypes.Value {
	var l []tftypes.Value
	if v.IsKnown() && !v.IsNull() {
		_ = v.As(&l)
	}
	return l
}

func text(v tftypes.Value) string {
	var s string
	if v.IsKnown() && !v.IsNull() {
		_ = v.As(&s)
	}
	return s
}

// absent reports whether a value is null or unknown.
func absent(v tftypes.Value) bool { return v.Type() == nil || v.IsNull() || !v.IsKnown() }

// plainJSON formats a value as Terraform's state does: a value of a dynamic type together with its type. It writes
// unknown values, which only logs have, as a word.
func plainJSON(v tftypes.Value, t tftypes.Type) any {
	switch {
	case !v.IsKnown():
		return "<unknown>"
	case t.Is(tftypes.DynamicPseudoType):
		if v.IsNull() {
			return nil
		}
		return map[string]any{"value": plainJSON(v, v.Type()), "type": v.Type()}
	case v.IsNull():
		return nil
	case t.Is(tftypes.String):
		return text(v)
	case t.Is(tftypes.Bool):
		var b bool
		_ = v.As(&b)
		return b
	case t.Is(tftypes.Number):
		n := new(big.Float)
		_ = v.As(&n)
		return json.Number(n.Text('g', -1))
	}
	switch t := t.(type) {
	case tftypes.Object:
		out := map[string]any{}
		for name, e := range fields(v) {
			out[name] = plainJSON(e, t.AttributeTypes[name])
		}
		return out
	case tftypes.Map:
		out := map[string]any{}
		for key, e := range fields(v) {
			out[key] = plainJSON(e, t.ElementType)
		}
		return out
	}
	out := []any{}
	for i, e := range elements(v) {
		out = append(out, plainJSON(e, elementType(t, i)))
	}
	if t.Is(tftypes.Set{}) {
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(marshal(a), marshal(b)) })
		out = slices.CompactFunc(out, func(a, b any) bool { return marshal(a) == marshal(b) && !strings.Contains(marshal(a), "<unknown>") })
	}
	return out
}

func elementType(t tftypes.Type, i int) tftypes.Type {
	switch t := t.(type) {
	case tftypes.List:
		return t.ElementType
	case tftypes.Set:
		return t.ElementType
	case tftypes.Map:
		return t.ElementType
	case tftypes.Tuple:
		return t.ElementTypes[i]
	}
	return tftypes.DynamicPseudoType
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// shown formats a value as one line of JSON.
func shown(v tftypes.Value, t tftypes.Type) string {
	if v.Type() == nil {
		return "null"
	}
	return marshal(plainJSON(v, t))
}

// invent generates a value of a type. It is the same for the same place.
func invent(t tftypes.Type, place string) tftypes.Value {
	h := fnv.New64a()
	fmt.Fprint(h, place)
	n := h.Sum64()
	switch {
	case t.Is(tftypes.String), t.Is(tftypes.DynamicPseudoType):
		return tftypes.NewValue(tftypes.String, fmt.Sprintf("made-%x", n%0xffff))
	case t.Is(tftypes.Bool):
		return tftypes.NewValue(t, n%2 == 0)
	case t.Is(tftypes.Number):
		switch n % 4 {
		case 0: // more digits than a machine's number types have
			f, _, err := big.ParseFloat(fmt.Sprintf("%d%d", n|1<<62, n|1<<61), 10, 512, big.ToNearestEven)
			if err != nil {
				panic(err) // they are digits
			}
			return tftypes.NewValue(t, f)
		case 1:
			return tftypes.NewValue(t, float64(n%1000)/8)
		}
		return tftypes.NewValue(t, int64(n%1000))
	}
	switch t := t.(type) {
	case tftypes.Object:
		m := map[string]tftypes.Value{}
		for name, at := range t.AttributeTypes {
			m[name] = invent(at, place+"."+name)
		}
		return tftypes.NewValue(t, m)
	case tftypes.Map:
		m := map[string]tftypes.Value{}
		for i := range n % 3 {
			m[fmt.Sprintf("key-%d", i)] = invent(t.ElementType, fmt.Sprint(place, i))
		}
		return tftypes.NewValue(t, m)
	case tftypes.Tuple:
		var l []tftypes.Value
		for i, e := range t.ElementTypes {
			l = append(l, invent(e, fmt.Sprint(place, i)))
		}
		return tftypes.NewValue(t, l)
	}
	l := []tftypes.Value{}
	for i := range n % 3 {
		e := invent(elementType(t, 0), fmt.Sprint(place, i))
		if !slices.ContainsFunc(l, e.Equal) || t.Is(tftypes.List{}) {
			l = append(l, e)
		}
	}
	return tftypes.NewValue(t, l)
}

// zero returns the value that the legacy type system has for null.
func zero(t tftypes.Type) tftypes.Value {
	switch {
	case t.Is(tftypes.String):
		return tftypes.NewValue(t, "")
	case t.Is(tftypes.Bool):
		return tftypes.NewValue(t, false)
	case t.Is(tftypes.Number):
		return tftypes.NewValue(t, 0)
	case t.Is(tftypes.Map{}):
		return tftypes.NewValue(t, map[string]tftypes.Value{})
	case t.Is(tftypes.List{}), t.Is(tftypes.Set{}):
		return tftypes.NewValue(t, []tftypes.Value{})
	}
	return tftypes.NewValue(t, nil)
}

func lower(s string) string { return strings.ToLower(s) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
