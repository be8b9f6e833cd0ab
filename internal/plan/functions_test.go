package plan

import (
	"math"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestFunctions(t *testing.T) {
	l := func(vs ...cty.Value) cty.Value { return cty.TupleVal(vs) }
	for expr, want := range map[string]cty.Value{
		`startswith("abc", "ab")`:                 cty.True,
		`endswith("abc", "ab")`:                   cty.False,
		`strcontains("abc", "b")`:                 cty.True,
		`alltrue([true, "true"])`:                 cty.True,
		`alltrue([])`:                             cty.True,
		`anytrue([false, true])`:                  cty.True,
		`anytrue([])`:                             cty.False,
		`sum([1, 2.5])`:                           cty.MustParseNumberVal("3.5"),
		`one(["a"])`:                              str("a"),
		`one([])`:                                 cty.NullVal(cty.DynamicPseudoType),
		`index(["a", "b"], "b")`:                  num(1),
		`lookup({a = 1}, "b", 2)`:                 num(2),
		`lookup(tomap({a = "1"}), "a")`:           str("1"),
		`length("äö")`:                            num(2),
		`length({a = 1, b = 2})`:                  num(2),
		`length(toset([1, 1]))`:                   num(1),
		`coalesce("", "b")`:                       str("b"),
		`coalesce(null, 1)`:                       num(1),
		`replace("a.b", ".", "-")`:                str("a-b"),
		`replace("a1b", "/(\\d)/", "<$1>")`:       str("a<1>b"),
		`sha256("x")`:                             str("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
		`sha1("x")`:                               str("11f6ad8ec52a2984abaafd7c3b516503785c2072"),
		`base64sha256("x")`:                       str("LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="),
		`urlencode("a b/ü")`:                      str("a+b%2F%C3%BC"),
		`tostring(1.50)`:                          str("1.5"),
		`tonumber("7")`:                           num(7),
		`tolist(["a", 1])`:                        cty.ListVal([]cty.Value{str("a"), str("1")}),
		`format("%s-%03d", "a", 7)`:               str("a-007"),
		`formatlist("%s!", ["a", "b"])`:           cty.ListVal([]cty.Value{str("a!"), str("b!")}),
		`try(jsondecode("{"), "bad")`:             str("bad"),
		`can(jsondecode("{"))`:                    cty.False,
		`pow(2, 10)`:                              num(1024),
		`flatten([[1], [2, [3]]])`:                l(num(1), num(2), num(3)),
		`issensitive(sensitive("a"))`:             cty.True,
		`issensitive("a")`:                        cty.False,
		`sensitive("a")`:                          str("a").Mark(Sensitive),
		`timeadd("2026-01-01T00:00:00Z", "1h")`:   str("2026-01-01T01:00:00Z"),
		`regex("(\\w)(\\d)", "a1")`:               l(str("a"), str("1")),
		`zipmap(["a"], [1])`:                      obj("a", num(1)),
		`chunklist(["a", "b", "c"], 2)[1][0]`:     str("c"),
		`setproduct(["a"], ["b"])`:                cty.ListVal([]cty.Value{l(str("a"), str("b"))}),
		`csvdecode("a,b\n1,2")[0].b`:              str("2"),
		`trimsuffix(trimprefix("xay", "x"), "y")`: str("a"),
		`element(["a", "b"], 3)`:                  str("b"),
		`parseint("ff", 16)`:                      num(255),
		`jsonencode({b = [1, null], a = "<"})`:    str(`{"a":"\u003c","b":[1,null]}`),
		`length(sim_network.main.name) > 0`:       cty.UnknownVal(cty.Bool),
	} {
		c, diags := ParseConfig(map[string]any{"v": "${" + expr + "}"}, block(optional("v", cty.DynamicPseudoType)))
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		v, diags := c.Evaluate(scope)
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		if got := unrefined(v.GetAttr("v")); !got.RawEquals(want) {
			t.Errorf("%s: got %#v, want %#v", expr, got, want)
		}
	}
	for _, expr := range []string{
		`pow(10, 999999)`, `log(0, 10)`, `base64decode("%%")`, `base64decode("/w==")`, `lookup({}, "a")`, `lookup([], "a")`, `one([1, 2])`, `index([], 1)`,
		`length(1)`, `coalesce()`, `coalesce("", null)`, `sum([null])`, `replace("a", "/(/", "")`, `timestamp()`, `file("/etc/passwd")`, `uuid()`,
		`formatlist("%99999d", [1])`,
	} {
		_, diags := ParseConfig(map[string]any{"v": "${" + expr + "}"}, block(optional("v", cty.DynamicPseudoType)))
		if !HasErrors(diags) {
			t.Errorf("%s is accepted", expr)
		}
	}
}

func TestGoValues(t *testing.T) {
	// What a decoder or a client in Go may put into a spec.
	for _, tc := range []struct {
		in   any
		want cty.Value
	}{
		{1, num(1)}, {int32(2), num(2)}, {int64(3), num(3)}, {uint64(math.MaxUint64), cty.NumberUIntVal(math.MaxUint64)},
		{0.1, cty.MustParseNumberVal("0.1")}, {true, cty.True}, {nil, cty.NullVal(cty.DynamicPseudoType)}, {[]any{}, cty.EmptyTupleVal},
	} {
		c, diags := ParseConfig(map[string]any{"v": tc.in}, block(optional("v", cty.DynamicPseudoType)))
		if len(diags) > 0 {
			t.Errorf("%v: %v", tc.in, diags)
			continue
		}
		v, _ := c.Evaluate(nil)
		same(t, v.GetAttr("v"), tc.want)
	}
	for _, bad := range []any{math.NaN(), math.Inf(1), struct{}{}, []string{"a"}} {
		if _, diags := ParseConfig(map[string]any{"v": bad}, block(optional("v", cty.DynamicPseudoType))); !HasErrors(diags) {
			t.Errorf("%v is accepted", bad)
		}
	}
}
