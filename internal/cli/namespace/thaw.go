package namespace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/session"
)

type thawOptions struct {
	*session.Session
	namespaces              []string
	all, plans, autoApprove bool
}

// NewThaw returns the command thaw.
func NewThaw(s *session.Session) *cobra.Command {
	o := &thawOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "thaw NAMESPACE... | --all",
		Short: "Let a server act whose database was restored",
		Long: `Let a server act whose database was restored from a backup. Until then, the server is frozen: it answers reads and makes
plans, but it applies none, and stacks, schedules and Notifications rest. A thaw lets it act in the named namespaces, or in all.

Make sure before that no other server has the original database and applies its plans: both would create the same
infrastructure. Compare the infrastructure with kubectl hykube verify -A.

Plans that were approved before the thaw still wait. With --plans, those of the namespaces go on, too. The command needs the verb "post" on
the non-resource URL /thaw, which cluster-admin has.`,
		Example: `  kubectl hykube thaw staging
  kubectl hykube thaw --all
  kubectl hykube thaw prod --plans --auto-approve`,
		ValidArgsFunction: session.CompleteNamespaces(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "Thaw all namespaces")
	cmd.Flags().BoolVar(&o.plans, "plans", false, "Let the plans go on, too, that were approved before the thaw")
	cmd.Flags().BoolVar(&o.autoApprove, "auto-approve", false, "Thaw without asking")
	return cmd
}

// Complete reads the namespaces from the arguments.
func (o *thawOptions) Complete(args []string) error {
	o.namespaces = args
	return o.Session.Complete(args)
}

func (o *thawOptions) Validate() error {
	if o.all == (len(o.namespaces) > 0) {
		return errors.New("name the namespaces to thaw, or --all")
	}
	return nil
}

func (o *thawOptions) Run(ctx context.Context) error {
	if !o.autoApprove {
		if o.plans {
			fmt.Fprintf(o.ErrOut, "%s The plans that were approved before go on, too. They create a second time what the old server created for them after the backup.\n",
				o.Style.Bold("Warning:"))
		}
		fmt.Fprintf(o.ErrOut, "The server at %s will apply plans%s again. No other server may use the original database.\n  Only 'yes' will be accepted to thaw.\n\n  %s ",
			o.Server(), o.where(), o.Style.Bold("Enter a value:"))
		answer, _ := o.Input.ReadString('\n') // the end of the input counts as no
		if fmt.Fprintln(o.ErrOut); strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was thawed")
		}
	}
	request := o.Hykube.Post().AbsPath("/thaw")
	for _, namespace := range o.namespaces {
		request = request.Param("namespace", namespace)
	}
	if o.plans {
		request = request.Param("plans", "true")
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("thaw: %w", o.Explain(err))
	}
	fmt.Fprintf(o.Out, "The server applies plans%s again.\n", o.where())
	return nil
}

// where returns which plans the thaw is about, as a part of a sentence.
func (o *thawOptions) where() string {
	if o.all {
		return ""
	}
	return " of " + strings.Join(o.namespaces, ", ")
}
