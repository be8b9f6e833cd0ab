package planning

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// TestOutputChange compares the values of an output before and after a plan.
func TestOutputChange(t *testing.T) {
	text, none := cty.StringVal, (*v1alpha1.PlanOutput)(nil)
	value := func(text string) *v1alpha1.JSON { return &v1alpha1.JSON{Raw: []byte(text)} }
	secret := func(v cty.Value) cty.Value { return v.Mark(lang.Sensitive) }
	for reason, tc := range map[string]struct {
		before, after cty.Value
		want          *v1alpha1.PlanOutput
	}{
		"no change":                     {text("a"), text("a"), none},
		"no change of a secret":         {secret(text("a")), secret(text("a")), none},
		"another value":                 {text("a"), text("b"), &v1alpha1.PlanOutput{Before: value(`"a"`), After: value(`"b"`)}},
		"a secret":                      {text("a"), secret(text("b")), &v1alpha1.PlanOutput{Sensitive: true}},
		"a former secret":               {secret(text("a")), text("b"), &v1alpha1.PlanOutput{Sensitive: true}},
		"a new value":                   {cty.DynamicVal, text("b"), &v1alpha1.PlanOutput{After: value(`"b"`)}},
		"a value that is known later":   {text("a"), cty.UnknownVal(cty.String), &v1alpha1.PlanOutput{Before: value(`"a"`), AfterUnknown: true}},
		"a part that is known later":    {cty.DynamicVal, cty.TupleVal([]cty.Value{text("a"), cty.DynamicVal}), &v1alpha1.PlanOutput{AfterUnknown: true}},
		"a value that is gone":          {text("a"), cty.NullVal(cty.String), &v1alpha1.PlanOutput{Before: value(`"a"`), After: value("null")}},
		"never a value":                 {cty.DynamicVal, cty.NullVal(cty.String), none},
		"a value that is too large":     {text("a"), text(strings.Repeat("b", maxOutputBytes)), &v1alpha1.PlanOutput{Before: value(`"a"`)}},
		"a secret that is known later":  {cty.DynamicVal, secret(cty.UnknownVal(cty.String)), &v1alpha1.PlanOutput{Sensitive: true, AfterUnknown: true}},
		"a secret in a list of strings": {cty.DynamicVal, cty.TupleVal([]cty.Value{secret(text("a"))}), &v1alpha1.PlanOutput{Sensitive: true}},
	} {
		if diff := cmp.Diff(tc.want, outputChange(tc.before, tc.after, new(int))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
