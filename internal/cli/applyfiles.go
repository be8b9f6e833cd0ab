package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/stack"
)

// fileApply applies files. It plans them speculatively, asks, records them, and applies the changes that were shown. If
// the answer is no, it leaves nothing behind, except prerequisites that it recorded after a separate question.
type fileApply struct {
	*planAndApply
	files *fileFlags
	set   *applySet // nil without --prune
	ms    []manifest
	want  func([]recorded) []wanted
	// first holds the prerequisites that were recorded.
	first []manifest
	sp    *speculation
}

// run applies the files. If an object of the files changes after the plan was shown, and the change is not one of the
// files, run starts again.
func (a *fileApply) run(ctx context.Context) error {
	var moved []*changedError
	for question := a.question; ; a.question = question {
		err := a.once(ctx, moved)
		if moved = changedObjects(err); len(moved) == 0 || a.waited >= a.waitTimeout {
			return err
		}
		a.backOff(ctx)
	}
}

// once applies the files. moved holds the objects that changed during an earlier attempt.
func (a *fileApply) once(ctx context.Context, moved []*changedError) (err error) {
	defer func() {
		if a.sp != nil {
			err = errors.Join(err, a.sp.discard(ctx))
		}
	}()
	todo, err := a.planFiles(ctx, moved)
	if err != nil {
		return a.withPrerequisites(err)
	}
	if todo == 0 && a.sp.changed() == 0 {
		if len(a.sp.plans) == 0 {
			fmt.Fprintln(a.Out, nothingInFiles)
		}
		return nil
	}
	if a.set != nil {
		if err := a.set.mayPrune(ctx); err != nil {
			return a.withPrerequisites(err)
		}
	}
	waits := a.waits(ctx)
	if waits != "" && a.autoApprove {
		return a.withPrerequisites(&exitError{ExitRefused, &unchangedError{problem: waits,
			advice: "To record the files and leave the plan, use kubectl hykube plan --record, or this command without --auto-approve."}})
	}
	if !a.autoApprove && (len(moved) == 0 || !a.allConfirmed(a.sp.plans)) {
		switch {
		case todo == 0:
			a.question = a.recordQuestion()
		case waits != "":
			fmt.Fprintf(a.Out, "\n%s%s\n", waits, a.appliedByStacks(ctx))
			a.question = "Do you want to record the files, and leave the plan for someone who may approve it?"
		}
		fmt.Fprintln(a.Out)
		if yes, err := a.confirm(ctx); err != nil {
			return err
		} else if !yes {
			fmt.Fprintln(a.Out, "Nothing was changed, and nothing was recorded.")
			return a.withPrerequisites(silent(ExitError))
		}
		a.confirmed(a.sp.plans)
	}
	if err := a.recordAndApply(ctx); err != nil || a.set == nil {
		return a.withMarkedHint(err)
	}
	return a.set.finish(ctx, a.sp.ms[:len(a.ms)])
}

// waits returns why plans of the recorded files would wait after the user approved them; "" if the server would apply them.
func (a *fileApply) waits(ctx context.Context) string {
	var out []string
	for _, p := range a.sp.plans {
		if why := a.whyItWaits(ctx, p); why != "" && !nothingToDo(p) {
			out = append(out, fmt.Sprintf("The plan of the recorded files would wait in namespace %s for someone who may approve it. %s", p.Namespace, strings.TrimSuffix(why, ".")+"."))
		}
	}
	return strings.Join(out, "\n")
}

// appliedByStacks names the stacks that apply the files by themselves once they are recorded; "" if there are none. It omits stacks
// that the user may not list.
func (a *fileApply) appliedByStacks(ctx context.Context) string {
	text := ""
	for _, of := range a.automaticStacks(ctx) {
		text += fmt.Sprintf("\nThe stack %s selects resources of the files, and spec.approval is Automatic: it applies them as soon as it may.", of.Name)
	}
	return text
}

// automaticStacks returns the stacks with spec.approval Automatic that select resources of the files. It omits stacks that the user
// may not list.
func (a *fileApply) automaticStacks(ctx context.Context) (out []*v1alpha1.Stack) {
	for _, p := range a.sp.plans {
		all, _ := a.stacks(ctx, p.Namespace) // what the stacks do does not depend on this command
		for _, of := range all {
			selects := stack.Selects(of, all)
			if of.Spec.Approval == v1alpha1.ApprovalAutomatic && slices.ContainsFunc(a.sp.ms, func(m manifest) bool {
				return isResource(m.object) && m.object.GetNamespace() == p.Namespace && selects(m.object.GetLabels())
			}) {
				out = append(out, of)
			}
		}
	}
	return out
}

// withWhatHappened tells, after plans of the recorded files were not applied, what becomes of the files: which stacks apply them
// without an answer, or else how the user takes the edit back.
func (a *fileApply) withWhatHappened(ctx context.Context, plans []*v1alpha1.Plan, err error) error {
	text := strings.Join(a.stacksInstead(ctx, plans), "\n")
	switch {
	case err == nil:
		return nil
	case !isSilent(err) && text != "":
		return fmt.Errorf("%w\n%s", err, text)
	case isSilent(err) && text != "":
		fmt.Fprintln(a.Out, text)
	case isSilent(err):
		for _, p := range plans {
			fmt.Fprintf(a.Out, "To see what the recorded files change: kubectl hykube plan -n %s\n", p.Namespace)
		}
		fmt.Fprintln(a.Out, "To take them back, apply the files as they were before.")
	}
	return err
}

// stacksInstead tells for each stack that applies the recorded files by itself what its plan did, or that it makes one. plans are the
// plans of this command, which were not applied.
func (a *fileApply) stacksInstead(ctx context.Context, plans []*v1alpha1.Plan) (out []string) {
	for _, of := range a.automaticStacks(ctx) {
		i := slices.IndexFunc(plans, func(p *v1alpha1.Plan) bool { return p.Namespace == of.Namespace })
		p, _ := a.getPlan(ctx, of.Namespace, cmp.Or(stack.LastPlan(of), "-"))
		switch {
		case i < 0:
		case p == nil || p.CreationTimestamp.Before(&plans[i].CreationTimestamp):
			out = append(out, fmt.Sprintf("The stack %s plans the recorded files by itself. To see its plan: kubectl hykube stack status %s -n %s", of.Name, of.Name, of.Namespace))
		case ready(p) && !nothingToDo(p):
			out = append(out, fmt.Sprintf("Plan %s of the stack %s applied the recorded files. To see its result: kubectl hykube status %s -n %s", p.Name, of.Name, p.Name, p.Namespace))
		case p.ApprovesItself():
			out = append(out, fmt.Sprintf("Plan %s of the stack %s applies the recorded files without an answer. To see its result: kubectl hykube status %s -n %s", p.Name, of.Name, p.Name, p.Namespace))
		}
	}
	return out
}

// planFiles plans the files, and shows the plans. It returns the number of plans with changes.
func (a *fileApply) planFiles(ctx context.Context, moved []*changedError) (todo int, err error) {
	if err := a.speculate(ctx); err != nil {
		return 0, err
	}
	if err := a.sp.overwrites(moved); err != nil {
		return 0, err
	}
	if len(moved) > 0 {
		fmt.Fprintf(a.ErrOut, "%schanged after the plan was shown. Planning again.\n", line(moved[0].object, ""))
	}
	if a.set == nil {
		a.sp.warnLeavingSets(ctx)
	} else if err := a.set.warnReferrers(ctx); err != nil {
		return 0, err
	}
	if todo, err = a.present(ctx); err != nil {
		return 0, err
	}
	return todo, a.sp.refuseConflicts()
}

// recordQuestion returns the question if no infrastructure changes.
func (a *fileApply) recordQuestion() string {
	if a.set != nil {
		return "No infrastructure changes. Do you want to record the files, and delete the objects that you removed from them?"
	}
	return fmt.Sprintf("No infrastructure changes. Do you want to record the %s of the files that differ?", diff.Plural(a.sp.changed(), "object"))
}

// withMarkedHint prints, after an error, the hint that pruned objects may already be marked for deletion.
func (a *fileApply) withMarkedHint(err error) error {
	if a.set != nil && len(a.set.left) > 0 && len(changedObjects(err)) == 0 {
		fmt.Fprintln(a.ErrOut, "Objects that you removed from the files stay in the applyset until they are deleted. Resources that are listed as pruned are marked for deletion. To continue, run the same command again.")
	}
	return err
}

// speculate plans the files. It asks to record prerequisites, and waits for plans that change the same resources.
func (a *fileApply) speculate(ctx context.Context) error {
	const rounds = 3 // namespaces and providers, changed providers, and the plan itself
	for round := 1; ; {
		sp, needs, err := a.session.speculate(ctx, copies(a.ms), a.files, a.set, a.want)
		a.sp = sp
		if err != nil {
			return err
		}
		if len(needs) == 0 {
			busy, err := a.busy(ctx, sp.plans)
			if err != nil || !busy {
				return err
			}
			if err := sp.discard(ctx); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(sp.discard(ctx), sp.refuseConflicts()); err != nil {
			return err
		}
		if round++; round > rounds {
			return a.needed(needs)
		}
		if err := a.recordFirst(ctx, needs); err != nil {
			return err
		}
	}
}

// recordFirst records the prerequisites of a plan.
func (a *fileApply) recordFirst(ctx context.Context, needs []prerequisite) error {
	var names []string
	ms := make([]manifest, len(needs))
	for i, n := range needs {
		ms[i] = n.manifest
		names = append(names, fmt.Sprintf("%s %q", n.object.GetKind(), n.object.GetName()))
	}
	for _, n := range needs {
		if n.why != missing { // the question names the missing ones
			fmt.Fprintf(a.Out, "%s %q %s\n", n.object.GetKind(), n.object.GetName(), n.why)
		}
	}
	if !a.autoApprove {
		ask := *a.planAndApply
		ask.question = fmt.Sprintf("No plan can be made before these are recorded: %s. Record them now?", strings.Join(names, ", "))
		yes, err := ask.confirm(ctx)
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(a.Out, "Nothing was changed, and nothing was recorded.")
			return silent(ExitError)
		}
	}
	rec := &recorder{session: a.session, force: a.files.force, timeout: a.files.timeout}
	if _, err := rec.record(ctx, copies(ms)); err != nil {
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
		name := strings.ToLower(m.object.GetKind()) + "/" + m.object.GetName()
		names, remove = append(names, name), append(remove, "kubectl delete "+name)
	}
	fmt.Fprintf(a.ErrOut, "The command recorded these before planning, and they stay: %s. To remove those that did not exist before:\n  %s\n",
		strings.Join(names, ", "), strings.Join(remove, "\n  "))
	return err
}

// present shows the changes. It returns the number of plans with changes.
func (a *fileApply) present(ctx context.Context) (todo int, err error) {
	a.sp.list()
	a.left = a.sp.leftFiles()
	failed, err := a.review(ctx, a.sp.plans, func(*v1alpha1.Plan) { todo++ })
	if err != nil {
		return 0, err
	}
	return todo, joinExit(failed)
}

// record records the files, and the applyset of the files if there is one.
func (a *fileApply) record(ctx context.Context) error {
	ms := copies(a.ms)
	for i := range ms {
		// The parent of the applyset is written first, and may also be in the files.
		if !isResource(ms[i].object) && !(a.set != nil && a.set.isParent(a.sp.ms[i].object)) {
			ms[i].version = &a.sp.results[i].Version
		}
	}
	fmt.Fprintln(a.Out)
	if a.set != nil {
		if err := a.set.record(ctx, a.sp.ms, true); err != nil {
			return err
		}
	}
	rec := &recorder{session: a.session, force: a.files.force, timeout: a.files.timeout, warned: true}
	if _, err := rec.record(ctx, ms); err != nil {
		return err
	}
	if a.set != nil {
		return a.set.mark(ctx)
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
	want := make([]wanted, len(a.sp.wanted))
	for i, w := range a.sp.wanted {
		shown := a.sp.plans[i]
		w.spec.Timestamp = new(shown.CreationTimestamp)
		w.spec.Shown = &v1alpha1.PlanReference{Name: shown.Name, UID: shown.UID}
		want[i] = w
	}
	plans, err := a.planInTurn(ctx, want)
	if err != nil {
		return err
	}
	var todo []*v1alpha1.Plan
	for _, p := range plans {
		if !nothingToDo(p) {
			todo = append(todo, p)
		}
	}
	var lost []overtaken
	switch same := a.sp.sameAs(plans); {
	case same && len(todo) == 0:
		if len(plans) == 0 {
			fmt.Fprintln(a.Out, nothingInFiles)
		} else {
			fmt.Fprintln(a.Out, "The files are recorded. No infrastructure had to change.")
		}
	case same:
		lost, err = a.approveAll(ctx, todo)
	default:
		lost, err = a.confirmChangedPlans(ctx, plans)
	}
	if err == nil && len(lost) > 0 {
		if want, err = a.awaitOtherPlans(ctx, plans, want, lost); err == nil {
			for i := range want {
				want[i].spec.Shown = nil // the other plans changed what providers answer
			}
			err = a.planAndApply.run(ctx, want)
		}
	}
	a.sp.printRecorded()
	return err
}

// confirmChangedPlans continues with plans that differ from the ones that were shown. It asks the user, or with
// --auto-approve continues only if another command changed resources in the meantime.
func (a *fileApply) confirmChangedPlans(ctx context.Context, plans []*v1alpha1.Plan) ([]overtaken, error) {
	differ, err := a.sp.differences(ctx, plans)
	if err != nil {
		return nil, err
	}
	if a.autoApprove {
		others, err := a.changedByOthers(ctx)
		if err != nil {
			return nil, err
		}
		if !others || a.waitTimeout == 0 {
			return nil, plansDiffer(plans, differ)
		}
	}
	fmt.Fprintf(a.Out, "%s The files are recorded. These differ:\n%s\nThe new plan:\n", a.style.Bold("Something changed after the plan was shown."), differ)
	a.question = strings.TrimPrefix(a.appliedByStacks(ctx)+"\nDo you want to perform these actions?", "\n")
	a.gap = true
	lost, err := a.confirmAndApply(ctx, plans)
	return lost, a.withWhatHappened(ctx, plans, err)
}

// changedByOthers reports whether other commands applied plans since planning.
func (a *fileApply) changedByOthers(ctx context.Context) (bool, error) {
	for _, p := range a.sp.plans {
		if by, err := a.plansAppliedSince(ctx, p); err != nil || len(by) > 0 {
			return true, err
		}
	}
	return false, nil
}

// plansDiffer returns the error for plans that differ from the ones that were shown.
func plansDiffer(plans []*v1alpha1.Plan, differ string) error {
	text := "the new plan differs from the one that was shown:\n" + differ + "\nThe files are recorded, and nothing was applied. Read the new plan and approve it:"
	for _, p := range plans {
		if !nothingToDo(p) {
			text += fmt.Sprintf("\n  kubectl hykube show %s -n %s\n  %s", p.Name, p.Namespace, approveCommand(p))
		}
	}
	return &exitError{ExitStale, errors.New(text)}
}

func copies(ms []manifest) []manifest {
	out := make([]manifest, len(ms))
	for i, m := range ms {
		m.object = m.object.DeepCopy()
		out[i] = m
	}
	return out
}
