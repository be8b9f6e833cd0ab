package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// SummaryUnmade is the summary of an error that is no *Failure with diagnostics of its own.
const SummaryUnmade = "Change could not be made"

// Of returns the diagnostics of a *Failure whole, and one diagnostic for any other error.
func Of(err error) Diagnostics {
	if f, ok := errors.AsType[*Failure](err); ok && len(f.Diagnostics) > 0 {
		return f.Diagnostics
	}
	return Diagnostics{{Severity: v1alpha1.SeverityError, Summary: SummaryUnmade, Detail: err.Error()}}
}

// Brief returns one line about an error: the summary of a *Failure's first error diagnostic, or the text of any other error.
func Brief(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		if i := slices.IndexFunc(f.Diagnostics, isError); i >= 0 {
			return f.Diagnostics[i].Summary
		}
	}
	return err.Error()
}

// Warnings returns the diagnostics that are no errors.
func Warnings(ds Diagnostics) Diagnostics { return slices.DeleteFunc(slices.Clone(ds), isError) }

// Describe writes the errors in full, one after the other: "field: summary: detail".
func Describe(ds Diagnostics) string {
	var parts []string
	for _, d := range ds {
		if isError(d) {
			parts = append(parts, describe(d))
		}
	}
	return strings.Join(parts, "\n")
}

func describe(d v1alpha1.Diagnostic) string {
	text := d.Summary
	if d.Attribute != "" {
		text = d.Attribute + ": " + text
	}
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	return text
}

// Summarize writes the first error with its address, and counts the others; empty when there is none.
func Summarize(ds Diagnostics) string {
	i := slices.IndexFunc(ds, isError)
	if i < 0 {
		return ""
	}
	text := describe(ds[i])
	if ds[i].Address != "" {
		text = ds[i].Address + ": " + text
	}
	if n := len(ds) - len(Warnings(ds)) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more, see status.diagnostics)", n)
	}
	return text
}
