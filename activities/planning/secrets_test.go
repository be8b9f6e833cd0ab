package planning

import (
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

func TestDiscloses(t *testing.T) {
	password := lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: "db"}}
	other := lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: "other"}}
	in := func(arguments string) account {
		return account{"sim", ledger.Configuration{Arguments: arguments}}
	}
	value := func(text string, from ...lang.Origin) cty.Value {
		v := cty.StringVal(text).Mark(lang.Sensitive)
		for _, o := range from {
			v = v.Mark(o)
		}
		return cty.ObjectVal(map[string]cty.Value{"token": v})
	}
	unknown := cty.ObjectVal(map[string]cty.Value{"token": cty.UnknownVal(cty.String).Mark(lang.Sensitive).Mark(password)})
	nothing := holding{value: cty.NilVal}
	ephemeral := account{"sim", ledger.Configuration{Arguments: "a", Ephemeral: true}}
	for reason, tc := range map[string]struct {
		config   cty.Value
		hidden   bool
		from, to account
		has      holding
		want     bool
	}{
		"a new resource in another account":                     {value("x", password), true, in("a"), in("b"), nothing, true},
		"an argument that a query shows, in the same account":   {value("x", password), false, in("a"), in("a"), nothing, true},
		"a hidden argument of the same account":                 {value("x", password), true, in("a"), in("a"), nothing, false},
		"a hidden argument of another provider":                 {value("x", password), true, in("a"), account{"other", ledger.Configuration{Arguments: "a"}}, nothing, true},
		"accounts that are not known":                           {value("x", password), true, in(""), in(""), nothing, true},
		"arguments with ephemeral values, which differ":         {value("x", password), true, ephemeral, ephemeral, nothing, true},
		"a Secret, which has no account":                        {value("x", password), true, account{}, in("a"), nothing, true},
		"the account has it in the same argument":               {value("x", password), false, in("a"), in("b"), holding{value("x"), in("b")}, false},
		"the account had the former one of the same object":     {value("y", password), false, in("a"), in("b"), holding{value("x", password), in("b")}, false},
		"the account had one of another object":                 {value("y", password), false, in("a"), in("b"), holding{value("x", other), in("b")}, true},
		"another account had it":                                {value("x", password), false, in("a"), in("b"), holding{value("x", password), in("c")}, true},
		"an unknown value of an object that it had":             {unknown, false, in("a"), in("b"), holding{value("x", password), in("b")}, false},
		"an unknown value of an object that it did not have":    {unknown, false, in("a"), in("b"), holding{value("x"), in("b")}, true},
		"a plain value took the place that the secret has now":  {value("x", password), false, in("a"), in("b"), holding{cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("z")}), in("b")}, true},
		"the resource exists with the argument not set":         {value("x", password), false, in("a"), in("b"), holding{cty.ObjectVal(map[string]cty.Value{"token": cty.NullVal(cty.String)}), in("b")}, true},
		"the resource exists and its schema has no such member": {value("x", password), false, in("a"), in("b"), holding{cty.EmptyObjectVal, in("b")}, true},
	} {
		s := plan.SecretArgument{Path: cty.GetAttrPath("token"), Origins: []lang.Origin{password}, Hidden: tc.hidden}
		if got := discloses(s, tc.config, password, tc.from, tc.to, tc.has); got != tc.want {
			t.Errorf("%s: discloses %t, want %t", reason, got, tc.want)
		}
	}
}
