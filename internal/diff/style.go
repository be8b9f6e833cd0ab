package diff

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Style describes the output device.
type Style struct {
	// Color is true if the device supports ANSI colours.
	Color bool
	// Width is the number of columns to which lines are cut; 0 does not cut them, as in a pipe.
	Width int
}

// The codes are those of the 16 basic colours, so that the user's terminal theme applies.
const (
	sgrBold   = "1"
	sgrDim    = "2"
	sgrRed    = "31"
	sgrGreen  = "32"
	sgrYellow = "33"
	sgrCyan   = "36"
)

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold, Dim, Red, Green, Yellow and Cyan style a text. Without colours they return it unchanged.
func (s Style) Bold(text string) string   { return s.paint(sgrBold, text) }
func (s Style) Dim(text string) string    { return s.paint(sgrDim, text) }
func (s Style) Red(text string) string    { return s.paint(sgrRed, text) }
func (s Style) Green(text string) string  { return s.paint(sgrGreen, text) }
func (s Style) Yellow(text string) string { return s.paint(sgrYellow, text) }
func (s Style) Cyan(text string) string   { return s.paint(sgrCyan, text) }

// Fit cuts a line to the width.
func (s Style) Fit(line string) string {
	if s.Width <= 0 || ansi.StringWidth(line) <= s.Width {
		return line
	}
	return ansi.Truncate(line, s.Width, "…")
}

// symbol colours the symbol of a change and returns other text unchanged.
func (s Style) symbol(sym string) string {
	switch sym {
	case "+":
		return s.Green(sym)
	case "-":
		return s.Red(sym)
	case "~":
		return s.Yellow(sym)
	case "-/+":
		return s.Red("-") + "/" + s.Green("+")
	case "+/-":
		return s.Green("+") + "/" + s.Red("-")
	case "+/.":
		return s.Green("+") + "/."
	case "<=", ">":
		return s.Cyan(sym)
	}
	return sym
}

// Clean makes a text from an external source safe to print. It escapes control characters, which could move the cursor
// or change colours. It keeps tabs and, if lines is true, line breaks.
func Clean(text string, lines bool) string {
	bad := func(r rune) bool {
		return r != '\t' && (r != '\n' || !lines) && (unicode.IsControl(r) || isBidi(r))
	}
	if strings.IndexFunc(text, bad) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if bad(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isBidi reports whether r is a bidirectional control character, which can make a text look different from its content.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Count formats a number with thousands separators, such as 11,997.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a count with its noun: "1 change", "2 changes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
