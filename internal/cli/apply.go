package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type applyOptions struct {
	*session
	files       fileFlags
	planning    planFlags
	autoApprove bool
	full        bool
	all         bool
}

func newApply(s *session) *cobra.Command {
	o := &applyOptions{session: s}
	cmd := &cobra.Command{
		Use:   "apply -f PATH",
		Short: "Record objects, plan them, ask, and apply the plan",
		Long: `Record objects, plan them, ask, and apply the plan.

The objects of the files are recorded by server-side apply: namespaces, secrets and configmaps first, then providers
(until they are installed), provider configurations and everything else. Then the resources in the files are planned,
one plan a namespace; with --all it is the whole namespace. The plan is shown, and applied when you say yes. The server
applies it: this command only watches, and may be left with Ctrl-C.`,
		Example: `  # the whole journey
  kubectl hykube apply -f examples/first

  # in a script
  kubectl hykube apply -f infra/ -R -n prod --auto-approve

  # plan and apply whatever is recorded in a namespace
  kubectl hykube apply --all -n prod`,
		Args: noNames("-f PATH records files, --target TYPE.NAME chooses, and `kubectl hykube approve PLAN` applies a plan that was made"),
		RunE: run(o),
	}
	fs := cmd.Flags()
	o.files.add(fs)
	o.planning.add(cmd, s)
	fs.BoolVar(&o.autoApprove, "auto-approve", false, "Apply without asking")
	fs.BoolVar(&o.full, "full", false, "Show every change in full, however many there are")
	fs.BoolVar(&o.all, "all", false, "Plan the whole namespace, not only what stands in the files")
	return cmd
}

func (o *applyOptions) Complete([]string) error { return o.connect() }

func (o *applyOptions) Validate() error {
	if len(o.files.paths) == 0 && !o.all && o.planning.unsaid() {
		return errors.New("say what to apply: -f PATH for files, --target, -l or --invoke for some, or --all for everything that is recorded in the namespace")
	}
	if err := o.planning.validate(); err != nil {
		return err
	}
	return canAsk(o.session, o.autoApprove, o.files.stdin(), "apply")
}

// canAsk refuses, before anything is done, what could only end with a question that nobody hears.
func canAsk(s *session, autoApprove, stdin bool, verb string) error {
	if autoApprove || s.ask && !stdin {
		return nil
	}
	return fmt.Errorf("%s asks before it changes anything, and there is no terminal to ask on: add --auto-approve, or make a plan with `kubectl hykube plan` and approve it later", verb)
}

func (o *applyOptions) Run(ctx context.Context) error {
	j := &journey{session: o.session, autoApprove: o.autoApprove, full: o.full, question: "Do you want to perform these actions?", began: time.Now()}
	want, err := plansFor(ctx, o.session, &o.files, &o.planning, o.all, "apply", v1alpha1.PlanSpec{})
	if err != nil {
		return err
	}
	if len(want) == 0 {
		fmt.Fprintln(o.Out, nothingInFiles)
		return nil
	}
	j.gap = len(o.files.paths) > 0
	return j.run(ctx, want)
}

// plansFor records the files, when there are any, and says which plans are to be made: of what stands in the files,
// or, without files or with all, of the namespace.
func plansFor(ctx context.Context, s *session, files *fileFlags, planning *planFlags, all bool, base string, spec v1alpha1.PlanSpec) ([]wanted, error) {
	if err := planning.fill(&spec); err != nil {
		return nil, err
	}
	if len(files.paths) == 0 {
		if !all && planning.selector == "" && len(spec.Invoke) > 0 {
			spec.Targets = union(spec.Targets, spec.Invoke)
		}
		return []wanted{{s.namespace, base, spec}}, nil
	}
	ms, err := s.manifests(ctx, files.paths, files.recursive)
	if err != nil {
		return nil, err
	}
	s.readFrom(ms)
	rec := &recorder{session: s, force: files.force, timeout: files.timeout}
	rs, err := rec.record(ctx, ms)
	if err != nil {
		return nil, err
	}
	var out []wanted
	for _, sc := range scopes(rs) {
		// What is opened by the plans that need it is nothing to plan by itself.
		planned := sc.of(v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeAction)
		if len(planned) == 0 && !all && planning.empty() {
			continue
		}
		own := *spec.DeepCopy()
		if !all && planning.empty() {
			own.Targets = union(planned, spec.Invoke)
		}
		out = append(out, wanted{sc.namespace, base, own})
	}
	if len(out) == 0 && all {
		out = append(out, wanted{s.namespace, base, spec})
	}
	return out, nil
}

// union is a with what b has besides.
func union(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}
