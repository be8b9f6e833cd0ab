package resourceset

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// This file reads the keys of a set.

// maxKeyBytes is the maximum length of a key.
const maxKeyBytes = 253

// keysOf returns the keys of forEach or forEachFrom, sorted, and their values. data is the content of the ConfigMap;
// nil if it does not exist.
func keysOf(spec *v1alpha1.ResourceSetSpec, data map[string][]byte) ([]string, map[string]any, error) {
	from := spec.ForEachFrom
	switch {
	case from == nil && spec.ForEach == nil:
		return nil, nil, fmt.Errorf("set one of spec.count, spec.forEach and spec.forEachFrom")
	case from == nil:
		written, err := parseForEach(spec.ForEach.Raw)
		if err != nil {
			return nil, nil, err
		}
		values := make(map[string]any, len(written))
		for _, name := range slices.Sorted(maps.Keys(written)) {
			key, ok := lang.Constant(name)
			value, constant := constant(written[name])
			if !ok || !constant {
				return nil, nil, fmt.Errorf("the key %q or its value has an expression, but keys and values are constants: write the expression in the template, or $${ for the text ${", name)
			}
			values[key] = value
		}
		return keysOfMap(values)
	case data == nil:
		return nil, nil, fmt.Errorf("there is no ConfigMap %q in its namespace, which spec.forEachFrom names",
			from.ConfigMap.Name)
	case from.ConfigMap.Key == "":
		values := make(map[string]any, len(data))
		for key, value := range data {
			if !utf8.Valid(value) {
				return nil, nil, fmt.Errorf("the key %q of the ConfigMap %q is not text", key, from.ConfigMap.Name)
			}
			values[key] = string(value)
		}
		return keysOfMap(values)
	}
	text, ok := data[from.ConfigMap.Key]
	if !ok {
		return nil, nil, fmt.Errorf("the ConfigMap %q has no key %q, which spec.forEachFrom names", from.ConfigMap.Name,
			from.ConfigMap.Key)
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	// which may quote values, and readers of the set and of its plans may lack the right to the ConfigMap
	if err != nil {
		return nil, nil, fmt.Errorf("the key %q of the ConfigMap %q is neither YAML nor JSON, or has a key twice: kubectl get configmap %[2]s -o yaml shows it",
			from.ConfigMap.Key, from.ConfigMap.Name)
	}
	values, err := parseForEach(raw)
	var keys []string
	if err == nil {
		keys, values, err = keysOfMap(values)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the key %q of the ConfigMap %q: %w", from.ConfigMap.Key, from.ConfigMap.Name, err)
	}
	return keys, values, nil
}

// constant returns a value whose texts are templates without expressions, as lang.Constant does.
func constant(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return lang.Constant(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var ok bool
			if out[i], ok = constant(e); !ok {
				return nil, false
			}
		}
		return out, true
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			key, ok := lang.Constant(name)
			member, isConstant := constant(e)
			if !ok || !isConstant {
				return nil, false
			}
			out[key] = member
		}
		return out, true
	}
	return v, true
}

// parseForEach returns the values in a map by their keys. For a list of unique strings, each string is the value of its
// own key.
func parseForEach(raw []byte) (map[string]any, error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case bytes.HasPrefix(trimmed, []byte("[")):
		var list []any
		if err := utiljson.Unmarshal(trimmed, &list); err != nil {
			return nil, err
		}
		values := make(map[string]any, len(list))
		for i, v := range list {
			key, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("the element %d is not a string; write a map for other values", i)
			}
			if _, twice := values[key]; twice {
				return nil, fmt.Errorf("the key %q occurs twice, but each instance needs its own", key)
			}
			values[key] = key
		}
		return values, nil
	case bytes.HasPrefix(trimmed, []byte("{")):
		var values map[string]any
		if err := utiljson.Unmarshal(trimmed, &values); err != nil {
			return nil, err
		}
		return values, nil
	}
	return nil, fmt.Errorf("must be a map, or a list of unique strings")
}

func keysOfMap(values map[string]any) ([]string, map[string]any, error) {
	if len(values) > MaxKeys {
		return nil, nil, fmt.Errorf("has %d keys, and forEach has at most %d; use several sets", len(values), MaxKeys)
	}
	keys := slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		switch {
		case len(key) > maxKeyBytes:
			return nil, nil, fmt.Errorf("the key %.40q... has %d bytes, and the limit is %d", key, len(key),
				maxKeyBytes)
		case !utf8.ValidString(key):
			return nil, nil, fmt.Errorf("the key %q is not valid text", key)
		case lang.Normalized(key) != key:
			return nil, nil, fmt.Errorf("the key %+q is not in Unicode's normal form NFC, so another key may look the same and have the same each.key: write %+q", key, lang.Normalized(key))
		}
		if _, err := lang.Literal(values[key]); err != nil {
			return nil, nil, fmt.Errorf("the value of the key %q: %w", key, err)
		}
	}
	return keys, values, nil
}

// HasTemplate reports whether a part of a set that must be constant has text that looks like a template.
func HasTemplate(raw *runtime.RawExtension) bool {
	var v any
	return raw != nil && utiljson.Unmarshal(raw.Raw, &v) == nil && lang.HasTemplate(v)
}

// DecodeObject decodes a JSON object, such as the spec of a template; nil for none.
func DecodeObject(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw.Raw, &out); err != nil {
		return nil, errors.New("must be an object")
	}
	return out, nil
}

// importOf returns lifecycle.import of an instance. Its values are constants, because the server does not check the
// author's rights to objects that an expression in them would read.
func importOf(by v1alpha1.InstanceImport) map[string]any {
	if by.Identity == nil {
		return map[string]any{"id": lang.EscapeTemplate(by.ID)}
	}
	var identity map[string]any
	if utiljson.Unmarshal(by.Identity.Raw, &identity) != nil {
		return map[string]any{"identity": map[string]any{}}
	}
	return map[string]any{"identity": lang.EscapeTemplates(identity)}
}
