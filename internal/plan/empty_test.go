package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestNullIsNotEmpty(t *testing.T) {
	of := func(v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"x": v}) }
	for name, empty := range map[string]cty.Value{
		"list": cty.ListValEmpty(cty.Number), "set": cty.SetValEmpty(cty.String), "map": cty.MapValEmpty(cty.String),
		"tuple": cty.EmptyTupleVal, "object": cty.EmptyObjectVal,
	} {
		if !Differs(cty.NullVal(empty.Type()), empty) || !Differs(empty, cty.NullVal(empty.Type())) {
			t.Errorf("%s: null is the same as empty", name)
		}
		null := of(cty.NullVal(empty.Type()))
		for _, tc := range [][2]cty.Value{{of(empty), null}, {null, of(empty)}} {
			if action, _ := Decide(tc[0], tc[1], nil, false, false); action != v1alpha1.ActionUpdate {
				t.Errorf("%s: from %#v to %#v is %s, want an update", name, tc[0], tc[1], action)
			}
		}
	}
}
