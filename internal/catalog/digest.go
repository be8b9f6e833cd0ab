package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// digestOf returns the digest of a known configuration. It ignores arguments that are not set, so that it stays the
// same if a new version of the provider has further ones.
func digestOf(config cty.Value) (d provider.Digest, err error) {
	lasting, err := cty.Transform(config, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.HasMark(lang.Ephemeral) {
			return v, nil
		}
		d.Ephemeral = true
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

// sum returns a digest of decoded JSON. The digest is short, because it only distinguishes the configurations of one
// resource.
func sum(v any) (string, error) {
	raw, err := json.Marshal(v) // json.Marshal sorts keys
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	all := sha256.Sum256(raw)
	return hex.EncodeToString(all[:6]), nil
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
