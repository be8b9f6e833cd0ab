package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// This file finds the objects that a resource may belong to. After a create with an unknown outcome, it may have been
// made for one of them.

// maxObjects is the maximum that v1alpha1.QuerySpec documents.
const maxObjects = 10_000

// candidate is an object that a resource may belong to.
type candidate struct {
	name string
	// wanted is the evaluated spec. It is unknown where it says nothing about the resource, and where it is secret.
	wanted cty.Value
}

// evaluateObjects evaluates the specs of the objects in the query. A diagnostic names each object whose spec has no
// value.
func (s *search) evaluateObjects(ctx context.Context) error {
	if len(s.query.Spec.Objects) > maxObjects {
		return badQuery("spec.objects", "must have at most %d names", maxObjects)
	}
	for i, name := range s.query.Spec.Objects {
		c, diags, err := s.evaluateObject(ctx, fmt.Sprintf("spec.objects[%d]", i), name)
		if err != nil {
			return err
		}
		s.query.Status.Diagnostics = append(s.query.Status.Diagnostics, diags...)
		if c != nil {
			s.candidates = append(s.candidates, *c)
		}
	}
	return nil
}

// evaluateObject evaluates the spec of an object. It returns nil and a warning if that is not possible, or if the spec
// has no value by which a resource could be found.
func (s *search) evaluateObject(ctx context.Context, field, name string) (*candidate, diag.Diagnostics, error) {
	ref := v1alpha1.ObjectReference{
		APIVersion: v1alpha1.ProviderGroup(s.Entry.Name) + "/" + v1alpha1.ResourceVersion,
		Kind:       v1alpha1.KindOf(s.of.Name), Namespace: s.query.Namespace, Name: name,
	}
	rights, err := s.scope.RightsTo(ref.Namespace, lang.AddressOf(v1alpha1.ModeManaged, s.of.Name, name))
	for _, right := range rights {
		if err == nil {
			err = s.scope.MayRead(ctx, right)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	obj, err := s.Objects.Get(ctx, ref)
	if errors.Is(err, store.ErrGone) {
		return nil, nil, badQuery(field, "there is no %s %q in the namespace %q", ref.Kind, name, ref.Namespace)
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := s.scope.Decoder.Decode(obj)
	if err != nil {
		return nil, nil, err
	}
	warning := func(detail string) diag.Diagnostics {
		return diag.Diagnostics{{
			Severity: v1alpha1.SeverityWarning, Summary: "Object was not compared", Address: r.Address.String(),
			Detail: detail,
		}}
	}
	l := &scope.Evaluator{Ctx: ctx, Scope: s.scope, Partly: true}
	config, err := l.Config(r, instance.State{})
	if f, ok := errors.AsType[*diag.Failure](err); ok {
		return nil, warning("Its spec has no value: " + diag.Describe(f.Diagnostics)), nil
	}
	if err != nil {
		return nil, nil, err
	}
	wanted, err := wantedOf(s.Schema.Block, config.Written)
	if err == nil && !hasValue(wanted) {
		return nil, warning("Its spec has no value that is known and not secret, by which its resource could be found."), nil
	}
	return &candidate{name, wanted}, nil, err
}

// wantedOf returns a spec that is unknown where it says nothing about the resource: where an argument is absent, secret
// or write-only, and where a block is absent.
func wantedOf(block *schema.Block, spec cty.Value) (cty.Value, error) {
	spec = lang.MarkSensitive(block, plan.WithoutWriteOnly(block, spec))
	return cty.Transform(spec, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		bare, marks := v.Unmark()
		if len(marks) > 0 || bare.IsNull() || bare.IsKnown() && bare.Type().IsCollectionType() &&
			bare.LengthInt() == 0 {
			return cty.UnknownVal(bare.Type()), nil
		}
		return bare, nil
	})
}

// hasValue reports whether any part of a value is known.
func hasValue(v cty.Value) (known bool) {
	_ = cty.Walk(v, func(_ cty.Path, part cty.Value) (bool, error) {
		known = known || part.Type().IsPrimitiveType() && part.IsKnown()
		return !known, nil
	})
	return known
}

// matching returns the names of the objects whose specs a resource agrees with.
func (s *search) matching(found cty.Value) (names []string) {
	for _, c := range s.candidates {
		if len(plan.CheckCompatible(s.Schema.Block, c.wanted, found)) == 0 {
			names = append(names, c.name)
		}
	}
	return names
}
