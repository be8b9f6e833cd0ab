package cli

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// shellWord is text as one word of a shell.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// each repeats a flag for each of its values.
func each(flag string, values []string) string {
	text := ""
	for _, v := range values {
		text += " " + flag + " " + shellWord(v)
	}
	return text
}

// again are the flags that read the same files.
func (f *fileFlags) again() string {
	text := each("-f", f.Filenames)
	if f.Kustomize != "" {
		text += " -k " + shellWord(f.Kustomize)
	}
	if f.Recursive {
		text += " -R"
	}
	if f.force {
		text += " --force-conflicts"
	}
	return text
}

// again are the flags that plan the same.
func (f *planFlags) again() string {
	text := each("--target", f.targets) + each("--replace", f.replace) + each("--exclude", f.exclude) + each("--invoke", f.invoke)
	if f.selector != "" {
		text += " -l " + shellWord(f.selector)
	}
	if f.refresh != "" {
		text += " --refresh " + f.refresh
	}
	return text
}

// flagsOf are the flags that a plan of files was asked for with, as far as its spec tells. The targets may be all that the files hold.
func flagsOf(spec *v1alpha1.PlanSpec) *planFlags {
	f := &planFlags{replace: spec.Replace, exclude: spec.Exclude, invoke: spec.Invoke}
	if spec.Selector != nil {
		f.selector = metav1.FormatLabelSelector(spec.Selector)
	}
	if spec.Refresh != v1alpha1.RefreshChanged {
		f.refresh = string(spec.Refresh)
	}
	return f
}

// cannotBeApproved says what to do instead of approving speculative plans: the command that does what they show.
func (o *planOptions) cannotBeApproved() string {
	flags := o.files.again() + o.planning.again() + o.pruning.again()
	if o.all {
		flags += " --all"
	}
	if ns := o.oneNamespace(); ns != "" {
		flags += " -n " + ns
	}
	switch {
	case o.refreshOnly:
		return insteadOfApproval("record the files, and leave such a plan for approval", "plan --record --refresh-only"+flags)
	case o.destroy && (len(o.planning.targets) > 0 || o.planning.refresh != "" || o.planning.selector != "" || o.all || o.files.force):
		return insteadOfApproval("record the files, and leave such a plan for approval", "plan --record --destroy"+flags)
	case o.destroy:
		return insteadOfApproval("destroy the resources of the files", "destroy"+flags)
	}
	return insteadOfApproval("record the files and apply them", "apply"+flags)
}

// oneNamespace is the namespace to name for the same files: that of -n, or the one that all their objects have in common.
func (o *planOptions) oneNamespace() string {
	if o.enforce {
		return o.namespace
	}
	one := ""
	for _, m := range o.sp.ms {
		ns := m.object.GetNamespace()
		if ns != "" && one != "" && ns != one {
			return ""
		}
		if ns != "" {
			one = ns
		}
	}
	return one
}

// insteadOfApproval says how to go on after a speculative plan.
func insteadOfApproval(what, command string) string {
	return fmt.Sprintf("The plan is speculative: nothing was recorded, and it cannot be approved. To %s:\n  kubectl hykube %s", what, command)
}

// cannotBeApproved is the same for a plan whose files are not known.
func cannotBeApproved(p *v1alpha1.Plan) string {
	what, command := "record the files and apply them", "apply -f PATH"
	switch {
	case p.Spec.RefreshOnly:
		what, command = "record the files, and leave such a plan for approval", "plan --record --refresh-only -f PATH"
	case p.Spec.Destroy:
		what, command = "destroy the resources of the files", "plan --record --destroy -f PATH"
	}
	return insteadOfApproval(what, command+flagsOf(&p.Spec).again()+" -n "+p.Namespace)
}
