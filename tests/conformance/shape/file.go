package shape

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fileBlock is a block in the output of `terraform providers schema -json`.
type fileBlock struct {
	Attributes map[string]fileAttribute `json:"attributes"`
	Blocks     map[string]struct {
		Mode  Mode      `json:"nesting_mode"`
		Block fileBlock `json:"block"`
		Min   int       `json:"min_items"`
		Max   int       `json:"max_items"`
	} `json:"block_types"`
}

// fileAttribute is an attribute in that output.
type fileAttribute struct {
	Type   json.RawMessage `json:"type"`
	Nested *struct {
		Mode       Mode                     `json:"nesting_mode"`
		Attributes map[string]fileAttribute `json:"attributes"`
	} `json:"nested_type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Optional    bool   `json:"optional"`
	Computed    bool   `json:"computed"`
	Sensitive   bool   `json:"sensitive"`
	WriteOnly   bool   `json:"write_only"`
	Deprecated  bool   `json:"deprecated"`
}

// ReadFile reads the resource types of one provider from the output of `terraform providers schema -json`, which may be
// compressed. Their schemas are those of a real provider; their objects are not.
func ReadFile(path string) (resources []*Shape, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	var file struct {
		Providers map[string]struct {
			Resources map[string]struct {
				Block fileBlock `json:"block"`
			} `json:"resource_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, p := range file.Providers {
		for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
			block, err := p.Resources[name].Block.shape()
			if err != nil {
				return nil, fmt.Errorf("read type %s in %s: %w", name, path, err)
			}
			resources = append(resources, &Shape{Name: name, Key: "id", Title: "id", Block: block})
		}
	}
	return resources, nil
}

func (b fileBlock) shape() (*Block, error) {
	attributes, err := attributesOf(b.Attributes)
	if err != nil {
		return nil, err
	}
	out := &Block{Attributes: attributes}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		n := b.Blocks[name]
		inner, err := n.Block.shape()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Blocks = append(out.Blocks, &Nested{Name: name, Mode: n.Mode, Min: n.Min, Max: n.Max, Block: inner})
	}
	return out, nil
}

func attributesOf(in map[string]fileAttribute) (out []*Attribute, err error) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		f := in[name]
		a := &Attribute{
			Name: name, Description: f.Description, Required: f.Required, Optional: f.Optional, Computed: f.Computed,
			Sensitive: f.Sensitive, WriteOnly: f.WriteOnly, Deprecated: f.Deprecated,
		}
		if f.Nested != nil {
			a.Mode = f.Nested.Mode
			a.Attributes, err = attributesOf(f.Nested.Attributes)
		} else {
			//lint:ignore SA1019 no other function reads types in JSON
			a.Type, err = tftypes.ParseJSONType(f.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// Requires reports whether a configuration of the block must set an argument or a nested block.
func (b *Block) Requires() bool {
	return slices.ContainsFunc(b.Attributes, func(a *Attribute) bool { return a.Required }) ||
		slices.ContainsFunc(b.Blocks, func(n *Nested) bool { return n.Min > 0 })
}
