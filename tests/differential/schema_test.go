package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// blockSchema is a block in the output of `terraform providers schema -json`.
type blockSchema struct {
	Attributes map[string]*attributeSchema `json:"attributes"`
	BlockTypes map[string]*nestedSchema    `json:"block_types"`
}

type attributeSchema struct {
	Type       typeSchema `json:"type"`
	NestedType *struct {
		Attributes  map[string]*attributeSchema `json:"attributes"`
		NestingMode string                      `json:"nesting_mode"`
	} `json:"nested_type"`
	Required  bool `json:"required"`
	Optional  bool `json:"optional"`
	Computed  bool `json:"computed"`
	Sensitive bool `json:"sensitive"`
	WriteOnly bool `json:"write_only"`
}

// settable reports whether a configuration may set the attribute.
func (a *attributeSchema) settable() bool { return a.Required || a.Optional }

type nestedSchema struct {
	Block       *blockSchema `json:"block"`
	NestingMode string       `json:"nesting_mode"`
	MinItems    int          `json:"min_items"`
	MaxItems    int          `json:"max_items"`
}

// typeSchema is a type in go-cty's JSON: "string", ["list","string"] or ["object",{"a":"string"}].
type typeSchema struct {
	kind       string
	element    *typeSchema
	attributes map[string]typeSchema
	elements   []typeSchema
}

// UnmarshalJSON parses both forms.
func (t *typeSchema) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.kind) == nil {
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) != 2 {
		return fmt.Errorf("type %s: %w", data, err)
	}
	if err := json.Unmarshal(parts[0], &t.kind); err != nil {
		return err
	}
	switch t.kind {
	case "object":
		return json.Unmarshal(parts[1], &t.attributes)
	case "tuple":
		return json.Unmarshal(parts[1], &t.elements)
	}
	t.element = &typeSchema{}
	return json.Unmarshal(parts[1], t.element)
}

// schemas returns the schemas of all resource types of all providers, by type.
func (f *fixture) schemas() (map[string]*blockSchema, error) {
	dir := filepath.Join(f.Dir, "schemas")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	required := map[string]any{}
	for name, source := range f.sources {
		required[name] = map[string]any{"source": source}
	}
	text, err := json.Marshal(map[string]any{"terraform": map[string]any{"required_providers": required}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf.json"), text, 0o600); err != nil {
		return nil, err
	}
	plugins, err := f.start(sorted(f.sources))
	if err != nil {
		return nil, err
	}
	defer plugins.stop()
	out, err := f.command(context.Background(), dir, plugins, "providers", "schema", "-json").Output()
	if err != nil {
		return nil, fmt.Errorf("%s providers schema: %w\n%s", f.terraform, err, out)
	}
	var doc struct {
		Providers map[string]struct {
			Resources map[string]struct{ Block *blockSchema } `json:"resource_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return nil, fmt.Errorf("read schemas: %w", err)
	}
	types := map[string]*blockSchema{}
	for _, p := range doc.Providers {
		for name, r := range p.Resources {
			types[name] = r.Block
		}
	}
	return types, nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
