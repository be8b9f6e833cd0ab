package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func rendered() *schema.Block {
	return schematest.Block(
		schematest.Computed("id", cty.String),
		schematest.Optional("n", cty.Number),
		schematest.Optional("tags", cty.Map(cty.String)),
		schematest.Optional("zones", cty.List(cty.String)),
		schematest.Sensitive(schematest.Optional("password", cty.String)),
		schematest.Sensitive(schematest.Optional("secrets", cty.Map(cty.String))),
		schematest.NestedBlock("rule", schema.NestingList, schematest.Optional("port", cty.Number), schematest.Sensitive(schematest.Optional("key", cty.String))),
		schematest.NestedBlock("mount", schema.NestingSet, schematest.Sensitive(schematest.Optional("key", cty.String))),
		schematest.Object(schematest.Optional("disk", cty.NilType), schema.NestingSingle, schematest.Sensitive(schematest.Optional("key", cty.String)), schematest.Computed("serial", cty.String)),
	)
}

func TestRender(t *testing.T) {
	rule := func(key cty.Value) cty.Value {
		return cty.ListVal([]cty.Value{schematest.Obj("port", schematest.Num(1), "key", key)})
	}
	mount := func(key cty.Value) cty.Value { return cty.SetVal([]cty.Value{schematest.Obj("key", key)}) }
	value := func(id, pw, key, zone cty.Value) cty.Value {
		return schematest.Obj("id", id, "n", cty.MustParseNumberVal("1152921504606846977.25"), "tags", cty.MapValEmpty(cty.String),
			"zones", cty.ListVal([]cty.Value{zone, schematest.Str("z")}), "password", pw,
			"secrets", cty.MapVal(map[string]cty.Value{"a": schematest.Str("s3cret")}), "rule", rule(key), "mount", mount(key),
			"disk", schematest.Obj("key", key, "serial", schematest.UnknownStr))
	}
	b := rendered()
	after := value(schematest.UnknownStr, schematest.UnknownStr, schematest.Str("s3cret"), schematest.UnknownStr)
	before := cty.NullVal(b.ImpliedType())

	r, err := Render(b, before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"before":           `null`,
		"before_sensitive": `false`,
		"after":            `{"disk":{"key":"(sensitive value)"},"mount":[{"key":"(sensitive value)"}],"n":1152921504606846977.25,"rule":[{"key":"(sensitive value)","port":1}],"secrets":"(sensitive value)","tags":{},"zones":[null,"z"]}`,
		"after_unknown":    `{"disk":{"serial":true},"id":true,"mount":[{}],"password":true,"rule":[{}],"secrets":{},"tags":{},"zones":[true,false]}`,
		"after_sensitive":  `{"disk":{"key":true},"mount":[{"key":true}],"password":true,"rule":[{"key":true}],"secrets":true,"tags":{},"zones":[false,false]}`,
	}
	got := map[string]string{
		"before": string(r.Before.Raw), "before_sensitive": string(r.BeforeSensitive.Raw), "after": string(r.After.Raw),
		"after_unknown": string(r.AfterUnknown.Raw), "after_sensitive": string(r.AfterSensitive.Raw),
	}
	// A mark within a set covers the set, so all of it is masked.
	want["after"] = strings.Replace(want["after"], `"mount":[{"key":"(sensitive value)"}]`, `"mount":"(sensitive value)"`, 1)
	want["after_sensitive"] = strings.Replace(want["after_sensitive"], `"mount":[{"key":true}]`, `"mount":true`, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	known := value(schematest.Str("i"), schematest.NullStr, schematest.NullStr, schematest.NullStr)
	known = schematest.Obj("id", schematest.Str("i"), "n", schematest.Num(0), "tags", known.GetAttr("tags"), "zones", known.GetAttr("zones"), "password", schematest.NullStr,
		"secrets", known.GetAttr("secrets"), "rule", known.GetAttr("rule"), "mount", known.GetAttr("mount"), "disk", schematest.Obj("key", schematest.NullStr, "serial", schematest.Str("s")))
	if r, err = Render(b, known, cty.NilVal); err != nil {
		t.Fatal(err)
	}
	if string(r.After.Raw) != "null" || string(r.AfterUnknown.Raw) != "{}" || string(r.AfterSensitive.Raw) != "false" {
		t.Errorf("a delete: %s %s %s", r.After.Raw, r.AfterUnknown.Raw, r.AfterSensitive.Raw)
	}
	if !strings.Contains(string(r.Before.Raw), `"password":null`) || !strings.Contains(string(r.BeforeSensitive.Raw), `"password":true`) {
		t.Errorf("null is no secret, but the attribute is: %s %s", r.Before.Raw, r.BeforeSensitive.Raw)
	}
}

func TestRenderMasksMarks(t *testing.T) {
	b := schematest.Block(schematest.Optional("a", cty.String), schematest.Optional("l", cty.List(cty.String)))
	v := schematest.Obj("a", schematest.Str("s3cret").Mark(lang.Sensitive), "l", cty.ListVal([]cty.Value{schematest.Str("x"), schematest.Str("s3cret").Mark(lang.Sensitive)}))
	r, err := Render(b, v, v)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.After.Raw); got != `{"a":"(sensitive value)","l":["x","(sensitive value)"]}` {
		t.Error(got)
	}
	if got := string(r.AfterSensitive.Raw); got != `{"a":true,"l":[false,true]}` {
		t.Error(got)
	}
	if got := Attributes(b, v); !cmp.Equal(got, map[string]any{"a": lang.Mask, "l": []any{"x", lang.Mask}}) {
		t.Error(got)
	}
}

func TestAttributes(t *testing.T) {
	b := rendered()
	v := schematest.Obj("id", schematest.Str("i"), "n", cty.MustParseNumberVal("1152921504606846977"), "tags", cty.MapVal(map[string]cty.Value{"a": schematest.NullStr, "b": schematest.Str("1")}),
		"zones", cty.NullVal(cty.List(cty.String)), "password", schematest.Str("s3cret"), "secrets", cty.NullVal(cty.Map(cty.String)),
		"rule", cty.ListVal([]cty.Value{schematest.Obj("port", cty.MustParseNumberVal("0.1"), "key", schematest.UnknownStr)}),
		"mount", cty.SetValEmpty(cty.Object(map[string]cty.Type{"key": cty.String})), "disk", schematest.Obj("key", schematest.Str("s3cret"), "serial", schematest.UnknownStr))
	want := map[string]any{
		"id": "i", "n": int64(1152921504606846977), "tags": map[string]any{"b": "1"}, "password": lang.Mask,
		"rule": []any{map[string]any{"port": 0.1}}, "mount": []any{}, "disk": map[string]any{"key": lang.Mask},
	}
	got := Attributes(b, v)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	runtime.DeepCopyJSON(got) // panics on what an unstructured object may not hold
	big := schematest.Obj("n", cty.MustParseNumberVal("123456789012345678901234567890"), "m", cty.MustParseNumberVal("0.12345678901234567890123"))
	if got := Attributes(schematest.Block(schematest.Optional("n", cty.Number), schematest.Optional("m", cty.Number)), big); !cmp.Equal(got, map[string]any{"n": "123456789012345678901234567890", "m": "0.12345678901234567890123"}) {
		t.Errorf("digits are lost: %v", got)
	}
	if got := Attributes(b, cty.NilVal); got == nil || len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestRenderPaths(t *testing.T) {
	got, err := RenderPaths([]cty.Path{cty.GetAttrPath("a"), cty.GetAttrPath("rule").IndexInt(0).GetAttr("port"), cty.GetAttrPath("tags").IndexString("t")})
	if err != nil || string(got.Raw) != `[["a"],["rule",0,"port"],["tags","t"]]` {
		t.Errorf("%s, %v", got.Raw, err)
	}
	if got, err := RenderPaths(nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// secretive has a secret at each place where one can be.
func secretive() *schema.Block {
	k := func() *schema.Attribute { return schematest.Sensitive(schematest.Optional("k", cty.String)) }
	b := schematest.Block(k(), schematest.Sensitive(schematest.Optional("m", cty.Map(cty.String))), schematest.Sensitive(schematest.Object(schematest.Optional("whole", cty.NilType), schema.NestingList, schematest.Optional("v", cty.String))))
	for name, n := range map[string]schema.Nesting{"single": schema.NestingSingle, "list": schema.NestingList, "set": schema.NestingSet, "map": schema.NestingMap} {
		b = schematest.Block(append(anys(b), schematest.NestedBlock("b"+name, n, k(), schematest.NestedBlock("deep", n, k())), schematest.Object(schematest.Optional("a"+name, cty.NilType), n, k()))...)
	}
	return b
}

func anys(b *schema.Block) []any {
	var out []any
	for _, a := range b.Attributes {
		out = append(out, a)
	}
	for _, nb := range b.Blocks {
		out = append(out, nb)
	}
	return out
}

func TestNoSecretIsRendered(t *testing.T) {
	b := secretive()
	rapid.Check(t, func(rt *rapid.T) {
		// Every string of this schema is a secret.
		v, _ := cty.Transform(schematest.DrawBlock(rt, b, false), func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
				return schematest.Str("s3cret-" + v.AsString()), nil
			}
			return v, nil
		})
		r, err := Render(b, v, v)
		if err != nil {
			rt.Fatal(err)
		}
		all := string(r.Before.Raw) + string(r.After.Raw) + string(r.AfterUnknown.Raw) + string(r.AfterSensitive.Raw)
		if strings.Contains(all, "s3cret") {
			rt.Fatalf("the text has a secret: %s", all)
		}
		if js := strings.Join(schematest.Texts(append(CheckCompatible(b, v, resolve(schematest.DrawBlock(rt, b, false))), CheckPlanned(b, cty.NullVal(v.Type()), v, resolve(v))...)), "\n"); strings.Contains(js, "s3cret") {
			rt.Fatalf("the text has a secret: %s", js)
		}
		runtime.DeepCopyJSON(Attributes(b, v))
	})
}
