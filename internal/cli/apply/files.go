package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/speculation"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/stack"
)

// fileApply applies files. It plans them speculatively, asks, records them, and applies the changes that were shown. If
// the answer is no, it leaves nothing behind, except prerequisites that it recorded after a separate question.
type fileApply struct {
	*operation.Operation
	files *manifest.Flags
	set   *speculation.ApplySet // nil without --prune
	ms    []manifest.Manifest
	want  func([]record.Recorded) []operation.Wanted
	// first holds the prerequisites that were recorded.
	first []manifest.Manifest
	sp    *speculation.Speculation
}

// nothingRecorded ends the command after another answer than yes.
const nothingRecorded = "Nothing was changed, and nothing was recorded."

// run applies the files. If an object of the files changes after the plan was shown, and the change is not one of the
// files, run starts again.
func (a *fileApply) run(ctx context.Context) error {
	var moved []*record.ChangedError
	for question := a.Question; ; a.Question = question {
		err := a.once(ctx, moved)
		if moved = record.ChangedObjects(err); len(moved) == 0 || a.Waited >= a.WaitTimeout {
			return err
		}
		a.BackOff(ctx)
	}
}

// once applies the files. moved holds the objects that changed during an earlier attempt.
func (a *fileApply) once(ctx context.Context, moved []*record.ChangedError) (err error) {
	defer func() {
		if a.sp != nil {
			err = errors.Join(err, a.sp.Discard(ctx))
		}
	}()
	todo, err := a.planFiles(ctx, moved)
	if err != nil {
		return a.withPrerequisites(err)
	}
	if todo == 0 && a.sp.Changed() == 0 {
		if len(a.sp.Plans) == 0 {
			fmt.Fprintln(a.Out, manifest.NothingInFiles)
		}
		return nil
	}
	if a.set != nil {
		if err := a.set.MayPrune(ctx); err != nil {
			return a.withPrerequisites(err)
		}
	}
	waits := a.waits(ctx)
	if waits != "" && a.AutoApprove {
		return a.withPrerequisites(&exit.Error{Code: exit.Refused, Cause: &exit.Unchanged{Problem: waits,
			Advice: "To record the files and leave the plan, use kubectl hykube plan --record, or this command without --auto-approve."}})
	}
	if !a.AutoApprove && (len(moved) == 0 || !a.AllConfirmed(a.sp.Plans)) {
		switch {
		case todo == 0:
			a.Question = a.recordQuestion()
		case waits != "":
			fmt.Fprintf(a.Out, "\n%s%s\n", waits, a.appliedByStacks(ctx))
			a.Question = "Do you want to record the files, and leave the plan for someone who may approve it?"
		}
		fmt.Fprintln(a.Out)
		if yes, err := a.Confirm(ctx); err != nil {
			return err
		} else if !yes {
			fmt.Fprintln(a.Out, nothingRecorded)
			return a.withPrerequisites(exit.Silent(exit.Failed))
		}
		a.Confirmed(a.sp.Plans)
	}
	if err := a.recordAndApply(ctx); err != nil || a.set == nil {
		return a.withMarkedHint(err)
	}
	return a.set.Finish(ctx, a.sp.Manifests[:len(a.ms)])
}

// waits returns why plans of the recorded files would wait after the user approved them; "" if the server would apply
// them.
func (a *fileApply) waits(ctx context.Context) string {
	var out []string
	for _, p := range a.sp.Plans {
		if a.Frozen[p.Namespace] && !planapi.NothingToDo(p) {
			out = append(out, planapi.FrozenText(p.Namespace)+".")
			continue
		}
		if why := planapi.WhyItWaits(ctx, a.Session, p); why != "" && !planapi.NothingToDo(p) {
			out = append(out, fmt.Sprintf(
				"The plan of the recorded files would wait in namespace %s for someone who may approve it. %s",
				p.Namespace, strings.TrimSuffix(why, ".")+"."))
		}
	}
	return strings.Join(out, "\n")
}

// appliedByStacks names the stacks that apply the files by themselves once they are recorded; "" if there are none. It
// omits stacks that the user may not list.
func (a *fileApply) appliedByStacks(ctx context.Context) string {
	text := ""
	for _, of := range a.automaticStacks(ctx) {
		text += fmt.Sprintf("\nThe stack %s selects resources of the files, and spec.approval is Automatic: it applies them as soon as it may.", of.Name)
	}
	return text
}

// automaticStacks returns the stacks with spec.approval Automatic that select resources of the files. It omits stacks
// that the user may not list.
func (a *fileApply) automaticStacks(ctx context.Context) (out []*v1alpha1.Stack) {
	for _, p := range a.sp.Plans {
		all, _ := planapi.Stacks(ctx, a.Session, p.Namespace) // what the stacks do does not depend on this command
		for _, of := range all {
			selects := stack.Selects(of, all)
			if of.Spec.Approval == v1alpha1.ApprovalAutomatic && slices.ContainsFunc(a.sp.Manifests,
				func(m manifest.Manifest) bool {
					return addrs.IsResource(m.Object) && m.Object.GetNamespace() == p.Namespace &&
						selects(m.Object.GetLabels())
				}) {
				out = append(out, of)
			}
		}
	}
	return out
}

// withWhatHappened tells, after plans of the recorded files were not applied, what becomes of the files: which stacks
// apply them without an answer, or else how the user takes the edit back.
func (a *fileApply) withWhatHappened(ctx context.Context, plans []*v1alpha1.Plan, err error) error {
	text := strings.Join(a.stacksInstead(ctx, plans), "\n")
	switch {
	case err == nil:
		return nil
	case !exit.IsSilent(err) && text != "":
		return fmt.Errorf("%w\n%s", err, text)
	case exit.IsSilent(err) && text != "":
		fmt.Fprintln(a.Out, text)
	case exit.IsSilent(err):
		for _, p := range plans {
			fmt.Fprintf(a.Out, "To see what the recorded files change: kubectl hykube plan -n %s\n", p.Namespace)
		}
		fmt.Fprintln(a.Out, "To take them back, apply the files as they were before.")
	}
	return err
}

// stacksInstead tells for each stack that applies the recorded files by itself what its plan did, or that it makes one.
// plans are the plans of this command, which were not applied.
func (a *fileApply) stacksInstead(ctx context.Context, plans []*v1alpha1.Plan) (out []string) {
	for _, of := range a.automaticStacks(ctx) {
		i := slices.IndexFunc(plans, func(p *v1alpha1.Plan) bool { return p.Namespace == of.Namespace })
		p, _ := planapi.Get(ctx, a.Session, of.Namespace, cmp.Or(stack.LastPlan(of), "-"))
		switch {
		case i < 0:
		case p == nil || p.CreationTimestamp.Before(&plans[i].CreationTimestamp):
			out = append(out, fmt.Sprintf(
				"The stack %s plans the recorded files by itself. To see its plan: kubectl hykube stack status %s -n %s", of.Name, of.Name, of.Namespace))
		case planapi.Ready(p) && !planapi.NothingToDo(p):
			out = append(out, fmt.Sprintf(
				"Plan %s of the stack %s applied the recorded files. To see its result: kubectl hykube status %s -n %s",
				p.Name, of.Name, p.Name, p.Namespace))
		case p.ApprovesItself():
			out = append(out, fmt.Sprintf(
				"Plan %s of the stack %s applies the recorded files without an answer. To see its result: kubectl hykube status %s -n %s", p.Name, of.Name, p.Name, p.Namespace))
		}
	}
	return out
}

// planFiles plans the files, and shows the plans. It returns the number of plans with changes.
func (a *fileApply) planFiles(ctx context.Context, moved []*record.ChangedError) (todo int, err error) {
	if err := a.speculate(ctx); err != nil {
		return 0, err
	}
	if err := a.sp.Overwrites(moved); err != nil {
		return 0, err
	}
	if len(moved) > 0 {
		fmt.Fprintf(a.ErrOut, "%schanged after the plan was shown. Planning again.\n", record.Line(moved[0].Object, ""))
	}
	if a.set == nil {
		a.sp.WarnLeavingSets(ctx)
	} else if err := a.set.WarnReferrers(ctx); err != nil {
		return 0, err
	}
	if todo, err = a.showPlans(ctx); err != nil {
		return 0, err
	}
	return todo, a.sp.RefuseConflicts()
}

// recordQuestion returns the question if no infrastructure changes.
func (a *fileApply) recordQuestion() string {
	if a.set != nil {
		return "No infrastructure changes. Do you want to record the files, and delete the objects that you removed from them?"
	}
	return fmt.Sprintf("No infrastructure changes. Do you want to record the %s of the files that differ?",
		diff.Plural(a.sp.Changed(), "object"))
}

// withMarkedHint prints, after an error, the hint that pruned objects may already be marked for deletion.
func (a *fileApply) withMarkedHint(err error) error {
	if a.set != nil && len(a.set.Left) > 0 && len(record.ChangedObjects(err)) == 0 {
		fmt.Fprintln(a.ErrOut, "Objects that you removed from the files stay in the applyset until they are deleted. Resources that are listed as pruned are marked for deletion. To continue, run the same command again.")
	}
	return err
}

// speculate plans the files. It asks to record prerequisites, and waits for plans that change the same resources.
func (a *fileApply) speculate(ctx context.Context) error {
	const rounds = 3 // namespaces and providers, changed providers, and the plan itself
	for round := 1; ; {
		sp, needs, err := speculation.Speculate(ctx, a.Session, copies(a.ms), a.files, a.set, a.want)
		a.sp = sp
		if err != nil {
			return err
		}
		if len(needs) == 0 {
			busy, err := a.Busy(ctx, sp.Plans)
			if err != nil || !busy {
				return err
			}
			if err := sp.Discard(ctx); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(sp.Discard(ctx), sp.RefuseConflicts()); err != nil {
			return err
		}
		if round++; round > rounds {
			return speculation.Needed(needs)
		}
		if err := a.recordFirst(ctx, needs); err != nil {
			return err
		}
	}
}

// recordFirst records the prerequisites of a plan.
func (a *fileApply) recordFirst(ctx context.Context, needs []speculation.Prerequisite) error {
	var names []string
	ms := make([]manifest.Manifest, len(needs))
	for i, n := range needs {
		ms[i] = n.Manifest
		names = append(names, fmt.Sprintf("%s %q", n.Object.GetKind(), n.Object.GetName()))
	}
	for _, n := range needs {
		if n.Why != speculation.Missing { // the question names the missing ones
			fmt.Fprintf(a.Out, "%s %q %s\n", n.Object.GetKind(), n.Object.GetName(), n.Why)
		}
	}
	question := fmt.Sprintf("No plan can be made before these are recorded: %s. Record them now?",
		strings.Join(names, ", "))
	if err := a.Require(ctx, question, a.Out, nothingRecorded); err != nil {
		return err
	}
	rec := &record.Recorder{Session: a.Session, Force: a.files.Force, Timeout: a.files.Timeout}
	if _, err := rec.Record(ctx, copies(ms)); err != nil {
		return err
	}
	a.first = append(a.first, ms...)
	fmt.Fprintln(a.Out)
	return nil
}

// withPrerequisites prints, after an error, the prerequisites that stay recorded.
func (a *fileApply) withPrerequisites(err error) error {
	if len(a.first) == 0 {
		return err
	}
	var names, remove []string
	for _, m := range a.first {
		name := strings.ToLower(m.Object.GetKind()) + "/" + m.Object.GetName()
		names, remove = append(names, name), append(remove, "kubectl delete "+name)
	}
	fmt.Fprintf(a.ErrOut, "The command recorded these before planning, and they stay: %s. To remove those that did not exist before:\n  %s\n",
		strings.Join(names, ", "), strings.Join(remove, "\n  "))
	return err
}

// showPlans shows the changes. It returns the number of plans with changes.
func (a *fileApply) showPlans(ctx context.Context) (todo int, err error) {
	a.sp.List()
	a.Left = a.sp.LeftFiles()
	failed, err := a.Review(ctx, a.sp.Plans, func(*v1alpha1.Plan) { todo++ })
	if err != nil {
		return 0, err
	}
	return todo, exit.Join(failed)
}

// record records the files, and the applyset of the files if there is one.
func (a *fileApply) record(ctx context.Context) error {
	ms := copies(a.ms)
	for i := range ms {
		// The parent of the applyset is written first, and may also be in the files.
		if !addrs.IsResource(ms[i].Object) && !(a.set != nil && a.set.IsParent(a.sp.Manifests[i].Object)) {
			ms[i].Version = &a.sp.Results[i].Version
		}
	}
	fmt.Fprintln(a.Out)
	if a.set != nil {
		if err := a.set.Record(ctx, a.sp.Manifests, true); err != nil {
			return err
		}
	}
	rec := &record.Recorder{Session: a.Session, Force: a.files.Force, Timeout: a.files.Timeout, Warned: true}
	if _, err := rec.Record(ctx, ms); err != nil {
		return err
	}
	if a.set != nil {
		return a.set.Mark(ctx)
	}
	return nil
}

// recordAndApply records the files. It applies the plans of the recorded objects if they equal the plans that were
// shown.
func (a *fileApply) recordAndApply(ctx context.Context) error {
	if err := a.record(ctx); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	want := make([]operation.Wanted, len(a.sp.Wanted))
	for i, w := range a.sp.Wanted {
		shown := a.sp.Plans[i]
		w.Spec.Timestamp = new(shown.CreationTimestamp)
		w.Spec.Shown = &v1alpha1.PlanReference{Name: shown.Name, UID: shown.UID}
		want[i] = w
	}
	plans, err := a.PlanInTurn(ctx, want)
	if err != nil {
		return err
	}
	var todo []*v1alpha1.Plan
	for _, p := range plans {
		if !planapi.NothingToDo(p) {
			todo = append(todo, p)
		}
	}
	var lost []operation.Conflict
	switch same := a.sp.SameAs(plans); {
	case same && len(todo) == 0:
		if len(plans) == 0 {
			fmt.Fprintln(a.Out, manifest.NothingInFiles)
		} else {
			fmt.Fprintln(a.Out, "The files are recorded. No infrastructure had to change.")
		}
	case same:
		lost, err = a.ApproveAll(ctx, todo)
	default:
		lost, err = a.confirmChangedPlans(ctx, plans)
	}
	if err == nil && len(lost) > 0 {
		if want, err = a.AwaitOtherPlans(ctx, plans, want, lost); err == nil {
			for i := range want {
				want[i].Spec.Shown = nil // the other plans changed what providers answer
			}
			err = a.Operation.PlanAndApply(ctx, want)
		}
	}
	a.sp.PrintRecorded()
	return err
}

// confirmChangedPlans continues with plans that differ from the ones that were shown. It asks the user, or with
// --auto-approve continues only if another command changed resources in the meantime.
func (a *fileApply) confirmChangedPlans(ctx context.Context, plans []*v1alpha1.Plan) ([]operation.Conflict, error) {
	differ, err := a.sp.Differences(ctx, plans)
	if err != nil {
		return nil, err
	}
	if a.AutoApprove {
		others, err := a.changedByOthers(ctx)
		if err != nil {
			return nil, err
		}
		if !others || a.WaitTimeout == 0 {
			return nil, plansDiffer(plans, differ)
		}
	}
	fmt.Fprintf(a.Out, "%s The files are recorded. These differ:\n%s\nThe new plan:\n",
		a.Style.Bold("Something changed after the plan was shown."), differ)
	a.Question = strings.TrimPrefix(a.appliedByStacks(ctx)+"\nDo you want to perform these actions?", "\n")
	a.Gap = true
	lost, err := a.ConfirmAndApply(ctx, plans)
	return lost, a.withWhatHappened(ctx, plans, err)
}

// changedByOthers reports whether other commands applied plans since planning.
func (a *fileApply) changedByOthers(ctx context.Context) (bool, error) {
	for _, p := range a.sp.Plans {
		if by, err := a.PlansAppliedSince(ctx, p); err != nil || len(by) > 0 {
			return true, err
		}
	}
	return false, nil
}

// plansDiffer returns the error for plans that differ from the ones that were shown.
func plansDiffer(plans []*v1alpha1.Plan, differ string) error {
	text := "the new plan differs from the one that was shown:\n" + differ +
		"\nThe files are recorded, and nothing was applied. Read the new plan and approve it:"
	for _, p := range plans {
		if !planapi.NothingToDo(p) {
			text += fmt.Sprintf("\n  kubectl hykube show %s -n %s\n  %s", p.Name, p.Namespace,
				planapi.ApproveCommand(p))
		}
	}
	return &exit.Error{Code: exit.Stale, Cause: errors.New(text)}
}

func copies(ms []manifest.Manifest) []manifest.Manifest {
	out := make([]manifest.Manifest, len(ms))
	for i, m := range ms {
		m.Object = m.Object.DeepCopy()
		out[i] = m
	}
	return out
}
