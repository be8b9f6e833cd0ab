package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
)

// planFlags holds the flags for a plan's spec.
type planFlags struct {
	refresh  string
	replace  []string
	targets  []string
	exclude  []string
	invoke   []string
	selector string
}

func (f *planFlags) add(cmd *cobra.Command, s *session) {
	fs := cmd.Flags()
	fs.StringVar(&f.refresh, "refresh", "", "Which resources to read from their provider first: None, Changed or All (default Changed)")
	fs.StringArrayVar(&f.replace, "replace", nil, "Replace this resource even if nothing about it changed: TYPE.NAME or KIND/NAME; repeatable")
	fs.StringArrayVar(&f.targets, "target", nil, "Plan only this resource and its dependencies: TYPE.NAME or KIND/NAME; repeatable")
	fs.StringArrayVar(&f.invoke, "invoke", nil, "Run this action even if it ran before, and plan nothing else that you do not name: action.TYPE.NAME or KIND/NAME; repeatable")
	fs.StringVarP(&f.selector, "selector", "l", "", "Plan only resources with these labels, such as team=infra, and their dependencies")
	f.addExclude(fs)
	_ = cmd.RegisterFlagCompletionFunc("refresh", cobra.FixedCompletions([]string{"None", "Changed", "All"}, cobra.ShellCompDirectiveNoFileComp))
	f.complete(cmd, s)
}

func (f *planFlags) addExclude(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.exclude, "exclude", nil, "Leave out this resource and all that depend on it: TYPE.NAME or KIND/NAME; repeatable")
}

// complete adds completion to the flags that name objects.
func (f *planFlags) complete(cmd *cobra.Command, s *session) {
	for name, modes := range map[string][]v1alpha1.Mode{"target": nil, "exclude": nil, "replace": {v1alpha1.ModeManaged}, "invoke": {v1alpha1.ModeAction}} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, completeObjects(s, anyNumber, modes...))
		}
	}
}

// empty reports whether no flag restricts the plan.
func (f *planFlags) empty() bool { return len(f.targets) == 0 && f.selector == "" }

// selectsNothing reports whether no flag selects objects to plan. --invoke alone selects its actions. --replace alone
// plans everything, as in Terraform.
func (f *planFlags) selectsNothing() bool {
	return f.empty() && len(f.invoke) == 0 && len(f.replace) == 0
}

// checkExclude returns an error for --exclude if the plan names its objects: with --target, or with files unless the
// whole namespace is planned.
func (f *planFlags) checkExclude(files, all bool) error {
	switch {
	case len(f.exclude) == 0:
		return nil
	case len(f.targets) > 0:
		return errors.New("--target and --exclude exclude each other: name either what to plan, or what to leave out")
	case files && !all:
		return errors.New("--exclude leaves objects out of a plan of the whole namespace, and -f plans only the objects in the files: " +
			"add --all, or leave out the files of those objects")
	}
	return nil
}

func (f *planFlags) validate() error { return f.fill(&v1alpha1.PlanSpec{}) }

// fill sets the fields of a plan's spec from the flags.
func (f *planFlags) fill(spec *v1alpha1.PlanSpec) error {
	switch strings.ToLower(f.refresh) {
	case "":
	case "none", "false": // Terraform's flag is -refresh=false
		spec.Refresh = v1alpha1.RefreshNone
	case "changed":
		spec.Refresh = v1alpha1.RefreshChanged
	case "all", "true":
		spec.Refresh = v1alpha1.RefreshAll
	default:
		return fmt.Errorf("--refresh=%s: write None, Changed or All", f.refresh)
	}
	var err error
	if spec.Replace, err = addresses("--replace", f.replace, v1alpha1.ModeManaged); err != nil {
		return err
	}
	if spec.Targets, err = addresses("--target", f.targets); err != nil {
		return err
	}
	if spec.Exclude, err = addresses("--exclude", f.exclude); err != nil {
		return err
	}
	if spec.Invoke, err = addresses("--invoke", f.invoke, v1alpha1.ModeAction); err != nil {
		return err
	}
	if i := slices.IndexFunc(spec.Exclude, func(a string) bool { return slices.Contains(spec.Targets, a) || slices.Contains(spec.Invoke, a) }); i >= 0 {
		return fmt.Errorf("--exclude: the plan both includes and excludes %s", spec.Exclude[i])
	}
	if f.selector != "" {
		if spec.Selector, err = metav1.ParseToLabelSelector(f.selector); err != nil {
			return fmt.Errorf("--selector=%s: %w", f.selector, err)
		}
	}
	return nil
}

// parseSelector parses the value of the flag --selector. An empty one selects everything.
func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--selector=%s: %w", text, err)
	}
	return selector, nil
}
