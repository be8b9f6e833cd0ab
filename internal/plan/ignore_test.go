package plan

import (
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"

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
			vals[kv[i]] = schematest.Str(kv[i+1])
		}
		return cty.MapVal(vals)
	}
	value := func(a string, tags cty.Value, ports ...int64) cty.Value {
		var rules []cty.Value
		for _, p := range ports {
			rules = append(rules, schematest.Obj("port", schematest.Num(p), "x", schematest.Str(a)))
		}
		return schematest.Obj("a", schematest.Str(a), "tags", tags, "rule", schema.ListVal(rules, cty.Object(map[string]cty.Type{"port": cty.Number, "x": cty.String})))
	}
	config, prior := value("new", tags("k", "new", "added", "1"), 1, 2), value("old", tags("k", "old", "gone", "1"), 3)
	b := schematest.Block(schematest.Optional("a", cty.String), schematest.Optional("tags", cty.Map(cty.String)), schematest.Optional("rule", cty.List(cty.Object(map[string]cty.Type{"port": cty.Number, "x": cty.String}))))
	for name, tc := range map[string]struct {
		ignored []string
		want    cty.Value
	}{
		"nothing":                {nil, config},
		"an attribute":           {[]string{"a"}, schematest.Obj("a", schematest.Str("old"), "tags", config.GetAttr("tags"), "rule", config.GetAttr("rule"))},
		"a map":                  {[]string{"tags"}, schematest.Obj("a", schematest.Str("new"), "tags", prior.GetAttr("tags"), "rule", config.GetAttr("rule"))},
		"a key of a map":         {[]string{"tags.k"}, schematest.Obj("a", schematest.Str("new"), "tags", tags("k", "old", "added", "1"), "rule", config.GetAttr("rule"))},
		"a key that was added":   {[]string{"tags.added"}, schematest.Obj("a", schematest.Str("new"), "tags", tags("k", "new"), "rule", config.GetAttr("rule"))},
		"a key that was removed": {[]string{`tags["gone"]`}, schematest.Obj("a", schematest.Str("new"), "tags", tags("k", "new", "added", "1", "gone", "1"), "rule", config.GetAttr("rule"))},
		"within a block": {[]string{"rule[0].port"}, schematest.Obj("a", schematest.Str("new"), "tags", config.GetAttr("tags"), "rule",
			cty.ListVal([]cty.Value{schematest.Obj("port", schematest.Num(3), "x", schematest.Str("new")), schematest.Obj("port", schematest.Num(2), "x", schematest.Str("new"))}))},
		"all": {[]string{"all"}, prior},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := IgnoreChanges(b, config, prior, tc.ignored)
			if err != nil {
				t.Fatal(err)
			}
			schematest.Same(t, got, tc.want)
		})
	}
	none := schematest.Obj("tags", cty.NullVal(cty.Map(cty.String)))
	if got, err := IgnoreChanges(b, none, schematest.Obj("tags", tags("k", "old", "l", "1")), []string{"tags.k"}); err != nil || !got.RawEquals(schematest.Obj("tags", tags("k", "old"))) {
		t.Errorf("a key of a map that was removed: %#v, %v", got, err)
	}
	if got, err := IgnoreChanges(b, none, schematest.Obj("tags", tags("l", "1")), []string{"tags.k"}); err != nil || !got.RawEquals(none) {
		t.Errorf("another key of a map that was removed: %#v, %v", got, err)
	}
	for _, bad := range []string{"", "a[", "a..b", "."} {
		if _, err := IgnoreChanges(b, config, prior, []string{bad}); err == nil || !strings.Contains(err.Error(), "lifecycle.ignoreChanges") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
