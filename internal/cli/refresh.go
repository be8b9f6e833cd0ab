package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type refreshOptions struct {
	*session
	targets     []string
	planning    planFlags
	autoApprove bool
	wait        time.Duration
	full        bool
}

func newRefresh(s *session) *cobra.Command {
	o := &refreshOptions{session: s}
	cmd := &cobra.Command{
		Use:   "refresh [TYPE.NAME ...]",
		Short: "Bring the records up to date with the infrastructure",
		Long: `Bring the records up to date with the infrastructure.

Every resource of the namespace, or those named, is read from its provider; what was changed outside of Hykube is shown,
and recorded when you say yes. The infrastructure stays as it is: the next plan shows what it takes to undo the drift.`,
		Example: `  kubectl hykube refresh -n prod
  kubectl hykube refresh sim_instance.web-1 --auto-approve`,
		ValidArgsFunction: completeObjects(s, anyNumber, v1alpha1.ModeManaged, v1alpha1.ModeData),
		RunE:              run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.planning.selector, "selector", "l", "", "Only resources with these labels, such as team=infra")
	fs.BoolVar(&o.autoApprove, "auto-approve", false, "Record without asking")
	waitFlag(fs, &o.wait)
	fs.BoolVar(&o.full, "full", false, "Show every change in full, however many there are")
	o.planning.addExclude(fs)
	o.planning.complete(cmd, s)
	return cmd
}

func (o *refreshOptions) Complete(args []string) error {
	o.targets = args
	return o.connect()
}

func (o *refreshOptions) Validate() error {
	if _, err := addresses("refresh", o.targets, v1alpha1.ModeManaged, v1alpha1.ModeData); err != nil {
		return err
	}
	if err := o.planning.validate(); err != nil {
		return err
	}
	return canAsk(o.session, o.autoApprove, false, "refresh")
}

func (o *refreshOptions) Run(ctx context.Context) error {
	flags := o.planning
	flags.targets = o.targets
	spec := v1alpha1.PlanSpec{RefreshOnly: true, Refresh: v1alpha1.RefreshAll}
	if err := flags.fill(&spec); err != nil {
		return err
	}
	j := &planAndApply{session: o.session, autoApprove: o.autoApprove, full: o.full, began: time.Now(), question: "Do you want to record this as the state of the infrastructure?", waitTimeout: o.wait}
	return j.run(ctx, []wanted{{o.namespace, "refresh", spec}})
}
