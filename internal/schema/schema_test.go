package schema

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

func attribute(name string, ty tftypes.Type) *tfprotov6.SchemaAttribute {
	return &tfprotov6.SchemaAttribute{Name: name, Type: ty, Optional: true}
}

func convert(t *testing.T, block *tfprotov6.SchemaBlock) *Schema {
	t.Helper()
	p, err := FromProto(&tfprotov6.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov6.Schema{"test_thing": {Version: 3, Block: block}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Resources["test_thing"]
}

func TestImpliedType(t *testing.T) {
	inner := &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{attribute("port", tftypes.Number)}}
	dynamic := &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{attribute("any", tftypes.DynamicPseudoType)}}
	port, object := cty.Object(map[string]cty.Type{"port": cty.Number}), tfprotov6.SchemaObjectNestingModeMap
	for name, tc := range map[string]struct {
		reason string
		block  *tfprotov6.SchemaBlock
		want   cty.Type
	}{
		"attributes": {"types carry over", &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
			attribute("tags", tftypes.Map{ElementType: tftypes.String}), attribute("on", tftypes.Bool),
		}}, cty.Object(map[string]cty.Type{"tags": cty.Map(cty.String), "on": cty.Bool})},
		"set of blocks": {"a set is a set of objects", &tfprotov6.SchemaBlock{BlockTypes: []*tfprotov6.SchemaNestedBlock{
			{TypeName: "rule", Nesting: tfprotov6.SchemaNestedBlockNestingModeSet, Block: inner},
		}}, cty.Object(map[string]cty.Type{"rule": cty.Set(port)})},
		"group": {"a group is the object itself", &tfprotov6.SchemaBlock{BlockTypes: []*tfprotov6.SchemaNestedBlock{
			{TypeName: "rule", Nesting: tfprotov6.SchemaNestedBlockNestingModeGroup, Block: inner},
		}}, cty.Object(map[string]cty.Type{"rule": port})},
		"list of dynamic blocks": {"elements may differ, so it is a tuple that only the value knows", &tfprotov6.SchemaBlock{BlockTypes: []*tfprotov6.SchemaNestedBlock{
			{TypeName: "rule", Nesting: tfprotov6.SchemaNestedBlockNestingModeList, Block: dynamic},
		}}, cty.Object(map[string]cty.Type{"rule": cty.DynamicPseudoType})},
		"nested attribute": {"a map of objects", &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
			{Name: "ports", NestedType: &tfprotov6.SchemaObject{Nesting: object, Attributes: inner.Attributes}},
		}}, cty.Object(map[string]cty.Type{"ports": cty.Map(port)})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := convert(t, tc.block).Block.ImpliedType(); !got.Equals(tc.want) {
				t.Errorf("%s: got %#v, want %#v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestNamesAreFound(t *testing.T) {
	b := convert(t, &tfprotov6.SchemaBlock{
		Attributes: []*tfprotov6.SchemaAttribute{attribute("z", tftypes.String), attribute("a", tftypes.String), attribute("m", tftypes.String)},
		BlockTypes: []*tfprotov6.SchemaNestedBlock{
			{TypeName: "y", Nesting: tfprotov6.SchemaNestedBlockNestingModeList, Block: &tfprotov6.SchemaBlock{}},
			{TypeName: "b", Nesting: tfprotov6.SchemaNestedBlockNestingModeList, Block: &tfprotov6.SchemaBlock{}},
		},
	}).Block
	for _, name := range []string{"a", "m", "z"} {
		if b.Attribute(name) == nil {
			t.Errorf("attribute %q is not found", name)
		}
	}
	for _, name := range []string{"b", "y"} {
		if b.NestedBlock(name) == nil {
			t.Errorf("block %q is not found", name)
		}
	}
	if b.Attribute("b") != nil || b.NestedBlock("a") != nil {
		t.Error("what is not there is found")
	}
}

func TestErrorsNameTheAttribute(t *testing.T) {
	_, err := FromProto(&tfprotov6.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov6.Schema{"test_thing": {
		Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{{Name: "odd"}}},
	}}})
	if err == nil || !strings.Contains(err.Error(), `"test_thing"`) || !strings.Contains(err.Error(), `"odd"`) {
		t.Errorf("got %v", err)
	}
}

func TestValuesKeepTheirPrecisionOnTheWire(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{"n": cty.Number, "s": cty.Set(cty.String), "any": cty.DynamicPseudoType, "u": cty.String})
	v := cty.ObjectVal(map[string]cty.Value{
		"n":   cty.MustParseNumberVal("1152921504606846977"), // 2^60+1, which no float64 holds
		"s":   cty.SetVal([]cty.Value{cty.StringVal("b"), cty.StringVal("a")}),
		"any": cty.TupleVal([]cty.Value{cty.True, cty.StringVal("x")}),
		"u":   cty.UnknownVal(cty.String),
	})
	d, err := Encode(v, ty)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(d, ty)
	if err != nil || !got.RawEquals(v) {
		t.Errorf("got %#v, %v; want %#v", got, err, v)
	}
	if null, err := Decode(nil, ty); err != nil || !null.IsNull() {
		t.Errorf("no message: got %#v, %v; want null", null, err)
	}
	if _, err := Decode(&tfprotov6.DynamicValue{JSON: []byte(`{"n":"x","s":[],"any":null,"u":null}`)}, ty); err == nil || !strings.Contains(err.Error(), "n:") {
		t.Errorf("a value that does not fit: got %v, want an error that names n", err)
	}
}

func TestFormatPath(t *testing.T) {
	for want, path := range map[string]cty.Path{
		"rule[0].port":  cty.GetAttrPath("rule").IndexInt(0).GetAttr("port"),
		`tags["a b"]`:   cty.GetAttrPath("tags").IndexString("a b"),
		"set[*].inside": cty.GetAttrPath("set").Index(cty.EmptyObjectVal).GetAttr("inside"),
		"":              nil,
	} {
		if got := FormatPath(path); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
