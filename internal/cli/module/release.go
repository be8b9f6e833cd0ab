// Package module is the verbs below module.
package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/state"
	"github.com/hykube/hykube/internal/shell"
	"github.com/hykube/hykube/internal/tfstate"
)

// New returns the command module.
func New(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "module",
		Short:   "Hand the resources of a Module back to Terraform",
		Example: `  kubectl hykube module release shop -n prod`,
		Args:    cobra.ArbitraryArgs,
		RunE:    session.Group(nil),
	}
	cmd.AddCommand(newModuleRelease(s))
	return cmd
}

type moduleReleaseOptions struct {
	operation.Operation
	name string
	file string
}

func newModuleRelease(s *session.Session) *cobra.Command {
	o := &moduleReleaseOptions{Operation: operation.New(s,
		"Do you want Hykube to forget these resources? They stay as they are.")}
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Hand the resources of a Module back to Terraform",
		Long: `Hand the resources of a Module back to Terraform.

The command writes the state of the Module to a file, with secrets in plain text, as "kubectl hykube state pull --module NAME"
prints it. It sets the mode Observe, so that no plan changes the resources, and deletes the Module. It shows the plan that
forgets the resources, asks, and applies it. No step destroys anything. Terraform goes on from the file.

If you answer no, the Module stays marked for deletion, with the mode Observe. The same command goes on from there, and
"kubectl hykube undelete module/NAME" keeps the Module. The file is written again before each question. Another state in its
place is not overwritten.

The command needs the rights of "state pull", and those to update and delete the Module, and to plan and approve.`,
		Example: `  kubectl hykube module release shop -n prod
  kubectl hykube module release shop -n prod -o released.tfstate --auto-approve`,
		Args: session.Exactly(1),
		RunE: session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.file, "out", "o", "", "File for the state (default: NAME.tfstate)")
	o.AddFlags(fs, "Forget the resources without asking")
	return cmd
}

func (o *moduleReleaseOptions) Complete(args []string) error {
	o.name = args[0]
	if o.file == "" {
		o.file = o.name + ".tfstate"
	}
	return o.Connect()
}

func (o *moduleReleaseOptions) Validate() error {
	if !o.AutoApprove && o.Empty {
		return errors.New("module release asks before Hykube forgets the resources, and standard input is empty: add --auto-approve")
	}
	return nil
}

func (o *moduleReleaseOptions) Run(ctx context.Context) error {
	// The first state shows that the user may read it and write the file, before anything is changed.
	if err := o.save(ctx); err != nil {
		return fmt.Errorf("module release: %w\nNothing was changed", err)
	}
	if err := o.observeAndDelete(ctx); err != nil {
		return fmt.Errorf("module release: %w", err)
	}
	o.Refuse = o.saveBefore
	if err := o.PlanAndApply(ctx, []operation.Wanted{{Namespace: o.Namespace, Base: "release",
		Spec: v1alpha1.PlanSpec{Targets: []string{v1alpha1.ModulePath("", o.name, nil)}}}}); err != nil {
		fmt.Fprintf(o.ErrOut, "The Module %q stays marked for deletion, with the mode Observe: plans can forget its resources, and change none.\n"+
			"To go on: kubectl hykube module release %s -o %s -n %s\n"+
			"To keep the Module: kubectl hykube undelete module/%[2]s -n %[4]s\n"+
			"To bring the resources back after the release: kubectl hykube state push %[3]s --module %[2]s -f DIR --force -n %[4]s\n",
			o.name, o.name, shell.Word(o.file), o.Namespace)
		return err
	}
	fmt.Fprintf(o.Out, "Terraform goes on from %s, which has secrets in plain text. In the directory of the Terraform files:\n  terraform state push %s\n  terraform plan\n",
		o.file, shell.Word(o.file))
	return nil
}

// observeAndDelete sets the mode Observe, and then deletes the Module, which waits until a plan has forgotten its
// resources.
func (o *moduleReleaseOptions) observeAndDelete(ctx context.Context) error {
	u, err := objects.Get(ctx, o.Session, session.ModuleKind, o.Namespace, o.name)
	if err != nil {
		return err
	}
	if mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode"); mode != string(v1alpha1.ModuleObserve) {
		if u, err = objects.MergeAs(ctx, o.Session, objects.StateManager, session.ModuleKind, o.Namespace, o.name,
			map[string]any{"spec": map[string]any{"mode": v1alpha1.ModuleObserve}}); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "%s configured: spec.mode is Observe\n", objects.Long(session.ModuleKind, o.name))
	}
	if u.GetDeletionTimestamp() != nil {
		return nil
	}
	if _, err := objects.Mark(ctx, o.Session, session.ModuleKind, o.Namespace, u); err != nil {
		return fmt.Errorf("%w\nThe Module has the mode Observe. To take that back: %s", err,
			state.SetModeCommand(o.name, o.Namespace, v1alpha1.ModuleManage))
	}
	fmt.Fprintf(o.Out, "%s marked for deletion\n", objects.Long(session.ModuleKind, o.name))
	return nil
}

// saveBefore writes the state again before the question. Until then, a plan of another user could change a record; an
// approval after that is refused, because the plan is stale. It returns an error for a plan that does more than forget.
func (o *moduleReleaseOptions) saveBefore(ctx context.Context, p *v1alpha1.Plan) error {
	if s := p.Status.Summary; s != nil && s.Create+s.Update+s.Replace+s.Delete+s.Invoke > 0 {
		return &exit.Error{Code: exit.Refused,
			Cause: fmt.Errorf("plan %q does more than forget the resources of the Module %q: kubectl hykube discard %s -n %s", p.Name, o.name, p.Name, p.Namespace)}
	}
	return o.save(ctx)
}

// save writes the state of the Module to the file.
func (o *moduleReleaseOptions) save(ctx context.Context) error {
	state, err := (&state.PullOptions{Session: o.Session, Module: o.name}).State(ctx)
	if err != nil {
		return err
	}
	if len(state.Resources) == 0 {
		return fmt.Errorf("the Module %q has no infrastructure to hand back: kubectl delete module %s -n %s", o.name,
			o.name, o.Namespace)
	}
	return saveState(o.file, state)
}

// saveState writes a state to a file that only the user can read. It replaces an older state of the same lineage, and
// no other file.
func saveState(path string, file *tfstate.File) error {
	if err := replaceable(path, file); err != nil {
		return err
	}
	content, err := state.EncodeState(file)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the state: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// replaceable returns an error for a file that is not an older state of the same lineage.
func replaceable(path string, state *tfstate.File) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	defer f.Close()
	if old, err := tfstate.Parse(f); err != nil || old.Lineage != state.Lineage || old.Serial >= state.Serial {
		return fmt.Errorf("the file %s exists, and is no older state of this Module: choose another file with -o FILE",
			path)
	}
	return nil
}
