package changes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

func originOf(name string) lang.Origin {
	return lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: name}}
}

// TestUnplannedOrigins has a step whose configuration has a secret that planning did not know of.
func TestUnplannedOrigins(t *testing.T) {
	c := &ledger.Change{}
	if err := NoteSecrets(c, "team", []Secret{{SecretArgument: plan.SecretArgument{Path: cty.GetAttrPath("a"), Origins: []lang.Origin{originOf("db")}}}}); err != nil {
		t.Fatal(err)
	}
	with := func(name string) cty.Value {
		return cty.StringVal("x").WithMarks(cty.NewValueMarks(lang.Sensitive, originOf(name)))
	}
	if of := UnplannedOrigins(c, cty.ObjectVal(map[string]cty.Value{"a": with("db"), "b": cty.StringVal("y").Mark(lang.Sensitive)})); len(of) > 0 {
		t.Errorf("got %v", of)
	}
	of := UnplannedOrigins(c, cty.ObjectVal(map[string]cty.Value{"a": with("db"), "b": with("other"), "c": with("other")}))
	if want := []ledger.Origin{ledger.Origin(originOf("other").Address)}; !slices.Equal(of, want) {
		t.Errorf("got %v, want %v", of, want)
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
