package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/hashicorp/terraform-json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/suggest"
)

// shape has the fields that a value may have. A nil shape permits every field.
type shape struct {
	// fields are the possible fields; nil if they are not known.
	fields map[string]*shape
	// element is the shape of the elements of a list.
	element *shape
}

// shapes returns the shapes of the variables.
var shapes = sync.OnceValue(func() map[string]*shape {
	who := &shape{fields: map[string]*shape{"username": nil, "groups": nil}}
	count := &shape{fields: map[string]*shape{}}
	for name := range counts(v1alpha1.PlanSummary{}) {
		count.fields[name] = nil
	}
	plan := shapeOf(reflect.TypeFor[tfjson.Plan]())
	plan.fields["applyable"], plan.fields["errored"], plan.fields["contributors"] = nil, nil, &shape{element: who}
	return map[string]*shape{
		"plan": plan, "spec": shapeOf(reflect.TypeFor[v1alpha1.PlanSpec]()), "requester": who,
		"approvers": {element: who}, "counts": count,
		"providers": {element: &shape{fields: map[string]*shape{"name": nil, "source": nil}}},
		"namespaceObject": {fields: map[string]*shape{"metadata": {fields: map[string]*shape{"name": nil,
			"labels": nil}}}},
		"earlier": {element: shapeOf(reflect.TypeFor[v1alpha1.PlanRecord]())},
	}
})

// shapeOf returns the shape of the JSON form of a Go type. It does not describe the fields of Kubernetes' types, whose
// JSON forms differ from their Go fields, nor a type inside itself. outer are the types around this one.
func shapeOf(t reflect.Type, outer ...reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), outer...)
	case reflect.Slice:
		if e := shapeOf(t.Elem(), outer...); e != nil {
			return &shape{element: e}
		}
	case reflect.Struct:
		if slices.Contains(outer, t) || !strings.HasPrefix(t.PkgPath(), "github.com/hykube/") &&
			t.PkgPath() != reflect.TypeFor[tfjson.Plan]().PkgPath() {
			return nil
		}
		s := &shape{fields: map[string]*shape{}}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name != "" && name != "-":
				s.fields[name] = shapeOf(f.Type, append(slices.Clone(outer), t)...)
			case options == "inline": // apiVersion and kind
				s.fields["apiVersion"], s.fields["kind"] = nil, nil
			}
		}
		return s
	}
	return nil
}

// checkFields returns an error if an expression reads a field that does not exist, because its evaluation would fail
// for every plan. A test of existence, such as has(spec.destroy), may name any field.
func checkFields(e ast.Expr) error {
	c := &fieldCheck{}
	c.visit(e, shapes())
	return c.err
}

// fieldCheck keeps the first error.
type fieldCheck struct{ err error }

// visit checks an expression and returns its shape. names are the shapes of the variables.
func (c *fieldCheck) visit(e ast.Expr, names map[string]*shape) *shape {
	switch e.Kind() {
	case ast.IdentKind:
		return names[e.AsIdent()]
	case ast.SelectKind:
		s := c.visit(e.AsSelect().Operand(), names)
		if e.AsSelect().IsTestOnly() {
			return nil
		}
		return c.field(s, e.AsSelect().FieldName())
	case ast.CallKind:
		return c.call(e.AsCall(), names)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			c.visit(item, names)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.visit(entry.AsMapEntry().Key(), names)
			c.visit(entry.AsMapEntry().Value(), names)
		}
	case ast.ComprehensionKind:
		c.comprehension(e.AsComprehension(), names)
	}
	return nil
}

func (c *fieldCheck) call(call ast.CallExpr, names map[string]*shape) *shape {
	if call.IsMemberFunction() {
		c.visit(call.Target(), names)
	}
	args := call.Args()
	if len(args) == 2 && slices.Contains([]string{operators.Index, operators.OptIndex, operators.OptSelect},
		call.FunctionName()) {
		s := c.visit(args[0], names)
		if args[1].Kind() == ast.LiteralKind {
			if name, ok := args[1].AsLiteral().(types.String); ok {
				return c.field(s, string(name))
			}
		}
		c.visit(args[1], names)
		if s != nil {
			return s.element
		}
		return nil
	}
	for _, arg := range args {
		c.visit(arg, names)
	}
	return nil
}

func (c *fieldCheck) comprehension(l ast.ComprehensionExpr, names map[string]*shape) {
	var element *shape
	if s := c.visit(l.IterRange(), names); s != nil {
		element = s.element
	}
	c.visit(l.AccuInit(), names)
	inner := maps.Clone(names)
	inner[l.AccuVar()] = nil
	if inner[l.IterVar()] = element; l.HasIterVar2() { // an index and an element
		inner[l.IterVar()], inner[l.IterVar2()] = nil, element
	}
	for _, e := range []ast.Expr{l.LoopCondition(), l.LoopStep(), l.Result()} {
		c.visit(e, inner)
	}
}

// field returns the shape of a field.
func (c *fieldCheck) field(s *shape, name string) *shape {
	if s == nil || s.fields == nil {
		return nil
	}
	child, ok := s.fields[name]
	if !ok && c.err == nil {
		known := slices.Sorted(maps.Keys(s.fields))
		if near := suggest.Nearest(name, known); near != "" {
			c.err = fmt.Errorf("there is no field %q: did you mean %q?", name, near)
		} else {
			c.err = fmt.Errorf("there is no field %q; use one of %s", name, strings.Join(known, ", "))
		}
	}
	return child
}
