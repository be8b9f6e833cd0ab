package schema

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Encode encodes a value for the protocol. The value must not have marks.
func Encode(v cty.Value, ty cty.Type) (*tfprotov6.DynamicValue, error) {
	b, err := ctymsgpack.Marshal(v, ty)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return &tfprotov6.DynamicValue{MsgPack: b}, nil
}

// Decode decodes a value in MessagePack or JSON. A nil or empty message is the null value.
func Decode(d *tfprotov6.DynamicValue, ty cty.Type) (v cty.Value, err error) {
	defer func() {
		// go-cty panics on some invalid values, such as a float that is NaN.
		if r := recover(); r != nil {
			v, err = cty.NilVal, fmt.Errorf("decode value: %v", r)
		}
	}()
	switch {
	case d == nil || len(d.MsgPack) == 0 && len(d.JSON) == 0:
		return cty.NullVal(ty), nil
	case len(d.MsgPack) != 0:
		if err := checkAnnounced(d.MsgPack); err != nil {
			return cty.NilVal, fmt.Errorf("decode value: %w", err)
		}
		v, err := ctymsgpack.Unmarshal(d.MsgPack, ty)
		if err != nil {
			return cty.NilVal, fmt.Errorf("decode value: %w", pathError(err))
		}
		// go-cty accepts an object that has one attribute twice and lacks another.
		if errs := v.Type().TestConformance(ty); len(errs) > 0 {
			return cty.NilVal, fmt.Errorf("decode value: %w", pathError(errs[0]))
		}
		return v, nil
	default:
		v, err := ctyjson.Unmarshal(d.JSON, ty)
		if err != nil {
			return cty.NilVal, fmt.Errorf("decode value: %w", pathError(err))
		}
		return v, nil
	}
}

// pathError prefixes a cty error with its path.
func pathError(err error) error {
	if pe, ok := errors.AsType[cty.PathError](err); ok && len(pe.Path) > 0 {
		return fmt.Errorf("%s: %w", FormatPath(pe.Path), err)
	}
	return err
}

// FormatPath formats a path as in `rule[0].port` or `tags["team"]`.
func FormatPath(p cty.Path) string {
	var s []byte
	for _, step := range p {
		switch st := step.(type) {
		case cty.GetAttrStep:
			if len(s) > 0 {
				s = append(s, '.')
			}
			s = append(s, st.Name...)
		case cty.IndexStep:
			switch {
			case !st.Key.IsKnown() || st.Key.IsNull():
				s = append(s, "[*]"...)
			case st.Key.Type() == cty.String:
				s = fmt.Appendf(s, "[%q]", st.Key.AsString())
			case st.Key.Type() == cty.Number:
				s = fmt.Appendf(s, "[%s]", st.Key.AsBigFloat().Text('f', -1))
			default:
				s = append(s, "[*]"...)
			}
		}
	}
	return string(s)
}
