package diff

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// printer renders the attributes of one change. The columns are Terraform's: a symbol, a space, the text. The content
// of a container is indented by four columns.
type printer struct {
	style Style
	// replace holds the paths that force a replace. shown counts those of them that have a line.
	replace map[string]bool
	shown   int
	// follows holds the expressions, by the paths of their values, that have no line yet.
	follows map[string]string
	// whole also renders unchanged attributes.
	whole bool
	// record also renders a change from null to an empty container, which may be a refresh's only change.
	record bool
	b      strings.Builder
}

func (p *printer) raw(text string) {
	p.b.WriteString(text)
	p.b.WriteByte('\n')
}

func (p *printer) line(indent int, sym, text string) {
	p.b.WriteString(strings.Repeat(" ", indent))
	if sym == "" {
		sym = " "
	}
	p.b.WriteString(p.style.symbol(sym))
	p.b.WriteByte(' ')
	p.b.WriteString(text)
	p.b.WriteByte('\n')
}

// attributes renders the differences between two objects. It omits empty values in an object that is created (+),
// removed (-) or shown as a whole (=).
func (p *printer) attributes(indent int, sym string, b, a map[string]any, path string, root bool) {
	type row struct{ key, sym string }
	var rows []row
	hidden, width := 0, 0
	for _, k := range unionKeys(b, a) {
		r := row{key: k}
		switch {
		case sym == "+", sym == "=":
			if isEmpty(a[k]) {
				continue
			}
			if sym == "+" {
				r.sym = "+"
			}
		case sym == "-":
			if isEmpty(b[k]) {
				continue
			}
			r.sym = "-"
		case p.replace[join(path, k)]: // also without a visible difference, such as from an empty value to null
			r.sym = changed(b[k], a[k])
		case equal(b[k], a[k]) || !p.record && isEmpty(b[k]) && isEmpty(a[k]):
			if isEmpty(b[k]) {
				continue
			}
			if !p.whole && p.follows[join(path, k)] == "" && (!root || k != "id" && k != "name" || isContainer(a[k])) {
				hidden++
				continue
			}
		default:
			r.sym = changed(b[k], a[k])
		}
		rows = append(rows, r)
		width = max(width, len(label(k)))
	}
	for _, r := range rows {
		name := label(r.key)
		prefix := name + strings.Repeat(" ", width-len(name)) + " = "
		p.attribute(indent, r.sym, prefix, b[r.key], a[r.key], join(path, r.key), "")
	}
	if hidden > 0 {
		noun := "attribute"
		if !root {
			noun = "element"
		}
		p.line(indent, "", p.style.Dim(fmt.Sprintf("# (%s hidden)", Plural(hidden, "unchanged "+noun))))
	}
}

// changed returns the symbol of a difference.
func changed(b, a any) string {
	switch {
	case b == nil && a != nil:
		return "+"
	case b != nil && a == nil:
		return "-"
	}
	return "~"
}

// attribute renders one difference. end is "," inside a list.
func (p *printer) attribute(indent int, sym, prefix string, b, a any, path, end string) {
	forces := ""
	if p.replace[path] {
		forces = p.style.Red(" # forces replacement")
		p.shown++
	}
	if text, ok := p.follows[path]; ok {
		forces += p.style.Dim(" # " + text)
		delete(p.follows, path)
	}
	tail := end + forces
	switch sym {
	case "+", "":
		p.value(indent, sym, prefix, a, tail)
		return
	case "-":
		if end == "" {
			tail = p.style.Dim(" -> null") + tail
		}
		p.value(indent, sym, prefix, b, tail)
		return
	}
	bm, bIsMap := b.(map[string]any)
	am, aIsMap := a.(map[string]any)
	bl, bIsList := b.([]any)
	al, aIsList := a.([]any)
	bd, bIsDoc := document(b)
	ad, aIsDoc := document(a)
	switch {
	case b == nil && a == nil: // the state has no value of a write-only attribute
		p.line(indent, sym, prefix+p.style.Dim("(write-only attribute)")+tail)
	case isSecret(b) || isSecret(a):
		// both sides may be equal, with only one of them marked sensitive
		p.line(indent, sym, prefix+secretText(b, a)+tail)
	case bIsMap && aIsMap:
		p.line(indent, sym, prefix+"{"+forces)
		p.attributes(indent+4, "~", bm, am, path, false)
		p.line(indent, "", "}"+end)
	case bIsList && aIsList:
		p.line(indent, sym, prefix+"["+forces)
		p.list(indent+4, bl, al, path)
		p.line(indent, "", "]"+end)
	case bIsDoc && aIsDoc:
		if equal(bd, ad) {
			p.line(indent, sym, prefix+"jsonencode("+p.style.Dim("# only white space changes")+")"+tail)
			return
		}
		p.line(indent, sym, prefix+"jsonencode("+forces)
		p.attribute(indent+4, "~", "", bd, ad, "\x00", "")
		p.line(indent, "", ")"+end)
	case multiline(b) && isString(a) || multiline(a) && isString(b):
		p.line(indent, sym, prefix+"<<-EOT"+forces)
		p.text(indent+4, b.(string), a.(string))
		p.line(indent, "", "EOT"+end)
	case isContainer(b) || multiline(b) || bIsDoc:
		// From a long value to another one: first the old value, then an arrow and the new one.
		if isContainer(a) || multiline(a) {
			p.value(indent, "-", prefix, b, end)
			p.value(indent, "+", prefix, a, tail)
			return
		}
		p.value(indent, sym, prefix, b, p.style.Dim(" -> ")+scalar(a)+tail)
	case isContainer(a) || multiline(a) || aIsDoc:
		p.value(indent, sym, prefix+scalar(b)+p.style.Dim(" -> "), a, tail)
	default:
		p.line(indent, sym, prefix+scalar(b)+p.style.Dim(" -> ")+p.maybeDim(a)+tail)
	}
}

// secretText returns what takes the place of a change whose value is a secret before or after.
func secretText(b, a any) string {
	if s, ok := a.(sensitive); ok {
		return s.text()
	}
	s, _ := b.(sensitive)
	return s.text()
}

func (p *printer) maybeDim(v any) string {
	if _, ok := v.(unknown); ok {
		return p.style.Dim(scalar(v))
	}
	return scalar(v)
}

func isString(v any) bool { _, ok := v.(string); return ok }

// value renders a whole value under one symbol.
func (p *printer) value(indent int, sym, prefix string, v any, tail string) {
	inner := sym
	if sym == "~" {
		inner = "-"
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			break
		}
		p.line(indent, sym, prefix+"{")
		switch inner {
		case "-":
			p.attributes(indent+4, "-", x, nil, "\x00", false)
		case "":
			p.attributes(indent+4, "=", nil, x, "\x00", false)
		default:
			p.attributes(indent+4, "+", nil, x, "\x00", false)
		}
		p.line(indent, "", "}"+tail)
		return
	case []any:
		if len(x) == 0 {
			break
		}
		p.line(indent, sym, prefix+"[")
		for _, e := range x {
			p.value(indent+4, inner, "", e, ",")
		}
		p.line(indent, "", "]"+tail)
		return
	case string:
		if doc, ok := document(x); ok {
			p.line(indent, sym, prefix+"jsonencode(")
			p.value(indent+4, inner, "", doc, "")
			p.line(indent, "", ")"+tail)
			return
		}
		if multiline(x) {
			p.line(indent, sym, prefix+"<<-EOT")
			for l := range strings.SplitSeq(strings.TrimSuffix(x, "\n"), "\n") {
				p.line(indent+4, inner, Clean(l, false))
			}
			p.line(indent, "", "EOT"+tail)
			return
		}
	}
	p.line(indent, sym, prefix+p.maybeDim(v)+tail)
}

// list renders the differences between two lists. A removed element and an added one of the same kind at the same place
// are rendered as a change.
func (p *printer) list(indent int, b, a []any, path string) {
	for _, op := range matcher(fingerprints(b), fingerprints(a)).GetOpCodes() {
		i, j := op.I1, op.J1
		if op.Tag == 'e' {
			p.hidden(indent, op.I2-i, "unchanged element")
			continue
		}
		for ; i < op.I2 && j < op.J2 && pairs(b[i], a[j]); i, j = i+1, j+1 {
			p.attribute(indent, "~", "", b[i], a[j], join(path, strconv.Itoa(j)), ",")
		}
		for ; i < op.I2; i++ {
			p.attribute(indent, "-", "", b[i], nil, join(path, strconv.Itoa(i)), ",")
		}
		for ; j < op.J2; j++ {
			p.attribute(indent, "+", "", nil, a[j], join(path, strconv.Itoa(j)), ",")
		}
	}
}

// alignLimit is the number of pairs up to which the matcher compares all lines or elements. Above it, the matcher
// ignores those that occur often.
const alignLimit = 4 << 20

func matcher(b, a []string) *difflib.SequenceMatcher {
	return difflib.NewMatcherWithJunk(b, a, len(b)*len(a) > alignLimit, nil)
}

// hidden renders the number of lines or elements that are not shown.
func (p *printer) hidden(indent, n int, noun string) {
	if n > 0 {
		p.line(indent, "", p.style.Dim(fmt.Sprintf("# (%s hidden)", Plural(n, noun))))
	}
}

// pairs reports whether b changes into a: both are objects, both are secrets, or a is unknown.
func pairs(b, a any) bool {
	if _, ok := a.(unknown); ok {
		return true
	}
	_, bm := b.(map[string]any)
	_, am := a.(map[string]any)
	return bm && am || isSecret(b) && isSecret(a)
}

// context is the number of unchanged lines around a changed line of a text.
const context = 3

// text renders the differences between two texts line by line.
func (p *printer) text(indent int, b, a string) {
	bl := strings.Split(strings.TrimSuffix(b, "\n"), "\n")
	al := strings.Split(strings.TrimSuffix(a, "\n"), "\n")
	shown := 0
	for _, group := range matcher(bl, al).GetGroupedOpCodes(context) {
		p.hidden(indent, group[0].I1-shown, "unchanged line")
		for _, op := range group {
			shown = op.I2
			if op.Tag == 'e' {
				p.lines(indent, "", bl[op.I1:op.I2])
				continue
			}
			p.lines(indent, "-", bl[op.I1:op.I2])
			p.lines(indent, "+", al[op.J1:op.J2])
		}
	}
	p.hidden(indent, len(bl)-shown, "unchanged line")
}

func (p *printer) lines(indent int, sym string, lines []string) {
	for _, l := range lines {
		p.line(indent, sym, Clean(l, false))
	}
}
