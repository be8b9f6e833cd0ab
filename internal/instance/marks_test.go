package instance

import (
	"fmt"
	"testing"

	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// TestSensitivePathsKeepOrigins stores the marks of a value and restores them.
func TestSensitivePathsKeepOrigins(t *testing.T) {
	origin := func(name string) lang.Origin {
		return lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: name}}
	}
	v := cty.ObjectVal(map[string]cty.Value{
		"own":  cty.StringVal("a").Mark(lang.Sensitive),
		"tags": cty.MapVal(map[string]cty.Value{"x": cty.StringVal("b").WithMarks(cty.NewValueMarks(lang.Sensitive, origin("db"), lang.Origin{Address: lang.Address{Namespace: "team", Type: lang.TypeSecret, Name: "s"}, Key: "k"}))}),
	})
	raw, err := SensitivePaths(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Remark(lang.WithoutMarks(v), raw)
	if err != nil || !got.RawEquals(v) {
		t.Errorf("got %#v, %v, want %#v", got, err, v)
	}
	many := cty.StringVal("c").Mark(lang.Sensitive)
	for i := range 40 {
		many = many.Mark(origin(fmt.Sprint(i)))
	}
	v = cty.ObjectVal(map[string]cty.Value{"a": many})
	if raw, err = SensitivePaths(v); err != nil {
		t.Fatal(err)
	}
	got, err = Remark(lang.WithoutMarks(v), raw)
	if from := lang.OriginsOf(got); err != nil || len(from) != maxOrigins+1 || from[0] != lang.FurtherOrigins {
		t.Errorf("got %v, %v", from, err)
	}
}
