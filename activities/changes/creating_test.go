package changes

import (
	"testing"

	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

func TestMayEqual(t *testing.T) {
	for _, tc := range []struct {
		planned, made string
		want          bool
	}{
		{"web", "web", true},
		{"web", "api", false},
		{"web-1", "web-10", false},
		{"Web", "web", true},
		{"web_1", "web-1", true},
		{"Example.com.", "example.com", true},
		{"web", "web.example.com", true},
		{"reader", "arn:aws:iam::123456789012:role/reader", true},
		{"reader", "arn:aws:iam::123456789012:role/writer", false},
		{"https://compute.example.com/projects/p/subnetworks/s", "projects/p/subnetworks/s", true},
		{"nginx", "docker.io/library/nginx:latest", true},
		{"1h", "3600s", true},
		{"tcp", "6", true},
		{"all", "-1", true},
		{`{"a": 1}`, `{"a":1}`, true},
		{"first\nsecond", "other", true},
		{"", "web", true},
	} {
		for _, swap := range []bool{false, true} {
			a, b := tc.planned, tc.made
			if swap {
				a, b = b, a
			}
			if got := mayEqual(a, b); got != tc.want {
				t.Errorf("%q and %q: %t, want %t", a, b, got, tc.want)
			}
		}
	}
}

func TestProvesDifferent(t *testing.T) {
	text := func(name string, change func(*schema.Attribute)) *schema.Attribute {
		a := &schema.Attribute{Name: name, Type: cty.String, Optional: true}
		change(a)
		return a
	}
	required := func(a *schema.Attribute) { a.Required, a.Optional = true, false }
	one := &schema.Block{Attributes: []*schema.Attribute{text("named", func(a *schema.Attribute) { a.Computed = true })}}
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			text("bucket", func(a *schema.Attribute) { a.Computed = true }), text("comment", func(*schema.Attribute) {}), text("name", required),
			text("secret", func(a *schema.Attribute) { required(a); a.Sensitive = true }),
		},
		Blocks: []*schema.NestedBlock{{TypeName: "metadata", Nesting: schema.NestingList, Block: one}, {TypeName: "rule", Nesting: schema.NestingSet, Block: one}},
	}
	identity := &schema.Identity{Attributes: []*schema.IdentityAttribute{{Name: "bucket"}, {Name: "named"}}}
	blocks := func(set bool, names ...string) cty.Value {
		var out []cty.Value
		for _, n := range names {
			out = append(out, cty.ObjectVal(map[string]cty.Value{"named": cty.StringVal(n)}))
		}
		switch {
		case len(out) == 0 && set:
			return cty.SetValEmpty(one.ImpliedType())
		case len(out) == 0:
			return cty.ListValEmpty(one.ImpliedType())
		case set:
			return cty.SetVal(out)
		}
		return cty.ListVal(out)
	}
	value := func(change map[string]cty.Value) cty.Value {
		v := map[string]cty.Value{
			"bucket": cty.StringVal("b"), "comment": cty.StringVal("c"), "name": cty.StringVal("n"), "secret": cty.StringVal("s"),
			"metadata": blocks(false, "m"), "rule": blocks(true, "r"),
		}
		for name, to := range change {
			v[name] = to
		}
		return cty.ObjectVal(v)
	}
	other := cty.StringVal("other")
	for name, tc := range map[string]struct {
		planned map[string]cty.Value
		want    bool
	}{
		"equal":                       {nil, false},
		"a required argument":         {map[string]cty.Value{"name": other}, true},
		"a part of the identity":      {map[string]cty.Value{"bucket": other}, true},
		"another argument":            {map[string]cty.Value{"comment": other}, false},
		"a sensitive argument":        {map[string]cty.Value{"secret": other}, false},
		"a sensitive value":           {map[string]cty.Value{"name": other.Mark("sensitive")}, false},
		"an unknown value":            {map[string]cty.Value{"name": cty.UnknownVal(cty.String)}, false},
		"no value":                    {map[string]cty.Value{"name": cty.NullVal(cty.String)}, false},
		"the only block":              {map[string]cty.Value{"metadata": blocks(false, "other")}, true},
		"the only block of a set":     {map[string]cty.Value{"rule": blocks(true, "other")}, true},
		"several blocks":              {map[string]cty.Value{"metadata": blocks(false, "other", "more")}, false},
		"no block":                    {map[string]cty.Value{"metadata": blocks(false)}, false},
		"unknown blocks":              {map[string]cty.Value{"rule": cty.UnknownVal(blocks(true).Type())}, false},
		"a block with a secret value": {map[string]cty.Value{"rule": blocks(true, "other").Mark("sensitive")}, false},
	} {
		if got := provesDifferent(block, identity, value(tc.planned), value(nil)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
