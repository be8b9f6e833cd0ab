package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

type thawOptions struct {
	*session
	all, plans, autoApprove bool
}

func newThaw(s *session) *cobra.Command {
	o := &thawOptions{session: s}
	cmd := &cobra.Command{
		Use:   "thaw --all",
		Short: "Let a server act whose database was restored",
		Long: `Let a server act whose database was restored from a backup. Until then, the server is frozen: it answers reads and makes
plans, but it applies none, and stacks, schedules and Notifications rest.

Make sure before that no other server has the original database and applies its plans: both would create the same
infrastructure. Compare the infrastructure with kubectl hykube plan --refresh-only in each namespace.

Plans that were approved before the thaw still wait. With --plans, these go on, too. The command needs the verb "post" on
the non-resource URL /thaw, which cluster-admin has.`,
		Example: `  kubectl hykube thaw --all
  kubectl hykube thaw --plans --auto-approve`,
		Args: cobra.NoArgs,
		RunE: run(o),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "Thaw all namespaces")
	cmd.Flags().BoolVar(&o.plans, "plans", false, "Let plans go on that were approved before the thaw; thaws all namespaces, too")
	cmd.Flags().BoolVar(&o.autoApprove, "auto-approve", false, "Thaw without asking")
	return cmd
}

func (o *thawOptions) Validate() error {
	if !o.all && !o.plans {
		return errors.New("name what to thaw: --all, or --plans for the plans that were approved before, too")
	}
	return nil
}

func (o *thawOptions) Run(ctx context.Context) error {
	if !o.autoApprove {
		if o.plans {
			fmt.Fprintf(o.ErrOut, "%s The plans that were approved before go on, too. They create a second time what the old server created for them after the backup.\n",
				o.style.Bold("Warning:"))
		}
		fmt.Fprintf(o.ErrOut, "The server at %s will apply plans again. No other server may use the original database.\n  Only 'yes' will be accepted to thaw.\n\n  %s ",
			o.server(), o.style.Bold("Enter a value:"))
		answer, _ := o.in.ReadString('\n') // the end of the input counts as no
		if fmt.Fprintln(o.ErrOut); strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was thawed")
		}
	}
	request := o.hykube.Post().AbsPath("/thaw")
	if o.plans {
		request = request.Param("plans", "true")
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("thaw: %w", explain(err, o.server()))
	}
	fmt.Fprintln(o.Out, "The server applies plans again.")
	return nil
}
