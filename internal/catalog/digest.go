package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// digestOf returns the digest of a known configuration. It ignores arguments that are not set, so that it stays the
// same if a new version of the provider has further ones. It ignores the arguments that rotate, too.
func digestOf(config cty.Value, rotating map[string]bool) (d provider.Digest, err error) {
	lasting, err := cty.Transform(config, func(path cty.Path, v cty.Value) (cty.Value, error) {
		switch {
		case v.HasMark(lang.Ephemeral):
			d.Ephemeral = true
		case !rotating[argumentOf(path)]:
			return v, nil
		}
		return cty.NullVal(v.Type()), nil
	})
	if err != nil {
		return d, fmt.Errorf("read configuration: %w", err)
	}
	args, err := asJSON(lasting)
	if err != nil {
		return d, err
	}
	d.Arguments, err = sum(args)
	return d, err
}

// argumentOf returns the name of the argument at a path, as spec.secretRefs names it.
func argumentOf(path cty.Path) string {
	var names []string
	for _, step := range path {
		if attribute, ok := step.(cty.GetAttrStep); ok { // a block in a list is named without its index
			names = append(names, attribute.Name)
		}
	}
	return strings.Join(names, ".")
}

// secretDigests returns the digest of the values of secretRefs, and that of those that rotate. Each is empty without
// values.
func secretDigests(refs []v1alpha1.SecretArgument, values [][]byte) (lasting, rotating string, err error) {
	var stay, rotate [][]string
	for i, ref := range refs {
		if of := []string{ref.Argument, string(values[i])}; ref.Rotates {
			rotate = append(rotate, of)
		} else {
			stay = append(stay, of)
		}
	}
	if len(stay) > 0 {
		lasting, err = sum(stay)
	}
	if err == nil && len(rotate) > 0 {
		rotating, err = sum(rotate)
	}
	return lasting, rotating, err
}

// rotates returns the arguments of a ProviderConfig, which may be nil, that rotate.
func rotates(cfg *v1alpha1.ProviderConfig) map[string]bool {
	out := map[string]bool{}
	if cfg == nil {
		return out
	}
	for _, ref := range cfg.Spec.SecretRefs {
		if ref.Rotates {
			out[ref.Argument] = true
		}
	}
	return out
}

// asJSON returns a value as decoded JSON, without marks.
func asJSON(v cty.Value) (any, error) {
	v, _ = v.UnmarkDeep()
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	return withoutEmpty(out), nil
}

// sum returns a digest of decoded JSON. An approval is bound to it, so nobody may find other arguments with the same
// digest. Ninety-six bits suffice for that, and keep the records of many resources small.
func sum(v any) (string, error) {
	raw, err := json.Marshal(v) // json.Marshal sorts keys
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	all := sha256.Sum256(raw)
	return base64.RawStdEncoding.EncodeToString(all[:12]), nil
}

// withoutEmpty removes nulls, empty texts and empty collections from the objects in decoded JSON. Arguments and blocks
// that are not set have these values.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			member = withoutEmpty(member)
			if v[name] = member; isEmpty(member) {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
