// Package apply is the verbs that change infrastructure: apply, destroy and refresh.
package apply

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/speculation"
)

type applyOptions struct {
	operation.Operation
	files    manifest.Flags
	pruning  speculation.PruneFlags
	planning operation.PlanFlags
	lines    operation.JSONFlag
	all      bool
}

// New returns the command apply.
func New(s *session.Session) *cobra.Command {
	o := &applyOptions{Operation: operation.New(s, "Do you want to perform these actions?")}
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
		Args: session.NoNames("use -f PATH to record files, --target TYPE.NAME to plan some resources, or `kubectl hykube approve PLAN` to apply an existing plan"),
		RunE: session.Run(o),
	}
	fs := cmd.Flags()
	o.files.Add(fs)
	o.pruning.Add(fs)
	o.planning.Add(cmd, s)
	o.AddFlags(fs, "Apply without asking")
	operation.PartialFlag(fs, &o.Partial)
	fs.BoolVar(&o.all, "all", false, "Plan the whole namespace, not only the objects in the files")
	o.lines.Add(cmd, operation.JSONHelp)
	return cmd
}

func (o *applyOptions) Validate() error {
	if err := o.lines.Validate(!o.AutoApprove); err != nil {
		return err
	}
	if !o.files.Given() && !o.all && o.planning.SelectsNothing() {
		return errors.New("no objects are named: use -f PATH for files, --target, -l or --invoke for some, or --all for all recorded objects of the namespace; --replace alone means --all")
	}
	if err := o.planning.Validate(); err != nil {
		return err
	}
	if err := o.pruning.Validate(&o.files, &o.planning); err != nil {
		return err
	}
	if err := o.planning.CheckExclude(o.files.Given(), o.all); err != nil {
		return err
	}
	return o.CheckInteractive("apply", o.files.Stdin())
}

func (o *applyOptions) Run(ctx context.Context) error {
	return o.lines.Run(ctx, o.Session, o.apply)
}

func (o *applyOptions) apply(ctx context.Context) error {
	spec := v1alpha1.PlanSpec{}
	if err := o.planning.Fill(&spec); err != nil {
		return err
	}
	if !o.files.Given() {
		return o.PlanAndApply(ctx, speculation.RecordedPlan(o.Session, spec, &o.planning, o.all, "apply"))
	}
	ms, err := o.pruning.Manifests(ctx, o.Session, &o.files)
	if err != nil {
		return err
	}
	if ms, err = speculation.SelectTargets(o.Session, ms, &o.planning); err != nil {
		return err
	}
	manifest.ReadFrom(o.Session, ms)
	set, err := o.pruning.Set(o.Session, ms)
	if err != nil {
		return err
	}
	return (&fileApply{Operation: &o.Operation, files: &o.files, set: set, ms: ms,
		want: func(rs []record.Recorded) []operation.Wanted {
			return speculation.PlansOf(o.Session, rs, &o.planning, o.all, "apply", spec)
		}}).run(ctx)
}
