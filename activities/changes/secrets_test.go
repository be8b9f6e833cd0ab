package changes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

func originOf(name string) lang.Origin {
	return lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: name}}
}

// TestUnplannedOrigins has steps whose configuration has secrets that planning did not know of. A secret that the plan gives to one
// argument is new in another one.
func TestUnplannedOrigins(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "a", Type: cty.String, Optional: true}, {Name: "b", Type: cty.Map(cty.String), Optional: true},
		{Name: "once", Type: cty.String, Optional: true, WriteOnly: true},
	}}
	secret := func(name string) cty.Value {
		return cty.StringVal("x").WithMarks(cty.NewValueMarks(lang.Sensitive, originOf(name)))
	}
	with := func(a, b, once cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"a": a, "b": b, "once": once})
	}
	none, nothing := cty.NullVal(cty.String), cty.NullVal(cty.Map(cty.String))
	inMap := cty.MapVal(map[string]cty.Value{"x": secret("db")})
	unknownMap := cty.UnknownVal(cty.Map(cty.String))
	c := &ledger.Change{Origins: []ledger.Origin{ledger.Origin(originOf("db").Address)}}
	for name, tt := range map[string]struct {
		planned, config cty.Value
		want            []string
	}{
		"planned":                    {with(secret("db"), nothing, none), with(secret("db"), nothing, none), nil},
		"sensitive, but of nobody":   {with(none, nothing, none), with(none.Mark(lang.Sensitive), nothing, none), nil},
		"of another object":          {with(secret("db"), nothing, none), with(secret("other"), nothing, none), []string{"other"}},
		"in another argument":        {with(secret("db"), unknownMap, none), with(secret("db"), inMap, none), []string{"db"}},
		"in a map that was a secret": {with(none, unknownMap.WithMarks(cty.NewValueMarks(lang.Sensitive, originOf("db"))), none), with(none, inMap, none), nil},
		"write-only":                 {with(none, nothing, none), with(none, nothing, secret("db")), nil},
		"write-only, unplanned":      {with(none, nothing, none), with(none, nothing, secret("other")), []string{"other"}},
	} {
		var want []ledger.Origin
		for _, name := range tt.want {
			want = append(want, ledger.Origin(originOf(name).Address))
		}
		if of := UnplannedOrigins(c, block, tt.planned, tt.config); !slices.Equal(of, want) {
			t.Errorf("%s: got %v, want %v", name, of, want)
		}
	}
}

// TestSecretsOfAChangeAreBounded has more secret arguments than a change lists. None of their origins is lost.
func TestSecretsOfAChangeAreBounded(t *testing.T) {
	c := &ledger.Change{}
	var all []Secret
	for i := range 100 {
		o := originOf(fmt.Sprint(i))
		all = append(all, Secret{SecretArgument: plan.SecretArgument{Path: cty.GetAttrPath("a").IndexInt(i), Origins: []lang.Origin{o}}, Disclosed: []lang.Origin{o}})
	}
	if err := NoteSecrets(c, "team", all); err != nil {
		t.Fatal(err)
	}
	last := c.Secrets[len(c.Secrets)-1]
	if len(c.Secrets) != 64 || last.Path != nil || !last.Discloses || len(c.Origins) != 100 || len(c.Discloses) != 100 {
		t.Errorf("%d secrets, %d origins, %d disclosed, the last %+v", len(c.Secrets), len(c.Origins), len(c.Discloses), last)
	}
}
