// Package openapi reads the parts of the server's OpenAPI documents that the plugin uses.
package openapi

import (
	"encoding/json"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Schema is the part of an OpenAPI schema that the plugin uses.
type Schema struct {
	Ref         string             `json:"$ref"`
	AllOf       []*Schema          `json:"allOf"`
	AnyOf       []*Schema          `json:"anyOf"`
	OneOf       []*Schema          `json:"oneOf"`
	Type        string             `json:"type"`
	Description string             `json:"description"`
	Required    []string           `json:"required"`
	Properties  map[string]*Schema `json:"properties"`
	Items       *Schema            `json:"items"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	IntOrString bool               `json:"x-kubernetes-int-or-string"`
	// Hykube's extensions of OpenAPI: see server/kinds.
	SchemaVersion uint64 `json:"x-hykube-schema-version"`
	Listed        bool   `json:"x-hykube-listed"`
	Block         bool   `json:"x-hykube-block"`
	Sensitive     bool   `json:"x-hykube-sensitive"`
	GVK           []struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
}

// Document is the OpenAPI document of a provider's kinds.
type Document struct {
	Components struct {
		Schemas map[string]*Schema `json:"schemas"`
	} `json:"components"`
}

// Property returns the schema of a field, or nil.
func (s *Schema) Property(name string) *Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	var elem Schema
	if len(s.Additional) == 0 || json.Unmarshal(s.Additional, &elem) != nil {
		return nil
	}
	return &elem
}

// Element returns the schema of the elements of a list, or nil.
func (s *Schema) Element() *Schema {
	if s == nil {
		return nil
	}
	return s.Items
}

// Kinds returns the schemas of a provider's kinds.
func (d *Document) Kinds(provider string) map[string]*Schema {
	out := map[string]*Schema{}
	for _, s := range d.Components.Schemas {
		for _, g := range s.GVK {
			if g.Group == v1alpha1.ProviderGroup(provider) && s.Properties["spec"] != nil {
				out[g.Kind] = s
			}
		}
	}
	return out
}

// Resolve follows $ref, and an allOf with one element, which adds a description to a $ref.
func (d *Document) Resolve(s *Schema) *Schema {
	for range 16 {
		switch {
		case s == nil:
			return nil
		case s.Ref != "":
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.AllOf) == 1 && s.Type == "":
			inner := *s.AllOf[0]
			if s.Description != "" && inner.Ref == "" {
				inner.Description = s.Description
			}
			s = &inner
		default:
			return s
		}
	}
	return s
}
