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
	pruning     pruneFlags
	planning    planFlags
	all         bool
	destroy     bool
	refreshOnly bool
	detailed    bool
	full        bool
	record      bool
	output      string
	sp          *speculation
}

func newPlan(s *session) *cobra.Command {
	o := &planOptions{session: s}
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
		Args: noNames("-f PATH plans files, --target TYPE.NAME chooses"),
		RunE: run(o),
	}
	fs := cmd.Flags()
	o.files.add(fs)
	o.pruning.add(fs)
	o.planning.add(cmd, s)
	fs.BoolVar(&o.all, "all", false, "With -f, plan the whole namespace, not only the objects in the files")
	fs.BoolVar(&o.record, "record", false, "Record the objects of the files first, and leave the plan for approval")
	fs.BoolVar(&o.destroy, "destroy", false, "Plan to destroy")
	fs.BoolVar(&o.refreshOnly, "refresh-only", false, "Only plan to update the recorded state from the infrastructure")
	fs.BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 when there are changes")
	fullFlag(fs, &o.full)
	outputFlag(cmd, &o.output, "Print the plan object", "json", "yaml", "name")
	return cmd
}

func (o *planOptions) Validate() error {
	if o.destroy && o.refreshOnly {
		return errors.New("--destroy and --refresh-only exclude each other")
	}
	if o.record && !o.files.given() {
		return errors.New("--record is for files: name them with -f PATH")
	}
	if err := o.pruning.validate(&o.files, &o.planning); err != nil {
		return err
	}
	if o.pruning.prune && (o.record || o.destroy || o.refreshOnly) {
		return errors.New("--prune shows what apply --prune would do: it excludes --record, --destroy and --refresh-only")
	}
	if o.refreshOnly && (len(o.planning.invoke) > 0 || len(o.planning.replace) > 0) {
		return errors.New("--refresh-only changes nothing: it excludes --replace and --invoke")
	}
	if o.destroy && (len(o.planning.invoke) > 0 || len(o.planning.replace) > 0) {
		return errors.New("--destroy neither replaces resources nor runs actions: it excludes --replace and --invoke")
	}
	if err := o.planning.checkExclude(o.files.given(), o.all); err != nil {
		return err
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
	j := &planAndApply{session: o.session, full: o.full, began: time.Now(), gap: o.files.given()}
	plans, err := o.make(ctx, j, base)
	if err != nil {
		return err
	}
	if o.sp != nil {
		o.sp.list()
		j.left = o.sp.leftFiles()
		j.gap = false
	}
	pending, speculated := 0, false
	failed, err := j.review(ctx, plans, func(p *v1alpha1.Plan) {
		pending++
		if speculated = p.Spec.Speculative; !speculated {
			fmt.Fprintf(o.Out, "\n%s\n", o.waitsForApproval(ctx, p))
		}
	})
	if err != nil {
		return err
	}
	if speculated && len(failed) == 0 {
		fmt.Fprintf(o.Out, "\n%s\n", o.cannotBeApproved())
	}
	for _, p := range plans {
		if deferred(p) { // review counts only what can be applied now
			pending++
		}
	}
	return o.end(failed, pending)
}

func (o *planOptions) make(ctx context.Context, j *planAndApply, base string) ([]*v1alpha1.Plan, error) {
	spec := v1alpha1.PlanSpec{Destroy: o.destroy, RefreshOnly: o.refreshOnly}
	if err := o.planning.fill(&spec); err != nil {
		return nil, err
	}
	if !o.files.given() {
		return j.plan(ctx, o.recordedPlan(spec, &o.planning, o.all, base))
	}
	ms, err := o.pruning.manifests(ctx, o.session, &o.files)
	if err != nil {
		return nil, err
	}
	if ms, err = o.targeted(ms, &o.planning); err != nil {
		return nil, err
	}
	o.readFrom(ms)
	want := func(rs []recorded) []wanted { return o.plansOf(rs, &o.planning, o.all, base, spec) }
	if o.record {
		rec := &recorder{session: o.session, force: o.files.force, timeout: o.files.timeout, destroys: o.destroy || o.refreshOnly}
		rs, err := rec.record(ctx, ms)
		if err != nil {
			return nil, err
		}
		return o.printIfEmpty(j.plan(ctx, want(rs)))
	}
	set, err := o.pruning.set(o.session, ms)
	if err != nil {
		return nil, err
	}
	sp, needs, err := o.speculate(ctx, ms, &o.files, set, want)
	if err == nil && len(needs) > 0 {
		err = errors.Join(o.needed(needs), sp.discard(ctx))
	}
	if err == nil && set != nil {
		if err = set.warnReferrers(ctx); err != nil {
			err = errors.Join(err, sp.discard(ctx))
		}
	}
	if err != nil {
		return nil, err
	}
	o.sp = sp
	sp.warnConflicts()
	return o.printIfEmpty(sp.plans, nil)
}

// printIfEmpty prints a message if the files have nothing to plan.
func (o *planOptions) printIfEmpty(plans []*v1alpha1.Plan, err error) ([]*v1alpha1.Plan, error) {
	if err == nil && len(plans) == 0 {
		fmt.Fprintln(o.Out, nothingInFiles)
	}
	return plans, err
}

func (o *planOptions) end(failed []error, pending int) error {
	if len(failed) > 0 {
		return joinExit(failed)
	}
	if o.sp != nil && o.sp.changed() > 0 {
		pending++ // apply -f would record them
	}
	if pending > 0 && o.detailed {
		return silent(ExitChanges)
	}
	return nil
}

// runObject prints only the plan objects to standard output and everything else to standard error.
func (o *planOptions) runObject(ctx context.Context) error {
	out, quiet := o.terminal, *o.terminal
	quiet.Out, quiet.live = o.ErrOut, false
	o.session.terminal = &quiet
	defer func() { o.session.terminal = out }()
	plans, err := o.make(ctx, &planAndApply{session: o.session, began: time.Now()}, "plan")
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
		case deferred(p):
			pending++
		case nothingToDo(p):
		case p.PlanFailed(), stalled(p):
			failed = append(failed, o.failure(p))
		case whyNotApproved(p, false) != nil:
			failed = append(failed, whyNotApproved(p, false))
		default:
			pending++
		}
	}
	return o.end(failed, pending)
}
