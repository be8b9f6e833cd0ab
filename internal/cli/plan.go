package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type planOptions struct {
	*session
	files       fileFlags
	planning    planFlags
	all         bool
	destroy     bool
	refreshOnly bool
	detailed    bool
	full        bool
	output      string
}

func newPlan(s *session) *cobra.Command {
	o := &planOptions{session: s}
	cmd := &cobra.Command{
		Use:   "plan [-f PATH]",
		Short: "Work out what would change, and leave the plan for approval",
		Long: `Work out what would change, and leave the plan for approval.

Without -f it plans the objects that are recorded in the namespace. With -f it first records the objects of the files,
exactly as kubectl apply does, and plans those: recording changes what the server is asked for, and touches no
infrastructure. To look without recording, use kubectl diff -f PATH.`,
		Example: `  # what would happen to the namespace
  kubectl hykube plan -n prod

  # what drifted
  kubectl hykube plan --refresh=All --refresh-only

  # all but one, and replace another
  kubectl hykube plan --exclude sim_instance.old --replace sim-disk/data

  # in a script: 0 nothing to do, 2 changes
  kubectl hykube plan -f infra/ --detailed-exitcode -o name`,
		Args: noNames("-f PATH records files, --target TYPE.NAME chooses"),
		RunE: run(o),
	}
	fs := cmd.Flags()
	o.files.add(fs)
	o.planning.add(cmd, s)
	fs.BoolVar(&o.all, "all", false, "With -f, plan the whole namespace, not only what stands in the files")
	fs.BoolVar(&o.destroy, "destroy", false, "Plan to destroy")
	fs.BoolVar(&o.refreshOnly, "refresh-only", false, "Only plan to bring the records up to date with the infrastructure")
	fs.BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 when there are changes")
	fs.BoolVar(&o.full, "full", false, "Show every change in full, however many there are")
	outputFlag(cmd, &o.output, "Print the plan object", "json", "yaml", "name")
	return cmd
}

func (o *planOptions) Complete([]string) error { return o.connect() }

func (o *planOptions) Validate() error {
	if o.destroy && o.refreshOnly {
		return errors.New("--destroy and --refresh-only exclude each other")
	}
	if err := checkOutput(o.output, "json", "yaml", "name"); err != nil {
		return err
	}
	if o.refreshOnly && (len(o.planning.invoke) > 0 || len(o.planning.replace) > 0) {
		return errors.New("--refresh-only changes nothing: it excludes --replace and --invoke")
	}
	if o.destroy && (len(o.planning.invoke) > 0 || len(o.planning.replace) > 0) {
		return errors.New("--destroy leaves nothing to replace or to act on: it excludes --replace and --invoke")
	}
	return o.planning.validate()
}

func (o *planOptions) Run(ctx context.Context) error {
	if o.output != "" {
		return o.runObject(ctx)
	}
	base := "plan"
	if o.destroy {
		base = "destroy"
	}
	j := &journey{session: o.session, full: o.full, began: time.Now(), gap: len(o.files.paths) > 0}
	plans, err := o.make(ctx, j, base)
	if err != nil {
		return err
	}
	var failed []error
	pending := 0
	for i, p := range plans {
		if i > 0 || j.gap {
			fmt.Fprintln(o.Out)
		}
		switch {
		case !nothingToDo(p) && (planFailed(p) || stalled(p)):
			failed = append(failed, o.failure(ctx, p))
			continue
		default:
			if err := j.show(ctx, p); err != nil {
				return err
			}
		}
		if nothingToDo(p) {
			continue
		}
		pending++
		fmt.Fprintf(o.Out, "\n%s\n", o.waitsForApproval(ctx, p))
	}
	return o.end(failed, pending)
}

func (o *planOptions) make(ctx context.Context, j *journey, base string) ([]*v1alpha1.Plan, error) {
	want, err := plansFor(ctx, o.session, &o.files, &o.planning, o.all, base, v1alpha1.PlanSpec{Destroy: o.destroy, RefreshOnly: o.refreshOnly})
	if err != nil {
		return nil, err
	}
	if len(want) == 0 {
		fmt.Fprintln(o.Out, nothingInFiles)
		return nil, nil
	}
	return j.plan(ctx, want)
}

func (o *planOptions) end(failed []error, pending int) error {
	if len(failed) > 0 {
		return joinExit(failed)
	}
	if pending > 0 && o.detailed {
		return silent(ExitChanges)
	}
	return nil
}

// runObject prints the plan objects alone; everything else goes to standard error.
func (o *planOptions) runObject(ctx context.Context) error {
	out, quiet := o.terminal, *o.terminal
	quiet.Out, quiet.live = o.ErrOut, false
	o.session.terminal = &quiet
	defer func() { o.session.terminal = out }()
	plans, err := o.make(ctx, &journey{session: o.session, began: time.Now()}, "plan")
	if err != nil {
		return err
	}
	var failed []error
	pending := 0
	for _, p := range plans {
		if err := printPlan(out, p, o.output); err != nil {
			return err
		}
		switch {
		case nothingToDo(p):
		case planFailed(p), stalled(p):
			failed = append(failed, o.failure(ctx, p))
		default:
			pending++
		}
	}
	return o.end(failed, pending)
}
