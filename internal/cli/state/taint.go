package state

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
)

// taintOptions holds the options of taint and untaint.
type taintOptions struct {
	objects.Named
	verb string // taint or untaint
}

// NewTaint returns the command taint.
func NewTaint(s *session.Session) *cobra.Command {
	return taintCommand(&taintOptions{Named: objects.Named{Session: s}, verb: "taint"}, &cobra.Command{
		Use:   "taint KIND/NAME ...",
		Short: "Mark resources so that the next plan replaces them",
		Long: `Mark resources so that the next plan replaces them.

Only the apply of that plan changes infrastructure, and "kubectl hykube untaint" removes the mark. To replace a resource
in a single plan, use "kubectl hykube plan --replace". The command needs the right to create the subresource "taint" of
the kind.`,
		Example: `  kubectl hykube taint sim-instance/web-1
  kubectl hykube taint sim_instance.web-1 sim_disk.data -n prod`,
	})
}

// NewUntaint returns the command untaint.
func NewUntaint(s *session.Session) *cobra.Command {
	return taintCommand(&taintOptions{Named: objects.Named{Session: s}, verb: "untaint"}, &cobra.Command{
		Use:   "untaint KIND/NAME ...",
		Short: "Remove the taint of resources",
		Long: `Remove the taint of resources, whether "kubectl hykube taint" set it or a failed create. First check that the resource
works. The command needs the right to delete the subresource "taint" of the kind.`,
		Example: `  kubectl hykube untaint sim-instance/web-1`,
	})
}

func taintCommand(o *taintOptions, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = session.CompleteObjects(o.Session, session.AnyNumber, v1alpha1.ModeManaged)
	cmd.RunE = session.Run(o)
	printer.OutputFlag(cmd, &o.Output, "Print only the names", "name")
	return cmd
}

func (o *taintOptions) Complete(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no resources are named to %s: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main", o.verb)
	}
	return o.Read(o.verb, args, v1alpha1.ModeManaged)
}

func (o *taintOptions) Run(ctx context.Context) error {
	var done []addrs.Target
	err := o.EachTarget(func(t addrs.Target) error {
		if err := o.one(ctx, t); err != nil {
			return err
		}
		done = append(done, t)
		return nil
	})
	if o.verb == "taint" && len(done) > 0 && o.Output == "" {
		ns, _ := objects.NamespaceOf(o.Session, done[0])
		fmt.Fprintf(o.ErrOut, "The next plan replaces the tainted resources: kubectl hykube plan -n %s\n", ns)
	}
	return err
}

func (o *taintOptions) one(ctx context.Context, t addrs.Target) error {
	t, k, ns, err := objects.Find(ctx, o.Session, t)
	if err != nil {
		return err
	}
	if o.verb == "untaint" {
		err = o.Resource(k.GVR, ns).Delete(ctx, t.Name, metav1.DeleteOptions{}, "taint")
	} else {
		err = objects.Post(ctx, o.Session, k, ns, t.Name, "taint")
	}
	if err != nil {
		if !apierrors.IsNotFound(err) {
			err = o.Explain(err)
		}
		return fmt.Errorf("%s %s: %w", o.verb, t.Address(), err)
	}
	o.PrintResult(k, t.Name, o.verb+"ed")
	return nil
}
