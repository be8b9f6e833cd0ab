package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// instant matches a time in a message.
var instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// withoutSubject returns a diagnostic without the names of its resource and without times. Two diagnostics with the same
// result say the same about two resources. ok is false for a diagnostic without a resource.
func withoutSubject(d v1alpha1.Diagnostic) (_ v1alpha1.Diagnostic, ok bool) {
	t, err := parseTarget(d.Address)
	if err != nil {
		return d, false
	}
	d.Detail = strings.ReplaceAll(d.Detail, t.mode.KindOf(t.typ)+"/"+t.name, "")
	d.Detail = instant.ReplaceAllString(strings.ReplaceAll(d.Detail, d.Address, ""), "")
	d.Address = ""
	return d, true
}

// printTogether prints diagnostics. Of those that say the same about several resources, it prints the first one, and the
// names of the other resources.
func (s *session) printTogether(w io.Writer, all []v1alpha1.Diagnostic) {
	others := map[v1alpha1.Diagnostic][]string{}
	var first []v1alpha1.Diagnostic
	for _, d := range all {
		s.lines.diagnostic(d)
		key, ok := withoutSubject(d)
		if names, again := others[key]; ok && again {
			others[key] = append(names, diff.Clean(d.Address, false))
			continue
		}
		others[key], first = nil, append(first, d)
	}
	for _, d := range first {
		fmt.Fprint(w, s.diagnostic(d))
		key, _ := withoutSubject(d)
		if names := slices.Compact(others[key]); len(names) > 0 {
			fmt.Fprintf(w, "The same holds for %s: %s\n", diff.Plural(len(names), "other resource"), strings.Join(cut(names, listed, "and %d more"), ", "))
		}
	}
}

// diagnosticsOf returns the diagnostics of a change. If least is Error and there is no error, it adds one with the message
// of the change. It omits the warnings that were printed with the plan.
func (s *session) diagnosticsOf(c *v1alpha1.PlanChange, least v1alpha1.Severity) []v1alpha1.Diagnostic {
	var out []v1alpha1.Diagnostic
	failed := false
	for _, d := range c.Diagnostics {
		d.Address = cmp.Or(d.Address, c.Address)
		if d.Severity != v1alpha1.SeverityWarning || !s.printed[d] {
			out = append(out, d)
		}
		failed = failed || d.Severity == v1alpha1.SeverityError
	}
	if !failed && least == v1alpha1.SeverityError {
		out = append(out, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: oneLine(c), Address: c.Address})
	}
	return out
}
