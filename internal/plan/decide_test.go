package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestDecide(t *testing.T) {
	none := cty.NullVal(schematest.Obj("x", schematest.NullStr).Type())
	a, b := schematest.Obj("x", schematest.Str("a")), schematest.Obj("x", schematest.Str("b"))
	path := []cty.Path{cty.GetAttrPath("x")}
	dynamic := func(v cty.Value) cty.Value { return schematest.Obj("x", v) }
	for name, tc := range map[string]struct {
		prior, planned  cty.Value
		replace         []cty.Path
		forced, tainted bool
		action          v1alpha1.Action
		reason          string
	}{
		"nothing to nothing":                {none, none, nil, false, false, v1alpha1.ActionNoOp, ""},
		"nothing to something":              {none, a, nil, false, false, v1alpha1.ActionCreate, ""},
		"absent is null, too":               {cty.NilVal, a, nil, false, false, v1alpha1.ActionCreate, ""},
		"a create is never a replace":       {none, a, path, true, false, v1alpha1.ActionCreate, ""},
		"something to nothing":              {a, none, nil, true, true, v1alpha1.ActionDelete, "delete_because_no_resource_config"},
		"equal":                             {a, a, nil, false, false, v1alpha1.ActionNoOp, ""},
		"equal, path or not":                {a, a, path, false, false, v1alpha1.ActionNoOp, ""},
		"different":                         {a, b, nil, false, false, v1alpha1.ActionUpdate, ""},
		"unknown is different":              {a, schematest.Obj("x", schematest.UnknownStr), nil, false, false, v1alpha1.ActionUpdate, ""},
		"different, and cannot be updated":  {a, b, path, false, false, v1alpha1.ActionReplace, "replace_because_cannot_update"},
		"equal, but asked for":              {a, a, nil, true, false, v1alpha1.ActionReplace, "replace_by_request"},
		"tainted":                           {a, b, nil, true, true, v1alpha1.ActionReplace, "replace_because_tainted"},
		"only a mark differs":               {a, schematest.Obj("x", schematest.Str("a").Mark(lang.Sensitive)), nil, false, false, v1alpha1.ActionNoOp, ""},
		"a list instead of a tuple":         {dynamic(cty.TupleVal([]cty.Value{schematest.Str("1")})), dynamic(cty.ListVal([]cty.Value{schematest.Str("1")})), nil, false, false, v1alpha1.ActionUpdate, ""},
		"a map instead of an object":        {dynamic(schematest.Obj("a", schematest.Str("1"))), dynamic(cty.MapVal(map[string]cty.Value{"a": schematest.Str("1")})), nil, false, false, v1alpha1.ActionUpdate, ""},
		"an inner empty map, not an object": {dynamic(schematest.Obj("a", cty.EmptyObjectVal)), dynamic(schematest.Obj("a", cty.MapValEmpty(cty.String))), nil, false, false, v1alpha1.ActionUpdate, ""},
		"a type alone, and a replace path":  {dynamic(cty.EmptyTupleVal), dynamic(cty.ListValEmpty(cty.String)), path, false, false, v1alpha1.ActionReplace, "replace_because_cannot_update"},
		"inner nulls of different types":    {dynamic(schematest.Obj("a", cty.NullVal(cty.Bool))), dynamic(schematest.Obj("a", schematest.NullStr)), nil, false, false, v1alpha1.ActionUpdate, ""},
		"nulls of different types":          {dynamic(cty.NullVal(cty.DynamicPseudoType)), dynamic(schematest.NullStr), nil, false, false, v1alpha1.ActionUpdate, ""},
		"nulls of one type":                 {dynamic(schematest.NullStr), dynamic(schematest.NullStr), path, false, false, v1alpha1.ActionNoOp, ""},
	} {
		t.Run(name, func(t *testing.T) {
			action, reason := Decide(tc.prior, tc.planned, tc.replace, tc.forced, tc.tainted)
			if action != tc.action || reason != tc.reason {
				t.Errorf("got %s %q, want %s %q", action, reason, tc.action, tc.reason)
			}
		})
	}
}

// TestTriggers has the values of Terraform's replace_triggered_by, whose paths need not exist.
func TestTriggers(t *testing.T) {
	a, b := schematest.Str("a"), schematest.Str("b")
	for why, tc := range map[string]struct {
		before, after cty.Value
		want          bool
	}{
		"absent before and after": {cty.NilVal, cty.NilVal, false},
		"it appears":              {cty.NilVal, a, true},
		"it goes away":            {a, cty.NilVal, true},
		"it appears as null":      {cty.NilVal, schematest.NullStr, true},
		"it may appear":           {cty.NilVal, schematest.UnknownStr, true},
		"equal":                   {a, a, false},
		"null before and after":   {schematest.NullStr, schematest.NullStr, false},
		"another value":           {a, b, true},
		"known after apply":       {a, schematest.UnknownStr, true},
		"only a mark":             {a, a.Mark(lang.Sensitive), false},
		"an object appears":       {cty.NilVal, schematest.Obj("a", a), true},
	} {
		if got := Triggers(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %t, want %t", why, got, tc.want)
		}
	}
}

func TestRequiredReplace(t *testing.T) {
	b := schematest.Block(schematest.Optional("a", cty.String), schematest.WriteOnly(schematest.Optional("w", cty.String)), schematest.Optional("tags", cty.Map(cty.String)),
		schematest.NestedBlock("rule", schema.NestingList, schematest.Optional("port", cty.Number), schematest.WriteOnly(schematest.Optional("w", cty.String))),
		schematest.NestedBlock("free", schema.NestingMap, schematest.Optional("d", cty.DynamicPseudoType)))
	value := func(a cty.Value, tag string, port int64) cty.Value {
		return schematest.Obj("a", a, "w", schematest.NullStr, "tags", cty.MapVal(map[string]cty.Value{"t": schematest.Str(tag)}),
			"rule", cty.ListVal([]cty.Value{schematest.Obj("port", schematest.Num(port), "w", schematest.NullStr)}), "free", schematest.Obj("k", schematest.Obj("d", schematest.Num(port))))
	}
	p := cty.GetAttrPath
	port := p("rule").IndexInt(0).GetAttr("port")
	for name, tc := range map[string]struct {
		prior, planned cty.Value
		paths, kept    []cty.Path
		err            string
	}{
		"changed":                        {value(schematest.Str("1"), "x", 1), value(schematest.Str("2"), "x", 1), []cty.Path{p("a"), port}, []cty.Path{p("a")}, ""},
		"unknown counts as changed":      {value(schematest.Str("1"), "x", 1), value(schematest.UnknownStr, "x", 1), []cty.Path{p("a")}, []cty.Path{p("a")}, ""},
		"within a block":                 {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 2), []cty.Path{p("a"), port}, []cty.Path{port}, ""},
		"a map's element":                {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "y", 1), []cty.Path{p("tags").IndexString("t")}, []cty.Path{p("tags").IndexString("t")}, ""},
		"an element that appears":        {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 1), []cty.Path{p("tags").IndexString("n")}, nil, `read required replace "tags.n": the provider names an attribute that does not exist; please report this to its developers`},
		"a map that is an object":        {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 2), []cty.Path{p("free").IndexString("k")}, []cty.Path{p("free").IndexString("k")}, ""},
		"write-only":                     {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 1), []cty.Path{p("w")}, []cty.Path{p("w")}, ""},
		"write-only within a block":      {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 1), []cty.Path{p("rule").IndexInt(0).GetAttr("w")}, []cty.Path{p("rule").IndexInt(0).GetAttr("w")}, ""},
		"nothing is replaced at create":  {cty.NullVal(b.ImpliedType()), value(schematest.Str("1"), "x", 1), []cty.Path{p("a")}, nil, ""},
		"a list that grew":               {value(schematest.Str("1"), "x", 1), value(schematest.Str("1"), "x", 1), []cty.Path{p("rule").IndexInt(1)}, nil, `read required replace "rule[1]": the provider names an attribute that does not exist; please report this to its developers`},
		"a path that leads nowhere":      {value(schematest.Str("1"), "x", 1), value(schematest.Str("2"), "x", 1), []cty.Path{p("nope"), p("a")}, []cty.Path{p("a")}, `read required replace "nope": the provider names an attribute that does not exist; please report this to its developers`},
		"a path through something known": {value(schematest.Str("1"), "x", 1), value(schematest.Str("2"), "x", 1), []cty.Path{p("a").GetAttr("b")}, nil, `read required replace "a.b": the provider names an attribute that does not exist; please report this to its developers`},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := RequiredReplace(b, tc.paths, tc.prior, tc.planned)
			var got, want []string
			for _, k := range kept {
				got = append(got, diag.PathField("", k))
			}
			for _, k := range tc.kept {
				want = append(want, diag.PathField("", k))
			}
			schematest.SameStrings(t, got, want)
			if msg := errorText(err); msg != tc.err {
				t.Errorf("got error %q, want %q", msg, tc.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDrift(t *testing.T) {
	l := func(vs ...cty.Value) cty.Value { return cty.ListVal(vs) }
	tags := func(kv ...any) cty.Value { return cty.MapVal(schematest.Obj(kv...).AsValueMap()) }
	for name, tc := range map[string]struct {
		before, after cty.Value
		want          []string
	}{
		"nothing":                       {schematest.Obj("a", schematest.Str("1")), schematest.Obj("a", schematest.Str("1")), nil},
		"a leaf":                        {schematest.Obj("a", schematest.Str("1"), "b", schematest.Num(1)), schematest.Obj("a", schematest.Str("2"), "b", schematest.Num(1)), []string{"a"}},
		"an element of a map":           {schematest.Obj("tags", tags("team", schematest.Str("x"), "k", schematest.Str("1"))), schematest.Obj("tags", tags("team", schematest.Str("y"), "k", schematest.Str("1"))), []string{"tags.team"}},
		"a key that appeared, and gone": {schematest.Obj("tags", tags("a", schematest.Str("x"))), schematest.Obj("tags", tags("b b", schematest.Str("x"))), []string{`tags.a`, `tags["b b"]`}},
		"an element of a list":          {schematest.Obj("l", l(schematest.Obj("p", schematest.Num(1)), schematest.Obj("p", schematest.Num(2)))), schematest.Obj("l", l(schematest.Obj("p", schematest.Num(1)), schematest.Obj("p", schematest.Num(3)))), []string{"l[1].p"}},
		"a list of another length":      {schematest.Obj("l", l(schematest.Num(1))), schematest.Obj("l", l(schematest.Num(1), schematest.Num(2))), []string{"l"}},
		"a set":                         {schematest.Obj("s", cty.SetVal([]cty.Value{schematest.Num(1)})), schematest.Obj("s", cty.SetVal([]cty.Value{schematest.Num(2)})), []string{"s"}},
		"null and not":                  {schematest.Obj("o", cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String}))), schematest.Obj("o", schematest.Obj("a", schematest.Str("1"))), []string{"o"}},
		"null and empty":                {schematest.Obj("l", cty.NullVal(cty.List(cty.String)), "m", cty.MapValEmpty(cty.String), "o", schematest.NullStr), schematest.Obj("l", cty.ListValEmpty(cty.String), "m", cty.NullVal(cty.Map(cty.String)), "o", schematest.NullStr), nil},
		"null and an empty string":      {schematest.Obj("a", schematest.NullStr), schematest.Obj("a", schematest.Str("")), []string{"a"}},
		"a secret map":                  {schematest.Obj("m", cty.MapVal(map[string]cty.Value{"hidden": schematest.Str("1")}).Mark(lang.Sensitive)), schematest.Obj("m", cty.MapValEmpty(cty.String).Mark(lang.Sensitive)), []string{"m"}},
		"a secret that stays":           {schematest.Obj("a", schematest.Str("1").Mark(lang.Sensitive)), schematest.Obj("a", schematest.Str("1")), nil},
		"gone":                          {schematest.Obj("a", schematest.Str("1"), "b", schematest.NullStr), cty.NullVal(schematest.Obj("a", schematest.NullStr, "b", schematest.NullStr).Type()), []string{"a"}},
		"never there":                   {cty.NilVal, cty.NilVal, nil},
		"there":                         {cty.NilVal, schematest.Obj("a", schematest.Str("1"), "b", schematest.NullStr), []string{"a"}},
		"unknown":                       {schematest.Obj("a", schematest.Str("1")), schematest.Obj("a", schematest.UnknownStr), []string{"a"}},
		"marks do not count":            {schematest.Obj("a", schematest.Str("1").Mark(lang.Sensitive)), schematest.Obj("a", schematest.Str("1")), nil},
		"a dynamic of another type":     {schematest.Obj("a", schematest.Str("1")), schematest.Obj("a", schematest.Num(1)), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) { schematest.SameStrings(t, Drift(tc.before, tc.after), tc.want) })
	}
}

// TestDiffers checks the comparison for lifecycle.replaceTriggeredBy. A value that is unknown before or after may
// differ.
func TestDiffers(t *testing.T) {
	a, unknown := schematest.Str("a"), schematest.UnknownStr
	for name, tc := range map[string]struct {
		before, after cty.Value
		want          bool
	}{
		"equal":           {a, a, false},
		"another":         {a, schematest.Str("b"), true},
		"unknown after":   {a, unknown, true},
		"unknown at both": {unknown, unknown, true},
	} {
		if got := Differs(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
