package module

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hykube/hykube/internal/diag"
)

// Positions maps fields of a template to positions in files.
type Positions map[string]position

// position is where the text of a field comes from.
type position struct {
	file string
	// start is the begin of the field.
	start hcl.Pos
	// lines maps the lines of the field's text to the file. It is empty if only start is known.
	lines []lineOrigin
}

// lineOrigin is the origin of one line: the line in the file, and the number to add to a column. A line of 0 has no
// origin.
type lineOrigin struct{ line, shift int }

// inString matches the position in a string that internal/lang appends to a field: ", line 4, column 7".
var inString = regexp.MustCompile(`(?:, line ([0-9]+))?, column ([0-9]+)$`)

// Locate returns the position of a field, such as "main.tf:3:5" for "spec.rule[0].port, column 4". It returns "" if the
// file has no such field.
func (p Positions) Locate(field string) string {
	line, column := 1, 0
	if m := inString.FindStringSubmatchIndex(field); m != nil {
		if m[2] >= 0 {
			line, _ = strconv.Atoi(field[m[2]:m[3]])
		}
		column, _ = strconv.Atoi(field[m[4]:m[5]])
		field = field[:m[0]]
	}
	for whole := true; field != ""; whole = false {
		at, ok := p[field]
		if !ok {
			field = parent(field)
			continue
		}
		if !whole || column == 0 {
			return place(at.file, at.start.Line, at.start.Column)
		}
		return at.of(line, column)
	}
	return ""
}

func (at position) of(line, column int) string {
	if line > len(at.lines) || at.lines[line-1].line == 0 {
		return place(at.file, at.start.Line, at.start.Column)
	}
	origin := at.lines[line-1]
	return place(at.file, origin.line, max(1, column+origin.shift))
}

// parent removes the last step of a field; "" if there is no other.
func parent(field string) string {
	if strings.HasSuffix(field, "]") {
		return field[:max(0, strings.LastIndexByte(field, '['))]
	}
	return field[:max(0, strings.LastIndexByte(field, '.'))]
}

// Located returns the diagnostics with positions in files in place of fields. A diagnostic about no known field gets
// the position of the block, if it has one.
func (p Positions) Located(diags diag.Diagnostics, block hcl.Range) diag.Diagnostics {
	out := make(diag.Diagnostics, len(diags))
	for i, d := range diags {
		at := p.Locate(d.Attribute)
		if at == "" && block.Filename != "" {
			at = place(block.Filename, block.Start.Line, block.Start.Column)
		}
		if at != "" {
			d.Attribute = at
		}
		out[i] = d
	}
	return out
}

// simple notes a field whose text is a part of a file, after a prefix of the given number of columns.
func (p Positions) simple(field string, r hcl.Range, prefix int) {
	at := position{file: r.Filename, start: r.Start, lines: []lineOrigin{{r.Start.Line, r.Start.Column - 1 - prefix}}}
	for line := r.Start.Line + 1; line <= r.End.Line; line++ {
		at.lines = append(at.lines, lineOrigin{line, 0})
	}
	p[field] = at
}

// block notes the position of a field that is no text, such as a block.
func (p Positions) block(field string, r hcl.Range) {
	p[field] = position{file: r.Filename, start: r.Start}
}

// fromHCL converts diagnostics of the parser to diagnostics with positions in files.
func fromHCL(ds hcl.Diagnostics) diag.Diagnostics {
	out := make(diag.Diagnostics, 0, len(ds))
	for _, d := range ds {
		o := diag.Errorf("", d.Summary, "%s", d.Detail)
		if d.Severity == hcl.DiagWarning {
			o = warning("", d.Summary, "%s", d.Detail)
		}
		if d.Subject != nil {
			o.Attribute = place(d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		out = append(out, o)
	}
	return out
}
