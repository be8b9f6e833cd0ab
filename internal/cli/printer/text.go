package printer

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/diff"
)

// ActionVerbs holds, for each action, the verbs for its begin, its end, and its course.
var ActionVerbs = map[v1alpha1.Action][3]string{
	v1alpha1.ActionCreate:  {"Creating", "Creation", "creating"},
	v1alpha1.ActionUpdate:  {"Modifying", "Modifications", "updating"},
	v1alpha1.ActionReplace: {"Replacing", "Replacement", "replacing"},
	v1alpha1.ActionDelete:  {"Destroying", "Destruction", "destroying"},
	v1alpha1.ActionRead:    {"Refreshing", "Refresh", "refreshing"},
	v1alpha1.ActionForget:  {"Forgetting", "Removal of its record", "forgetting"},
	v1alpha1.ActionInvoke:  {"Invoking", "Invocation", "invoking"},
}

// Verbs returns the verbs for a change.
func Verbs(c *v1alpha1.PlanChange) [3]string {
	switch {
	case c.Action == v1alpha1.ActionRead && c.Mode == v1alpha1.ModeData:
		return [3]string{"Reading", "Read", "reading"}
	case c.Action == v1alpha1.ActionNoOp && c.Importing != nil:
		return [3]string{"Importing", "Import", "importing"}
	case c.Action == v1alpha1.ActionNoOp:
		return [3]string{"Moving", "Move", "moving"}
	}
	return ActionVerbs[c.Action]
}

// ElapsedSeconds formats a duration without fractions of a second.
func ElapsedSeconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return terminal.Elapsed(d)
}

// OneLine returns the shortest text with the reason of a change's state.
func OneLine(c *v1alpha1.PlanChange) string {
	if c.Message != "" {
		return Flat(c.Message)
	}
	for _, d := range c.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			return Flat(d.Summary)
		}
	}
	return "no reason was given"
}

// MaxSkipped is the maximum number of skipped objects with a line of their own.
const MaxSkipped = 3

// Flat joins the lines of a text and makes it safe to print.
func Flat(text string) string {
	return diff.Clean(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " "),
		false)
}

// Age returns the time since a moment, as kubectl prints it.
func Age(t time.Time) string { return ElapsedSeconds(max(0, time.Since(t))) }

// ShortList shortens a long list.
func ShortList(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most-1]), fmt.Sprintf("and %d more", len(names)-most+1))
}

const (
	// ListedChanges is the number of objects that are listed before a plan.
	ListedChanges = 10
)

// Facts returns a function that prints a named fact, unless the fact is empty.
func Facts(w io.Writer) func(name, fact string) {
	return func(name, fact string) {
		if fact != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, fact)
		}
	}
}

// Listed is the maximum number of lines of a list.
const Listed = 20

// Cut shortens a list. more is the format of the last entry, with the number of omitted entries.
func Cut(list []string, most int, more string) []string {
	if rest := len(list) - most; rest > 0 {
		return append(list[:most:most], fmt.Sprintf(more, rest))
	}
	return list
}

// List prints a list with a title. It prints nothing for an empty list.
func List(s *terminal.Terminal, w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w, s.Style.Bold(title))
	for i, l := range lines {
		if i == Listed {
			fmt.Fprintf(w, "  … and %s more\n", diff.Count(len(lines)-i))
			return
		}
		fmt.Fprintln(w, "  "+l)
	}
}

// Counts returns "3 added, 1 changed, 0 destroyed". As in Terraform, a replacement counts as added and destroyed.
func Counts(sum v1alpha1.PlanSummary) string {
	var parts []string
	also := func(n int32, what string) {
		if n > 0 {
			parts = append(parts, diff.Count(int(n))+" "+what)
		}
	}
	also(sum.Import, "imported")
	parts = append(parts,
		diff.Count(int(sum.Create+sum.Replace))+" added",
		diff.Count(int(sum.Update))+" changed",
		diff.Count(int(sum.Delete+sum.Replace))+" destroyed",
	)
	if diff.Changes(sum) == 0 && sum.Import+sum.Move == 0 && sum.Drifted > 0 {
		return diff.Count(int(sum.Drifted)) + " refreshed"
	}
	also(sum.Move, "moved")
	also(sum.Forget, "forgotten")
	also(sum.Read, "read")
	also(sum.Invoke, "invoked")
	return strings.Join(parts, ", ")
}
