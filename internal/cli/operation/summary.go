package operation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// planAnew returns the next step after a plan that was not applied completely.
func planAnew(p *v1alpha1.Plan) string {
	return fmt.Sprintf("make a new plan for the rest: kubectl hykube plan -n %s", p.Namespace)
}

// outcome holds the results of a plan's changes, with a line for each that needs one.
type outcome struct {
	blocked, destroyed, created, tainted, unchecked, stale, unknown []string
	skipped                                                         []Skipped
	made, failed                                                    int
	// notCreated holds the changes whose create was called and failed without a state.
	notCreated []*v1alpha1.PlanChange
	// diagnostics holds the errors and warnings of the changes.
	diagnostics []v1alpha1.Diagnostic
}

// printSummary prints the errors of a plan in full, the skipped changes, the counts and the next steps.
func printSummary(ctx context.Context, s *session.Session, p *v1alpha1.Plan, how *ending, took time.Duration,
	next string) error {
	operation := "apply"
	if p.Spec.Destroy {
		operation = "destroy"
	}
	if planapi.Ready(p) { // as in Terraform, no counts follow an error
		s.Lines.Summary(p, how.made, operation)
	}
	var o outcome
	for _, i := range slices.Sorted(maps.Keys(how.changes)) {
		c := how.changes[i]
		addOutcome(s, &o, c, planapi.Ready(p))
		if c.State == v1alpha1.ChangeFailed && c.MayExist {
			o.notCreated = append(o.notCreated, c)
		}
	}
	if progress := p.Status.Progress; total(p) > eachChange && progress != nil {
		o.made, o.failed = int(progress.Done), int(progress.Failed)-len(o.stale)-len(o.unknown)
	}
	if !planapi.Ready(p) {
		o.diagnostics = append(o.diagnostics, p.Status.Diagnostics...)
	}
	o.diagnostics = append(o.diagnostics, p.Status.Checks...)
	PrintDiagnostics(s, s.ErrOut, o.diagnostics, FailedInstances(how.changes))
	printer.List(s.Terminal, s.ErrOut, "Blocked, and not changed:", o.blocked)
	printer.List(s.Terminal, s.ErrOut, "Destroyed and not created again:", o.destroyed)
	printer.List(s.Terminal, s.ErrOut, "Destroyed, and the new instance is tainted:", o.tainted)
	printer.List(s.Terminal, s.ErrOut, "Replaced, but a postcondition of the new instance failed:", o.unchecked)
	printer.List(s.Terminal, s.ErrOut, "Replaced, but the old instance still exists:", o.created)
	printer.List(s.Terminal, s.ErrOut, "Not tried:", SkippedLines(o.skipped))
	printer.List(s.Terminal, s.ErrOut, "Not applied, because they changed after the plan was made:", o.stale)
	printer.List(s.Terminal, s.ErrOut, "Started, and the outcome was lost; check whether these exist:", o.unknown)

	where := fmt.Sprintf("Plan %s: kubectl hykube status %s -n %s, or kubectl hykube ui for the run itself.", p.Name,
		p.Name, p.Namespace)
	if planapi.Ready(p) {
		return printComplete(ctx, s, p, how.made, o, took, where)
	}
	for _, c := range how.changes {
		if diff.HalfDone(c) && c.State == v1alpha1.ChangeFailed {
			o.failed-- // it counts as half done
		}
	}
	return printIncomplete(s, p, how.made, o, took, next, where)
}

// addOutcome adds the result of a change.
func addOutcome(s *session.Session, o *outcome, c *v1alpha1.PlanChange, complete bool) {
	switch {
	case !diff.HalfDone(c) || c.State == v1alpha1.ChangeUnknown: // the result of the other half is unknown
	case c.Left == v1alpha1.LeftTainted:
		o.tainted = append(o.tainted, diff.Name(c)+": "+printer.OneLine(c)+"; the next plan replaces it")
	case c.Left == v1alpha1.LeftUnchecked:
		o.unchecked = append(o.unchecked, diff.Name(c)+": "+printer.OneLine(c)+"; the next plan checks it again")
	case c.CreateBeforeDestroy:
		o.created = append(o.created, diff.Name(c)+": "+printer.OneLine(c)+"; the next plan destroys it")
	default:
		o.destroyed = append(o.destroyed, diff.Name(c)+": "+printer.OneLine(c)+"; the next plan creates it")
	}
	switch c.State {
	case v1alpha1.ChangeDone:
		o.made++
		o.diagnostics = append(o.diagnostics, DiagnosticsOf(s, c, v1alpha1.SeverityWarning)...)
	case v1alpha1.ChangeFailed:
		o.failed++
		o.diagnostics = append(o.diagnostics, DiagnosticsOf(s, c, v1alpha1.SeverityError)...)
	case v1alpha1.ChangeUnknown:
		o.diagnostics = append(o.diagnostics, DiagnosticsOf(s, c, v1alpha1.SeverityError)...)
		o.unknown = append(o.unknown, diff.Name(c))
	case v1alpha1.ChangeStale:
		o.stale = append(o.stale, diff.Name(c)+": "+printer.OneLine(c))
	case v1alpha1.ChangeSkipped, v1alpha1.ChangePending:
		switch {
		case diff.HalfDone(c):
		case c.Blocked != "" && complete:
			o.blocked = append(o.blocked, diff.Name(c)+": "+c.Blocked)
		default:
			o.skipped = append(o.skipped, Skipped{diff.Name(c), skipReason(c)})
		}
	}
}

// printComplete prints the end of a plan that was applied, except for blocked changes.
func printComplete(ctx context.Context, s *session.Session, p *v1alpha1.Plan, sum v1alpha1.PlanSummary, o outcome,
	took time.Duration, where string) error {
	headline, forgotten := "Apply complete!", afterForget(ctx, s, p, sum)
	switch blocked := len(o.blocked) > 0; {
	case p.Spec.Destroy && blocked:
		headline = "Destroy complete, except for blocked changes:"
	case p.Spec.Destroy:
		headline = "Destroy complete!"
		if next := afterDestroy(ctx, s, p, forgotten != ""); next != "" {
			where = next + "\n" + where
		}
	case blocked:
		headline = "Apply complete, except for blocked changes:"
	}
	fmt.Fprintf(s.Out, "\n%s %s, in %s.\n%s%s%s\n", s.Style.Bold(s.Style.Green(headline)), printer.Counts(sum),
		terminal.Elapsed(took), forgotten, leftOut(p), s.Style.Dim(where))
	if len(o.blocked) > 0 {
		return exit.Silent(exit.Refused)
	}
	return nil
}

// leftOut returns the text about resources outside of the plan that refer to its changes, or "" if there are none.
func leftOut(p *v1alpha1.Plan) string {
	if p.Status.Summary == nil || p.Status.Summary.Referrers == 0 {
		return ""
	}
	what := "1 resource that the plan left out refers"
	if n := p.Status.Summary.Referrers; n > 1 {
		what = diff.Count(int(n)) + " resources that the plan left out refer"
	}
	return fmt.Sprintf("%s to what changed. To plan them: kubectl hykube plan -n %s\n", what, p.Namespace)
}

// printIncomplete prints the end of any other plan and returns its exit code.
func printIncomplete(s *session.Session, p *v1alpha1.Plan, sum v1alpha1.PlanSummary, o outcome, took time.Duration,
	next, where string) error {
	code, headline := exit.Failed, "Apply incomplete:"
	switch {
	case planapi.Discarded(p):
		headline = "Discarded:"
	case planapi.Stale(p):
		code, headline, next = exit.Stale, "The plan is stale:", "make a new plan"
	case p.Status.Cancel != nil:
		headline = "Cancelled:"
	}
	if len(o.unknown) > 0 {
		next = afterUnknown(p)
	}
	text := fmt.Sprintf("%s of %s changes made (%s)", diff.Count(o.made), diff.Count(total(p)), printer.Counts(sum))
	for _, part := range []struct {
		n    int
		what string
	}{
		{o.failed, "failed"}, {len(o.unknown), "with an unknown outcome"}, {len(o.stale), "stale"},
		{len(o.destroyed), "destroyed and not created again"},
		{len(o.tainted), "destroyed, and the new instance is tainted"},
		{len(o.unchecked), "replaced, but a postcondition failed"},
		{len(o.created), "replaced, but the old instance still exists"}, {len(o.skipped), "not tried"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %s %s", diff.Count(part.n), part.what)
		}
	}
	fmt.Fprintf(s.ErrOut, "\n%s %s, in %s.\n", s.Style.Bold(s.Style.Red(headline)), text, terminal.Elapsed(took))
	// If changes failed, the plan's message only repeats the lines above.
	if m := planapi.Why(p); m != "" && o.failed+len(o.unknown)+len(o.stale)+len(o.destroyed)+len(o.tainted)+
		len(o.unchecked)+len(o.created) == 0 {
		fmt.Fprintln(s.ErrOut, diff.Clean(m, true))
	}
	fmt.Fprintf(s.ErrOut, "The changes that succeeded are recorded; %s.\n%s%s\n", next,
		afterFailedCreate(p, o.notCreated), s.Style.Dim(where))
	return exit.Silent(code)
}

// replacesFirst reports whether a change creates the new instance while its object still shows the old one.
func replacesFirst(c *v1alpha1.PlanChange) bool {
	return c.Action == v1alpha1.ActionReplace && c.CreateBeforeDestroy
}

// afterFailedCreate returns what to check after failed creates, or "" if there are none. A provider's error does not
// tell whether the resource was created.
func afterFailedCreate(p *v1alpha1.Plan, failed []*v1alpha1.PlanChange) string {
	const check = "Before you apply again, check with the cloud whether "
	var gone, second []*v1alpha1.PlanChange
	for _, c := range failed {
		if replacesFirst(c) {
			second = append(second, c)
		} else {
			gone = append(gone, c)
		}
	}
	text := ""
	switch len(gone) {
	case 0:
	case 1:
		text = fmt.Sprintf(check+"%s exists; if so, import it: kubectl hykube import %s ID -n %s\n", diff.Name(gone[0]),
			shell.Word(gone[0].Object.Kind+"/"+gone[0].Object.Name), p.Namespace)
	default:
		text = fmt.Sprintf(check+"the resources whose create failed exist; if so, import them: kubectl hykube import KIND/NAME ID -n %s\n", p.Namespace)
	}
	if len(second) > 0 { // an import is rejected while the old instance is recorded
		var names []string
		for _, c := range second {
			names = append(names, diff.Name(c))
		}
		text += check + strings.Join(printer.Cut(names, printer.ListedChanges, "%d more"), " or ") +
			" has a second instance, which Hykube did not record; if so, delete it there\n"
	}
	return text
}

// afterUnknown returns the next step after a create with an unknown outcome, which blocks plans.
func afterUnknown(p *v1alpha1.Plan) string {
	return fmt.Sprintf("check whether the resources with an unknown outcome exist. Until you resolve them, plans of them fail.\n"+
		"If one exists: kubectl hykube resolve KIND/NAME --adopt ID -n %[1]s\n"+
		"If it does not exist: kubectl hykube resolve KIND/NAME --retry -n %[1]s\n"+
		"If none of them exists: kubectl hykube resolve --all --retry -n %[1]s\n"+
		"To plan the other resources before that: kubectl hykube plan --exclude TYPE.NAME -n %[1]s", p.Namespace)
}

// afterDestroy returns the next step for objects whose infrastructure was destroyed, or "" if none of them stays.
func afterDestroy(ctx context.Context, s *session.Session, p *v1alpha1.Plan, forgotten bool) string {
	ns, err := s.Resource(session.Namespaces, "").Get(ctx, p.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ns.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("Namespace %s is being deleted. The server removes it when none of its resources has infrastructure.", p.Namespace)
	}
	subject := staying(ctx, s, p)
	if subject == "" {
		return ""
	}
	if forgotten {
		return subject + " stay: kubectl delete removes them."
	}
	if gone := configsLost(ctx, s, p); len(gone) > 0 {
		return fmt.Sprintf("%s stay, without infrastructure: kubectl delete removes them. They used ProviderConfigs that are deleted: %s.\n"+
			"Record these again before you apply the objects: without them the provider may create the infrastructure in another account or region.", subject, strings.Join(gone, ", "))
	}
	return subject + " stay, without infrastructure: kubectl hykube apply --all creates it again, kubectl delete removes them."
}

// staying names the objects that stay after a destroy, or returns "" if none does. Objects that were marked for
// deletion do not stay. After an error, it names all objects, because the result is only part of a hint.
func staying(ctx context.Context, s *session.Session, p *v1alpha1.Plan) string {
	const all = "The objects"
	var kinds []session.Kind
	destroyed := map[[2]string]bool{} // by kind and name
	for c, err := range planapi.Changes(ctx, s, p) {
		if err != nil {
			return all
		}
		if c.State != v1alpha1.ChangeDone || c.Deposed != "" {
			continue
		}
		destroyed[[2]string{c.Object.Kind, c.Object.Name}] = true
		if slices.ContainsFunc(kinds, func(k session.Kind) bool { return k.Kind == c.Object.Kind }) {
			continue
		}
		gvr, _, err := s.Mapping(schema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind))
		if err != nil {
			return all
		}
		kinds = append(kinds, session.Kind{GVR: gvr, Kind: c.Object.Kind})
	}
	count := len(destroyed)
	denied, err := objects.EachObject(ctx, s, kinds, p.Namespace, "",
		func(k session.Kind, u *unstructured.Unstructured) {
			if u.GetDeletionTimestamp() == nil {
				delete(destroyed, [2]string{k.Kind, u.GetName()})
			}
		})
	switch {
	case err != nil || len(denied) > 0 || len(destroyed) == 0:
		return all
	case len(destroyed) == count:
		return ""
	}
	return "The objects that were not marked for deletion"
}

// configsLost returns the ProviderConfigs of destroyed resources that are deleted or being deleted.
func configsLost(ctx context.Context, s *session.Session, p *v1alpha1.Plan) []string {
	var out []string
	seen := map[string]bool{"": true}
	for c, err := range planapi.Changes(ctx, s, p) {
		if err != nil {
			return out // the hint only becomes shorter
		}
		if seen[c.ProviderConfig] {
			continue
		}
		seen[c.ProviderConfig] = true
		cfg, err := s.Resource(v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"), p.Namespace).Get(ctx,
			c.ProviderConfig, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && cfg.GetDeletionTimestamp() != nil {
			out = append(out, c.ProviderConfig)
		}
	}
	slices.Sort(out)
	return out
}

// skipReason returns why a change was not attempted.
func skipReason(c *v1alpha1.PlanChange) string {
	if c.Message == "" && c.State == v1alpha1.ChangePending {
		return "the plan ended before it was tried"
	}
	return printer.OneLine(c)
}
