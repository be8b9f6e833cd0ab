package moduledir

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Package are the objects of a directory.
type Package struct {
	// ConfigMap has the files. Secret has the sensitive values; nil without any.
	ConfigMap, Secret *unstructured.Unstructured
	Module            *unstructured.Unstructured
}

// Objects returns the objects in the order in which they are recorded.
func (p *Package) Objects() []*unstructured.Unstructured {
	if p.Secret == nil {
		return []*unstructured.Unstructured{p.ConfigMap, p.Module}
	}
	return []*unstructured.Unstructured{p.ConfigMap, p.Secret, p.Module}
}

// maxName leaves space for the suffixes of the ConfigMap and the Secret.
const maxName = 200

// ModuleName returns the name of the Module for a directory. It differs from the directory's own name if that is no
// name of a Module.
func ModuleName(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("read the directory %q: %w", dir, err)
	}
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(filepath.Base(absolute)), "-"), "-")
	if name == "" {
		return "", fmt.Errorf("the directory %q has no name for a Module: choose one with --module", dir)
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "m-" + name
	}
	return strings.TrimRight(name[:min(len(name), maxName)], "-"), nil
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// Pack returns the objects of a directory. name is that of the Module. written is a Module that a user has written,
// with the providers and with inputs that values does not have; nil without one.
func (d *Directory) Pack(name string, values *Values, written *unstructured.Unstructured) (*Package, error) {
	configMap, items := d.configMap(name + "-tf")
	out := &Package{ConfigMap: configMap, Module: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Module", "metadata": map[string]any{"name": name},
	}}}
	if written != nil {
		out.Module = written.DeepCopy()
		out.ConfigMap.SetNamespace(written.GetNamespace())
	}
	source := map[string]any{"configMap": configMap.GetName()}
	if len(items) > 0 {
		source["items"] = items
	}
	spec, _, err := unstructured.NestedMap(out.Module.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("the Module %q: %w", name, err)
	}
	if spec == nil {
		spec = map[string]any{}
	}
	spec["source"] = source
	if err := out.inputs(spec, values); err != nil {
		return nil, fmt.Errorf("the Module %q: %w", name, err)
	}
	out.Module.Object["spec"] = spec
	return out, nil
}

// inputs puts the values of variables into the spec of the Module, and the sensitive ones into the Secret.
func (p *Package) inputs(spec map[string]any, values *Values) error {
	inputs, _ := spec["inputs"].(map[string]any)
	if inputs == nil {
		inputs = map[string]any{}
	}
	for name, value := range values.Inputs {
		clean, err := asJSON(value)
		if err != nil {
			return fmt.Errorf("input %q: %w", name, err)
		}
		inputs[name] = clean
	}
	if len(values.Secrets) > 0 {
		p.Secret = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata": map[string]any{"name": p.Module.GetName() + "-vars"},
		}}
		p.Secret.SetNamespace(p.Module.GetNamespace())
		data := map[string]any{}
		for name, value := range values.Secrets {
			text, expression, err := secretText(p.Secret.GetName(), name, value)
			if err != nil {
				return fmt.Errorf("input %q: %w", name, err)
			}
			data[name], inputs[name] = base64.StdEncoding.EncodeToString([]byte(text)), expression
		}
		p.Secret.Object["data"] = data
	}
	if len(inputs) > 0 {
		spec["inputs"] = inputs
	}
	return nil
}

// asJSON returns a value with the types of decoded JSON.
func asJSON(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// configMap returns the ConfigMap with the files, and the items that map its keys to paths; none if each key is the
// path.
func (d *Directory) configMap(name string) (*unstructured.Unstructured, []any) {
	data, binary := map[string]any{}, map[string]any{}
	var items []any
	same, taken := true, map[string]bool{}
	for _, file := range keysOf(d.Files) {
		key := keyOf(file, taken)
		taken[key] = true
		same = same && key == file
		items = append(items, map[string]any{"key": key, "path": file})
		if content := d.Files[file]; utf8.Valid(content) {
			data[key] = string(content)
		} else {
			binary[key] = base64.StdEncoding.EncodeToString(content)
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": data}}
	if len(binary) > 0 {
		u.Object["binaryData"] = binary
	}
	if same {
		return u, nil
	}
	return u, items
}

var noKey = regexp.MustCompile(`[^-._a-zA-Z0-9]+`)

// keyOf returns the key of a file in the ConfigMap: its path, with two underscores for a slash; a digest of the path
// if another file has that key, or if it is too long.
func keyOf(file string, taken map[string]bool) string {
	const most = 253
	key := noKey.ReplaceAllString(strings.ReplaceAll(file, "/", "__"), "_")
	if len(key) <= most && !taken[key] && strings.Trim(key, ".") != "" && !strings.HasPrefix(key, "..") {
		return key
	}
	sum := sha256.Sum256([]byte(file))
	return hex.EncodeToString(sum[:])
}

// keysOf returns the keys of a map, sorted.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
