package instance

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
)

// TestASecretInAnEchoedArgumentIsOneInTheAttribute expects the output of terraform_data to be sensitive if a part of its input is,
// planned and applied. Other types keep their marks.
func TestASecretInAnEchoedArgumentIsOneInTheAttribute(t *testing.T) {
	secret := cty.ObjectVal(map[string]cty.Value{"nested": cty.TupleVal([]cty.Value{cty.StringVal("s3cr3t").Mark(lang.Sensitive)})})
	config := cty.ObjectVal(map[string]cty.Value{"input": secret, "output": cty.NullVal(cty.DynamicPseudoType)})
	bare, _ := secret.UnmarkDeep()
	for name, output := range map[string]cty.Value{"planned": cty.UnknownVal(bare.Type()), "applied": bare, "null": cty.NullVal(cty.DynamicPseudoType)} {
		t.Run(name, func(t *testing.T) {
			v := cty.ObjectVal(map[string]cty.Value{"input": bare, "output": output})
			data := restoreMarks(v, (&Type{Name: "terraform_data"}).withEchoes(marksOf(config)))
			if got := data.GetAttr("output"); !got.HasMark(lang.Sensitive) {
				t.Errorf("the output is %#v", got)
			}
			other := restoreMarks(v, (&Type{Name: "sim_network"}).withEchoes(marksOf(config)))
			if got := other.GetAttr("output"); lang.HasMarks(got) || !lang.HasMarks(other.GetAttr("input")) {
				t.Errorf("another type has %#v", other)
			}
		})
	}
}
