package lang

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema/schematest"

	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math"
	"strings"
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
		`one(["a"])`:                              schematest.Str("a"),
		`one([])`:                                 cty.NullVal(cty.DynamicPseudoType),
		`index(["a", "b"], "b")`:                  schematest.Num(1),
		`lookup({a = 1}, "b", 2)`:                 schematest.Num(2),
		`lookup(tomap({a = "1"}), "a")`:           schematest.Str("1"),
		`length("äö")`:                            schematest.Num(2),
		`length({a = 1, b = 2})`:                  schematest.Num(2),
		`length(toset([1, 1]))`:                   schematest.Num(1),
		`coalesce("", "b")`:                       schematest.Str("b"),
		`coalesce(null, 1)`:                       schematest.Num(1),
		`replace("a.b", ".", "-")`:                schematest.Str("a-b"),
		`replace("a1b", "/(\\d)/", "<$1>")`:       schematest.Str("a<1>b"),
		`sha256("x")`:                             schematest.Str("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
		`sha1("x")`:                               schematest.Str("11f6ad8ec52a2984abaafd7c3b516503785c2072"),
		`base64sha256("x")`:                       schematest.Str("LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="),
		`urlencode("a b/ü")`:                      schematest.Str("a+b%2F%C3%BC"),
		`tostring(1.50)`:                          schematest.Str("1.5"),
		`tonumber("7")`:                           schematest.Num(7),
		`tolist(["a", 1])`:                        cty.ListVal([]cty.Value{schematest.Str("a"), schematest.Str("1")}),
		`format("%s-%03d", "a", 7)`:               schematest.Str("a-007"),
		`formatlist("%s!", ["a", "b"])`:           cty.ListVal([]cty.Value{schematest.Str("a!"), schematest.Str("b!")}),
		`try(jsondecode("{"), "bad")`:             schematest.Str("bad"),
		`can(jsondecode("{"))`:                    cty.False,
		`pow(2, 10)`:                              schematest.Num(1024),
		`flatten([[1], [2, [3]]])`:                l(schematest.Num(1), schematest.Num(2), schematest.Num(3)),
		`issensitive(sensitive("a"))`:             cty.True,
		`issensitive("a")`:                        cty.False,
		`sensitive("a")`:                          schematest.Str("a").Mark(Sensitive),
		`timeadd("2026-01-01T00:00:00Z", "1h")`:   schematest.Str("2026-01-01T01:00:00Z"),
		`regex("(\\w)(\\d)", "a1")`:               l(schematest.Str("a"), schematest.Str("1")),
		`zipmap(["a"], [1])`:                      schematest.Obj("a", schematest.Num(1)),
		`chunklist(["a", "b", "c"], 2)[1][0]`:     schematest.Str("c"),
		`setproduct(["a"], ["b"])`:                cty.ListVal([]cty.Value{l(schematest.Str("a"), schematest.Str("b"))}),
		`csvdecode("a,b\n1,2")[0].b`:              schematest.Str("2"),
		`trimsuffix(trimprefix("xay", "x"), "y")`: schematest.Str("a"),
		`element(["a", "b"], 3)`:                  schematest.Str("b"),
		`parseint("ff", 16)`:                      schematest.Num(255),
		`jsonencode({b = [1, null], a = "<"})`:    schematest.Str(`{"a":"\u003c","b":[1,null]}`),
		`length(sim_network.main.name) > 0`:       cty.UnknownVal(cty.Bool),
		`tostring(null)`:                          schematest.NullStr,
	} {
		c, diags := parseConfig(map[string]any{"v": "${" + expr + "}"}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType)))
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		v, diags := c.Evaluate(scope)
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		if got := unrefinedDeep(v.GetAttr("v")); !got.RawEquals(want) {
			t.Errorf("%s: got %#v, want %#v", expr, got, want)
		}
	}
	for _, expr := range []string{
		`pow(10, 999999)`, `log(0, 10)`, `base64decode("%%")`, `base64decode("/w==")`, `lookup({}, "a")`, `lookup([], "a")`, `one([1, 2])`, `index([], 1)`,
		`length(1)`, `coalesce()`, `coalesce("", null)`, `sum([null])`, `replace("a", "/(/", "")`, `file("/etc/passwd")`, `bcrypt("a", "b")`,
		`formatlist("%99999d", [1])`,
	} {
		_, diags := parseConfig(map[string]any{"v": "${" + expr + "}"}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType)))
		if !diag.HasErrors(diags) {
			t.Errorf("%s is accepted", expr)
		}
	}
}

func TestGoValues(t *testing.T) {
	// These values may be in a spec from a decoder or a Go client.
	for _, tc := range []struct {
		in   any
		want cty.Value
	}{
		{1, schematest.Num(1)}, {int32(2), schematest.Num(2)}, {int64(3), schematest.Num(3)}, {uint64(math.MaxUint64), cty.NumberUIntVal(math.MaxUint64)},
		{0.1, cty.MustParseNumberVal("0.1")}, {true, cty.True}, {nil, cty.NullVal(cty.DynamicPseudoType)}, {[]any{}, cty.EmptyTupleVal},
	} {
		c, diags := parseConfig(map[string]any{"v": tc.in}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType)))
		if len(diags) > 0 {
			t.Errorf("%v: %v", tc.in, diags)
			continue
		}
		v, _ := c.Evaluate(nil)
		schematest.Same(t, v.GetAttr("v"), tc.want)
	}
	for _, bad := range []any{math.NaN(), math.Inf(1), struct{}{}, []string{"a"}} {
		if _, diags := parseConfig(map[string]any{"v": bad}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType))); !diag.HasErrors(diags) {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestRSADecrypt(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 it is what rsadecrypt takes
	text, err := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	in := base64.StdEncoding.EncodeToString(text)
	for kind, der := range map[string][]byte{"RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(key), "PRIVATE KEY": pkcs8} {
		private := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		v, err := rsaDecrypt.Call([]cty.Value{schematest.Str(in), schematest.Str(private)})
		if err != nil || !v.RawEquals(schematest.Str("hello")) {
			t.Errorf("%s: got %#v, %v", kind, v, err)
		}
		if _, err := rsaDecrypt.Call([]cty.Value{schematest.Str("AAAA"), schematest.Str(private)}); err == nil {
			t.Error("what was not encrypted is decrypted")
		}
	}
	if _, err := rsaDecrypt.Call([]cty.Value{schematest.Str(in), schematest.Str("no key")}); err == nil {
		t.Error("no key is taken")
	}
}

func TestFunctionsOfOpenTofu(t *testing.T) {
	for expr, want := range map[string]cty.Value{
		`cidrcontains("10.0.0.0/8", "10.1.2.3")`:        cty.True,
		`cidrcontains("10.0.0.0/8", "11.1.2.3")`:        cty.False,
		`cidrcontains("10.0.0.0/8", "10.1.0.0/16")`:     cty.True,
		`cidrcontains("10.1.0.0/16", "10.0.0.0/8")`:     cty.False,
		`cidrcontains("fe80::/16", "fe80::1")`:          cty.True,
		`urldecode("a+b%2F%C3%BC")`:                     schematest.Str("a b/ü"),
		`base64gunzip(base64gzip("hello"))`:             schematest.Str("hello"),
		`templatestring("a-$${x}", {x = 1})`:            schematest.Str("a-1"),
		`templatestring("$${x}", {x = [1]})`:            cty.TupleVal([]cty.Value{schematest.Num(1)}),
		`templatestring("plain", {})`:                   schematest.Str("plain"),
		`templatestring("$${upper(x)}", {x = "a"})`:     schematest.Str("A"),
		`templatestring("$${x}", {x = sensitive("a")})`: schematest.Str("a").Mark(Sensitive),
	} {
		v, why, ok := evaluateCall(expr)
		if !ok || !v.RawEquals(want) {
			t.Errorf("%s: got %#v %s, want %#v", expr, v, why, want)
		}
	}
	for expr, want := range map[string]string{
		`cidrcontains("10.0.0.0/8", "fe80::1")`: "address family mismatch",
		`cidrcontains("10.0.0.0/8", "x")`:       "neither an IP address",
		`base64gunzip("eA==")`:                  "not valid gzip",
		`templatestring("$${x}", {})`:           `vars map does not contain key "x"`,
		`templatestring("$${", {})`:             "of the template",
		`templatestring("$${file(\"x\")}", {})`: "expressions cannot read files",
		`templatestring("$${1}", [])`:           "must be a map",
		`1 / 0`:                                 "infinite",
		`log(0, 10)`:                            "out of range",
		`cidrsubnet("10.0.0.0/8", -9, 0)`:       "whole number from -8",
	} {
		if v, why, ok := evaluateCall(expr); ok || !strings.Contains(why, want) {
			t.Errorf("%s: got %#v %s, want %s", expr, v, why, want)
		}
	}
}
