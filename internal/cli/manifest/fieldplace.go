package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// fieldStep matches one step of a field path in the server's format: .name, ["any name"] or [0].
var fieldStep = regexp.MustCompile(`^(?:\.?([A-Za-z_][A-Za-z0-9_-]*)|\["((?:[^"\\]|\\.)*)"\]|\[([0-9]+)\])`)

// inString matches the position of an expression in a string: "spec.script, line 4, column 7".
var inString = regexp.MustCompile(`(?:, line ([0-9]+))?, column ([0-9]+)$`)

// At returns the position of a field: "file.yaml:12:9", or the line of the document if the field is not found.
func (m Manifest) At(field string) string {
	line, column := m.FieldPosition(field)
	if column == 0 {
		return m.Where()
	}
	return Place(m.File, line, column)
}

// Place formats a position. The line and the column are 0 if they are not known.
func Place(file string, line, column int) string {
	for _, n := range []int{line, column} {
		if n > 0 {
			file += ":" + strconv.Itoa(n)
		}
	}
	return file
}

// PositionError is an error at a position in a file; see place.
type PositionError struct {
	File         string
	Line, Column int
	Problem      string
}

func (e *PositionError) Error() string { return Place(e.File, e.Line, e.Column) + ": " + e.Problem }

// errorAt returns a *PositionError about a field.
func (m Manifest) errorAt(field, format string, args ...any) error {
	line, column := m.FieldPosition(field)
	return &PositionError{m.File, line, column, fmt.Sprintf(format, args...)}
}

// FieldPosition returns the line and column of a field's key in its file, or of an expression in its value. The column
// is 0 if the field is not found.
func (m Manifest) FieldPosition(field string) (line, column int) {
	node := m.node()
	if node == nil {
		return m.Line, 0
	}
	inner := inString.FindStringSubmatch(field)
	if inner != nil {
		field = strings.TrimSuffix(field, inner[0])
	}
	key, node, _ := follow(node, field)
	switch {
	case inner != nil && node.Kind == yamlv3.ScalarNode:
		line, column = m.within(node, atoi(inner[1]), atoi(inner[2]))
	case key != nil:
		line, column = key.Line, key.Column
	default:
		line, column = node.Line, node.Column
	}
	return m.doc.line + line - 1, column
}

// follow follows a field path as far as it exists; whole is true if all of it does. A missing field has the position of
// its parent.
func follow(node *yamlv3.Node, field string) (key, value *yamlv3.Node, whole bool) {
	for field != "" {
		step := fieldStep.FindStringSubmatch(field)
		if step == nil {
			return key, node, false
		}
		field = field[len(step[0]):]
		k, v := child(node, step)
		if v == nil {
			return key, node, false
		}
		key, node = k, v
	}
	return key, node, true
}

// written returns a field's value as written in the file, or "" if it is not a scalar.
func (m Manifest) written(field string) string {
	node := m.node()
	if node == nil {
		return ""
	}
	if _, value, whole := follow(node, field); whole && value.Kind == yamlv3.ScalarNode {
		return value.Value
	}
	return ""
}

// node returns the object's node in its document, or nil if that is invalid.
func (m Manifest) node() *yamlv3.Node {
	var doc yamlv3.Node
	if len(m.doc.text) == 0 || yamlv3.Unmarshal(m.doc.text, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	node := doc.Content[0]
	if m.item >= 0 {
		if _, node = child(node, []string{"", "items", "", ""}); node == nil || m.item >= len(node.Content) {
			return nil
		}
		node = node.Content[m.item]
	}
	return node
}

// child returns the node of a step, and the node whose position to show for it.
func child(node *yamlv3.Node, step []string) (key, value *yamlv3.Node) {
	for node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	if step[3] != "" {
		if i := atoi(step[3]); node.Kind == yamlv3.SequenceNode && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
		return nil, nil
	}
	name := step[1]
	if step[2] != "" {
		name = step[2]
		if unquoted, err := strconv.Unquote(`"` + name + `"`); err == nil {
			name = unquoted
		}
	}
	if node.Kind != yamlv3.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// within returns the position of a line and column within a string.
func (m Manifest) within(node *yamlv3.Node, line, column int) (int, int) {
	line = max(1, line)
	switch {
	case node.Style&yamlv3.LiteralStyle != 0:
		lines := bytes.Split(m.doc.text, []byte("\n"))
		indent := 0
		for _, l := range lines[min(node.Line, len(lines)):] {
			if text := bytes.TrimLeft(l, " "); len(text) > 0 {
				indent = len(l) - len(text)
				break
			}
		}
		return node.Line + line, indent + column
	case line > 1, node.Style&yamlv3.FoldedStyle != 0:
		return node.Line, node.Column // the position of the string's lines in the file is unknown
	case node.Style&(yamlv3.DoubleQuotedStyle|yamlv3.SingleQuotedStyle) != 0:
		return node.Line, node.Column + column
	}
	return node.Line, node.Column + column - 1
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

// ReadFrom records the files of the objects, so that later diagnostics can show positions.
func ReadFrom(s *session.Session, ms []Manifest) {
	s.Sources = map[string]session.Source{}
	for _, m := range ms {
		if !addrs.IsResource(m.Object) {
			continue
		}
		address := addrs.Of(addrs.TemplateOf(m.Object))
		if _, twice := s.Sources[address]; twice {
			s.Sources[address] = nil // it occurs in two namespaces, and a diagnostic does not have the namespace
			continue
		}
		s.Sources[address] = m
	}
}

// FieldPlace returns the position of a field of a resource. A ResourceSet has it in its template.
func (m Manifest) FieldPlace(field string) string {
	if addrs.IsSet(m.Object) && field != "" {
		field = "spec.template." + field
	}
	return m.At(field)
}

// Diagnostic renders a diagnostic in full, with its position in a file if known.
func Diagnostic(s *session.Session, d v1alpha1.Diagnostic) string {
	set, _, _ := v1alpha1.ParseInstanceName(d.Address) // the files have the set of an instance
	if source := s.Sources[set]; source != nil {
		to := &d.Attribute
		if *to == "" {
			to = &d.Address
		}
		*to += " (" + source.FieldPlace(d.Attribute) + ")"
	}
	return diff.Diagnostic(d, s.Style)
}
