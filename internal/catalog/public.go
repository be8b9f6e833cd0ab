package catalog

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

const (
	// maxPublic is the maximum number of arguments in provider.Configuration.Public, and maxPublicValue that of bytes
	// in a value.
	maxPublic      = 8
	maxPublicValue = 200
)

// fromSecret is the value of a public argument that a Secret has.
const fromSecret = "(from a Secret)"

// destinations matches the names of arguments that often say which account or server a provider reaches.
var destinations = regexp.MustCompile(
	`(?i)(endpoint|url|uri|host|address|server|domain|site|account|project|subscription|tenant|organi[sz]ation)`)

// publicArguments returns the arguments of a configuration that hold no secret. Those that say where the provider sends
// its requests come first. An argument of secretRefs is named without its value. cfg may be nil.
func publicArguments(block *schema.Block, config cty.Value, cfg *v1alpha1.ProviderConfig) (out []provider.Argument) {
	var refs []string
	if cfg != nil {
		for _, ref := range cfg.Spec.SecretRefs {
			refs = append(refs, ref.Argument)
			out = append(out, provider.Argument{Path: ref.Argument, Value: fromSecret})
		}
	}
	// The callback returns no error, so Walk returns none.
	_ = cty.Walk(lang.MarkSensitive(block, config), func(at cty.Path, v cty.Value) (bool, error) {
		path := diag.PathField("", at)
		if v.IsMarked() || !v.IsKnown() || v.IsNull() || slices.ContainsFunc(refs,
			func(ref string) bool { return path == ref || strings.HasPrefix(path, ref+".") }) {
			return false, nil
		}
		if text, ok := scalarText(v); ok && text != "" {
			out = append(out, provider.Argument{Path: path, Value: text})
		}
		return true, nil
	})
	slices.SortStableFunc(out, func(a, b provider.Argument) int {
		return cmp.Or(cmp.Compare(rank(a.Path), rank(b.Path)), strings.Compare(a.Path, b.Path))
	})
	return out[:min(len(out), maxPublic)]
}

// rank orders arguments that name a destination before others.
func rank(path string) int {
	if destinations.MatchString(path) {
		return 0
	}
	return 1
}

// scalarText returns a text, a number or a bool as text; ok is false for other values.
func scalarText(v cty.Value) (text string, ok bool) {
	switch v.Type() {
	case cty.String:
		text = v.AsString()
	case cty.Number:
		text = diag.NumberText(v.AsBigFloat())
	case cty.Bool:
		text = strconv.FormatBool(v.True())
	default:
		return "", false
	}
	if len(text) > maxPublicValue {
		text = strings.ToValidUTF8(text[:maxPublicValue], "") + "..."
	}
	return text, true
}
