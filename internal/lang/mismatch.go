package lang

import (
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// MismatchKind is a kind of mismatch between a spec and a schema.
type MismatchKind int

// The kinds that callers distinguish; 0 means any other one.
const (
	UnknownField MismatchKind = 1 + iota
	MissingArgument
	MissingBlock
	ReadOnlyArgument
)

// Mismatch is the reason for an error of Parse.
type Mismatch struct {
	Kind MismatchKind
	// Hint is for the user, about an unknown field. It ends without a period: "Did you mean \"name\"?".
	Hint string
}

// unknown reports a field that the schema does not have.
func (c *coercion) unknown(field, name, hint string) {
	m := Mismatch{Kind: UnknownField}
	if c.hidden == "" {
		m.Hint = strings.TrimSuffix(strings.TrimSpace(hint), ".")
	}
	c.mismatch(m, diag.KeyField(field, name), "Unknown field", "There is no field %q here.%s", name, hint)
}

// mismatch reports an error of a kind.
func (c *coercion) mismatch(m Mismatch, field, summary, format string, args ...any) {
	before := len(c.diags)
	c.fail(field, summary, format, args...)
	for _, d := range c.diags[before:] {
		if c.mismatches == nil {
			c.mismatches = map[v1alpha1.Diagnostic]Mismatch{}
		}
		c.mismatches[d] = m
	}
}
