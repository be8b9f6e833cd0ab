package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// summaryUnmade is the summary of an error that is not a *Failure with diagnostics.
const summaryUnmade = "Change could not be made"

// Of returns all diagnostics of a *Failure, and one diagnostic for any other error.
func Of(err error) Diagnostics {
	if f, ok := errors.AsType[*Failure](err); ok && len(f.Diagnostics) > 0 {
		return f.Diagnostics
	}
	return Diagnostics{{Severity: v1alpha1.SeverityError, Summary: summaryUnmade, Detail: err.Error()}}
}

// Brief returns a short text for an error: the summary of a *Failure's first error diagnostic, or the text of any other
// error.
func Brief(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		if i := slices.IndexFunc(f.Diagnostics, isError); i >= 0 {
			return f.Diagnostics[i].Summary
		}
	}
	return err.Error()
}

// Warnings returns the diagnostics that are not errors.
func Warnings(ds Diagnostics) Diagnostics { return slices.DeleteFunc(slices.Clone(ds), isError) }

// Describe formats all errors in full, one per line: "field: summary: detail".
func Describe(ds Diagnostics) string {
	var parts []string
	for _, d := range ds {
		if isError(d) {
			parts = append(parts, Text(d))
		}
	}
	return strings.Join(parts, "\n")
}

// Outline formats the errors without their details, as in: spec.cidr: Invalid function argument.
func Outline(ds Diagnostics) string {
	var parts []string
	for _, d := range ds {
		if isError(d) {
			d.Detail = ""
			parts = append(parts, Text(d))
		}
	}
	return strings.Join(parts, "; ")
}

// Text formats a diagnostic in full: "field: summary: detail". Some providers repeat the summary at the beginning of
// the detail.
func Text(d v1alpha1.Diagnostic) string {
	text := d.Summary
	switch {
	case strings.HasPrefix(d.Detail, d.Summary):
		text = d.Detail
	case d.Detail != "":
		text += ": " + d.Detail
	}
	if d.Attribute != "" {
		text = d.Attribute + ": " + text
	}
	return text
}

// Summarize formats the first error and the number of further errors, for a condition of a plan. It returns "" without
// errors. For an error about an object, it contains only the address, because not every reader of plans may get the
// object.
func Summarize(ds Diagnostics) string {
	i := slices.IndexFunc(ds, isError)
	if i < 0 {
		return ""
	}
	n := len(ds) - len(Warnings(ds)) - 1
	switch address := ds[i].Address; {
	case address != "" && n > 0:
		return fmt.Sprintf("Error in %s, and %d more, see status.diagnostics.", address, n)
	case address != "":
		return fmt.Sprintf("Error in %s, see status.diagnostics.", address)
	case n > 0:
		return fmt.Sprintf("%s (and %d more, see status.diagnostics)", Text(ds[i]), n)
	}
	return Text(ds[i])
}
