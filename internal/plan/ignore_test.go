package plan

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestIgnoreChanges(t *testing.T) {
	tags := func(kv ...string) cty.Value {
		if len(kv) == 0 {
			return cty.MapValEmpty(cty.String)
		}
		vals := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			vals[kv[i]] = str(kv[i+1])
		}
		return cty.MapVal(vals)
	}
	value := func(a string, tags cty.Value, ports ...int64) cty.Value {
		var rules []cty.Value
		for _, p := range ports {
			rules = append(rules, obj("port", num(p), "x", str(a)))
		}
		return obj("a", str(a), "tags", tags, "rule", listVal(rules, cty.Object(map[string]cty.Type{"port": cty.Number, "x": cty.String})))
	}
	config, prior := value("new", tags("k", "new", "added", "1"), 1, 2), value("old", tags("k", "old", "gone", "1"), 3)
	b := block(optional("a", cty.String), optional("tags", cty.Map(cty.String)), optional("rule", cty.List(cty.Object(map[string]cty.Type{"port": cty.Number, "x": cty.String}))))
	for name, tc := range map[string]struct {
		ignored []string
		want    cty.Value
	}{
		"nothing":                {nil, config},
		"an attribute":           {[]string{"a"}, obj("a", str("old"), "tags", config.GetAttr("tags"), "rule", config.GetAttr("rule"))},
		"a map":                  {[]string{"tags"}, obj("a", str("new"), "tags", prior.GetAttr("tags"), "rule", config.GetAttr("rule"))},
		"a key of a map":         {[]string{"tags.k"}, obj("a", str("new"), "tags", tags("k", "old", "added", "1"), "rule", config.GetAttr("rule"))},
		"a key that was added":   {[]string{"tags.added"}, obj("a", str("new"), "tags", tags("k", "new"), "rule", config.GetAttr("rule"))},
		"a key that was removed": {[]string{`tags["gone"]`}, obj("a", str("new"), "tags", tags("k", "new", "added", "1", "gone", "1"), "rule", config.GetAttr("rule"))},
		"within a block": {[]string{"rule[0].port"}, obj("a", str("new"), "tags", config.GetAttr("tags"), "rule",
			cty.ListVal([]cty.Value{obj("port", num(3), "x", str("new")), obj("port", num(2), "x", str("new"))}))},
		"all": {[]string{"all"}, prior},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := IgnoreChanges(b, config, prior, tc.ignored)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, tc.want)
		})
	}
	none := obj("tags", cty.NullVal(cty.Map(cty.String)))
	if got, err := IgnoreChanges(b, none, obj("tags", tags("k", "old", "l", "1")), []string{"tags.k"}); err != nil || !got.RawEquals(obj("tags", tags("k", "old"))) {
		t.Errorf("a key of a map that was removed: %#v, %v", got, err)
	}
	if got, err := IgnoreChanges(b, none, obj("tags", tags("l", "1")), []string{"tags.k"}); err != nil || !got.RawEquals(none) {
		t.Errorf("another key of a map that was removed: %#v, %v", got, err)
	}
	for _, bad := range []string{"", "a[", "a..b", "."} {
		if _, err := IgnoreChanges(b, config, prior, []string{bad}); err == nil || !strings.Contains(err.Error(), "lifecycle.ignoreChanges") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestEscapeTemplate(t *testing.T) {
	for _, text := range []string{"", "plain", "${a.b.c}", "%{ if x }", "$${", "a$", "$$$${x}%%{"} {
		c, diags := ParseConfig(map[string]any{"a": EscapeTemplate(text)}, block(optional("a", cty.String)))
		if len(diags) > 0 {
			t.Fatalf("%q: %v", text, diags)
		}
		v, _ := c.Evaluate(nil)
		if got := v.GetAttr("a").AsString(); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
