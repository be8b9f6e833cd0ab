package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Outputs returns the lines about the outputs of Modules that a plan changes.
func Outputs(plan *v1alpha1.Plan, style Style) []string {
	if len(plan.Status.Outputs) == 0 {
		return nil
	}
	p := &printer{style: style}
	p.raw("Changes to outputs:")
	for _, o := range plan.Status.Outputs {
		prefix := Clean(v1alpha1.ModulePath("", o.Module, nil)+"."+o.Name, false) + " = "
		b, a := outputValue(o.Before), outputValue(o.After)
		switch {
		case o.Sensitive:
			b, a = sensitive{}, sensitive{}
		case o.AfterUnknown:
			a = unknown{}
		case a == nil && b == nil:
			p.line(2, "~", prefix+style.Dim("(value not shown)"))
			continue
		}
		p.attribute(2, changed(b, a), prefix, b, a, "\x00", "")
	}
	return strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n")
}

func outputValue(v *v1alpha1.JSON) any {
	if v == nil {
		return nil
	}
	return combine(decode(&runtime.RawExtension{Raw: v.Raw}), nil, nil)
}
