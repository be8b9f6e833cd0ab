package plan

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// Rendered is a change in the format of Terraform's JSON plan, with secrets masked. The fields are those of
// v1alpha1.PlanChange: https://developer.hashicorp.com/terraform/internals/json-format#change-representation
type Rendered struct {
	// Before and After are JSON null if the instance does not exist. After omits unknown values.
	Before, After *runtime.RawExtension
	// AfterUnknown is true where the value of After is unknown.
	AfterUnknown *runtime.RawExtension
	// BeforeSensitive and AfterSensitive are true where a value is masked.
	BeforeSensitive, AfterSensitive *runtime.RawExtension
	// SecretsChanged lists the masked values that differ, in the format of RenderPaths; nil if none differs.
	SecretsChanged *runtime.RawExtension
}

// Render renders a change for users. It masks values that the schema or a mark declares sensitive.
func Render(block *schema.Block, before, after cty.Value) (Rendered, error) {
	var r Rendered
	b, a := present(block, before), present(block, after)
	unknown := any(map[string]any{})
	if !a.IsWhollyKnown() {
		unknown = flags(a, isUnknown)
	}
	for _, f := range []struct {
		to **runtime.RawExtension
		v  any
	}{
		{&r.Before, plain(b, nullIncluded)},
		{&r.After, plain(a, nullIncluded)},
		{&r.AfterUnknown, unknown},
		{&r.BeforeSensitive, flags(b, isMarked)},
		{&r.AfterSensitive, flags(a, isMarked)},
	} {
		js, err := json.Marshal(f.v)
		if err != nil {
			return Rendered{}, fmt.Errorf("render change: %w", err)
		}
		*f.to = &runtime.RawExtension{Raw: js}
	}
	var err error
	r.SecretsChanged, err = RenderPaths(secretChanges(b, a))
	return r, err
}

// WithoutMasks renders a value for policies, with its secrets. unknown is true where the value is unknown.
func WithoutMasks(v cty.Value) (value, unknown *runtime.RawExtension, err error) {
	v = lang.WithoutMarks(v)
	open := any(map[string]any{})
	if !v.IsWhollyKnown() {
		open = flags(v, isUnknown)
	}
	value, unknown = &runtime.RawExtension{}, &runtime.RawExtension{}
	if value.Raw, err = json.Marshal(plain(v, nullIncluded)); err == nil {
		unknown.Raw, err = json.Marshal(open)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("render value: %w", err)
	}
	return value, unknown, nil
}

// RenderPaths formats paths as Terraform's JSON plan does: [["network_id"],["rule",0,"port"]]. It returns nil for no
// paths.
func RenderPaths(paths []cty.Path) (*runtime.RawExtension, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	out := make([][]any, len(paths))
	for i, p := range paths {
		out[i] = pathSteps(p)
	}
	js, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("render paths: %w", err)
	}
	return &runtime.RawExtension{Raw: js}, nil
}

// RenderPath formats a path as an element of RenderPaths.
func RenderPath(p cty.Path) (json.RawMessage, error) {
	js, err := json.Marshal(pathSteps(p))
	if err != nil {
		return nil, fmt.Errorf("render path: %w", err)
	}
	return js, nil
}

func pathSteps(p cty.Path) []any {
	steps := []any{}
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			steps = append(steps, s.Name)
		case cty.IndexStep:
			steps = append(steps, plain(s.Key, nullIncluded))
		}
	}
	return steps
}

// Attributes returns a resource's state for its object's status. It masks secrets and omits null and unknown values.
// The result is valid content for an unstructured object.
func Attributes(block *schema.Block, v cty.Value) map[string]any {
	out, _ := unstructured(plain(present(block, v), nullOmitted)).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

func present(block *schema.Block, v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(block.ImpliedType())
	}
	return lang.MarkSensitive(block, v)
}

type nulls bool

const (
	nullIncluded nulls = true
	nullOmitted  nulls = false
)

// plain converts a value to JSON-like data. Secrets are masked, numbers are json.Number, unknown attributes are omitted
// and unknown elements are null.
func plain(v cty.Value, keep nulls) any {
	v, marks := v.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	if len(marks) > 0 {
		return lang.Mask
	}
	switch ty := v.Type(); {
	case ty == cty.String:
		return v.AsString()
	case ty == cty.Bool:
		return v.True()
	case ty == cty.Number:
		if f := v.AsBigFloat(); !f.IsInf() {
			return json.Number(diag.NumberText(f))
		}
		return v.AsBigFloat().String() // JSON has no infinity
	case ty.IsObjectType() || ty.IsMapType():
		out := make(map[string]any)
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if raw, _ := e.Unmark(); !raw.IsKnown() || raw.IsNull() && keep == nullOmitted {
				continue
			}
			out[k.AsString()] = plain(e, keep)
		}
		return out
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		out := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, plain(e, keep))
		}
		return out
	default:
		return nil
	}
}

type flag int

const (
	flagFalse flag = iota
	flagTrue
	flagEmpty
	flagDescend
)

func isUnknown(v cty.Value) flag {
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown():
		return flagTrue
	case v.IsNull():
		return flagFalse
	default:
		return flagDescend
	}
}

func isMarked(v cty.Value) flag {
	switch {
	case v.IsMarked():
		return flagTrue
	case v.IsNull():
		return flagFalse
	case !v.IsKnown():
		return flagEmpty // as in Terraform: the content is not known yet
	default:
		return flagDescend
	}
}

// flags returns a structure like the value's, with true where is returns flagTrue. As in Terraform, objects and maps
// omit false; lists and sets keep it, so that positions match.
func flags(v cty.Value, is func(cty.Value) flag) any {
	switch is(v) {
	case flagTrue:
		return true
	case flagFalse:
		return false
	case flagEmpty:
		switch ty := v.Type(); {
		case ty.IsObjectType() || ty.IsMapType():
			return map[string]any{}
		case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
			return []any{}
		}
		return false
	}
	v, _ = v.Unmark()
	switch ty := v.Type(); {
	case ty.IsObjectType() || ty.IsMapType():
		out := make(map[string]any)
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if f := flags(e, is); f != false {
				out[k.AsString()] = f
			}
		}
		return out
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		out := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, flags(e, is))
		}
		return out
	default:
		return false
	}
}

// unstructured replaces json.Number by a type that unstructured objects may hold: int64, float64 if that is exact, or
// else a string.
func unstructured(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil && strconv.FormatFloat(f, 'f', -1, 64) == v.String() {
			return f
		}
		return v.String()
	case map[string]any:
		for k, e := range v {
			v[k] = unstructured(e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = unstructured(e)
		}
		return v
	default:
		return v
	}
}
