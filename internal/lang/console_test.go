package lang

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

// Values are written as the console of Terraform writes them.
func TestFormatHCL(t *testing.T) {
	for want, v := range map[string]cty.Value{
		`"a \"b\" $${c} %%{d}"`:      schematest.Str(`a "b" ${c} %{d}`),
		`"\x1b[31m\nred"`:            schematest.Str("\x1b[31m\nred"),
		"1152921504606846977.25":     cty.MustParseNumberVal("1152921504606846977.25"),
		"true":                       cty.True,
		"null":                       cty.NullVal(cty.DynamicPseudoType),
		"tostring(null)":             cty.NullVal(cty.String),
		"tolist(null) /* of bool */": cty.NullVal(cty.List(cty.Bool)),
		"(known after apply)":        schematest.UnknownStr,
		"(sensitive value)":          schematest.Str("x").Mark(Sensitive),
		"(ephemeral value)":          schematest.Str("x").Mark(Ephemeral).Mark(Sensitive),
		"[]":                         cty.EmptyTupleVal,
		"{}":                         cty.EmptyObjectVal,
		"tomap({})":                  cty.MapValEmpty(cty.String),
		"toset([\n  \"a\",\n])":      cty.SetVal([]cty.Value{schematest.Str("a")}),
		"{\n  \"id\" = \"n\"\n  \"key\" = (sensitive value)\n  \"tags\" = tomap({\n    \"text\" = <<-EOT\n    a\n    b\n    EOT\n  })\n  \"zones\" = tolist([\n    \"x\",\n    (known after apply),\n  ])\n}": schematest.Obj("id", schematest.Str("n"), "key", schematest.Str("s").Mark(Sensitive),
			"tags", cty.MapVal(map[string]cty.Value{"text": schematest.Str("a\nb")}), "zones", cty.ListVal([]cty.Value{schematest.Str("x"), schematest.UnknownStr})),
	} {
		got, err := FormatHCL(v, 1000)
		if err != nil || got != want {
			t.Errorf("%v: (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	}
	if got, _ := FormatHCL(schematest.Str("EOT\nb"), 1000); got != "<<EOT_\nEOT\nb\nEOT_" {
		t.Errorf("a text that has the word at its end: %s", got)
	}
	if _, err := FormatHCL(cty.ListVal([]cty.Value{schematest.Str(strings.Repeat("a", 50)), schematest.Str("b")}), 40); !errors.Is(err, ErrTooLong) {
		t.Errorf("a long value: %v", err)
	}
}

// No expression reveals a withheld value.
func TestWithhold(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String}, {Name: "password", Type: cty.String, Sensitive: true}, {Name: "keys", Type: cty.DynamicPseudoType, Sensitive: true},
	}}
	recorded := MarkSensitive(block, schematest.Obj("id", schematest.Str("n"), "password", schematest.Str("hunter2"), "keys", schematest.Obj("alpha", schematest.Str("x"))))
	withheld, err := Withhold(recorded)
	if err != nil {
		t.Fatal(err)
	}
	const sensitive, open = "(sensitive value)", "(known after apply)"
	for text, want := range map[string]struct{ withheld, readable string }{
		"a_b.c.id":                                    {`"n"`, `"n"`},
		"${a_b.c.id}":                                 {`"n"`, `"n"`},
		" ${a_b.c.id} ":                               {`"n"`, `"n"`},
		"${a_b.c.id}-${a_b.c.id}":                     {`"n-n"`, `"n-n"`},
		"\"${a_b.c.id}!\"":                            {`"n!"`, `"n!"`},
		"a_b.c.password":                              {sensitive, sensitive},
		"nonsensitive(a_b.c.password)":                {sensitive, `"hunter2"`},
		"nonsensitive(length(a_b.c.password))":        {sensitive, "7"},
		"nonsensitive(a_b.c.password) == \"hunter2\"": {sensitive, "true"},
		"[for x in [nonsensitive(a_b.c.password)] : upper(x)]":       {"[\n  (sensitive value),\n]", "[\n  \"HUNTER2\",\n]"},
		"keys(nonsensitive(a_b.c.keys))":                             {open, "[\n  \"alpha\",\n]"},
		"can(regex(\"^h\", nonsensitive(a_b.c.password)))":           {open, "true"},
		"can(regex(\"^x\", nonsensitive(a_b.c.password)))":           {open, "false"},
		"try(tonumber(nonsensitive(a_b.c.password)), \"no number\")": {open, `"no number"`},
		"timestamp()":                       {open, open},
		"uuid()":                            {open, open},
		"bcrypt(\"a\")":                     {open, open},
		"{ a = 1, b = [true] }":             {"{\n  \"a\" = 1\n  \"b\" = [\n    true,\n  ]\n}", "{\n  \"a\" = 1\n  \"b\" = [\n    true,\n  ]\n}"},
		"cidrsubnet(\"10.0.0.0/16\", 8, 2)": {`"10.0.2.0/24"`, `"10.0.2.0/24"`},
	} {
		for reason, c := range map[string]struct {
			value cty.Value
			want  string
		}{"withheld": {withheld, want.withheld}, "readable": {recorded, want.readable}} {
			e, diags := ParseExpression(text, "", ExpressionOptions{Bare: true})
			if diag.HasErrors(diags) {
				t.Errorf("%s: %v", text, diags)
				continue
			}
			v, diags := e.Evaluate(func(Address) (cty.Value, bool) { return c.value, true }, cty.NilVal)
			got, err := FormatHCL(v, 1000)
			if diag.HasErrors(diags) || err != nil || got != c.want {
				t.Errorf("%s, %s: %v %v, got %s, want %s", text, reason, diags, err, got, c.want)
			}
		}
	}
	// An error is an answer, too.
	e, _ := ParseExpression("regex(\"^x\", a_b.c.password)", "", ExpressionOptions{Bare: true})
	if _, diags := e.Evaluate(func(Address) (cty.Value, bool) { return withheld, true }, cty.NilVal); len(diags) > 0 {
		t.Errorf("an error has the value: %v", diags)
	}
}

// Mistakes of an expression that has no "${" around it come with their place.
func TestBareExpressionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"1 +":            "column 4: Missing expression",
		"1 2":            "column 3: Extra characters after expression",
		"lenght([])":     "column 1: Call to unknown function",
		"  ${lenght(1)}": "column 5: Call to unknown function",
		"var.a":          "column 1: Unsupported reference",
		"self.id":        "column 1: Unsupported reference",
		"a_b":            "column 1: Invalid reference",
	} {
		_, diags := ParseExpression(text, "", ExpressionOptions{Bare: true})
		if len(diags) == 0 || diags[0].Attribute+": "+diags[0].Summary != want {
			t.Errorf("%s: got %+v, want %s", text, diags, want)
		} else if strings.Contains(diags[0].Detail, "%%{") {
			t.Errorf("%s: %s", text, diags[0].Detail)
		}
	}
}
