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

// Config is a spec whose templates are parsed. It is immutable and safe for concurrent evaluation.
type Config struct {
	program
	block *schema.Block
	root  *node
	// ephemeral allows ephemeral values in every attribute.
	ephemeral bool
	// broken is true if Parse reported errors. Then the Config cannot be evaluated.
	broken bool
	// constant is the configuration's value if it has no references, no impure functions, no calls of provider-defined
	// functions and no errors. Otherwise it is NilVal.
	constant cty.Value
	// mismatches has the kinds of Parse's errors.
	mismatches map[v1alpha1.Diagnostic]Mismatch
}

// MismatchOf returns the mismatch with the schema that an error of Parse is about; the zero value for any other error.
func (c *Config) MismatchOf(d v1alpha1.Diagnostic) Mismatch { return c.mismatches[d] }

// program is the data that all expressions of one parsed text share for their evaluation.
type program struct {
	refs []Reference
	// ownRefs are the references to "self".
	ownRefs []Reference
	// calls maps the names of the called functions, as written, to the functions.
	calls map[string]function.Function
	// functions are the provider-defined functions.
	functions Functions
	context   EvaluationContext
	request   *Budget
	self      bool
	// namespace is the object's own namespace; empty if it is not known. module is the path of its module.
	namespace string
	module    string
	// repeats is true if an expression refers to count.index, each.key or each.value.
	repeats bool
}

// node is a part of a spec. Exactly one of literal, expr, attrs and items is set.
type node struct {
	// literal is the value of a subtree without templates.
	literal cty.Value
	expr    hclsyntax.Expression
	// vars are the references of expr, collected before withBudget rewrote it.
	vars  []hcl.Traversal
	field string
	attrs map[string]*node
	// keys maps those keys of attrs that are templates to their parsed form.
	keys  map[string]*node
	items []*node
}

// Limits on templates. Beyond them, the parser's recursion could exhaust the stack. Longer text must be in an attribute
// without templates, or in a file.
const (
	maxTemplateBytes = 128 << 10
	maxTemplateDepth = 200
	maxOperators     = 40_000
)

// Parsed counts the templates that the process has parsed. Tests use it to assert that no object is parsed twice.
var Parsed atomic.Int64

// ConfigOptions configures Parse. The zero value fits the spec of a managed resource without provider-defined
// functions.
type ConfigOptions struct {
	// Functions are the provider-defined functions that expressions may call. For Parse, their signatures suffice:
	// Config.With supplies callable ones.
	Functions Functions
	// Ephemeral allows ephemeral values in every attribute, as in the spec of an ephemeral resource. Otherwise only
	// write-only attributes may have them.
	Ephemeral bool
	// Namespace is the object's own namespace. A reference that names it is equal to a reference without a namespace.
	Namespace string

	// Module is the path of the object's own module; empty outside of one. In a module, references are Terraform's:
	// names are those of the module, and "var", "local", "module", "path" and "terraform" are known.
	Module string

	// Settled refuses impure functions (clock and random values), because the result must be the same in each
	// evaluation.
	Settled bool

	// Repetition allows count.index, or each.key and each.value, in the template of a ResourceSet.
	Repetition Repetition

	// Budget bounds the evaluation, in addition to its own limit.
	Budget *Budget

	// self allows references to the object's own result.
	self bool
	// reveals describes how the whole value is revealed. For a condition, the result itself is visible.
	reveals reveal
	// bare reads a string as an expression even without "${" and "}" around it.
	bare bool
}

// Parse parses the templates of a spec. It reports each error that it can find without values: unknown fields, wrong
// types, missing arguments, and values that only the provider may set. The Config is never nil. After an error, only
// its References are valid.
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
	// A dry run with all references unknown finds the errors that do not depend on their values.
	dry := &evaluation{program: &c.program, static: true, warn: true}
	v, found := c.run(dry)
	c.mismatches = dry.mismatches
	diags := slices.Concat(p.diags, found)
	c.broken = diag.HasErrors(diags)
	if len(c.refs) == 0 && !c.repeats && !c.broken && !c.Impure() && !c.callsGiven() {
		c.constant = v
	}
	return c, diags
}

// References lists the references of a spec, as Config.References does. It evaluates nothing, so it needs neither a
// schema nor a budget. It ignores errors, and lists the references in calls of unknown functions, too.
func (o ConfigOptions) References(spec map[string]any) []Reference {
	p := newParser(o)
	p.referencesOnly = true
	p.parse(spec, "spec")
	return p.refs
}

// With returns a copy of the configuration that evaluates in the context.
func (c *Config) With(at EvaluationContext) *Config {
	bound := *c
	bound.program = c.in(at)
	return &bound
}

// CheckTypes reports each mismatch with the schema that the types of the references make certain. It is Parse's dry run
// with typed references. It returns nil if Parse or CheckReferences reported an error.
func (c *Config) CheckTypes(in Catalog) diag.Diagnostics {
	if c.broken || len(c.refs) == 0 || diag.HasErrors(CheckReferences(c.refs, in.quiet())) {
		return nil
	}
	_, diags := c.run(&evaluation{program: &c.program, static: true, catalog: &in})
	return diags
}

// References lists the references to other objects, in the order of the fields.
func (c *Config) References() []Reference { return c.refs }

// Addresses lists the addresses of the references, sorted and without duplicates.
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
	// referencesOnly skips the checks of calls and numbers, which the evaluation needs, and references do not.
	referencesOnly bool
}

func newParser(o ConfigOptions) *parser {
	return &parser{opts: o, program: program{self: o.self, functions: o.Functions, request: o.Budget,
		namespace: o.Namespace, module: o.Module}}
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
		// Format the number as text, so that 0.1 stays the decimal number in the spec and not its nearest binary
		// fraction.
		return p.number(strconv.FormatFloat(v, 'g', -1, 64), field)
	case json.Number:
		return p.number(v.String(), field)
	case string:
		return p.template(v, field, p.opts.reveals)
	case []any:
		return p.tuple(v, field)
	case map[string]any:
		return p.object(v, field)
	default:
		return p.fail(field, "Unsupported value",
			"A value of Go type %T is not allowed in a spec. Use strings, numbers, booleans, lists and maps.", raw)
	}
}

func (p *parser) number(s, field string) *node {
	// Check the exponent before building the number: 1e999999999 would take gigabytes to write out.
	if _, exp, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exp); err != nil || n > diag.MaxExponent/4 || n < -diag.MaxExponent/4 {
			return p.fail(field, "Invalid number",
				"The number %.40s is out of range. Write one with an exponent between -1024 and 1024.", s)
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
		// As in Terraform's JSON syntax, a key is a template, too.
		if key := p.template(k, diag.KeyField(field, k), revealAll); !key.isLiteral() {
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

// template parses a string; how describes how its value is revealed. A string without "${" and "%{" is a literal.
func (p *parser) template(s, field string, how reveal) *node {
	failed := len(p.diags)
	expr, ok := p.expression(s, field)
	if !ok {
		return &node{literal: cty.DynamicVal}
	}
	if expr == nil {
		return &node{literal: cty.StringVal(s)}
	}
	vars, reveals, keys := expr.Variables(), revealed{}, instanceKeys(expr)
	reveals.expression(expr, how, nil)
	for _, t := range vars {
		p.reference(t, field, reveals[t.SourceRange()], keys[t.SourceRange()])
	}
	if len(p.diags) > failed || p.referencesOnly {
		return &node{literal: cty.DynamicVal}
	}
	return &node{expr: withBudget(expr), vars: vars, field: field}
}

// expression parses a string and resolves its function calls. It returns nil and true if the string is not a template.
func (p *parser) expression(s, field string) (hclsyntax.Expression, bool) {
	bare := p.opts.bare && !strings.HasPrefix(strings.TrimSpace(s), "${")
	if !bare && !strings.Contains(s, "${") && !strings.Contains(s, "%{") {
		return nil, true
	}
	if len(s) > maxTemplateBytes || templateDepth(s) > maxTemplateDepth || operators(s) > maxOperators {
		p.fail(field, "Template too large",
			"A string with ${...} or %%{...} may have at most %d KiB, %d nested brackets and %d operators in a row. Write $${ and %%%%{ for a literal ${ and %%{, or split the value.",
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
	if p.referencesOnly {
		return expr, true
	}
	failed := len(p.diags)
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr:
			if hugeNumber(n.Val) {
				p.fail(columnField(field, n.SrcRange), "Invalid number",
					"The number is out of range. Write one with an exponent between -1024 and 1024.")
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
		// Blanks around "${" and "}" are not part of the value.
		start.Column += len(s) - len(strings.TrimLeft(s, " \t"))
		s = strings.TrimSpace(s)
	}
	return hclsyntax.ParseTemplate([]byte(s), "", start)
}

// operators counts the operator characters, an upper bound for nesting without brackets.
func operators(s string) int {
	n := 0
	for i := range len(s) {
		if strings.IndexByte("!?-+*/%<>=&|", s[i]) >= 0 {
			n++
		}
	}
	return n
}

// templateDepth returns the maximum depth of nested brackets. It also counts brackets within quotes.
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

// columnField returns the position in the template of a field: "spec.name, column 7", or "spec.script, line 3, column
// 7" below the first line.
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

// fromHCL converts HCL diagnostics. A detail may quote values, so fromHCL omits details if the expression uses a
// secret.
func fromHCL(ds hcl.Diagnostics, field string, secret bool) diag.Diagnostics {
	out := make(diag.Diagnostics, 0, len(ds))
	seen := map[v1alpha1.Diagnostic]bool{} // each iteration of a loop reports the same problem
	for _, d := range explain(ds) {
		o := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: d.Summary, Detail: diag.Clip(d.Detail),
			Attribute: field}
		if d.Severity == hcl.DiagWarning {
			o.Severity = v1alpha1.SeverityWarning
		}
		if d.Subject != nil {
			o.Attribute = columnField(field, *d.Subject)
		}
		// HCL names the function only in some of its details.
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok && !strings.Contains(d.Detail,
			`"`+call.CalledFunctionName()+`"`) {
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

// sortedKeys returns the keys in sorted order, so that diagnostics have a stable order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
