package shape

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// This file validates configurations.

func (s *server) ValidateResourceConfig(_ context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	ds, err := s.validate(s.resources, req.TypeName, req.Config)
	return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: ds}, err
}

func (s *server) ValidateDataResourceConfig(_ context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	ds, err := s.validate(s.data, req.TypeName, req.Config)
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: ds}, err
}

func (s *server) validate(types map[string]*Shape, name string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
	c, err := s.on(types, name, config)
	if err != nil {
		return nil, err
	}
	if problem := c.Block.misconfigured(c.values[0]); problem != "" {
		return wrong("%s", problem), nil
	}
	return nil, nil
}

// misconfigured returns the reason why a provider must reject a configuration, or why a client should have rejected it;
// "" if it is valid.
func (b *Block) misconfigured(config tftypes.Value) string {
	if absent(config) {
		return ""
	}
	m := fields(config)
	for _, a := range b.Attributes {
		v := m[a.Name]
		switch {
		case !a.Settable() && !v.IsNull():
			return a.Name + " cannot be set, and is: " + shown(v, a.ValueType())
		case a.Required && v.IsNull():
			return a.Name + " is required"
		}
		if a.Type == nil && a.Settable() {
			if problem := misconfigured(a.Mode, &Block{Attributes: a.Attributes}, v); problem != "" {
				return problem
			}
		}
	}
	for _, n := range b.Blocks {
		v := m[n.Name]
		switch {
		case n.Mode == Group && v.IsNull():
			return n.Name + " is a group, which is never null"
		case n.Mode != Single && v.IsNull():
			return n.Name + " is a block, whose collection is never null"
		}
		if problem := misconfigured(n.Mode, n.Block, v); problem != "" {
			return problem
		}
	}
	return ""
}

func misconfigured(mode Mode, b *Block, v tftypes.Value) string {
	switch mode {
	case Group:
		if shown(v, b.ObjectType()) == shown((&Nested{Mode: Group, Block: b}).empty(), b.ObjectType()) {
			return "" // not configured
		}
		return b.misconfigured(v)
	case Single:
		return b.misconfigured(v)
	case Map:
		m := fields(v)
		for _, key := range sortedKeys(m) {
			if problem := b.misconfigured(m[key]); problem != "" {
				return problem
			}
		}
		return ""
	}
	for _, e := range elements(v) {
		if problem := b.misconfigured(e); problem != "" {
			return problem
		}
	}
	return ""
}
