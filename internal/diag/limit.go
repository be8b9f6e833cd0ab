package diag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Limits on the diagnostics of one call to a provider, and on those of a Plan object.
const (
	// MaxDiagnostics is the maximum number of diagnostics.
	MaxDiagnostics = 100
	// maxBytes is the maximum size of their texts in bytes, and maxText is that of one summary or detail.
	maxBytes = 256 << 10
	maxText  = 32 << 10
)

// Limit returns the diagnostics that fit within the limits. If some do not fit, it returns errors before warnings, and
// ends the list with a warning that counts the others.
func Limit(ds Diagnostics) Diagnostics {
	var out Diagnostics
	bytes := 0
	for _, d := range ds {
		d.Summary, d.Detail = clipText(d.Summary), clipText(d.Detail)
		bytes += size(d)
		out = append(out, d)
	}
	if len(out) <= MaxDiagnostics && bytes <= maxBytes {
		return out
	}
	out, bytes = ErrorsFirst(out), 0
	for i, d := range out {
		if bytes += size(d); i == MaxDiagnostics-1 || bytes > maxBytes {
			warnings := len(Warnings(out[i:]))
			return append(out[:i:i], v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning,
				Summary: "Further diagnostics left out",
				Detail:  fmt.Sprintf("The list ends here, because it is too long. It leaves out %d more errors and %d more warnings.", len(out)-i-warnings, warnings)})
		}
	}
	return out
}

func size(d v1alpha1.Diagnostic) int { return len(d.Summary) + len(d.Detail) }

// ErrorsFirst returns the errors, and then the warnings.
func ErrorsFirst(ds Diagnostics) Diagnostics {
	return append(slices.DeleteFunc(slices.Clone(ds), func(d v1alpha1.Diagnostic) bool { return !isError(d) }),
		Warnings(ds)...)
}

func clipText(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf(" ... (and %d more bytes)", len(s)-maxText)
}
