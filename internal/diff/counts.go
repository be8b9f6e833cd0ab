package diff

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
)

// CountApplied counts the applied part of a change: all, nothing, or the first half of a replace.
func CountApplied(sum *v1alpha1.PlanSummary, c *v1alpha1.PlanChange) {
	switch {
	case c.State == v1alpha1.ChangeDone:
		sum.Count(c)
	case !HalfDone(c):
	case c.Left != "": // both halves made or destroyed an instance
		sum.Create++
		sum.Delete++
	case c.CreateBeforeDestroy:
		sum.Create++
	default:
		sum.Delete++
	}
}

// HalfDone reports whether a replace stopped between its destroy and its create, in either order.
func HalfDone(c *v1alpha1.PlanChange) bool {
	return c.HalfDone && c.State != v1alpha1.ChangeDone && c.State != v1alpha1.ChangeRunning
}

// Changes returns the number of changes in a summary that have an action. A change that only imports or moves counts as
// NoOp.
func Changes(s v1alpha1.PlanSummary) int {
	return int(s.Create + s.Update + s.Replace + s.Delete + s.Forget + s.Read + s.Invoke)
}

// empty reports whether a plan does nothing.
func empty(s v1alpha1.PlanSummary) bool { return Changes(s) == 0 && s.Import+s.Move == 0 }

// counts is a summary with the symbols of its changes.
type counts struct {
	v1alpha1.PlanSummary
	signs map[string]bool
	// kept is the number of replaces that forget the old instance. Each counts as a create and a forget.
	kept int32
	// gone is the number of forgets of resources that do not exist.
	gone int32
}

func (n *counts) add(c *v1alpha1.PlanChange) {
	if n.signs == nil {
		n.signs = map[string]bool{}
	}
	n.PlanSummary.Count(c)
	if c.Action == v1alpha1.ActionReplace && c.Forget {
		n.kept++
	}
	if FoundGone(c) {
		n.gone++
	}
	if c.Action != v1alpha1.ActionRead || c.Mode == v1alpha1.ModeData {
		n.signs[Symbol(c)] = true // a change that only updates a record has no symbol
	}
}

// legend explains the symbols that a plan uses.
func (n *counts) legend(style Style) []string {
	var items []string
	for _, i := range [][2]string{
		{"+", "create"}, {"~", "update in-place"}, {"-", "destroy"}, {"-/+", "destroy and then create replacement"},
		{"+/-", "create replacement and then destroy"}, {"+/.", "create replacement and forget the old instance"},
		{".", "forget without destroying"}, {"<=", "read (data sources)"}, {">", "invoke (actions)"},
	} {
		if n.signs[i[0]] {
			items = append(items, style.symbol(i[0])+" "+i[1])
		}
	}
	if len(items) == 0 {
		return nil
	}
	return []string{"Symbols: " + strings.Join(items, ", "), ""}
}

// replaceRow returns the symbol of the plan's replacements and their description.
func (n *counts) replaceRow() (sym, what string) {
	switch {
	case n.signs["-/+"] && n.signs["+/-"]:
		return "-/+", "to replace"
	case n.signs["+/-"]:
		return "+/-", "to replace: the new instance is created before the old one is destroyed"
	}
	return "-/+", "to replace: destroyed, then created again"
}

// deferral returns the reason why a plan leaves out all changes. Its diagnostics name each resource.
func deferral(plan *v1alpha1.Plan) string {
	if len(plan.Status.WaitsFor) == 0 {
		return "Providers deferred the changes; make another plan later."
	}
	other := "Another plan"
	if name := plan.Status.WaitsFor[0].Name; name != "" {
		other = "Plan " + name
	}
	return other + " is changing the resources; make another plan when it has ended."
}

// Verdict returns the line that summarizes the changes of a plan.
func Verdict(plan *v1alpha1.Plan, sum v1alpha1.PlanSummary, style Style) string {
	if meta.IsStatusConditionFalse(plan.Status.Conditions, v1alpha1.ConditionPlanned) {
		return style.Bold(style.Red("The plan could not be made.")) + " Nothing was changed."
	}
	if empty(sum) {
		if plan.Spec.RefreshOnly && sum.Drifted > 0 {
			return style.Bold("Plan:") + fmt.Sprintf(" %s to update; the infrastructure stays as it is.",
				Plural(int(sum.Drifted), "record"))
		}
		if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil &&
			ready.Reason == v1alpha1.ReasonDeferred {
			return style.Bold("No change can be applied now.") + " " + deferral(plan)
		}
		line := style.Bold(style.Green("No changes.")) + " "
		if sum.NotRead > 0 {
			return line + sum.Unread()
		}
		return line + "The infrastructure matches the objects."
	}
	line := style.Bold("Plan:")
	if sum.Import > 0 {
		line += fmt.Sprintf(" %s to import,", Count(int(sum.Import)))
	}
	line += fmt.Sprintf(" %s to add, %s to change, %s to destroy.",
		Count(int(sum.Create+sum.Replace)), Count(int(sum.Update)), Count(int(sum.Delete+sum.Replace)))
	// The sentence is Terraform's. The counts that it lacks follow it.
	var also []string
	for _, x := range []struct {
		n    int32
		what string
	}{{sum.Replace, "replaced"}, {sum.Move, "moved"}, {sum.Forget, "forgotten"}, {sum.Read, "read"},
		{sum.Invoke, "invoked"}} {
		if x.n > 0 {
			also = append(also, Count(int(x.n))+" "+x.what)
		}
	}
	if len(also) > 0 {
		line += " (" + strings.Join(also, ", ") + ")"
	}
	if sum.Blocked > 0 {
		line += " " + style.Bold(style.Red(Count(int(sum.Blocked))+" blocked."))
	}
	return line
}
