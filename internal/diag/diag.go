// Package diag has diagnostics: errors and warnings for users. A diagnostic names the problem, the field and the
// remedy. The package converts Go errors and providers' answers to diagnostics, classifies the failures of providers,
// and formats field paths.
package diag

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/suggest"
)

// Diagnostics is a list of errors and warnings for users: the problem, the field and the remedy.
type Diagnostics = []v1alpha1.Diagnostic

// HasErrors reports whether one of the diagnostics is an error.
func HasErrors(ds Diagnostics) bool {
	return slices.ContainsFunc(ds, isError)
}

// FromErrors converts the errors of CheckPlanned and CheckCompatible to diagnostics with the given summary.
func FromErrors(severity v1alpha1.Severity, summary string, errs []error) Diagnostics {
	var out Diagnostics
	for _, err := range errs {
		d := v1alpha1.Diagnostic{Severity: severity, Summary: summary, Detail: Sentence(err.Error())}
		if pe, ok := errors.AsType[cty.PathError](err); ok && len(pe.Path) > 0 {
			// The text begins with the path, so keep its first letter.
			d.Attribute, d.Detail = PathField("spec", pe.Path), err.Error()+"."
		}
		out = append(out, d)
	}
	return out
}

// FromProto converts a provider's diagnostics without shortening them.
func FromProto(ds []*tfprotov6.Diagnostic) Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d == nil {
			continue
		}
		o := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == tfprotov6.DiagnosticSeverityWarning {
			o.Severity = v1alpha1.SeverityWarning
		}
		if p, err := FromProtoPath(d.Attribute); err == nil && len(p) > 0 {
			o.Attribute = PathField("spec", p)
		}
		out = append(out, o)
	}
	return out
}

// Errorf returns an error about a field. It clips a long detail.
func Errorf(field, summary, format string, args ...any) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{
		Severity: v1alpha1.SeverityError, Summary: summary, Detail: Clip(fmt.Sprintf(format, args...)),
		Attribute: field,
	}
}

// maxDetail is the maximum length of a detail in bytes, because a detail may quote the user's text.
const maxDetail = 1500

// Clip shortens a detail to the maximum length.
func Clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + " ..."
}

// KeyField appends the name of a field or a map key to a field path: "spec.tags.team", or spec.tags["a b"].
func KeyField(field, key string) string {
	switch {
	case !plainKey(key):
		return fmt.Sprintf("%s[%q]", field, key)
	case field == "":
		return key
	default:
		return field + "." + key
	}
}

// plainKey reports whether a key can follow a dot without quotes.
func plainKey(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' || s[i] == '_' || i > 0 && (s[i] >= '0' && s[i] <= '9' || s[i] == '-')) {
			return false
		}
	}
	return s != ""
}

// IndexField appends an index to a field path.
func IndexField(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// PathField appends a path to a field path.
func PathField(field string, p cty.Path) string {
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			field = KeyField(field, s.Name)
		case cty.IndexStep:
			key, _ := s.Key.Unmark()
			switch {
			case key.IsKnown() && !key.IsNull() && key.Type() == cty.String:
				field = KeyField(field, key.AsString())
			case key.IsKnown() && !key.IsNull() && key.Type() == cty.Number:
				field = fmt.Sprintf("%s[%s]", field, NumberText(key.AsBigFloat()))
			default:
				// An element of a set has no key.
				field += "[*]"
			}
		}
	}
	return field
}

// Sentence converts an error's text to a sentence.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.ContainsRune(".!?", rune(s[len(s)-1])) {
		s += "."
	}
	return s
}

// DidYouMean returns a sentence that suggests a similar name, or "" if there is none.
func DidYouMean(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return ""
}

// FromProtoPath converts a path of the provider protocol. It fails for an element of a set, which the protocol names by
// its value.
func FromProtoPath(p *tftypes.AttributePath) (cty.Path, error) {
	var out cty.Path
	for _, step := range p.Steps() {
		switch s := step.(type) {
		case tftypes.AttributeName:
			out = append(out, cty.GetAttrStep{Name: string(s)})
		case tftypes.ElementKeyString:
			out = append(out, cty.IndexStep{Key: cty.StringVal(string(s))})
		case tftypes.ElementKeyInt:
			out = append(out, cty.IndexStep{Key: cty.NumberIntVal(int64(s))})
		default:
			return out, fmt.Errorf("read attribute path %q: a step of type %T is not supported", p, step)
		}
	}
	return out, nil
}

// NumberText formats a number with all its digits, or with an exponent if it would be extremely long.
func NumberText(f *big.Float) string {
	if e := f.MantExp(nil); e > MaxExponent || e < -MaxExponent {
		return f.Text('g', -1)
	}
	return f.Text('f', -1)
}

// MaxExponent limits the binary exponent of numbers. A number with more digits would take gigabytes to write out.
const MaxExponent = 4096
