package lang

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/bcrypt"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

var (
	made    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	applied = EvaluationContext{Planned: made, Applied: made.Add(time.Hour), Seed: "plan/object", Hashes: map[string]string{}}
)

func TestImpureFunctionsInEachEvaluationContext(t *testing.T) {
	unknown := cty.UnknownVal(cty.String)
	for name, tc := range map[string]struct {
		expr   string
		moment EvaluationContext
		want   cty.Value
	}{
		"nothing is known when it is written":     {`${plantimestamp()}`, EvaluationContext{}, unknown},
		"the plan knows its own time":             {`${plantimestamp()}`, EvaluationContext{Planned: made}, schematest.Str("2026-03-01T11:00:00Z")},
		"and so does its apply":                   {`${core::plantimestamp()}`, applied, schematest.Str("2026-03-01T11:00:00Z")},
		"the apply is later than the plan":        {`${timestamp()}`, EvaluationContext{Planned: made}, unknown},
		"the time of the apply":                   {`${timestamp()}`, applied, schematest.Str("2026-03-01T12:00:00Z")},
		"what is made of the time":                {`${formatdate("YYYY", timeadd(plantimestamp(), "9000h"))}`, EvaluationContext{Planned: made}, schematest.Str("2027")},
		"chance is left to the apply":             {`${uuid()}`, EvaluationContext{Planned: made}, unknown},
		"what is made of chance, too":             {`a-${uuid()}`, EvaluationContext{Planned: made}, unknown},
		"but its length is not":                   {`${length(uuid())}`, applied, schematest.Num(36)},
		"passwords are hashed by the apply":       {`${bcrypt("a")}`, EvaluationContext{Planned: made}, unknown},
		"a sensitive password":                    {`${issensitive(bcrypt(sensitive("a"), 4))}`, applied, cty.True},
		"a template that is a value":              {`${templatestring("$${t()}", {})}`, applied, cty.NilVal},
		"a template that is a value sees it, too": {`${templatestring("$${timestamp()}", {})}`, applied, schematest.Str("2026-03-01T12:00:00Z")},
		"and it is unknown while planning":        {`${templatestring("$${timestamp()}", {})}`, EvaluationContext{}, unknown},
		"branches that are not taken":             {`${true ? "a" : timestamp()}`, EvaluationContext{}, schematest.Str("a")},
		"never null":                              {`${timestamp() == null}`, EvaluationContext{}, cty.False},
	} {
		e, diags := ParseExpression(tc.expr, "v", ExpressionOptions{})
		if tc.want == cty.NilVal {
			if !diag.HasErrors(diags) {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		got, more := e.With(tc.moment).Evaluate(nil, cty.NilVal)
		if len(diags)+len(more) > 0 {
			t.Errorf("%s: %v", name, append(diags, more...))
			continue
		}
		if !unrefinedDeep(got).RawEquals(tc.want) {
			t.Errorf("%s: got %#v, want %#v", name, got, tc.want)
		}
	}
}

func impureSpec(t *testing.T, js string, m EvaluationContext) cty.Value {
	t.Helper()
	b := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "a", Type: cty.String, Optional: true}, {Name: "b", Type: cty.String, Optional: true}, {Name: "l", Type: cty.List(cty.String), Optional: true},
	}}
	c, diags := ConfigOptions{}.Parse(spec(t, js), b)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	v, diags := c.With(m).Evaluate(nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return v
}

// A step that is made again after a crash must come to the same values, and no two calls to the same.
func TestRetriedStepHasTheSameRandomValues(t *testing.T) {
	const js = `{"a":"${uuid()}","b":"${uuid()}","l":["${uuid()} ${uuid()}","${join(\",\", [for i in range(2) : uuid()])}"]}`
	first := impureSpec(t, js, applied)
	if again := impureSpec(t, js, applied); !first.RawEquals(again) {
		t.Errorf("first %#v, then %#v", first, again)
	}
	if other := impureSpec(t, strings.Replace(js, `"a":"${uuid()}"`, `"a":"x"`, 1), applied); !other.GetAttr("b").RawEquals(first.GetAttr("b")) {
		t.Error("a change of one field gives another value to the next")
	}
	other := applied
	other.Seed = "plan/another"
	seen := map[string]bool{}
	for _, v := range []cty.Value{first, impureSpec(t, js, other)} {
		for _, e := range append(v.GetAttr("l").AsValueSlice(), v.GetAttr("a"), v.GetAttr("b")) {
			for _, id := range regexp.MustCompile("[, ]").Split(e.AsString(), -1) {
				if !regexp.MustCompile("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$").MatchString(id) {
					t.Errorf("%q is no UUID", id)
				}
				seen[id] = true
			}
		}
	}
	if len(seen) != 12 {
		t.Errorf("12 calls gave %d UUIDs", len(seen))
	}
}

// The hash of a call is made once and kept with the change. Another password or another cost makes another.
func TestBcrypt(t *testing.T) {
	at := applied
	at.Hashes = map[string]string{}
	const js = `{"a":"${bcrypt(\"hunter2\", 4)}","b":"${bcrypt(\"hunter2\", 4)}"}`
	first := impureSpec(t, js, at)
	a := first.GetAttr("a").AsString()
	if !strings.HasPrefix(a, "$2a$04$") || bcrypt.CompareHashAndPassword([]byte(a), []byte("hunter2")) != nil || first.GetAttr("a").RawEquals(first.GetAttr("b")) {
		t.Errorf("got %#v", first)
	}
	if again := impureSpec(t, js, at); !again.RawEquals(first) || len(at.Hashes) != 2 {
		t.Errorf("another attempt gives %#v after %#v, and keeps %d hashes", again, first, len(at.Hashes))
	}
	for _, other := range []string{"hunter3", "hunter2"} {
		v := impureSpec(t, `{"a":"${bcrypt(\"`+other+`\", 5)}"}`, at).GetAttr("a").AsString()
		if !strings.HasPrefix(v, "$2a$05$") || bcrypt.CompareHashAndPassword([]byte(v), []byte(other)) != nil {
			t.Errorf("%s: got %s", other, v)
		}
	}
	for expr, want := range map[string]string{
		`bcrypt("a", 32)`:                     "up to 31",
		`bcrypt("a", 1.5)`:                    "whole number",
		`bcrypt("a", 4, 4)`:                   "two arguments",
		`bcrypt("a", 20)`:                     "take too long",
		`[for i in range(100) : bcrypt("a")]`: "too long",
		`bcrypt(join("", range(100)))`:        "72 bytes",
		`bcrypt()`:                            "bcrypt",
	} {
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{})
		if !diag.HasErrors(diags) {
			_, diags = e.With(applied).Evaluate(nil, cty.NilVal)
		}
		if !diag.HasErrors(diags) || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("%s: got %v, want %q", expr, diags, want)
		}
	}
}

func TestImpureExpressions(t *testing.T) {
	for expr, want := range map[string]bool{
		"${timestamp()}": true, "${plantimestamp()}": true, "a-${core::uuid()}": true, `${bcrypt("a")}`: true, `${templatestring("a", {})}`: true,
		"${upper(\"a\")}": false, `${uuidv5("dns", "a")}`: false, "a": false,
	} {
		e, diags := ParseExpression(expr, "v", ExpressionOptions{})
		if len(diags) > 0 || e.Impure() != want {
			t.Errorf("%s: %v %v", expr, e.Impure(), diags)
		}
		_, diags = ParseExpression(expr, "v", ExpressionOptions{Settled: true})
		if refused := want && !strings.Contains(expr, "templatestring"); diag.HasErrors(diags) != refused {
			t.Errorf("%s where a value must be known: %v", expr, diags)
		}
	}
}
