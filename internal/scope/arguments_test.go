package scope

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
)

// TestCheckArguments expects a data source and an ephemeral resource to get no argument that its plan's creator may not
// read, because the plan shows the answer.
func TestCheckArguments(t *testing.T) {
	held, err := lang.PassOnly(cty.StringVal("hunter22").Mark(lang.Sensitive), "get state")
	if err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[v1alpha1.Mode]bool{v1alpha1.ModeData: true, v1alpha1.ModeEphemeral: true, v1alpha1.ModeManaged: false} {
		if err := checkArguments(&resource.Resource{Mode: mode}, cty.ObjectVal(map[string]cty.Value{"name": held})); (err != nil) != refused {
			t.Errorf("mode %q: %v", mode, err)
		}
	}
}
