package schema

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
)

// FuzzDecode sends any bytes. The decoder returns a value of the type or an error, and an encoded value decodes to the
// same value.
func FuzzDecode(f *testing.F) {
	types := []cty.Type{
		cty.DynamicPseudoType, cty.String, cty.Number,
		cty.Object(map[string]cty.Type{
			"s": cty.String, "n": cty.Number, "b": cty.Bool, "l": cty.List(cty.String), "set": cty.Set(cty.Number),
			"m": cty.Map(cty.DynamicPseudoType), "t": cty.Tuple([]cty.Type{cty.String, cty.DynamicPseudoType}), "any": cty.DynamicPseudoType,
		}),
	}
	for i, ty := range types {
		for _, v := range []cty.Value{cty.NullVal(ty), cty.UnknownVal(ty)} {
			d, err := Encode(v, ty)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(i), d.MsgPack, false)
		}
	}
	full, err := Encode(cty.ObjectVal(map[string]cty.Value{
		"s": cty.StringVal("x"), "n": cty.MustParseNumberVal("1152921504606846977"), "b": cty.True, "l": cty.ListVal([]cty.Value{cty.StringVal("a")}),
		"set": cty.SetVal([]cty.Value{cty.NumberIntVal(1), cty.UnknownVal(cty.Number)}), "m": cty.MapVal(map[string]cty.Value{"k": cty.True}),
		"t": cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.Zero}), "any": cty.UnknownVal(cty.String).RefineNotNull(),
	}), types[3])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(3), full.MsgPack, false)
	f.Add(byte(3), []byte(`{"s":"x","n":1e400,"b":null,"l":[],"set":[1,1],"m":{},"t":["a",{"value":1,"type":"number"}],"any":null}`), true)
	f.Add(byte(0), []byte{0xc7, 0xff, 0x0c}, false)
	f.Fuzz(func(t *testing.T, which byte, data []byte, js bool) {
		ty := types[int(which)%len(types)]
		d := &tfprotov6.DynamicValue{MsgPack: data}
		if js {
			d = &tfprotov6.DynamicValue{JSON: data}
		}
		v, err := Decode(d, ty)
		if err != nil {
			return
		}
		if errs := v.Type().TestConformance(ty); len(errs) > 0 {
			t.Fatalf("%#v is no %#v: %v", v, ty, errs)
		}
		w := resent(t, v, ty)
		// A large whole number that came as a float is sent as its shortest decimal text, which is another number in
		// more bits: https://github.com/zclconf/go-cty/blob/main/cty/msgpack/marshal.go From then on it stays the same.
		if again := resent(t, w, ty); !again.RawEquals(w) {
			t.Fatalf("%#v came back as %#v", w, again)
		}
	})
}

func resent(t *testing.T, v cty.Value, ty cty.Type) cty.Value {
	t.Helper()
	d, err := Encode(v, ty)
	if err != nil {
		t.Fatalf("%#v was taken, but cannot be sent: %v", v, err)
	}
	out, err := Decode(d, ty)
	if err != nil {
		t.Fatalf("%#v was sent, but cannot be taken: %v", v, err)
	}
	return out
}

// FuzzFromProto converts any schema, or rejects it. A converted schema has a type, and its parts can be found.
func FuzzFromProto(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := &tfprotov6.Schema{Version: rapid.Int64().Draw(t, "version"), Block: drawBlock(t, 3)}
		p, err := FromProto(&tfprotov6.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov6.Schema{"test_thing": in}})
		if err != nil {
			return
		}
		b := p.Resources["test_thing"].Block
		ty := b.ImpliedType()
		for _, a := range b.Attributes {
			if b.Attribute(a.Name) == nil || !ty.HasAttribute(a.Name) {
				t.Fatalf("attribute %q is lost", a.Name)
			}
		}
		for _, nb := range b.Blocks {
			if b.NestedBlock(nb.TypeName) == nil || !ty.HasAttribute(nb.TypeName) {
				t.Fatalf("block %q is lost", nb.TypeName)
			}
		}
		for _, v := range []cty.Value{cty.NullVal(ty), cty.UnknownVal(ty)} {
			d, err := Encode(v, ty)
			if err != nil {
				t.Fatal(err)
			}
			if w, err := Decode(d, ty); err != nil || !w.RawEquals(v) {
				t.Fatalf("%#v came back as %#v, %v", v, w, err)
			}
		}
	}))
}

func drawBlock(t *rapid.T, depth int) *tfprotov6.SchemaBlock {
	b := &tfprotov6.SchemaBlock{Attributes: drawAttributes(t, depth)}
	if depth == 0 {
		return b
	}
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		b.BlockTypes = append(b.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: rapid.StringMatching("[a-e]{0,2}").Draw(t, "block"), Block: drawBlock(t, depth-1),
			Nesting:  tfprotov6.SchemaNestedBlockNestingMode(rapid.IntRange(0, 7).Draw(t, "nesting")),
			MinItems: rapid.Int64Range(-1, 2).Draw(t, "min"), MaxItems: rapid.Int64Range(-1, 2).Draw(t, "max"),
		})
	}
	return b
}

func drawAttributes(t *rapid.T, depth int) []*tfprotov6.SchemaAttribute {
	var out []*tfprotov6.SchemaAttribute
	for range rapid.IntRange(0, 3).Draw(t, "attributes") {
		a := &tfprotov6.SchemaAttribute{Name: rapid.StringMatching("[a-e]{0,2}").Draw(t, "attribute"), Optional: rapid.Bool().Draw(t, "optional")}
		switch {
		case depth > 0 && rapid.Bool().Draw(t, "nested"):
			a.NestedType = &tfprotov6.SchemaObject{
				Nesting:    tfprotov6.SchemaObjectNestingMode(rapid.IntRange(0, 6).Draw(t, "nesting")),
				Attributes: drawAttributes(t, depth-1),
			}
		case rapid.IntRange(0, 9).Draw(t, "typed") > 0:
			a.Type = drawType(t, depth)
		}
		out = append(out, a)
	}
	return out
}

func drawType(t *rapid.T, depth int) tftypes.Type {
	n := 3
	if depth > 0 {
		n = 8
	}
	switch rapid.IntRange(0, n).Draw(t, "type") {
	case 0:
		return tftypes.String
	case 1:
		return tftypes.Number
	case 2:
		return tftypes.Bool
	case 3:
		return tftypes.DynamicPseudoType
	case 4:
		return tftypes.List{ElementType: drawType(t, depth-1)}
	case 5:
		return tftypes.Set{ElementType: drawType(t, depth-1)}
	case 6:
		return tftypes.Map{ElementType: drawType(t, depth-1)}
	case 7:
		return tftypes.Tuple{ElementTypes: []tftypes.Type{drawType(t, depth-1), drawType(t, depth-1)}}
	default:
		return tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": drawType(t, depth-1), "b": drawType(t, depth-1)}}
	}
}
