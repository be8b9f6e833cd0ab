package operation

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// instant matches a time in a message.
var instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// withoutSubject returns a diagnostic without the names of its resource and without times. Two diagnostics with the
// same result say the same about two resources. ok is false for a diagnostic without a resource.
func withoutSubject(d v1alpha1.Diagnostic) (_ v1alpha1.Diagnostic, ok bool) {
	t, err := addrs.Parse(d.Address)
	if err != nil {
		return d, false
	}
	d.Detail = strings.ReplaceAll(d.Detail, t.Mode.KindOf(t.Type)+"/"+t.Name, "")
	d.Detail = instant.ReplaceAllString(strings.ReplaceAll(d.Detail, d.Address, ""), "")
	d.Address = ""
	return d, true
}

const (
	// inFull is the maximum number of diagnostics that are printed in full.
	inFull = 10
	// inFullAlike is the maximum number of those with the same summary, if there are more than inFull.
	inFullAlike = 3
)

// number matches an ID or a number in a summary.
var number = regexp.MustCompile(`[0-9A-Fa-f-]*[0-9][0-9A-Fa-f-]*`)

// diagnosticGroup is what diagnostics have in common that are grouped.
type diagnosticGroup struct {
	severity v1alpha1.Severity
	summary  string
}

func groupOf(d v1alpha1.Diagnostic) diagnosticGroup {
	summary := d.Summary
	if d.Address != "" {
		summary = strings.ReplaceAll(summary, d.Address, "")
	}
	return diagnosticGroup{d.Severity, number.ReplaceAllString(summary, "#")}
}

// PrintDiagnostics prints diagnostics, errors before warnings. Of those that say the same about several resources, it
// prints the first one, and the names of the other resources. If many remain, it prints the first ones of each summary,
// and the number of the others. more returns the command that shows the others, which have the given severity and
// addresses, or "" if there is none; a nil function returns none.
func PrintDiagnostics(s *session.Session, w io.Writer, all []v1alpha1.Diagnostic,
	more func(v1alpha1.Severity, []string) string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b v1alpha1.Diagnostic) int { return cmp.Compare(rank(a), rank(b)) })
	others, seen := map[v1alpha1.Diagnostic][]string{}, map[v1alpha1.Diagnostic]bool{}
	var first []v1alpha1.Diagnostic
	for _, d := range all {
		if seen[d] { // the diagnostics of a plan repeat some of its changes
			continue
		}
		seen[d] = true
		s.Lines.Diagnostic(d)
		key, ok := withoutSubject(d)
		if names, again := others[key]; ok && again {
			others[key] = append(names, diff.Clean(d.Address, false))
			continue
		}
		others[key], first = nil, append(first, d)
	}
	printed, shown := 0, map[diagnosticGroup]int{}
	left, groups := map[diagnosticGroup][]v1alpha1.Diagnostic{}, []diagnosticGroup(nil)
	for _, d := range first {
		group := groupOf(d)
		key, _ := withoutSubject(d)
		if len(first) > inFull && (shown[group] >= inFullAlike || printed >= inFull) {
			if left[group] == nil {
				groups = append(groups, group)
			}
			left[group] = append(left[group], d)
			for _, name := range others[key] {
				left[group] = append(left[group], v1alpha1.Diagnostic{Address: name})
			}
			continue
		}
		printed++
		shown[group]++
		fmt.Fprint(w, manifest.Diagnostic(s, d))
		if names := slices.Compact(others[key]); len(names) > 0 {
			fmt.Fprintf(w, "The same holds for %s: %s\n", diff.Plural(len(names), "other resource"),
				strings.Join(printer.Cut(names, printer.Listed, "and %d more"), ", "))
		}
	}
	for _, group := range groups {
		printLeft(w, group, left[group], shown[group] > 0, more)
	}
}

// Skipped is a change that was not tried, with the reason.
type Skipped struct{ Name, Reason string }

// SkippedLines returns a line for each skipped change. Many that have the same reason share one.
func SkippedLines(all []Skipped) []string {
	names, reasons := map[string][]string{}, []string(nil)
	for _, c := range all {
		if names[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		names[c.Reason] = append(names[c.Reason], c.Name)
	}
	var lines []string
	for _, reason := range reasons {
		of := names[reason]
		if len(of) > printer.MaxSkipped {
			of = []string{fmt.Sprintf("%s, such as %s", diff.Plural(len(of), "resource"), of[0])}
		}
		for _, name := range of {
			lines = append(lines, name+": "+reason)
		}
	}
	return lines
}

// rank sorts errors before warnings.
func rank(d v1alpha1.Diagnostic) int {
	if d.Severity == v1alpha1.SeverityError {
		return 0
	}
	return 1
}

// printLeft prints one line about the diagnostics of a group that are not printed in full. like is true if others of
// the group were.
func printLeft(w io.Writer, group diagnosticGroup, left []v1alpha1.Diagnostic, like bool,
	more func(v1alpha1.Severity, []string) string) {
	var names []string
	for _, d := range left {
		if d.Address != "" {
			names = append(names, d.Address)
		}
	}
	what := fmt.Sprintf("more with the summary %q", diff.Clean(left[0].Summary, true))
	if like {
		what = fmt.Sprintf("more like it (%s)", diff.Clean(left[0].Summary, true))
	}
	line := fmt.Sprintf("… and %s %s", diff.Count(len(left)), what)
	command := ""
	if more != nil {
		command = more(group.severity, names)
	}
	switch {
	case command != "":
		line += ": " + command
	case len(names) > 0:
		line += ": " + diff.Clean(strings.Join(printer.Cut(names, printer.ListedChanges, "and %d more"), ", "), true)
	}
	fmt.Fprintln(w, line)
}

// FailedInstances returns the function that names the command for failed instances of one ResourceSet.
func FailedInstances(changes map[int32]*v1alpha1.PlanChange) func(v1alpha1.Severity, []string) string {
	return func(severity v1alpha1.Severity, addresses []string) string {
		if severity != v1alpha1.SeverityError || len(addresses) == 0 {
			return ""
		}
		of := map[string]bool{}
		for _, a := range addresses {
			of[a] = true
		}
		set, namespace := "", ""
		reasons := map[string]bool{}
		for _, c := range changes {
			switch {
			case !of[c.Address]:
			case c.Object.Set == "" || set != "" && set != c.Object.Set:
				return ""
			default:
				set, namespace = c.Object.Set, c.Object.Namespace
				reasons[failureReason(c)] = true
			}
		}
		if set == "" {
			return ""
		}
		return fmt.Sprintf("kubectl hykube instances %s --reason %s -o wide -n %s", set,
			strings.Join(slices.Sorted(maps.Keys(reasons)), ","), namespace)
	}
}

// failureReason returns the reason of the object of a failed change.
func failureReason(c *v1alpha1.PlanChange) string {
	switch {
	case c.State == v1alpha1.ChangeUnknown:
		return v1alpha1.ReasonCreateUnknown
	case diff.HalfDone(c) && c.Left == "":
		return v1alpha1.ReasonReplaceIncomplete
	}
	return v1alpha1.ReasonApplyFailed
}

// DiagnosticsOf returns the diagnostics of a change. If least is Error and there is no error, it adds one with the
// message of the change. It omits the warnings that were printed with the plan.
func DiagnosticsOf(s *session.Session, c *v1alpha1.PlanChange, least v1alpha1.Severity) []v1alpha1.Diagnostic {
	var out []v1alpha1.Diagnostic
	failed := false
	for _, d := range c.Diagnostics {
		d.Address = cmp.Or(d.Address, c.Address)
		if d.Severity != v1alpha1.SeverityWarning || !s.Printed[d] {
			out = append(out, d)
		}
		failed = failed || d.Severity == v1alpha1.SeverityError
	}
	if !failed && least == v1alpha1.SeverityError {
		out = append(out, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: printer.OneLine(c),
			Address: c.Address})
	}
	return out
}
