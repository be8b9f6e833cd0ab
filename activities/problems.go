package activities

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file writes problems, for those who read them.

func problem(addr lang.Address, summary, detail string) v1alpha1.Diagnostic {
	return attributeProblem(addr, "", summary, detail)
}

func attributeProblem(addr lang.Address, attribute, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: addr.String(), Attribute: attribute}
}

// describe writes errors in full.
func describe(diags diag.Diagnostics) string {
	var text []byte
	for _, d := range diags {
		if d.Severity != v1alpha1.SeverityError {
			continue
		}
		if len(text) > 0 {
			text = append(text, '\n')
		}
		if d.Attribute != "" {
			text = append(text, d.Attribute+": "...)
		}
		text = append(text, d.Summary...)
		if d.Detail != "" {
			text = append(text, ": "+d.Detail...)
		}
	}
	return string(text)
}

// summarize names the first error and counts the rest.
func summarize(diags diag.Diagnostics) string {
	var errs diag.Diagnostics
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			errs = append(errs, d)
		}
	}
	if len(errs) == 0 {
		return ""
	}
	text := describe(errs[:1])
	if errs[0].Address != "" {
		text = errs[0].Address + ": " + text
	}
	if n := len(errs) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more, see status.diagnostics)", n)
	}
	return text
}

// warningsOf leaves errors out.
func warningsOf(diags diag.Diagnostics) diag.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError })
}

// diagnosticsOf keeps what a provider said whole, and makes a diagnostic of any other error.
func diagnosticsOf(err error) diag.Diagnostics {
	if ce, ok := errors.AsType[*configError](err); ok && ce.config != "" {
		return ce.diagnostics()
	}
	if f, ok := errors.AsType[*diag.Failure](err); ok && len(f.Diagnostics) > 0 {
		return f.Diagnostics
	}
	return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Change could not be made", Detail: err.Error()}}
}
