package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
)

func TestDecide(t *testing.T) {
	none := cty.NullVal(obj("x", nullStr).Type())
	a, b := obj("x", str("a")), obj("x", str("b"))
	path := []cty.Path{cty.GetAttrPath("x")}
	dynamic := func(v cty.Value) cty.Value { return obj("x", v) }
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
		"unknown is different":              {a, obj("x", unknownStr), nil, false, false, v1alpha1.ActionUpdate, ""},
		"different, and cannot be updated":  {a, b, path, false, false, v1alpha1.ActionReplace, "replace_because_cannot_update"},
		"equal, but asked for":              {a, a, nil, true, false, v1alpha1.ActionReplace, "replace_by_request"},
		"tainted":                           {a, b, nil, true, true, v1alpha1.ActionReplace, "replace_because_tainted"},
		"only a mark differs":               {a, obj("x", str("a").Mark(Sensitive)), nil, false, false, v1alpha1.ActionNoOp, ""},
		"nulls of different types are null": {dynamic(cty.NullVal(cty.DynamicPseudoType)), dynamic(nullStr), nil, false, false, v1alpha1.ActionNoOp, ""},
	} {
		t.Run(name, func(t *testing.T) {
			action, reason := Decide(tc.prior, tc.planned, tc.replace, tc.forced, tc.tainted)
			if action != tc.action || reason != tc.reason {
				t.Errorf("got %s %q, want %s %q", action, reason, tc.action, tc.reason)
			}
		})
	}
}

func TestRequiredReplace(t *testing.T) {
	b := block(optional("a", cty.String), writeOnlyAttr(optional("w", cty.String)), optional("tags", cty.Map(cty.String)),
		nestedBlocks("rule", schema.NestingList, optional("port", cty.Number), writeOnlyAttr(optional("w", cty.String))),
		nestedBlocks("free", schema.NestingMap, optional("d", cty.DynamicPseudoType)))
	value := func(a cty.Value, tag string, port int64) cty.Value {
		return obj("a", a, "w", nullStr, "tags", cty.MapVal(map[string]cty.Value{"t": str(tag)}),
			"rule", cty.ListVal([]cty.Value{obj("port", num(port), "w", nullStr)}), "free", obj("k", obj("d", num(port))))
	}
	p := cty.GetAttrPath
	port := p("rule").IndexInt(0).GetAttr("port")
	for name, tc := range map[string]struct {
		prior, planned cty.Value
		paths, kept    []cty.Path
		err            string
	}{
		"changed":                        {value(str("1"), "x", 1), value(str("2"), "x", 1), []cty.Path{p("a"), port}, []cty.Path{p("a")}, ""},
		"unknown counts as changed":      {value(str("1"), "x", 1), value(unknownStr, "x", 1), []cty.Path{p("a")}, []cty.Path{p("a")}, ""},
		"within a block":                 {value(str("1"), "x", 1), value(str("1"), "x", 2), []cty.Path{p("a"), port}, []cty.Path{port}, ""},
		"a map's element":                {value(str("1"), "x", 1), value(str("1"), "y", 1), []cty.Path{p("tags").IndexString("t")}, []cty.Path{p("tags").IndexString("t")}, ""},
		"an element that appears":        {value(str("1"), "x", 1), value(str("1"), "x", 1), []cty.Path{p("tags").IndexString("n")}, nil, `read required replace "tags.n": the provider names an attribute that does not exist; please report this to its developers`},
		"a map that is an object":        {value(str("1"), "x", 1), value(str("1"), "x", 2), []cty.Path{p("free").IndexString("k")}, []cty.Path{p("free").IndexString("k")}, ""},
		"write-only":                     {value(str("1"), "x", 1), value(str("1"), "x", 1), []cty.Path{p("w")}, []cty.Path{p("w")}, ""},
		"write-only within a block":      {value(str("1"), "x", 1), value(str("1"), "x", 1), []cty.Path{p("rule").IndexInt(0).GetAttr("w")}, []cty.Path{p("rule").IndexInt(0).GetAttr("w")}, ""},
		"nothing is replaced at create":  {cty.NullVal(b.ImpliedType()), value(str("1"), "x", 1), []cty.Path{p("a")}, nil, ""},
		"a list that grew":               {value(str("1"), "x", 1), value(str("1"), "x", 1), []cty.Path{p("rule").IndexInt(1)}, nil, `read required replace "rule[1]": the provider names an attribute that does not exist; please report this to its developers`},
		"a path that leads nowhere":      {value(str("1"), "x", 1), value(str("2"), "x", 1), []cty.Path{p("nope"), p("a")}, []cty.Path{p("a")}, `read required replace "nope": the provider names an attribute that does not exist; please report this to its developers`},
		"a path through something known": {value(str("1"), "x", 1), value(str("2"), "x", 1), []cty.Path{p("a").GetAttr("b")}, nil, `read required replace "a.b": the provider names an attribute that does not exist; please report this to its developers`},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := RequiredReplace(b, tc.paths, tc.prior, tc.planned)
			var got, want []string
			for _, k := range kept {
				got = append(got, pathField("", k))
			}
			for _, k := range tc.kept {
				want = append(want, pathField("", k))
			}
			sameStrings(t, got, want)
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

func TestFromProto(t *testing.T) {
	path := tftypes.NewAttributePath().WithAttributeName("rule").WithElementKeyInt(2).WithAttributeName("tags").WithElementKeyString("a b")
	p, err := FromProtoPath(path)
	if err != nil || pathField("", p) != `rule[2].tags["a b"]` {
		t.Errorf("got %q, %v", pathField("", p), err)
	}
	if p, err := FromProtoPath(nil); err != nil || len(p) > 0 {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := FromProtoPath(tftypes.NewAttributePath().WithElementKeyValue(tftypes.NewValue(tftypes.String, "x"))); err == nil {
		t.Error("an element of a set has no path")
	}
	got := FromProto([]*tfprotov6.Diagnostic{
		{Severity: tfprotov6.DiagnosticSeverityError, Summary: "S", Detail: "D", Attribute: path},
		nil,
		{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "W"},
	})
	want := Diagnostics{
		{Severity: v1alpha1.SeverityError, Summary: "S", Detail: "D", Attribute: `spec.rule[2].tags["a b"]`},
		{Severity: v1alpha1.SeverityWarning, Summary: "W"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := WithAddress(got, Address{Type: "sim_a", Name: "b"}); got[0].Address != "sim_a.b" {
		t.Error(got)
	}
	errs := CheckCompatible(block(optional("x", cty.String)), obj("x", str("a")), obj("x", str("b")))
	if got := FromErrors(v1alpha1.SeverityWarning, "Inconsistent", errs); len(got) != 1 || got[0].Attribute != "spec.x" || got[0].Detail != `x: was "a", but now "b".` {
		t.Errorf("got %+v", got)
	}
}

func TestDrift(t *testing.T) {
	l := func(vs ...cty.Value) cty.Value { return cty.ListVal(vs) }
	tags := func(kv ...any) cty.Value { return cty.MapVal(obj(kv...).AsValueMap()) }
	for name, tc := range map[string]struct {
		before, after cty.Value
		want          []string
	}{
		"nothing":                       {obj("a", str("1")), obj("a", str("1")), nil},
		"a leaf":                        {obj("a", str("1"), "b", num(1)), obj("a", str("2"), "b", num(1)), []string{"a"}},
		"an element of a map":           {obj("tags", tags("team", str("x"), "k", str("1"))), obj("tags", tags("team", str("y"), "k", str("1"))), []string{"tags.team"}},
		"a key that appeared, and gone": {obj("tags", tags("a", str("x"))), obj("tags", tags("b b", str("x"))), []string{`tags.a`, `tags["b b"]`}},
		"an element of a list":          {obj("l", l(obj("p", num(1)), obj("p", num(2)))), obj("l", l(obj("p", num(1)), obj("p", num(3)))), []string{"l[1].p"}},
		"a list of another length":      {obj("l", l(num(1))), obj("l", l(num(1), num(2))), []string{"l"}},
		"a set":                         {obj("s", cty.SetVal([]cty.Value{num(1)})), obj("s", cty.SetVal([]cty.Value{num(2)})), []string{"s"}},
		"null and not":                  {obj("o", cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String}))), obj("o", obj("a", str("1"))), []string{"o"}},
		"null and empty":                {obj("l", cty.NullVal(cty.List(cty.String)), "m", cty.MapValEmpty(cty.String), "o", nullStr), obj("l", cty.ListValEmpty(cty.String), "m", cty.NullVal(cty.Map(cty.String)), "o", nullStr), nil},
		"null and an empty string":      {obj("a", nullStr), obj("a", str("")), []string{"a"}},
		"a secret map":                  {obj("m", cty.MapVal(map[string]cty.Value{"hidden": str("1")}).Mark(Sensitive)), obj("m", cty.MapValEmpty(cty.String).Mark(Sensitive)), []string{"m"}},
		"a secret that stays":           {obj("a", str("1").Mark(Sensitive)), obj("a", str("1")), nil},
		"gone":                          {obj("a", str("1"), "b", nullStr), cty.NullVal(obj("a", nullStr, "b", nullStr).Type()), []string{"a"}},
		"never there":                   {cty.NilVal, cty.NilVal, nil},
		"there":                         {cty.NilVal, obj("a", str("1"), "b", nullStr), []string{"a"}},
		"unknown":                       {obj("a", str("1")), obj("a", unknownStr), []string{"a"}},
		"marks do not count":            {obj("a", str("1").Mark(Sensitive)), obj("a", str("1")), nil},
		"a dynamic of another type":     {obj("a", str("1")), obj("a", num(1)), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) { sameStrings(t, Drift(tc.before, tc.after), tc.want) })
	}
}
