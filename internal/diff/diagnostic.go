package diff

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Diagnostic renders an error or a warning in full, in a frame like Terraform's.
func Diagnostic(d v1alpha1.Diagnostic, style Style) string {
	paint, word := style.Red, "Error"
	if d.Severity == v1alpha1.SeverityWarning {
		paint, word = style.Yellow, "Warning"
	}
	title := strings.TrimPrefix(d.Summary, word+": ") // some providers begin their summaries with it
	lines := []string{style.Bold(paint(word+": ")) + style.Bold(Clean(title, false))}
	var where []string
	for _, s := range []string{d.Address, d.Attribute} {
		if s != "" {
			where = append(where, Clean(s, false))
		}
	}
	if len(where) > 0 {
		lines = append(lines, "", "  on "+strings.Join(where, ", "))
	}
	if detail := strings.TrimSpace(d.Detail); detail != "" && detail != strings.TrimSpace(d.Summary) {
		lines = append(lines, "")
		for l := range strings.SplitSeq(Clean(detail, true), "\n") {
			if style.Width > 20 {
				l = ansi.Wordwrap(l, style.Width-2, "")
			}
			lines = append(lines, strings.Split(l, "\n")...)
		}
	}
	var b strings.Builder
	b.WriteString(paint("╷") + "\n")
	for _, l := range lines {
		b.WriteString(strings.TrimRight(paint("│")+" "+l, " ") + "\n")
	}
	b.WriteString(paint("╵") + "\n")
	return b.String()
}
