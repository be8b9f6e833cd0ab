package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/operation"
)

// flagsOf returns the flags of a plan of files, as far as its spec shows them. It omits targets, which may be all
// objects of the files.
func flagsOf(spec *v1alpha1.PlanSpec) *operation.PlanFlags {
	f := &operation.PlanFlags{Replace: spec.Replace, Exclude: spec.Exclude, Invoke: spec.Invoke}
	if spec.Selector != nil {
		f.Selector = metav1.FormatLabelSelector(spec.Selector)
	}
	if spec.Refresh != v1alpha1.RefreshChanged {
		f.Refresh = string(spec.Refresh)
	}
	return f
}

// cannotBeApproved returns the text that names the command to use instead of approving speculative plans.
func (o *planOptions) cannotBeApproved() string {
	flags := o.files.RepeatFlags() + o.planning.RepeatFlags() + o.pruning.RepeatFlags()
	if o.all {
		flags += " --all"
	}
	if ns := o.oneNamespace(); ns != "" {
		flags += " -n " + ns
	}
	switch {
	case o.refreshOnly:
		return speculativeNextStep("record the files, and leave such a plan for approval",
			"plan --record --refresh-only"+flags)
	case o.destroy && (len(o.planning.Targets) > 0 || o.planning.Refresh != "" || o.planning.Selector != "" || o.all ||
		o.files.Force):
		return speculativeNextStep("record the files, and leave such a plan for approval",
			"plan --record --destroy"+flags)
	case o.destroy:
		return speculativeNextStep("destroy the resources of the files", "destroy"+flags)
	}
	return speculativeNextStep("record the files and apply them", "apply"+flags)
}

// oneNamespace returns the namespace for -n in that command: the one of -n, or the only namespace of all objects in the
// files. It returns "" if there are several.
func (o *planOptions) oneNamespace() string {
	if o.Enforce {
		return o.Namespace
	}
	one := ""
	for _, m := range o.sp.Manifests {
		ns := m.Object.GetNamespace()
		if ns != "" && one != "" && ns != one {
			return ""
		}
		if ns != "" {
			one = ns
		}
	}
	return one
}

// speculativeNextStep returns the text about the next step after a speculative plan. purpose is an infinitive without
// to.
func speculativeNextStep(purpose, command string) string {
	return fmt.Sprintf("The plan is speculative: nothing was recorded, and it cannot be approved. To %s:\n  kubectl hykube %s", purpose, command)
}

// cannotBeApproved returns the text for a plan whose files are unknown.
func cannotBeApproved(p *v1alpha1.Plan) string {
	purpose, command := "record the files and apply them", "apply -f PATH"
	switch {
	case p.Spec.RefreshOnly:
		purpose, command = "record the files, and leave such a plan for approval",
			"plan --record --refresh-only -f PATH"
	case p.Spec.Destroy:
		purpose, command = "destroy the resources of the files", "plan --record --destroy -f PATH"
	}
	return speculativeNextStep(purpose, command+flagsOf(&p.Spec).RepeatFlags()+" -n "+p.Namespace)
}
