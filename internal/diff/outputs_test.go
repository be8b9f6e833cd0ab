package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestOutputs(t *testing.T) {
	value := func(text string) *v1alpha1.JSON { return &v1alpha1.JSON{Raw: []byte(text)} }
	p := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Outputs: []v1alpha1.PlanOutput{
		{Module: "shop", Name: "changed", Before: value(`"a"`), After: value(`"b"`)},
		{Module: "shop", Name: "later", Before: value(`1`), AfterUnknown: true},
		{Module: "shop", Name: "list", Before: value(`["a"]`), After: value(`["a","b"]`)},
		{Module: "shop", Name: "new", After: value(`{"a":true}`)},
		{Module: "shop", Name: "none", Before: value(`"a"`), After: value(`null`)},
		{Module: "shop", Name: "secret", Sensitive: true},
		{Module: "shop", Name: "terminal", After: value(`"\u001b[31m"`)},
		{Module: "shop", Name: "large"},
		{Module: "shop", Name: "unknown", AfterUnknown: true},
	}}}
	want := `Changes to outputs:
  ~ module.shop.changed = "a" -> "b"
  ~ module.shop.later = 1 -> (known after apply)
  ~ module.shop.list = [
        # (1 unchanged element hidden)
      + "b",
    ]
  + module.shop.new = {
      + a = true
    }
  - module.shop.none = "a" -> null
  ~ module.shop.secret = (sensitive value)
  + module.shop.terminal = "\x1b[31m"
  ~ module.shop.large = (value not shown)
  + module.shop.unknown = (known after apply)`
	if diff := cmp.Diff(want, strings.Join(Outputs(p, Style{}), "\n")); diff != "" {
		t.Errorf("the outputs differ (-want +got):\n%s", diff)
	}
	if got := Outputs(&v1alpha1.Plan{}, Style{}); got != nil {
		t.Errorf("without outputs: %q", got)
	}
}
