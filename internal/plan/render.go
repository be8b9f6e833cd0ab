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

// Rendered is a change in the shapes of Terraform's JSON plan, with secrets masked. The fields are those of
// v1alpha1.PlanChange:
// https://developer.hashicorp.com/terraform/internals/json-format#change-representation
type Rendered struct {
	// Before and After are JSON null for what does not exist. Unknown values are absent from After.
	Before, After *runtime.RawExtension
	// AfterUnknown is true where After is not known yet.
	AfterUnknown *runtime.RawExtension
	// BeforeSensitive and AfterSensitive are true where a value is masked.
	BeforeSensitive, AfterSensitive *runtime.RawExtension
	// SecretsChanged tells, in the form of RenderPaths, which of the masked values differ; nil when none does.
	SecretsChanged *runtime.RawExtension
}

// Render writes a change for people and policies. What the schema or a mark calls sensitive is masked.
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

// RenderPaths writes paths as Terraform's JSON plan does: [["network_id"],["rule",0,"port"]]; nil when there are none.
func RenderPaths(paths []cty.Path) (*runtime.RawExtension, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	out := make([][]any, len(paths))
	for i, p := range paths {
		out[i] = []any{}
		for _, step := range p {
			switch s := step.(type) {
			case cty.GetAttrStep:
				out[i] = append(out[i], s.Name)
			case cty.IndexStep:
				out[i] = append(out[i], plain(s.Key, nullIncluded))
			}
		}
	}
	js, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("render paths: %w", err)
	}
	return &runtime.RawExtension{Raw: js}, nil
}

// Attributes is a resource's state for the status of its object: secrets masked, null and unknown values left out.
// It holds only what unstructured objects may hold.
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

// plain makes JSON-like data of a value: secrets masked, numbers as json.Number, unknown attributes left out,
// unknown elements null.
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
		return flagEmpty // as in Terraform: nobody knows yet what is inside
	default:
		return flagDescend
	}
}

// flags makes the skeleton of a value with true where is says so. As in Terraform, objects and maps leave out what is
// false; lists and sets keep it, so that positions match.
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

// unstructured replaces json.Number by what an unstructured object may hold: int64, float64 where it is exact to
// the digit, else the digits as a string.
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
