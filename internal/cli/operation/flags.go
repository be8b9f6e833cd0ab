package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/jsonlines"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// JSONHelp is the help text of the flag -o of verbs that ask.
const JSONHelp = "With --auto-approve, print lines of JSON, as terraform apply -json does"

// JSONFlag is the flag -o of the verbs that can print lines of JSON.
type JSONFlag struct{ output string }

// Add adds the flag.
func (l *JSONFlag) Add(cmd *cobra.Command, help string) {
	printer.OutputFlag(cmd, &l.output, help, "json")
}

// Validate returns an error if the flag is set and the verb asks a question, which needs its output.
func (l *JSONFlag) Validate(asks bool) error {
	if l.output != "" && asks {
		return errors.New("-o json does not ask: add --auto-approve")
	}
	return nil
}

// Run runs a verb, with lines of JSON if the user wants them.
func (l *JSONFlag) Run(ctx context.Context, s *session.Session, do func(context.Context) error) error {
	if l.output == "" {
		return do(ctx)
	}
	out, quiet := s.Out, *s.Terminal
	quiet.Out, quiet.Live, quiet.Style = s.ErrOut, false, diff.Style{}
	defer s.UseTerminal(quiet)()
	s.Lines = &jsonlines.Writer{W: out}
	defer func() { s.Lines = nil }()
	s.Lines.Version()
	err := do(ctx)
	s.Lines.Failed(err)
	return err
}

// PlanFlags holds the flags for a plan's spec.
type PlanFlags struct {
	Refresh  string
	Replace  []string
	Targets  []string
	Exclude  []string
	Invoke   []string
	Selector string
}

// Add adds all flags that select what a plan changes.
func (f *PlanFlags) Add(cmd *cobra.Command, s *session.Session) {
	fs := cmd.Flags()
	fs.StringVar(&f.Refresh, "refresh", "",
		"Which resources to read from their provider first: None, Changed or All (default Changed)")
	fs.StringArrayVar(&f.Replace, "replace", nil,
		"Replace this resource even if nothing about it changed: TYPE.NAME or KIND/NAME; repeatable")
	fs.StringArrayVar(&f.Targets, "target", nil,
		"Plan only this resource and its dependencies: TYPE.NAME or KIND/NAME; repeatable")
	fs.StringArrayVar(&f.Invoke, "invoke", nil,
		"Run this action even if it ran before, and plan nothing else that you do not name: action.TYPE.NAME or KIND/NAME; repeatable")
	fs.StringVarP(&f.Selector, "selector", "l", "",
		"Plan only resources with these labels, such as team=infra, and their dependencies")
	f.AddExclude(fs)
	_ = cmd.RegisterFlagCompletionFunc("refresh",
		cobra.FixedCompletions([]string{"None", "Changed", "All"}, cobra.ShellCompDirectiveNoFileComp))
	f.Complete(cmd, s)
}

// AddExclude adds the flags that leave resources out of a plan.
func (f *PlanFlags) AddExclude(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.Exclude, "exclude", nil,
		"Leave out this resource and all that depend on it: TYPE.NAME or KIND/NAME; repeatable")
}

// Complete adds completion to the flags that name objects.
func (f *PlanFlags) Complete(cmd *cobra.Command, s *session.Session) {
	for name, modes := range map[string][]v1alpha1.Mode{"target": nil, "exclude": nil,
		"replace": {v1alpha1.ModeManaged}, "invoke": {v1alpha1.ModeAction}} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, session.CompleteObjects(s, session.AnyNumber, modes...))
		}
	}
}

// Empty reports whether no flag restricts the plan.
func (f *PlanFlags) Empty() bool { return len(f.Targets) == 0 && f.Selector == "" }

// SelectsNothing reports whether no flag selects objects to plan. --invoke alone selects its actions. --replace alone
// plans everything, as in Terraform.
func (f *PlanFlags) SelectsNothing() bool {
	return f.Empty() && len(f.Invoke) == 0 && len(f.Replace) == 0
}

// CheckExclude returns an error for --exclude if the plan names its objects: with --target, or with files unless the
// whole namespace is planned.
func (f *PlanFlags) CheckExclude(files, all bool) error {
	switch {
	case len(f.Exclude) == 0:
		return nil
	case len(f.Targets) > 0:
		return errors.New("--target and --exclude exclude each other: name either what to plan, or what to leave out")
	case files && !all:
		return errors.New("--exclude leaves objects out of a plan of the whole namespace, and -f plans only the objects in the files: " +
			"add --all, or leave out the files of those objects")
	}
	return nil
}

// Validate refuses values of flags that no plan can have.
func (f *PlanFlags) Validate() error { return f.Fill(&v1alpha1.PlanSpec{}) }

// Fill sets the fields of a plan's spec from the flags.
func (f *PlanFlags) Fill(spec *v1alpha1.PlanSpec) error {
	switch strings.ToLower(f.Refresh) {
	case "":
	case "none", "false": // Terraform's flag is -refresh=false
		spec.Refresh = v1alpha1.RefreshNone
	case "changed":
		spec.Refresh = v1alpha1.RefreshChanged
	case "all", "true":
		spec.Refresh = v1alpha1.RefreshAll
	default:
		return fmt.Errorf("--refresh=%s: write None, Changed or All", f.Refresh)
	}
	var err error
	if spec.Replace, err = addrs.ParseAll("--replace", f.Replace, v1alpha1.ModeManaged); err != nil {
		return err
	}
	if spec.Targets, err = addrs.ParseAll("--target", f.Targets); err != nil {
		return err
	}
	if spec.Exclude, err = addrs.ParseAll("--exclude", f.Exclude); err != nil {
		return err
	}
	if spec.Invoke, err = addrs.ParseAll("--invoke", f.Invoke, v1alpha1.ModeAction); err != nil {
		return err
	}
	if i := slices.IndexFunc(spec.Exclude,
		func(a string) bool { return slices.Contains(spec.Targets, a) || slices.Contains(spec.Invoke, a) }); i >= 0 {
		return fmt.Errorf("--exclude: the plan both includes and excludes %s", spec.Exclude[i])
	}
	if f.Selector != "" {
		if spec.Selector, err = metav1.ParseToLabelSelector(f.Selector); err != nil {
			return fmt.Errorf("--selector=%s: %w", f.Selector, err)
		}
	}
	return nil
}

// RepeatFlags returns the flags for the same plan.
func (f *PlanFlags) RepeatFlags() string {
	text := manifest.Each("--target", f.Targets) + manifest.Each("--replace", f.Replace) +
		manifest.Each("--exclude", f.Exclude) + manifest.Each("--invoke", f.Invoke)
	if f.Selector != "" {
		text += " -l " + shell.Word(f.Selector)
	}
	if f.Refresh != "" {
		text += " --refresh " + f.Refresh
	}
	return text
}
