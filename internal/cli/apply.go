package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type applyOptions struct {
	planAndApply
	files    fileFlags
	pruning  pruneFlags
	planning planFlags
	lines    linesFlag
	all      bool
}

func newApply(s *session) *cobra.Command {
	o := &applyOptions{planAndApply: newPlanAndApply(s, "Do you want to perform these actions?")}
	cmd := &cobra.Command{
		Use:   "apply -f PATH",
		Short: "Plan files, ask, record them, and apply the plan",
		Long: `Plan files, ask, record them, and apply the plan.

The command plans the resources in the files as if they were recorded, one plan for each namespace; with --all it plans
the whole namespace. It shows the plan and asks. If you answer yes, it records the objects by server-side apply and
applies the plan. Otherwise it records nothing. If another user changes the plan's resources meanwhile, the command shows
the new plan and asks again; with --auto-approve it exits with 4.

While another plan changes the same resources, the command waits, up to --wait-timeout, and then plans again. It
asks again if the new plan has other changes; with --auto-approve it applies any new plan. After the timeout it exits with 1.

With --prune, the command deletes members of the applyset that the files no longer contain, and the plan destroys their
infrastructure. The first apply with --applyset adds the objects of the files to the set.

With --target or -l, the command records only the resources that these flags name, those to which they refer, and the
objects of the files that are no resources. It leaves out the other resources of the files.

A directory with Terraform files becomes a Module: the command packs the files into a ConfigMap. The values of variables come
from --var, --var-file, *.auto.tfvars, terraform.tfvars and TF_VAR_name, as in Terraform; sensitive ones go to a Secret.

The namespaces and providers of the files must exist before planning. The command asks whether to record them first.

The server applies the plan and this command only watches it. Ctrl-C asks whether to cancel the plan; a second Ctrl-C
ends only the command.`,
		Example: `  # plan, ask, record, apply
  kubectl hykube apply -f examples/first

  # the same with a directory of Terraform files
  kubectl hykube apply -f shop --module shop --var region=eu

  # also destroy the resources that the files no longer contain
  kubectl hykube apply -f infra/ -R --prune --applyset infra

  # in a script
  kubectl hykube apply -f infra/ -R -n prod --auto-approve

  # the same, with lines of JSON for a program
  kubectl hykube apply -f infra/ -R -n prod --auto-approve -o json

  # plan and apply the recorded objects of a namespace
  kubectl hykube apply --all -n prod`,
		Args: noNames("use -f PATH to record files, --target TYPE.NAME to plan some resources, or `kubectl hykube approve PLAN` to apply an existing plan"),
		RunE: run(o),
	}
	fs := cmd.Flags()
	o.files.add(fs)
	o.pruning.add(fs)
	o.planning.add(cmd, s)
	o.addFlags(fs, "Apply without asking")
	partialFlag(fs, &o.partial)
	fs.BoolVar(&o.all, "all", false, "Plan the whole namespace, not only the objects in the files")
	o.lines.add(cmd, linesHelp)
	return cmd
}

func (o *applyOptions) Validate() error {
	if err := o.lines.validate(!o.autoApprove); err != nil {
		return err
	}
	if !o.files.given() && !o.all && o.planning.selectsNothing() {
		return errors.New("no objects are named: use -f PATH for files, --target, -l or --invoke for some, or --all for all recorded objects of the namespace; --replace alone means --all")
	}
	if err := o.planning.validate(); err != nil {
		return err
	}
	if err := o.pruning.validate(&o.files, &o.planning); err != nil {
		return err
	}
	if err := o.planning.checkExclude(o.files.given(), o.all); err != nil {
		return err
	}
	return o.checkInteractive("apply", o.files.stdin())
}

func (o *applyOptions) Run(ctx context.Context) error {
	return o.lines.run(ctx, o.session, o.apply)
}

func (o *applyOptions) apply(ctx context.Context) error {
	spec := v1alpha1.PlanSpec{}
	if err := o.planning.fill(&spec); err != nil {
		return err
	}
	if !o.files.given() {
		return o.run(ctx, o.recordedPlan(spec, &o.planning, o.all, "apply"))
	}
	ms, err := o.pruning.manifests(ctx, o.session, &o.files)
	if err != nil {
		return err
	}
	if ms, err = o.targeted(ms, &o.planning); err != nil {
		return err
	}
	o.readFrom(ms)
	set, err := o.pruning.set(o.session, ms)
	if err != nil {
		return err
	}
	return (&fileApply{planAndApply: &o.planAndApply, files: &o.files, set: set, ms: ms, want: func(rs []recorded) []wanted {
		return o.plansOf(rs, &o.planning, o.all, "apply", spec)
	}}).run(ctx)
}

// recordedPlan returns the plan of the recorded objects of the namespace.
func (s *session) recordedPlan(spec v1alpha1.PlanSpec, planning *planFlags, all bool, base string) []wanted {
	if !all && planning.selector == "" && len(spec.Invoke) > 0 {
		spec.Targets = union(spec.Targets, spec.Invoke)
	}
	return []wanted{{s.namespace, base, spec}}
}

// plansOf returns the plans for the objects of files: of only these, or of all objects in their namespaces.
func (s *session) plansOf(rs []recorded, planning *planFlags, all bool, base string, spec v1alpha1.PlanSpec) []wanted {
	var out []wanted
	for _, sc := range scopes(rs) {
		planned := sc.planned()
		if len(planned) == 0 && !all && planning.empty() {
			continue
		}
		own := *spec.DeepCopy()
		if !all && planning.empty() {
			own.Targets = union(planned, spec.Invoke)
		}
		out = append(out, wanted{sc.namespace, base, own})
	}
	if len(out) == 0 && (all || !planning.empty()) {
		out = append(out, wanted{s.namespace, base, spec})
	}
	return out
}

// union returns a followed by the elements of b that a lacks.
func union(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}
