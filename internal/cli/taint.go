package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// taintOptions holds the options of taint and untaint.
type taintOptions struct {
	objects
	verb string // taint or untaint
}

func newTaint(s *session) *cobra.Command {
	return taintCommand(&taintOptions{objects: objects{session: s}, verb: "taint"}, &cobra.Command{
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

func newUntaint(s *session) *cobra.Command {
	return taintCommand(&taintOptions{objects: objects{session: s}, verb: "untaint"}, &cobra.Command{
		Use:   "untaint KIND/NAME ...",
		Short: "Remove the taint of resources",
		Long: `Remove the taint of resources, whether "kubectl hykube taint" set it or a failed create. First check that the resource
works. The command needs the right to delete the subresource "taint" of the kind.`,
		Example: `  kubectl hykube untaint sim-instance/web-1`,
	})
}

func taintCommand(o *taintOptions, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = completeObjects(o.session, anyNumber, v1alpha1.ModeManaged)
	cmd.RunE = run(o)
	outputFlag(cmd, &o.output, "Print only the names", "name")
	return cmd
}

func (o *taintOptions) Complete(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no resources are named to %s: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main", o.verb)
	}
	return o.read(o.verb, args, v1alpha1.ModeManaged)
}

func (o *taintOptions) Run(ctx context.Context) error {
	var done []target
	err := o.eachTarget(func(t target) error {
		if err := o.one(ctx, t); err != nil {
			return err
		}
		done = append(done, t)
		return nil
	})
	if o.verb == "taint" && len(done) > 0 && o.output == "" {
		ns, _ := o.namespaceOf(done[0])
		fmt.Fprintf(o.ErrOut, "The next plan replaces the tainted resources: kubectl hykube plan -n %s\n", ns)
	}
	return err
}

func (o *taintOptions) one(ctx context.Context, t target) error {
	t, k, ns, err := o.find(ctx, t)
	if err != nil {
		return err
	}
	if o.verb == "untaint" {
		err = o.resource(k.gvr, ns).Delete(ctx, t.name, metav1.DeleteOptions{}, "taint")
	} else {
		err = o.post(ctx, k, ns, t.name, "taint")
	}
	if err != nil {
		if !apierrors.IsNotFound(err) {
			err = explain(err, o.server())
		}
		return fmt.Errorf("%s %s: %w", o.verb, t.address(), err)
	}
	o.printResult(k, t.name, o.verb+"ed")
	return nil
}
