package lang

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// withheld marks a sensitive value that the user may not read. No function removes this mark.
const withheld = mark("withheld")

// Withhold replaces each sensitive value by an unknown one. So no result or error of an expression can depend on a
// sensitive value, even with regex(), can(), try() or nonsensitive().
func Withhold(v cty.Value) (cty.Value, error) {
	return cty.Transform(v, func(at cty.Path, v cty.Value) (cty.Value, error) {
		if !v.HasMark(Sensitive) {
			return v, nil
		}
		_, marks := v.Unmark()
		ty := v.Type()
		// The attribute names of an object may be secret, too, so its type is replaced as well. In a collection, all
		// elements must keep the same type.
		if (ty.IsObjectType() || ty.IsTupleType()) && !inCollection(at) {
			ty = cty.DynamicPseudoType
		}
		return cty.UnknownVal(ty).WithMarks(marks, cty.NewValueMarks(withheld)), nil
	})
}

func inCollection(at cty.Path) bool {
	for _, step := range at {
		if _, ok := step.(cty.IndexStep); ok {
			return true
		}
	}
	return false
}

// Unknown returns the result of an object before its first apply: a wholly unknown value of the schema's type.
func Unknown(block *schema.Block) cty.Value { return MarkSensitive(block, schema.UnknownBlock(block)) }

// Texts for values that the formatter does not show.
const (
	knownAfterApply = "(known after apply)"
	ephemeralValue  = "(ephemeral value)"
)

// ErrTooLong is the error for a value whose text exceeds the limit.
var ErrTooLong = errors.New("the text of the value is too long")

// FormatHCL returns a value in HCL syntax and masks sensitive values, as Terraform's console does. It returns
// ErrTooLong if the text exceeds limit bytes.
func FormatHCL(v cty.Value, limit int) (string, error) {
	f := &formatter{limit: limit}
	f.value(v, 0)
	if f.Len() > limit {
		return "", ErrTooLong
	}
	return f.String(), nil
}

// TypeText returns a type in Terraform's syntax, such as list(string).
func TypeText(ty cty.Type) string { return typeexpr.TypeString(ty) }

type formatter struct {
	strings.Builder
	limit int
}

func (f *formatter) value(v cty.Value, indent int) {
	if f.Len() > f.limit {
		return
	}
	switch ty := v.Type(); {
	case v.HasMark(Ephemeral):
		f.WriteString(ephemeralValue)
	case v.IsMarked():
		f.WriteString(Mask)
	case !v.IsKnown():
		f.WriteString(knownAfterApply)
	case v.IsNull():
		f.WriteString(nullText(ty))
	case ty == cty.String:
		f.text(v.AsString(), indent)
	case ty == cty.Number:
		f.WriteString(diag.NumberText(v.AsBigFloat()))
	case ty == cty.Bool:
		f.WriteString(strconv.FormatBool(v.True()))
	case ty.IsObjectType():
		f.members(v, "{", "}", indent)
	case ty.IsMapType():
		f.members(v, "tomap({", "})", indent)
	case ty.IsTupleType():
		f.members(v, "[", "]", indent)
	case ty.IsListType():
		f.members(v, "tolist([", "])", indent)
	case ty.IsSetType():
		f.members(v, "toset([", "])", indent)
	default:
		f.WriteString("null /* " + ty.FriendlyName() + " */")
	}
}

// members writes the elements of a collection, object or tuple, one per line.
func (f *formatter) members(v cty.Value, begin, end string, indent int) {
	f.WriteString(begin)
	if v.LengthInt() > 0 {
		f.WriteByte('\n')
	}
	named := v.Type().IsObjectType() || v.Type().IsMapType()
	for it := v.ElementIterator(); it.Next() && f.Len() <= f.limit; {
		key, e := it.Element()
		f.indent(indent + 2)
		if named {
			f.WriteString(quoted(key.AsString()) + " = ")
		}
		f.value(e, indent+2)
		if !named {
			f.WriteByte(',')
		}
		f.WriteByte('\n')
	}
	if v.LengthInt() > 0 {
		f.indent(indent)
	}
	f.WriteString(end)
}

func (f *formatter) indent(n int) { f.WriteString(strings.Repeat(" ", n)) }

// text writes a string in quotes. It writes a string of several printable lines as a heredoc.
func (f *formatter) text(s string, indent int) {
	lines := strings.Split(s, "\n")
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }
	if len(lines) < 2 || strings.ContainsFunc(s, unprintable) {
		f.WriteString(quoted(s))
		return
	}
	word := "EOT"
	for strings.Contains(s, word) {
		word += "_"
	}
	dash := ""
	if indent > 0 {
		dash = "-"
	}
	f.WriteString("<<" + dash + word + "\n")
	for _, line := range lines {
		f.indent(indent)
		f.WriteString(templateEscaper.Replace(line) + "\n")
	}
	f.indent(indent)
	f.WriteString(word)
}

// templateEscaper escapes template sequences.
var templateEscaper = strings.NewReplacer("${", "$${", "%{", "%%{")

func quoted(s string) string {
	return templateEscaper.Replace(strconv.Quote(s))
}

func nullText(ty cty.Type) string {
	switch {
	case ty == cty.DynamicPseudoType:
		return "null"
	case ty == cty.String, ty == cty.Number, ty == cty.Bool:
		return "to" + ty.FriendlyName() + "(null)"
	case ty.IsListType():
		return fmt.Sprintf("tolist(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsSetType():
		return fmt.Sprintf("toset(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsMapType():
		return fmt.Sprintf("tomap(null) /* of %s */", ty.ElementType().FriendlyName())
	}
	return "null /* " + ty.FriendlyName() + " */"
}
