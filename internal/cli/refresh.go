package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type refreshOptions struct {
	planAndApply
	planning planFlags
	lines    linesFlag
}

func newRefresh(s *session) *cobra.Command {
	o := &refreshOptions{planAndApply: newPlanAndApply(s, "Do you want to record this as the state of the infrastructure?")}
	cmd := &cobra.Command{
		Use:   "refresh [TYPE.NAME ...]",
		Short: "Update the recorded state from the infrastructure",
		Long: `Update the recorded state from the infrastructure.

The command reads the resources of the namespace, or those that you name, from their providers. It shows the drift and
records it if you answer yes. It changes no infrastructure: the next plan shows the changes that undo the drift.`,
		Example: `  kubectl hykube refresh -n prod
  kubectl hykube refresh sim_instance.web-1 --auto-approve`,
		ValidArgsFunction: completeObjects(s, anyNumber, v1alpha1.ModeManaged, v1alpha1.ModeData),
		RunE:              run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.planning.selector, "selector", "l", "", "Only resources with these labels, such as team=infra")
	o.addFlags(fs, "Record without asking")
	o.planning.addExclude(fs)
	o.lines.add(cmd, linesHelp)
	o.planning.complete(cmd, s)
	return cmd
}

func (o *refreshOptions) Complete(args []string) error {
	o.planning.targets = args
	return o.connect()
}

func (o *refreshOptions) Validate() error {
	if err := o.lines.validate(!o.autoApprove); err != nil {
		return err
	}
	if _, err := addresses("refresh", o.planning.targets, v1alpha1.ModeManaged, v1alpha1.ModeData); err != nil {
		return err
	}
	if err := o.planning.validate(); err != nil {
		return err
	}
	return o.checkInteractive("refresh", false)
}

func (o *refreshOptions) Run(ctx context.Context) error {
	return o.lines.run(ctx, o.session, o.refresh)
}

func (o *refreshOptions) refresh(ctx context.Context) error {
	spec := v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll}
	if err := o.planning.fill(&spec); err != nil {
		return err
	}
	return o.run(ctx, []wanted{{o.namespace, "refresh", spec}})
}
