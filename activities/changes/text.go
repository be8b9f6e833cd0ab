package changes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"
)

// ListObstacles names the first few obstacles and counts the others. It gives each reason once. An obstacle may have no
// reason.
func ListObstacles(obstacles []Obstacle) string {
	var shown []Obstacle
	count := map[string]int{} // by reason
	for _, o := range obstacles {
		if count[o.Why]++; o.Why == "" || count[o.Why] == 1 {
			shown = append(shown, o)
		}
	}
	named := 0
	var texts []string
	for _, o := range shown[:min(len(shown), maxNamed)] {
		switch n := count[o.Why]; {
		case o.Why == "":
			texts, named = append(texts, o.Address), named+1
		case n == 1:
			texts, named = append(texts, o.Address+": "+o.Why), named+1
		default:
			texts, named = append(texts, fmt.Sprintf("%s and %s: %s", o.Address, Counted(n-1, "other", "others"),
				o.Why)), named+n
		}
	}
	if more := len(obstacles) - named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// first joins the first few names and counts the others.
func first(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Counted formats a count with its noun: "1 change" or "3 changes".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// LostRun returns a warning that the outcome of an action's run is unknown.
func LostRun(addr lang.Address, i *ledger.Intent) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{
		Severity: v1alpha1.SeverityWarning, Summary: "Outcome of an action is unknown", Address: addr.String(),
		Detail: fmt.Sprintf("At %s a run of %s started, and no answer was recorded. The action may have run. Check what it did. To run it again, name it in the plan's spec.invoke, or change its spec.",
			i.At.Format(time.RFC3339), addr),
	}
}

// maxNamed is the maximum number of changes in a condition.
const maxNamed = 5

// LostCreate returns the error for planning a resource whose create has an unknown outcome.
func LostCreate(r *resource.Resource, rec *ledger.Instance) error {
	addr := r.Address.String()
	others := fmt.Sprintf(" To plan the other resources before that: kubectl hykube plan --exclude %s -n %s",
		shell.Word(addr), r.Ref.Namespace)
	if set, _, keyed := r.Address.Set(); r.Ref.Set != "" && keyed {
		kind := "ResourceSet"
		if r.Address.Module != "" {
			kind = "block of the Module"
		}
		others += fmt.Sprintf(", or --exclude %s for all instances of the %s %q", set, kind, r.Ref.Set)
	}
	return createUnknown("plan", r, lostCreate(r.Ref, addr, rec)+others)
}

// InterruptedCreate returns the error for applying a change whose create an earlier process of the server began.
func InterruptedCreate(r *resource.Resource, rec *ledger.Instance) error {
	return createUnknown("apply", r, beganCreate(r.Address.String(), rec.Intent)+
		", and the server ended before it recorded the provider's answer. The resource may exist."+notDeposed(rec))
}

func createUnknown(operation string, r *resource.Resource, detail string) error {
	return &diag.Failure{Operation: operation,
		Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "", "Outcome of a create is unknown", detail)}}
}

// lostCreate does not say why no answer was recorded, because a later plan does not know that.
func lostCreate(ref v1alpha1.ObjectReference, addr string, rec *ledger.Instance) string {
	return beganCreate(addr, rec.Intent) + ", and no answer of the provider was recorded. " + AfterLostCreate(ref) +
		notDeposed(rec)
}

// notDeposed warns users of the IDs of the instances that a replacement deposed, which its create did not make; ""
// without any.
func notDeposed(rec *ledger.Instance) string {
	var ids []string
	for i := range rec.Deposed {
		if id := rec.Deposed[i].ID(); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf(" Do not adopt %s: the replacement deposed it, and the next plan destroys it.",
		strings.Join(ids, " or "))
}

func beganCreate(addr string, intent *ledger.Intent) string {
	return fmt.Sprintf("At %s a create of %s started", intent.At.Format(time.RFC3339), addr)
}

// AfterLostCreate tells users how to resolve a create with an unknown outcome.
func AfterLostCreate(ref v1alpha1.ObjectReference) string {
	resolve := ResolveCommand(ref)
	if ref.Set != "" && v1alpha1.OwnerKind(ref.Name) == "Module" {
		return fmt.Sprintf("Check whether the resource exists. If it exists, add an import block with its ID to the files of the Module. If it does not: %s --retry. "+
			"To stop managing it, remove it from the files or the inputs of the Module %q: the next plan then forgets the create and destroys nothing.", resolve, ref.Set)
	}
	text := fmt.Sprintf("Check whether the resource exists. If it exists: %s --adopt ID. If it does not: %s --retry. ",
		resolve, resolve)
	if ref.Set != "" {
		return text + fmt.Sprintf("To stop managing it, remove its key from the ResourceSet %q, or lower the count: the next plan then forgets the create and destroys nothing.", ref.Set)
	}
	return text + fmt.Sprintf("To stop managing it: %s --forget.", resolve)
}

// ImportField names the field that imports the infrastructure of an object.
func ImportField(ref v1alpha1.ObjectReference) string {
	switch {
	case ref.Set == "":
		return "lifecycle.import"
	case v1alpha1.OwnerKind(ref.Name) == "Module":
		return fmt.Sprintf("an import block of the Module %q", ref.Set)
	}
	return fmt.Sprintf("spec.imports of the ResourceSet %q", ref.Set)
}

// RemoveImport tells users how to remove the import of an object.
func RemoveImport(ref v1alpha1.ObjectReference) string {
	if ref.Set != "" && v1alpha1.OwnerKind(ref.Name) == "Module" {
		return fmt.Sprintf("remove the import block from the files of the Module %q", ref.Set)
	}
	if _, key, ok := v1alpha1.ParseInstanceName(ref.Name); ok && ref.Set != "" {
		return fmt.Sprintf("remove the entry with the key %s from %s (kubectl edit resourceset %s -n %s)", key.Text(),
			ImportField(ref), ref.Set, ref.Namespace)
	}
	return "remove lifecycle.import"
}

// ResolveFlags returns the flags with which a create of an object with an unknown outcome can be resolved.
func ResolveFlags(ref v1alpha1.ObjectReference) string {
	if v1alpha1.IsVirtualName(ref.Name) { // its set has it
		return "(--adopt ID | --retry)"
	}
	return "(--adopt ID | --retry | --forget)"
}

// ResolveCommand returns the command that resolves a create with an unknown outcome, without the flag that says how.
func ResolveCommand(ref v1alpha1.ObjectReference) string {
	return fmt.Sprintf("kubectl hykube resolve %s -n %s", shell.Word(ref.Kind+"/"+ref.Name), ref.Namespace)
}

// WhyStalled returns the reason and message for an object that a plan could not change. If the outcome of the object's
// create is unknown, it returns that reason instead, because only the object tells users that the resource may exist.
func WhyStalled(ctx context.Context, l *ledger.Ledger, ref v1alpha1.ObjectReference, addr, reason,
	message string) (string, string, error) {
	rec, err := l.Instance(ctx, ref)
	if err != nil {
		return reason, message, err
	}
	lost, err := unknownCreate(ctx, l, rec, addr)
	if err != nil || lost == "" {
		return reason, message, err
	}
	return v1alpha1.ReasonCreateUnknown, lost + " The latest plan did not resolve this: " + message, nil
}

// unknownCreate returns the message for an object whose create has an unknown outcome; "" for other objects, and while
// the create may still run.
func unknownCreate(ctx context.Context, l *ledger.Ledger, rec *ledger.Instance, addr string) (string, error) {
	if rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate || rec.Exists() {
		return "", nil
	}
	abandoned, err := IntentAbandoned(ctx, l, rec.Intent)
	if err != nil || !abandoned {
		return "", err
	}
	return lostCreate(rec.Object, addr, rec), nil
}

// PlanVerbs holds the phrase for each action.
var PlanVerbs = map[v1alpha1.Action]string{
	v1alpha1.ActionCreate: "create it", v1alpha1.ActionUpdate: "update it", v1alpha1.ActionReplace: "replace it",
	v1alpha1.ActionDelete: "destroy it", v1alpha1.ActionForget: "forget it", v1alpha1.ActionRead: "read it",
	v1alpha1.ActionInvoke: "run it", v1alpha1.ActionNoOp: "record it",
}

// HoldText returns the reason why a change is left out because of others. address returns their addresses, and state is
// their state: "blocked" or "stale". HoldText returns "" if the change is not left out.
func HoldText(h plan.Hold, address func(i int) string, state string) string {
	names := []string{address(h.By)}
	for _, i := range h.Also {
		names = append(names, address(i))
	}
	others, one := List(names, h.More), len(h.Also) == 0
	switch {
	case h.Reason == plan.HeldByReference && one:
		return fmt.Sprintf("it depends on %s, which is %s", others, state)
	case h.Reason == plan.HeldByReference:
		return fmt.Sprintf("it depends on %s, which are %s", others, state)
	case h.Reason == plan.HeldUnder && one:
		return fmt.Sprintf("%s, which depends on it, stays because its own change is %s", others, state)
	case h.Reason == plan.HeldUnder:
		return fmt.Sprintf("%s, which depend on it, stay because their own changes are %s", others, state)
	case h.Reason == plan.HeldWith && one:
		return fmt.Sprintf("it depends on %s, which stays because its own change is %s", others, state)
	case h.Reason == plan.HeldWith:
		return fmt.Sprintf("it depends on %s, which stay because their own changes are %s", others, state)
	default:
		return ""
	}
}

// RefusedText returns the message of a plan that policies refuse. why names the rules.
func RefusedText(why string) string { return "A policy refuses the plan. " + why }

// WaitsText returns the message of a plan with spec.approval Automatic that waits for a person.
func WaitsText(why string) string {
	return "The plan waits for an approval although spec.approval is Automatic: " + why + "."
}

// AwaitingText returns the message of a plan that waits for an approval. missing are the approvals that policies
// require; "" without any.
func AwaitingText(po *v1alpha1.Plan, s *v1alpha1.PlanStatus, missing string) string {
	texts := []string{fmt.Sprintf("%s. Read it with kubectl hykube show %s -n %s, then approve or discard it.",
		s.Summary.Text, po.Name, po.Namespace)}
	if given := s.Approvals; len(given) > 0 && given[len(given)-1].By != nil {
		texts = []string{fmt.Sprintf("Approved by %s.", given[len(given)-1].By.Username)}
	}
	if missing != "" {
		texts = append(texts, missing)
	}
	if automatic := s.AutomaticApproval; automatic != nil && !automatic.Granted {
		texts = append(texts, automatic.Message)
	}
	return strings.Join(texts, " ")
}

// List formats a list: "a", "a and b", or "a, b and 3 more".
func List(names []string, more int) string {
	if more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// ListRunning lists changes with the times at which their calls began, the oldest first.
func ListRunning(began map[*ledger.Change]time.Time) string {
	order := slices.SortedFunc(maps.Keys(began), func(a, b *ledger.Change) int {
		return cmp.Or(began[a].Compare(began[b]), strings.Compare(a.Address, b.Address))
	})
	var names []string
	for _, c := range order {
		names = append(names, fmt.Sprintf("%s (since %s)", c.Address, began[c].UTC().Format(time.TimeOnly+"Z")))
	}
	return first(names)
}
