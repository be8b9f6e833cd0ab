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

// A large provider has tens of thousands of attributes, and JSON takes a kilobyte for the type of each.
func TestCommonTypesAreCheap(t *testing.T) {
	for _, tc := range []struct {
		in     tftypes.Type
		want   cty.Type
		allocs float64
	}{
		{tftypes.String, cty.String, 3},
		{tftypes.Number, cty.Number, 3},
		{tftypes.Bool, cty.Bool, 3},
		{tftypes.List{ElementType: tftypes.String}, cty.List(cty.String), 6},
		{tftypes.Set{ElementType: tftypes.Number}, cty.Set(cty.Number), 6},
		{tftypes.Map{ElementType: tftypes.List{ElementType: tftypes.Bool}}, cty.Map(cty.List(cty.Bool)), 6},
		{tftypes.DynamicPseudoType, cty.DynamicPseudoType, 100},
		{tftypes.List{ElementType: tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.Bool}}}, cty.List(cty.Object(map[string]cty.Type{"a": cty.Bool})), 100},
		{tftypes.Tuple{ElementTypes: []tftypes.Type{tftypes.String}}, cty.Tuple([]cty.Type{cty.String}), 100},
	} {
		got, err := fromType(tc.in)
		if err != nil || !got.Equals(tc.want) {
			t.Errorf("%s: got %#v, %v; want %#v", tc.in, got, err, tc.want)
		}
		if allocs := testing.AllocsPerRun(100, func() { _, _ = fromType(tc.in) }); allocs > tc.allocs {
			t.Errorf("%s takes %v allocations, want at most %v", tc.in, allocs, tc.allocs)
		}
	}
	if _, err := fromType(tftypes.List{}); err == nil {
		t.Error("a list without a type of its elements is converted")
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

func TestEverythingAProviderHasIsConverted(t *testing.T) {
	block := func(name string) *tfprotov6.Schema {
		return &tfprotov6.Schema{Version: 4, Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{attribute(name, tftypes.String)}}}
	}
	p, err := FromProto(&tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities:       &tfprotov6.ServerCapabilities{MoveResourceState: true, GenerateResourceConfig: true},
		DataSourceSchemas:        map[string]*tfprotov6.Schema{"x_data": block("d")},
		EphemeralResourceSchemas: map[string]*tfprotov6.Schema{"x_key": block("e")},
		ListResourceSchemas:      map[string]*tfprotov6.Schema{"x_thing": block("l")},
		ActionSchemas:            map[string]*tfprotov6.ActionSchema{"x_poke": {Schema: block("a")}, "x_bare": nil},
		Functions: map[string]*tfprotov6.Function{"f": {
			Parameters:        []*tfprotov6.FunctionParameter{{Name: "p", Type: tftypes.List{ElementType: tftypes.Number}, AllowNullValue: true}},
			VariadicParameter: &tfprotov6.FunctionParameter{Name: "v", Type: tftypes.Bool, AllowUnknownValues: true},
			Return:            &tfprotov6.FunctionReturn{Type: tftypes.String},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Schema{"d": p.DataSources["x_data"], "e": p.Ephemerals["x_key"], "l": p.ListResources["x_thing"], "a": p.Actions["x_poke"]} {
		if s == nil || s.Block.Attribute(name) == nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	if p.Actions["x_bare"] == nil || !p.MoveState || !p.GenerateConfig {
		t.Errorf("got %+v", p)
	}
	f := p.Functions["f"]
	if !f.Return.Equals(cty.String) || !f.Parameters[0].Type.Equals(cty.List(cty.Number)) || !f.Parameters[0].AllowNull || f.Parameters[0].AllowUnknown ||
		f.Variadic.Type != cty.Bool || !f.Variadic.AllowUnknown {
		t.Errorf("function: %+v", f)
	}
	err = p.AddIdentities(&tfprotov6.GetResourceIdentitySchemasResponse{IdentitySchemas: map[string]*tfprotov6.ResourceIdentitySchema{
		"x_thing": {Version: 2, IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{
			{Name: "name", Type: tftypes.String, RequiredForImport: true}, {Name: "account", Type: tftypes.Number, OptionalForImport: true},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	id := p.Identities["x_thing"]
	if id.Version != 2 || id.Attributes[0].Name != "account" || !id.Attributes[0].OptionalForImport || !id.Attributes[1].RequiredForImport ||
		!id.ImpliedType().Equals(cty.Object(map[string]cty.Type{"name": cty.String, "account": cty.Number})) {
		t.Errorf("identity: %+v", id)
	}
	for name, in := range map[string]map[string]*tfprotov6.Function{
		"no result": {"bad": {}}, "no type": {"bad": {Return: &tfprotov6.FunctionReturn{Type: tftypes.String}, Parameters: []*tfprotov6.FunctionParameter{{Name: "p"}}}},
	} {
		if _, err := FunctionsFromProto(in); err == nil || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownValuesOfAnyKind reads what newer plugins may send: refinements that we do not know, and extensions.
func TestUnknownValuesOfAnyKind(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{"a": cty.String})
	for name, value := range map[string]string{
		"plain":                 "\xd4\x00\x00",
		"refined":               "\xc7\x03\x0c\x81\x01\xc2",
		"refined in a new way":  "\xc7\x03\x0c\x81\x63\xc3",
		"an extension of a new": "\xd4\x22\x00",
	} {
		got, err := Decode(&tfprotov6.DynamicValue{MsgPack: []byte("\x81\xa1a" + value)}, ty)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.GetAttr("a").IsKnown() {
			t.Errorf("%s: got %#v", name, got)
		}
	}
}

func TestTruncatedMessagesAreRefused(t *testing.T) {
	for name, msg := range map[string]string{
		"a list":        "\xdd\xff\xff\xff\xff",
		"a map":         "\xdf\x7f\xff\xff\xff",
		"a short list":  "\x93\x01",
		"a string":      "\xdb\xff\xff\xff\xff",
		"an extension":  "\xc9\xff\xff\xff\xff\x0c",
		"a float":       "\xcb\x00",
		"half a length": "\xdd\xff",
	} {
		if _, err := Decode(&tfprotov6.DynamicValue{MsgPack: []byte(msg)}, cty.List(cty.String)); err == nil || !strings.Contains(err.Error(), "shorter than its headers") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
