package lang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// Config is a spec whose templates are parsed. It is immutable, and may be evaluated often and at once.
type Config struct {
	program
	block *schema.Block
	root  *node
	// ephemeral lets ephemeral values stand anywhere.
	ephemeral bool
	// broken is true when there were errors, so that it cannot be evaluated.
	broken bool
	// constant is the configuration's value when it refers to nothing, calls no function of a provider and has no errors; otherwise NilVal.
	constant cty.Value
	// unknownFields are the fields that the block does not have, each with its hint.
	unknownFields map[string]string
}

// UnknownFields returns the fields of the spec that the block does not have, by their paths. The value is a hint for the user, without a
// period: "Did you mean \"name\"?". Parse reports each of them as an error, too.
func (c *Config) UnknownFields() map[string]string { return c.unknownFields }

// program is what all expressions of a text need to be evaluated.
type program struct {
	refs []Reference
	// ownRefs are the references to the object's own result.
	ownRefs []Reference
	// calls are the functions that are called, by the name under which they are.
	calls map[string]function.Function
	// functions are the provider-defined ones.
	functions Functions
	context   EvaluationContext
	self      bool
}

// node is a part of a spec. Exactly one of literal, expr, attrs and items is set.
type node struct {
	// literal is a subtree without templates.
	literal cty.Value
	expr    hclsyntax.Expression
	// vars are what expr refers to, found before it was rewritten.
	vars  []hcl.Traversal
	field string
	attrs map[string]*node
	// keys holds, by the keys of attrs, those of them that are templates.
	keys  map[string]*node
	items []*node
}

// Limits on templates: beyond them the parser's recursion could exhaust the stack. A long script belongs in an
// attribute without templates, or in a file.
const (
	maxTemplateBytes = 128 << 10
	maxTemplateDepth = 200
	maxOperators     = 40_000
)

// Parsed counts the templates that were parsed since the process began. Tests assert with it that no object is parsed twice.
var Parsed atomic.Int64

// ConfigOptions say how a spec is read. The zero value does for the spec of a managed resource without provider-defined
// functions.
type ConfigOptions struct {
	// Functions are the provider-defined functions that expressions may call. Their signatures do: With brings those that can be called.
	Functions Functions
	// Ephemeral lets ephemeral values stand anywhere, as in an ephemeral resource's own spec. Otherwise they may stand in
	// write-only attributes alone.
	Ephemeral bool
	// Namespace is the object's own. References that name it are then the same as references that name none.
	Namespace string

	// Settled refuses functions that read the clock or chance, for what must be known whenever it is looked at.
	Settled bool

	// self is true where the object's own result may be referred to.
	self bool
	// asks says what is made visible of the value itself, as that of a condition.
	asks ask
	// bare is true where a string is an expression without "${" and "}" around it.
	bare bool
}

// Parse reads a spec: it parses the templates and reports what can be known without evaluating them, such as
// unknown fields, wrong types, missing arguments and values that only the provider may set. The Config is never
// nil; when there are errors it is good for References alone.
func (o ConfigOptions) Parse(spec map[string]any, block *schema.Block) (*Config, diag.Diagnostics) {
	p := newParser(o)
	if spec == nil {
		spec = map[string]any{}
	}
	c := &Config{block: block, ephemeral: o.Ephemeral}
	c.root = p.parse(spec, "spec")
	c.program = p.program
	if diag.HasErrors(p.diags) {
		c.broken = true
		return c, p.diags
	}
	// A dry run in which every reference is unknown finds what is wrong whatever they will be.
	dry := &evaluation{program: &c.program, static: true, warn: true}
	v, found := c.run(dry)
	c.unknownFields = dry.unknownFields
	diags := slices.Concat(p.diags, found)
	c.broken = diag.HasErrors(diags)
	if len(c.refs) == 0 && !c.broken && !c.Impure() && !c.callsProvider() {
		c.constant = v
	}
	return c, diags
}

// With returns the configuration as it is evaluated in a context.
func (c *Config) With(at EvaluationContext) *Config {
	bound := *c
	bound.program = c.in(at)
	return &bound
}

// CheckTypes reports what cannot fit the spec's schema whatever it will be, given the types of what is referred to. It is
// Parse's dry run with more knowledge, and repeats nothing that Parse or CheckReferences said: with errors of
// theirs it says nothing.
func (c *Config) CheckTypes(in Catalog) diag.Diagnostics {
	if c.broken || len(c.refs) == 0 || diag.HasErrors(CheckReferences(c.refs, in.quiet())) {
		return nil
	}
	_, diags := c.run(&evaluation{program: &c.program, static: true, catalog: &in})
	return diags
}

// References lists the places that refer to other resources, in the order of the fields.
func (c *Config) References() []Reference { return c.refs }

// Addresses lists what is referred to, each once, in order.
func (c *Config) Addresses() []Address { return addresses(c.refs) }

func addresses(refs []Reference) []Address {
	seen := make(map[Address]bool, len(refs))
	for _, r := range refs {
		seen[r.Address] = true
	}
	return slices.SortedFunc(maps.Keys(seen), Address.Compare)
}

type parser struct {
	program
	opts  ConfigOptions
	diags diag.Diagnostics
}

func newParser(o ConfigOptions) *parser {
	return &parser{opts: o, program: program{self: o.self, functions: o.Functions}}
}

func (p *parser) fail(field, summary, format string, args ...any) *node {
	p.diags = append(p.diags, diag.Errorf(field, summary, format, args...))
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
		return p.template(v, field, p.opts.asks)
	case []any:
		return p.tuple(v, field)
	case map[string]any:
		return p.object(v, field)
	default:
		return p.fail(field, "Unsupported value", "A value of Go type %T is not allowed in a spec. Use strings, numbers, booleans, lists and maps.", raw)
	}
}

func (p *parser) number(s, field string) *node {
	// The exponent is checked before the number is built: 1e999999999 would take gigabytes to write out.
	if _, exp, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exp); err != nil || n > diag.MaxExponent/4 || n < -diag.MaxExponent/4 {
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
		n.items[i] = p.parse(r, diag.IndexField(field, i))
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
	n := &node{attrs: make(map[string]*node, len(raw)), field: field}
	literals := make(map[string]cty.Value, len(raw))
	for _, k := range slices.Sorted(maps.Keys(raw)) {
		child := p.parse(raw[k], diag.KeyField(field, k))
		n.attrs[k] = child
		if child.isLiteral() {
			literals[k] = child.literal
		}
		// As in Terraform's JSON, a key is a template, too.
		if key := p.template(k, diag.KeyField(field, k), askAll); !key.isLiteral() {
			if n.keys == nil {
				n.keys = map[string]*node{}
			}
			n.keys[k] = key
			delete(literals, k)
		}
	}
	if len(literals) == len(n.attrs) {
		return &node{literal: cty.ObjectVal(literals)}
	}
	return n
}

func (n *node) isLiteral() bool { return n.literal != cty.NilVal }

// template parses a string, whose value is asked about as how says. Without "${" and "%{" it stands for itself.
func (p *parser) template(s, field string, how ask) *node {
	failed := len(p.diags)
	expr, ok := p.expression(s, field)
	if !ok {
		return &node{literal: cty.DynamicVal}
	}
	if expr == nil {
		return &node{literal: cty.StringVal(s)}
	}
	vars, asks := expr.Variables(), asking{}
	asks.walk(expr, how, nil)
	for _, t := range vars {
		p.reference(t, field, asks[t.SourceRange()])
	}
	if len(p.diags) > failed {
		return &node{literal: cty.DynamicVal}
	}
	return &node{expr: withBudget(expr), vars: vars, field: field}
}

// expression parses a string and looks up its functions; nil when it is no template.
func (p *parser) expression(s, field string) (hclsyntax.Expression, bool) {
	bare := p.opts.bare && !strings.HasPrefix(strings.TrimSpace(s), "${")
	if !bare && !strings.Contains(s, "${") && !strings.Contains(s, "%{") {
		return nil, true
	}
	if len(s) > maxTemplateBytes || templateDepth(s) > maxTemplateDepth || operators(s) > maxOperators {
		p.fail(field, "Template too large",
			"A string with ${...} or %%{...} may hold at most %d KiB, nest at most %d brackets and have at most %d operators in a row. Write $${ and %%%%{ for a literal ${ and %%{, or split the value.",
			maxTemplateBytes>>10, maxTemplateDepth, maxOperators)
		return nil, false
	}
	expr, diags := p.syntax(s, bare)
	if diags.HasErrors() {
		p.diags = append(p.diags, fromHCL(diags, field, false)...)
		if !p.opts.bare {
			p.diags[len(p.diags)-1].Detail += " Write $${ and %%{ for a literal ${ and %{."
		}
		return nil, false
	}
	failed := len(p.diags)
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr:
			if hugeNumber(n.Val) {
				p.fail(columnField(field, n.SrcRange), "Invalid number", "The number is out of range. Write one with an exponent between -1024 and 1024.")
			}
		case *hclsyntax.FunctionCallExpr:
			p.call(n, field)
		}
		return nil
	})
	return expr, len(p.diags) == failed
}

func (p *parser) syntax(s string, bare bool) (hclsyntax.Expression, hcl.Diagnostics) {
	Parsed.Add(1)
	start := hcl.InitialPos
	switch {
	case bare:
		return hclsyntax.ParseExpression([]byte(s), "", start)
	case p.opts.bare:
		// Blanks around "${" and "}" are no part of the value.
		start.Column += len(s) - len(strings.TrimLeft(s, " \t"))
		s = strings.TrimSpace(s)
	}
	return hclsyntax.ParseTemplate([]byte(s), "", start)
}

// operators bounds what can be nested without brackets.
func operators(s string) int {
	n := 0
	for i := range len(s) {
		if strings.IndexByte("!?-+*/%<>=&|", s[i]) >= 0 {
			n++
		}
	}
	return n
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

// columnField points into the template of a field: "spec.name, column 7", or "spec.script, line 3, column 7" below its first
// line.
func columnField(field string, r hcl.Range) string {
	at := fmt.Sprintf("column %d", max(1, r.Start.Column))
	if r.Start.Line > 1 {
		at = fmt.Sprintf("line %d, %s", r.Start.Line, at)
	}
	if field == "" {
		return at
	}
	return field + ", " + at
}

// fromHCL converts what the expression language says. Its details may quote values, so they are left out when a
// secret is near.
func fromHCL(ds hcl.Diagnostics, field string, secret bool) diag.Diagnostics {
	out := make(diag.Diagnostics, 0, len(ds))
	seen := map[v1alpha1.Diagnostic]bool{} // each turn of a loop says the same
	for _, d := range explain(ds) {
		o := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: d.Summary, Detail: diag.Clip(d.Detail), Attribute: field}
		if d.Severity == hcl.DiagWarning {
			o.Severity = v1alpha1.SeverityWarning
		}
		if d.Subject != nil {
			o.Attribute = columnField(field, *d.Subject)
		}
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok && !strings.Contains(d.Detail, `"`+call.CalledFunctionName()+`"`) {
			o.Detail = diag.Clip(fmt.Sprintf("In the call of %s(): %s", call.CalledFunctionName(), d.Detail))
		}
		if x, ok := d.Extra.(explained); ok {
			o.Detail = diag.Clip(x.text)
		} else if secret {
			o.Detail = "The expression uses a sensitive value, so the details are not shown."
		}
		if !seen[o] {
			out = append(out, o)
		}
		seen[o] = true
	}
	return out
}

// sortedKeys keeps diagnostics in the same order each time.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
