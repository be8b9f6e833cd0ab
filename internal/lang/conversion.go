package lang

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// This file explains why a value does not convert to a type.

// conversionText returns the text for a failed conversion: the name of the field, the wanted type and the actual value.
// For a sensitive value, it shows the type, but neither value nor keys.
func conversionText(what string, err error, v cty.Value, want cty.Type, dry bool) string {
	if !dry && v.ContainsMarked() {
		return fmt.Sprintf("%s needs %s, but its value is %s; it is sensitive, so it is not shown", what,
			article(want.FriendlyName()), article(v.Type().FriendlyName()))
	}
	if pe, ok := errors.AsType[cty.PathError](err); ok && len(pe.Path) > 0 {
		inner, applyErr := pe.Path.Apply(WithoutMarks(v))
		elem, found := typeAt(want, pe.Path)
		if applyErr != nil || !found {
			return fmt.Sprintf("%s needs %s: %s", what, article(want.FriendlyName()), err.Error())
		}
		v, want, what = inner, elem, diag.PathField(strings.Trim(what, `"`), pe.Path)
	}
	if v.Type().IsObjectType() && want.IsObjectType() {
		return fmt.Sprintf("The value is not appropriate for %s: %s", what, err.Error())
	}
	return fmt.Sprintf("%s needs %s, but its value is %s", what, article(want.FriendlyName()), valueText(v, want))
}

// typeAt returns the type at a path within a value of the type ty.
func typeAt(ty cty.Type, path cty.Path) (cty.Type, bool) {
	for _, s := range path {
		attr, isAttr := s.(cty.GetAttrStep)
		switch {
		case ty.IsCollectionType():
			ty = ty.ElementType()
		case isAttr && ty.IsObjectType() && ty.HasAttribute(attr.Name):
			ty = ty.AttributeType(attr.Name)
		default:
			return cty.NilType, false
		}
	}
	return ty, true
}

// valueText describes a value by its type. It never shows the value: an argument from a Secret may have lost its mark
// by this time.
func valueText(v cty.Value, want cty.Type) string {
	if v.Type().IsTupleType() {
		return "a list"
	}
	switch known := v.IsKnown() && !v.IsNull() && v.Type() == cty.String; {
	case known && want == cty.Number:
		return "a string that is not a number"
	case known && want == cty.Bool:
		return "a string that is neither true nor false"
	}
	return article(v.Type().FriendlyName())
}

// findOutOfRange returns the path of a number that is out of range. Strings converted to numbers were not checked
// earlier.
func findOutOfRange(v cty.Value) (cty.Path, bool) {
	switch ty := v.Type(); {
	case ty == cty.Number:
		return nil, hugeNumber(v)
	case ty == cty.String || ty == cty.Bool || !mayHoldNumbers(ty):
		return nil, false
	}
	var at cty.Path
	_ = cty.Walk(v, func(p cty.Path, v cty.Value) (bool, error) {
		if at == nil && hugeNumber(v) {
			at = p.Copy()
		}
		return at == nil, nil
	})
	return at, at != nil
}

func mayHoldNumbers(ty cty.Type) bool {
	switch {
	case ty.IsCollectionType():
		return mayHoldNumbers(ty.ElementType())
	case ty.IsObjectType():
		for _, t := range ty.AttributeTypes() {
			if mayHoldNumbers(t) {
				return true
			}
		}
		return false
	case ty.IsTupleType():
		return slices.ContainsFunc(ty.TupleElementTypes(), mayHoldNumbers)
	default:
		return ty == cty.Number || ty == cty.DynamicPseudoType
	}
}

func nestingText(n schema.Nesting) string {
	if n == schema.NestingMap {
		return "a map of objects"
	}
	return "a list of objects"
}

func sentenceStart(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
