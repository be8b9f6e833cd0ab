package apply

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/session"
)

type refreshOptions struct {
	operation.Operation
	planning operation.PlanFlags
	lines    operation.JSONFlag
}

// NewRefresh returns the command refresh.
func NewRefresh(s *session.Session) *cobra.Command {
	o := &refreshOptions{Operation: operation.New(s, "Do you want to record this as the state of the infrastructure?")}
	cmd := &cobra.Command{
		Use:   "refresh [TYPE.NAME ...]",
		Short: "Update the recorded state from the infrastructure",
		Long: `Update the recorded state from the infrastructure.

The command reads the resources of the namespace, or those that you name, from their providers. It shows the drift and
records it if you answer yes. It changes no infrastructure: the next plan shows the changes that undo the drift.`,
		Example: `  kubectl hykube refresh -n prod
  kubectl hykube refresh sim_instance.web-1 --auto-approve`,
		ValidArgsFunction: session.CompleteObjects(s, session.AnyNumber, v1alpha1.ModeManaged, v1alpha1.ModeData),
		RunE:              session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.planning.Selector, "selector", "l", "", "Only resources with these labels, such as team=infra")
	o.AddFlags(fs, "Record without asking")
	o.planning.AddExclude(fs)
	o.lines.Add(cmd, operation.JSONHelp)
	o.planning.Complete(cmd, s)
	return cmd
}

func (o *refreshOptions) Complete(args []string) error {
	o.planning.Targets = args
	return o.Connect()
}

func (o *refreshOptions) Validate() error {
	if err := o.lines.Validate(!o.AutoApprove); err != nil {
		return err
	}
	if _, err := addrs.ParseAll("refresh", o.planning.Targets, v1alpha1.ModeManaged, v1alpha1.ModeData); err != nil {
		return err
	}
	if err := o.planning.Validate(); err != nil {
		return err
	}
	return o.CheckInteractive("refresh", false)
}

func (o *refreshOptions) Run(ctx context.Context) error {
	return o.lines.Run(ctx, o.Session, o.refresh)
}

func (o *refreshOptions) refresh(ctx context.Context) error {
	spec := v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll}
	if err := o.planning.Fill(&spec); err != nil {
		return err
	}
	return o.PlanAndApply(ctx, []operation.Wanted{{Namespace: o.Namespace, Base: "refresh", Spec: spec}})
}
