package kinds

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// validateSpec validates the arguments against the provider's schema, and the expressions as far as possible without
// values.
func (s *served) validateSpec(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	spec, ok := u.Object["spec"].(map[string]any)
	if raw := u.Object["spec"]; !ok && raw != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), raw, "must be an object, got "+describe(raw))}
	}
	config, diags := s.parseSpec(ctx, u, u.GetNamespace(), spec)
	var errs field.ErrorList
	for _, d := range diags {
		if d.Severity != v1alpha1.SeverityError {
			continue
		}
		detail := diagnosticText(d)
		switch mismatch := config.MismatchOf(d); mismatch.Kind {
		case lang.UnknownField:
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: d.Attribute,
				Detail: unknownSpecField(d.Attribute, mismatch.Hint).Error()})
		case lang.MissingArgument, lang.MissingBlock:
			errs = append(errs, &field.Error{Type: field.ErrorTypeRequired, Field: d.Attribute, Detail: detail})
		case lang.ReadOnlyArgument:
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: d.Attribute, Detail: detail})
		default:
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeInvalid, Field: d.Attribute, BadValue: badValue(spec, s.Schema.Block, d.Attribute),
				Detail: detail,
			})
		}
	}
	return errs
}

// warnings returns warnings about deprecated arguments.
func (s *served) warnings(ctx context.Context, u *unstructured.Unstructured) diag.Diagnostics {
	spec, _ := u.Object["spec"].(map[string]any)
	_, diags := s.parseSpec(ctx, u, u.GetNamespace(), spec)
	return diag.Warnings(diags)
}

// isDeprecated reports whether a block, or a part of it, is deprecated.
func isDeprecated(b *schema.Block) bool {
	return b.Deprecated || anyDeprecated(b.Attributes) ||
		slices.ContainsFunc(b.Blocks, func(nb *schema.NestedBlock) bool { return isDeprecated(nb.Block) })
}

func anyDeprecated(attrs []*schema.Attribute) bool {
	return slices.ContainsFunc(attrs, func(a *schema.Attribute) bool {
		return a.Deprecated || a.Nested != nil && anyDeprecated(a.Nested.Attributes)
	})
}

// unknownSpec returns the unknown fields of an object's spec. namespace is the object's namespace, which the object
// itself may omit.
func (s *served) unknownSpec(ctx context.Context, namespace string, u *unstructured.Unstructured) []fieldnames.Unknown {
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok {
		return nil
	}
	config, diags := s.parseSpec(ctx, u, namespace, spec)
	var out []fieldnames.Unknown
	for _, d := range diags {
		if mismatch := config.MismatchOf(d); mismatch.Kind == lang.UnknownField {
			out = append(out, unknownSpecField(d.Attribute, mismatch.Hint))
		}
	}
	return out
}

// unknownSpecField returns an error such as `unknown field "spec.nmae" (did you mean "name"?)`: Kubernetes' message
// with the parser's hint.
func unknownSpecField(path, hint string) fieldnames.Unknown {
	if hint != "" {
		hint = strings.ToLower(hint[:1]) + hint[1:]
	}
	return fieldnames.Unknown{Path: path, Hint: hint}
}

// maxShownValue is the maximum length of a string that an error quotes.
const maxShownValue = 200

// pathStep matches one step of a path in a diagnostic: .name, ["any name"], [0], or the final position in a template.
var pathStep = regexp.MustCompile(
	`^(?:\.?([A-Za-z_][A-Za-z0-9_-]*)|\["((?:[^"\\]|\\.)*)"\]|\[([0-9]+)\]|\[\*\]|(?:, line [0-9]+)?, column [0-9]+$)`)

// pathSteps splits the path of a diagnostic about spec: names are strings, indexes are numbers.
func pathSteps(path string) (steps []any, ok bool) {
	path, ok = strings.CutPrefix(path, "spec")
	if !ok {
		return nil, false
	}
	for path != "" {
		m := pathStep.FindStringSubmatch(path)
		if m == nil {
			return nil, false
		}
		path = path[len(m[0]):]
		switch {
		case m[1] != "":
			steps = append(steps, m[1])
		case m[2] != "":
			name, err := strconv.Unquote(`"` + m[2] + `"`)
			if err != nil {
				return nil, false
			}
			steps = append(steps, name)
		case m[3] != "":
			i, err := strconv.Atoi(m[3])
			if err != nil {
				return nil, false
			}
			steps = append(steps, i)
		}
	}
	return steps, true
}

// valueAt returns the value at a path.
func valueAt(v any, steps []any) (any, bool) {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any) // a nil map has no keys
			next, ok := object[step]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			list, ok := v.([]any)
			if !ok || step >= len(list) {
				return nil, false
			}
			v = list[step]
		}
	}
	return v, true
}

// badValue returns the value for a validation error. It omits objects, lists and values that may be secret.
func badValue(spec map[string]any, block *schema.Block, path string) any {
	steps, ok := pathSteps(path)
	if !ok {
		return field.OmitValueType{}
	}
	v, ok := valueAt(spec, steps)
	if !ok {
		return field.OmitValueType{}
	}
	here := position{block: block}
	for _, step := range steps {
		if name, ok := step.(string); ok {
			here = here.step(name)
		}
	}
	if here.secret {
		return field.OmitValueType{}
	}
	switch v := v.(type) {
	case bool, int64, float64:
		return v
	case string:
		if len(v) <= maxShownValue {
			return v
		}
	}
	return field.OmitValueType{}
}

// position is a position in a schema. An attribute with nested attributes has an object, and any other attribute has
// neither a block nor an object.
type position struct {
	block  *schema.Block
	object *schema.Object
	secret bool
}

func (p position) step(name string) position {
	var a *schema.Attribute
	switch {
	case p.block != nil:
		if nb := p.block.NestedBlock(name); nb != nil {
			return position{block: nb.Block, secret: p.secret}
		}
		a = p.block.Attribute(name)
	case p.object != nil:
		a = p.object.Attribute(name)
	default:
		// Within a value that has no nested schema, such as a map.
		return p
	}
	if a == nil {
		// A key of a map of blocks or objects, or an unknown field.
		return p
	}
	return position{object: a.Nested, secret: p.secret || a.Sensitive || a.WriteOnly}
}

// parsedSpec caches the parsed spec of a write request. Decoding, validation, warnings and the check of references then
// parse the spec once.
type parsedSpec struct {
	mu        sync.Mutex
	kind      *served
	snapshot  *snapshot
	namespace string
	// repetition is that of the template of a ResourceSet.
	repetition lang.Repetition
	// spec is a copy, because decoding removes unknown fields from the original.
	spec   map[string]any
	config *lang.Config
	diags  diag.Diagnostics
}

type parsedSpecKey struct{}

// withParsedSpec returns a context in which the spec of one object is parsed only once.
func withParsedSpec(ctx context.Context) context.Context {
	return context.WithValue(ctx, parsedSpecKey{}, new(parsedSpec))
}

// specOptions returns the options of a spec in a namespace, without a budget. They have the signatures of the
// provider-defined functions. All arguments of an ephemeral resource accept ephemeral values.
func (s *served) specOptions(u *unstructured.Unstructured, namespace string) lang.ConfigOptions {
	return lang.ConfigOptions{Functions: s.functions(), Ephemeral: s.Mode == v1alpha1.ModeEphemeral,
		Namespace: namespace, Repetition: repetitionOf(u)}
}

// parseSpec parses the arguments of a request's object. Callers must not change the result, which a request shares.
func (s *served) parseSpec(ctx context.Context, u *unstructured.Unstructured, namespace string,
	spec map[string]any) (*lang.Config, diag.Diagnostics) {
	options := s.specOptions(u, namespace)
	options.Budget = lang.BudgetOf(ctx)
	p, ok := ctx.Value(parsedSpecKey{}).(*parsedSpec)
	if !ok {
		return options.Parse(spec, s.Schema.Block)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.kinds.snapshot.Load()
	if p.config == nil || p.kind != s || p.snapshot != now || p.namespace != namespace ||
		p.repetition != options.Repetition || !reflect.DeepEqual(p.spec, spec) {
		p.kind, p.snapshot, p.namespace, p.repetition, p.spec = s, now, namespace, options.Repetition,
			runtime.DeepCopyJSON(spec)
		p.config, p.diags = options.Parse(spec, s.Schema.Block)
	}
	return p.config, p.diags
}

// maxExact is the limit below which a float64 represents every whole number.
const maxExact = 1 << 53

// maxScalarWarnings is the maximum number of warnings about scalars per write.
const maxScalarWarnings = 5

// scalarWarnings returns warnings about numbers and booleans where the schema has strings. A plan converts them, as
// Terraform does, but YAML changes values such as 1.10, 0012 and no. It also warns about numbers that lost digits.
func scalarWarnings(spec map[string]any, block *schema.Block) []string {
	var w scalars
	w.block("spec", spec, block)
	if n := len(w); n > maxScalarWarnings {
		return append(w[:maxScalarWarnings:maxScalarWarnings],
			fmt.Sprintf("and %d more numbers and booleans where the schema has strings", n-maxScalarWarnings))
	}
	return w
}

type scalars []string

func (w *scalars) block(path string, values map[string]any, b *schema.Block) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := path + "." + name
		if a := b.Attribute(name); a != nil {
			w.value(at, values[name], a.Type)
		} else if nb := b.NestedBlock(name); nb != nil {
			w.blocks(at, values[name], nb)
		}
	}
}

func (w *scalars) blocks(path string, v any, nb *schema.NestedBlock) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if m, ok := e.(map[string]any); ok {
				w.block(fmt.Sprintf("%s[%d]", path, i), m, nb.Block)
			}
		}
	case map[string]any:
		if nb.Nesting != schema.NestingMap {
			w.block(path, v, nb.Block)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if m, ok := v[key].(map[string]any); ok {
				w.block(path+"."+key, m, nb.Block)
			}
		}
	}
}

func (w *scalars) value(path string, v any, ty cty.Type) {
	switch v := v.(type) {
	case bool, int64, float64:
		if f, ok := v.(float64); ok && ty == cty.Number && math.Abs(f) >= maxExact && f == math.Trunc(f) {
			*w = append(*w, fmt.Sprintf("%s: the number is too large for JSON and may have lost digits; write it as an expression, such as \"${18446744073709551617}\"", path))
		}
		if ty == cty.String {
			*w = append(*w, fmt.Sprintf("%s: the schema has a string here, so %v becomes %q; put the value in quotes",
				path, v, fmt.Sprint(v)))
		}
	case []any:
		if ty.IsCollectionType() {
			for i, e := range v {
				w.value(fmt.Sprintf("%s[%d]", path, i), e, ty.ElementType())
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case ty.IsMapType():
				w.value(path+"."+key, v[key], ty.ElementType())
			case ty.IsObjectType() && ty.HasAttribute(key):
				w.value(path+"."+key, v[key], ty.AttributeType(key))
			}
		}
	}
}
