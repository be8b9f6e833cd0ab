package plan

import (
	"errors"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// Reasons of actions, with the names of Terraform's JSON plan:
// https://developer.hashicorp.com/terraform/internals/json-format#plan-representation
const (
	ReasonCannotUpdate     = "replace_because_cannot_update"
	ReasonTainted          = "replace_because_tainted"
	ReasonReplaceRequested = "replace_by_request"
	ReasonTriggered        = "replace_by_triggers"
	ReasonNoConfig         = "delete_because_no_resource_config"
)

// Reasons to forget an instance, which Terraform's JSON plan does not have.
const (
	// ReasonGone is the reason if the instance was removed outside of Hykube, or never existed.
	ReasonGone = "forget_because_gone"
	// ReasonNotFound is the reason if the provider does not find the instance with other arguments than before. The
	// instance may exist.
	ReasonNotFound = "forget_because_not_found"
	// ReasonCreateUnknown is the reason if a create was begun but its outcome is unknown, so that the instance may
	// exist.
	ReasonCreateUnknown = "forget_because_create_unknown"
)

// Decide returns the action that changes the prior state to the planned one, and its reason. replace is the result of
// RequiredReplace. forced is true if the user requested a replace. tainted is true if the last create failed after it
// had begun. A tainted resource is planned as if it did not exist; prior is then the recorded state. A null prior or
// planned value means that the instance is absent.
func Decide(prior, planned cty.Value, replace []cty.Path, forced,
	tainted bool) (action v1alpha1.Action, reason string) {
	switch {
	case absent(prior) && absent(planned):
		return v1alpha1.ActionNoOp, ""
	case absent(planned):
		return v1alpha1.ActionDelete, ReasonNoConfig
	case absent(prior):
		return v1alpha1.ActionCreate, ""
	case tainted:
		return v1alpha1.ActionReplace, ReasonTainted
	case forced:
		return v1alpha1.ActionReplace, ReasonReplaceRequested
	case equal(prior, planned):
		return v1alpha1.ActionNoOp, ""
	case len(replace) > 0:
		return v1alpha1.ActionReplace, ReasonCannotUpdate
	default:
		return v1alpha1.ActionUpdate, ""
	}
}

// Differs reports whether a value changes or may change: an unknown value may turn out to be different.
func Differs(before, after cty.Value) bool { return !equal(before, after) }

// Triggers reports whether lifecycle.replaceTriggeredBy replaces a resource because of these values before and after
// the plan. NilVal means that a value has no such part. As in Terraform, a part that is absent before and after is no
// change.
func Triggers(before, after cty.Value) bool {
	if before == cty.NilVal || after == cty.NilVal {
		return before != after
	}
	return Differs(before, after)
}

func absent(v cty.Value) bool { return v == cty.NilVal || v.IsNull() }

// equal compares as Terraform does: values of different types differ, also if only the type of a null within them does.
// Two nulls are equal. A value with an unknown part equals none, since it may turn out to be a change.
func equal(a, b cty.Value) bool {
	a, b = lang.WithoutMarks(a), lang.WithoutMarks(b)
	if a.IsNull() && b.IsNull() {
		return true
	}
	return a.RawEquals(b) && a.IsWhollyKnown()
}

// keyed reports whether a value has elements by name, and indexed whether it has them by index.
func keyed(v cty.Value) bool { return v.Type().IsObjectType() || v.Type().IsMapType() }

func indexed(v cty.Value) bool {
	return !v.IsNull() && (v.Type().IsListType() || v.Type().IsTupleType())
}

// sameKind reports whether two types are both maps, objects, lists or tuples.
func sameKind(a, b cty.Type) bool {
	return a.IsMapType() && b.IsMapType() || a.IsObjectType() && b.IsObjectType() || a.IsListType() && b.IsListType() ||
		a.IsTupleType() && b.IsTupleType()
}

// RequiredReplace returns those of the provider's replace paths whose value changes: prior and planned differ, or the
// planned value is unknown. A write-only attribute always counts as changed, since the state lacks it. Nothing is kept
// if prior or planned is absent. A path that exists in neither value is a bug of the provider: RequiredReplace returns
// an error together with the kept paths.
func RequiredReplace(block *schema.Block, paths []cty.Path, prior, planned cty.Value) (kept []cty.Path, err error) {
	if absent(prior) || absent(planned) {
		return nil, nil
	}
	prior, planned = lang.WithoutMarks(prior), lang.WithoutMarks(planned)
	var errs []error
	for _, p := range paths {
		if writeOnly(block, p) {
			kept = append(kept, p)
			continue
		}
		before, ok := follow(prior, p)
		after, ok2 := follow(planned, p)
		switch {
		case !ok && !ok2:
			errs = append(errs, p.NewErrorf(
				"read required replace %q: the provider names an attribute that does not exist; please report this to its developers", diag.PathField("", p)))
		case !ok || !ok2 || !equal(before, after):
			kept = append(kept, p)
		}
	}
	return kept, errors.Join(errs...)
}

// follow applies a path to a value. Unlike cty.Path.Apply, it also applies a map key to an object, because a map with
// dynamic elements is an object.
func follow(v cty.Value, p cty.Path) (cty.Value, bool) {
	for _, step := range p {
		if v.IsNull() {
			return cty.NilVal, false
		}
		switch s := step.(type) {
		case cty.GetAttrStep:
			if !v.Type().IsObjectType() || !v.Type().HasAttribute(s.Name) {
				return cty.NilVal, false
			}
			v = v.GetAttr(s.Name)
		case cty.IndexStep:
			switch ty := v.Type(); {
			case ty == cty.DynamicPseudoType:
				return cty.DynamicVal, true
			case ty.IsObjectType() && s.Key.Type() == cty.String && ty.HasAttribute(s.Key.AsString()):
				v = v.GetAttr(s.Key.AsString())
			case (ty.IsListType() || ty.IsTupleType()) && s.Key.Type() == cty.Number,
				ty.IsMapType() && s.Key.Type() == cty.String:
				has := v.HasIndex(s.Key)
				if has.IsKnown() && has.False() {
					return cty.NilVal, false
				}
				v = v.Index(s.Key)
			default:
				return cty.NilVal, false
			}
		}
	}
	return v, true
}

// writeOnly reports whether the path leads to, or into, a write-only attribute.
func writeOnly(b *schema.Block, p cty.Path) bool {
	return declared(b, p, func(a *schema.Attribute) bool { return a.WriteOnly })
}

// declared reports whether the path leads to, or into, an attribute with a property.
func declared(b *schema.Block, p cty.Path, has func(*schema.Attribute) bool) bool {
	var at nestedSchema = nestedBlock{b}
	for _, step := range p {
		s, ok := step.(cty.GetAttrStep)
		if !ok {
			continue
		}
		next := nestedSchema(nil)
		for _, a := range at.attributes() {
			if a.Name == s.Name && has(a) {
				return true
			}
			if a.Name == s.Name && a.Nested != nil {
				next = nestedObject{a.Nested}
			}
		}
		for _, nb := range at.blocks() {
			if nb.TypeName == s.Name {
				next = nestedBlock{nb.Block}
			}
		}
		if next == nil {
			return false
		}
		at = next
	}
	return false
}
