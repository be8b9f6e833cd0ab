// Package plan is the verbs of plans: plan, show, approve, discard and cancel.
package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/speculation"
)

type planOptions struct {
	*session.Session
	files       manifest.Flags
	pruning     speculation.PruneFlags
	planning    operation.PlanFlags
	all         bool
	destroy     bool
	refreshOnly bool
	detailed    bool
	full        bool
	record      bool
	output      string
	sp          *speculation.Speculation
}

// New returns the command plan.
func New(s *session.Session) *cobra.Command {
	o := &planOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "plan [-f PATH]",
		Short: "Show the changes that the objects need",
		Long: `Show the changes that the objects need.

Without -f the command plans the recorded objects of the namespace. The plan waits for approval.

With -f it plans the objects of the files as if they were recorded. It records nothing, and the plan cannot be approved.
It needs the rights to create plans and to read the objects. "kubectl hykube apply -f PATH" shows the same plan, asks,
records and applies. A directory with Terraform files is planned as the Module that apply would make of it. With --record the command records the objects by server-side apply, and the plan waits for approval.`,
		Example: `  # what would happen to the namespace
  kubectl hykube plan -n prod

  # what drifted
  kubectl hykube plan --refresh=All --refresh-only

  # all but one, and replace another
  kubectl hykube plan --exclude sim_instance.old --replace sim-disk/data

  # exit with 0 if these files change nothing, with 2 if they do
  kubectl hykube plan -f infra/ --detailed-exitcode

  # in a script: record the files, and leave the plan for approval
  kubectl hykube plan -f infra/ --record -o name`,
		Args: session.NoNames("-f PATH plans files, --target TYPE.NAME chooses"),
		RunE: session.Run(o),
	}
	fs := cmd.Flags()
	o.files.Add(fs)
	o.pruning.Add(fs)
	o.planning.Add(cmd, s)
	fs.BoolVar(&o.all, "all", false, "With -f, plan the whole namespace, not only the objects in the files")
	fs.BoolVar(&o.record, "record", false, "Record the objects of the files first, and leave the plan for approval")
	fs.BoolVar(&o.destroy, "destroy", false, "Plan to destroy")
	fs.BoolVar(&o.refreshOnly, "refresh-only", false, "Only plan to update the recorded state from the infrastructure")
	fs.BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 when there are changes")
	operation.FullFlag(fs, &o.full)
	printer.OutputFlag(cmd, &o.output, "Print the plan object", "json", "yaml", "name")
	return cmd
}

func (o *planOptions) Validate() error {
	if o.destroy && o.refreshOnly {
		return errors.New("--destroy and --refresh-only exclude each other")
	}
	if o.record && !o.files.Given() {
		return errors.New("--record is for files: name them with -f PATH")
	}
	if err := o.pruning.Validate(&o.files, &o.planning); err != nil {
		return err
	}
	if o.pruning.Prune && (o.record || o.destroy || o.refreshOnly) {
		return errors.New("--prune shows what apply --prune would do: it excludes --record, --destroy and --refresh-only")
	}
	if o.refreshOnly && (len(o.planning.Invoke) > 0 || len(o.planning.Replace) > 0) {
		return errors.New("--refresh-only changes nothing: it excludes --replace and --invoke")
	}
	if o.destroy && (len(o.planning.Invoke) > 0 || len(o.planning.Replace) > 0) {
		return errors.New("--destroy neither replaces resources nor runs actions: it excludes --replace and --invoke")
	}
	if err := o.planning.CheckExclude(o.files.Given(), o.all); err != nil {
		return err
	}
	return o.planning.Validate()
}

func (o *planOptions) Run(ctx context.Context) error {
	if o.output != "" {
		return o.runObject(ctx)
	}
	base := "plan"
	if o.destroy {
		base = "destroy"
	}
	j := &operation.Operation{Session: o.Session, Full: o.full, Began: time.Now(), Gap: o.files.Given()}
	plans, err := o.make(ctx, j, base)
	if err != nil {
		return err
	}
	if o.sp != nil {
		o.sp.List()
		j.Left = o.sp.LeftFiles()
		j.Gap = false
	}
	pending, speculated := 0, false
	failed, err := j.Review(ctx, plans, func(p *v1alpha1.Plan) {
		pending++
		if speculated = p.Spec.Speculative; !speculated {
			fmt.Fprintf(o.Out, "\n%s\n", planapi.WaitsForApproval(ctx, o.Session, p))
		}
	})
	if err != nil {
		return err
	}
	if speculated && len(failed) == 0 {
		fmt.Fprintf(o.Out, "\n%s\n", o.cannotBeApproved())
	}
	for _, p := range plans {
		if planapi.Deferred(p) { // review counts only what can be applied now
			pending++
		}
	}
	return o.end(failed, pending)
}

func (o *planOptions) make(ctx context.Context, j *operation.Operation, base string) ([]*v1alpha1.Plan, error) {
	spec := v1alpha1.PlanSpec{Destroy: o.destroy, RefreshOnly: o.refreshOnly}
	if err := o.planning.Fill(&spec); err != nil {
		return nil, err
	}
	if !o.files.Given() {
		return j.Plan(ctx, speculation.RecordedPlan(o.Session, spec, &o.planning, o.all, base))
	}
	ms, err := o.pruning.Manifests(ctx, o.Session, &o.files)
	if err != nil {
		return nil, err
	}
	if ms, err = speculation.SelectTargets(o.Session, ms, &o.planning); err != nil {
		return nil, err
	}
	manifest.ReadFrom(o.Session, ms)
	want := func(rs []record.Recorded) []operation.Wanted {
		return speculation.PlansOf(o.Session, rs, &o.planning, o.all, base, spec)
	}
	if o.record {
		rec := &record.Recorder{Session: o.Session, Force: o.files.Force, Timeout: o.files.Timeout,
			Destroys: o.destroy || o.refreshOnly}
		rs, err := rec.Record(ctx, ms)
		if err != nil {
			return nil, err
		}
		return o.printIfEmpty(j.Plan(ctx, want(rs)))
	}
	set, err := o.pruning.Set(o.Session, ms)
	if err != nil {
		return nil, err
	}
	sp, needs, err := speculation.Speculate(ctx, o.Session, ms, &o.files, set, want)
	if err == nil && len(needs) > 0 {
		err = errors.Join(speculation.Needed(needs), sp.Discard(ctx))
	}
	if err == nil && set != nil {
		if err = set.WarnReferrers(ctx); err != nil {
			err = errors.Join(err, sp.Discard(ctx))
		}
	}
	if err != nil {
		return nil, err
	}
	o.sp = sp
	sp.WarnConflicts()
	return o.printIfEmpty(sp.Plans, nil)
}

// printIfEmpty prints a message if the files have nothing to plan.
func (o *planOptions) printIfEmpty(plans []*v1alpha1.Plan, err error) ([]*v1alpha1.Plan, error) {
	if err == nil && len(plans) == 0 {
		fmt.Fprintln(o.Out, manifest.NothingInFiles)
	}
	return plans, err
}

func (o *planOptions) end(failed []error, pending int) error {
	if len(failed) > 0 {
		return exit.Join(failed)
	}
	if o.sp != nil && o.sp.Changed() > 0 {
		pending++ // apply -f would record them
	}
	if pending > 0 && o.detailed {
		return exit.Silent(exit.Changes)
	}
	return nil
}

// runObject prints only the plan objects to standard output and everything else to standard error.
func (o *planOptions) runObject(ctx context.Context) error {
	out, quiet := o.Terminal, *o.Terminal
	quiet.Out, quiet.Live = o.ErrOut, false
	defer o.UseTerminal(quiet)()
	plans, err := o.make(ctx, &operation.Operation{Session: o.Session, Began: time.Now()}, "plan")
	if err != nil {
		return err
	}
	var failed []error
	pending := 0
	for _, p := range plans {
		if err := printer.Plan(out, p, o.output); err != nil {
			return err
		}
		switch {
		case planapi.Deferred(p):
			pending++
		case planapi.NothingToDo(p):
		case p.PlanFailed(), planapi.Stalled(p):
			failed = append(failed, operation.Failure(o.Session, p))
		case planapi.WhyNotApproved(p, false) != nil:
			failed = append(failed, planapi.WhyNotApproved(p, false))
		default:
			pending++
		}
	}
	return o.end(failed, pending)
}
