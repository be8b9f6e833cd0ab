package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
)

// Config is a spec whose templates are parsed. It is immutable, and may be evaluated often and at once.
type Config struct {
	block *schema.Block
	root  *node
	refs  []Reference
	// constant is the configuration's value when it refers to nothing and has no errors; otherwise NilVal.
	constant cty.Value
}

// Reference is one place where an expression refers to another resource.
type Reference struct {
	Address
	// Attribute is the first step after the address, such as "id"; empty when the whole object is meant.
	Attribute string
	// Field is where the reference stands, such as "spec.tags.net:3": the field's path and the column in its template.
	Field string
}

// node is a part of a spec. Exactly one of literal, expr, attrs and items is set.
type node struct {
	// literal is a subtree without templates.
	literal cty.Value
	expr    hclsyntax.Expression
	field   string
	attrs   map[string]*node
	items   []*node
}

// Limits on templates: beyond them the parser's recursion could exhaust the stack. A long script belongs in an
// attribute without templates, or in a file.
const (
	maxTemplateBytes = 128 << 10
	maxTemplateDepth = 200
)

// ParseConfig reads a spec: it parses the templates and reports what can be known without evaluating them, such as
// unknown fields, wrong types, missing arguments and values that only the provider may set. The Config is never
// nil; when there are errors it is good for References alone.
func ParseConfig(spec map[string]any, block *schema.Block) (*Config, Diagnostics) {
	p := &parser{}
	if spec == nil {
		spec = map[string]any{}
	}
	c := &Config{block: block, root: p.parse(spec, "spec"), refs: p.refs}
	if HasErrors(p.diags) {
		return c, p.diags
	}
	// A dry run in which every reference is unknown finds what is wrong whatever they will be.
	ev := &evaluation{refs: c.refs, static: true}
	v := ev.run(c)
	diags := slices.Concat(p.diags, ev.diags)
	if len(c.refs) == 0 && !HasErrors(diags) {
		c.constant = v
	}
	return c, diags
}

// References lists the places that refer to other resources, in the order of the fields.
func (c *Config) References() []Reference { return c.refs }

// Addresses lists the resources that are referred to, each once, in order.
func (c *Config) Addresses() []Address {
	seen := make(map[Address]bool, len(c.refs))
	for _, r := range c.refs {
		seen[r.Address] = true
	}
	return slices.SortedFunc(maps.Keys(seen), Address.Compare)
}

type parser struct {
	refs  []Reference
	diags Diagnostics
}

func (p *parser) fail(field, summary, format string, args ...any) *node {
	p.diags = append(p.diags, errorAt(field, summary, format, args...))
	return &node{literal: cty.DynamicVal}
}

func (p *parser) parse(raw any, field string) *node {
	switch v := raw.(type) {
	case nil:
		return &node{literal: cty.NullVal(cty.DynamicPseudoType)}
	case bool:
		return &node{literal: cty.BoolVal(v)}
	case int:
		return &node{literal: cty.NumberIntVal(int64(v))}
	case int32:
		return &node{literal: cty.NumberIntVal(int64(v))}
	case int64:
		return &node{literal: cty.NumberIntVal(v)}
	case uint64:
		return &node{literal: cty.NumberUIntVal(v)}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return p.fail(field, "Invalid number", "The value is not a finite number. Write it as a decimal number.")
		}
		// As text, so that 0.1 is the decimal number that was written and not its nearest binary fraction.
		return p.number(strconv.FormatFloat(v, 'g', -1, 64), field)
	case json.Number:
		return p.number(v.String(), field)
	case string:
		return p.template(v, field)
	case []any:
		return p.tuple(v, field)
	case map[string]any:
		return p.object(v, field)
	default:
		return p.fail(field, "Unsupported value", "A value of Go type %T cannot stand in a spec. Use strings, numbers, booleans, lists and maps.", raw)
	}
}

func (p *parser) number(s, field string) *node {
	// The exponent is checked before the number is built: 1e999999999 would take gigabytes to write out.
	if _, exp, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exp); err != nil || n > maxExponent/4 || n < -maxExponent/4 {
			return p.fail(field, "Invalid number", "The number %.40s is out of range. Write one with an exponent between -1024 and 1024.", s)
		}
	}
	v, err := cty.ParseNumberVal(s)
	if err != nil {
		return p.fail(field, "Invalid number", "%q is not a number. Write it as a decimal number, such as 1.5.", s)
	}
	return &node{literal: v}
}

func (p *parser) tuple(raw []any, field string) *node {
	if len(raw) == 0 {
		return &node{literal: cty.EmptyTupleVal}
	}
	n := &node{items: make([]*node, len(raw))}
	literals := make([]cty.Value, 0, len(raw))
	for i, r := range raw {
		n.items[i] = p.parse(r, indexField(field, i))
		if n.items[i].isLiteral() {
			literals = append(literals, n.items[i].literal)
		}
	}
	if len(literals) == len(raw) {
		return &node{literal: cty.TupleVal(literals)}
	}
	return n
}

func (p *parser) object(raw map[string]any, field string) *node {
	if len(raw) == 0 {
		return &node{literal: cty.EmptyObjectVal}
	}
	n := &node{attrs: make(map[string]*node, len(raw))}
	literals := make(map[string]cty.Value, len(raw))
	for _, k := range slices.Sorted(maps.Keys(raw)) {
		child := p.parse(raw[k], keyField(field, k))
		n.attrs[k] = child
		if child.isLiteral() {
			literals[k] = child.literal
		}
	}
	if len(literals) == len(n.attrs) {
		return &node{literal: cty.ObjectVal(literals)}
	}
	return n
}

func (n *node) isLiteral() bool { return n.literal != cty.NilVal }

// template parses a string. Without "${" and "%{" it stands for itself.
func (p *parser) template(s, field string) *node {
	if !strings.Contains(s, "${") && !strings.Contains(s, "%{") {
		return &node{literal: cty.StringVal(s)}
	}
	if len(s) > maxTemplateBytes || templateDepth(s) > maxTemplateDepth {
		return p.fail(field, "Template too large",
			"A string with ${...} or %%{...} may hold at most %d KiB and nest at most %d brackets. Write $${ and %%%%{ for a literal ${ and %%{, or split the value.",
			maxTemplateBytes>>10, maxTemplateDepth)
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		p.diags = append(p.diags, fromHCL(diags, field, false)...)
		p.diags[len(p.diags)-1].Detail += " Write $${ and %%{ for a literal ${ and %{."
		return &node{literal: cty.DynamicVal}
	}
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if l, ok := n.(*hclsyntax.LiteralValueExpr); ok && l.Val.Type() == cty.Number && l.Val.IsKnown() && !l.Val.IsNull() &&
			!l.Val.AsBigFloat().IsInf() && (l.Val.AsBigFloat().MantExp(nil) > maxExponent || l.Val.AsBigFloat().MantExp(nil) < -maxExponent) {
			p.fail(columnField(field, l.SrcRange), "Invalid number", "The number is out of range. Write one with an exponent between -1024 and 1024.")
		}
		return nil
	})
	for _, t := range expr.Variables() {
		p.reference(t, field)
	}
	return &node{expr: expr, field: field}
}

// templateDepth is the deepest nesting of brackets, quotes notwithstanding.
func templateDepth(s string) int {
	depth, deepest := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

// reference reads TYPE.NAME.ATTRIBUTE or TYPE["NAME"].ATTRIBUTE.
func (p *parser) reference(t hcl.Traversal, field string) {
	at := columnField(field, t.SourceRange())
	root := t.RootName()
	if why, ok := reservedRoots[root]; ok {
		p.fail(at, "Unsupported reference", "%q cannot be used here: %s.", root, why)
		return
	}
	if !validType(root) {
		hint := "Write it as ${TYPE.NAME.ATTRIBUTE}, such as ${sim_network.main.id}."
		if ty := v1alpha1.TypeOf(root); validType(ty) {
			hint = fmt.Sprintf("References use Terraform's type names, so write %s instead of %s.", ty, root)
		}
		p.fail(at, "Invalid reference", "%q is not a resource type. %s", root, hint)
		return
	}
	name, ok := step(t, 1)
	if !ok {
		p.fail(at, "Invalid reference",
			"%q must be followed by the name of a resource, as in ${sim_network.main.id}; a name with dots goes into brackets, as in ${sim_network[\"my.name\"].id}. If it is meant literally, write $${%s}.", root, root)
		return
	}
	attr, _ := step(t, 2)
	p.refs = append(p.refs, Reference{Address: Address{Type: root, Name: name}, Attribute: attr, Field: at})
}

// reservedRoots are names that mean something in Terraform and have no meaning, or another place, in a spec.
var reservedRoots = map[string]string{
	"count":     "it is known in the template of a ResourceSet alone",
	"each":      "it is known in the template of a ResourceSet alone",
	"data":      "data sources cannot be referred to; write the value, or refer to a resource",
	"local":     "there are no local values; write the value itself",
	"module":    "there are no modules; refer to the resource itself",
	"path":      "expressions see no files; write the value itself",
	"self":      "a spec cannot refer to the object's own result",
	"terraform": "there is no workspace; write the value itself",
	"var":       "there are no input variables; write the value itself",
}

// step is the i-th step of a traversal when it is a name.
func step(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch s := t[i].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// columnField points into the template of a field: "spec.name:7", or "spec.script:3:7" below its first line.
func columnField(field string, r hcl.Range) string {
	if r.Start.Line <= 1 {
		return fmt.Sprintf("%s:%d", field, max(1, r.Start.Column))
	}
	return fmt.Sprintf("%s:%d:%d", field, r.Start.Line, r.Start.Column)
}

// fromHCL converts what the expression language says. Its details may quote values, so they are left out when a
// secret is near.
func fromHCL(ds hcl.Diagnostics, field string, secret bool) Diagnostics {
	out := make(Diagnostics, 0, len(ds))
	for _, d := range ds {
		o := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: d.Summary, Detail: d.Detail, Attribute: field}
		if d.Severity == hcl.DiagWarning {
			o.Severity = v1alpha1.SeverityWarning
		}
		if d.Subject != nil {
			o.Attribute = columnField(field, *d.Subject)
		}
		if secret {
			o.Detail = "The expression uses a sensitive value, so the details are not shown."
		}
		out = append(out, o)
	}
	return out
}

// sortedKeys keeps diagnostics in the same order each time.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
