package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// schemas returns the provider's types by mode.
func (e Entry) schemas() map[v1alpha1.Mode]map[string]*schema.Schema {
	if e.Schema == nil {
		return nil
	}
	return map[v1alpha1.Mode]map[string]*schema.Schema{
		v1alpha1.ModeManaged:   e.Schema.Resources,
		v1alpha1.ModeData:      e.Schema.DataSources,
		v1alpha1.ModeEphemeral: e.Schema.Ephemerals,
		v1alpha1.ModeAction:    e.Schema.Actions,
	}
}

// Type returns the schema of one of the provider's types, or nil if the provider lacks it. An empty mode means managed.
func (e Entry) Type(mode v1alpha1.Mode, terraformType string) *schema.Schema {
	return e.schemas()[cmp.Or(mode, v1alpha1.ModeManaged)][terraformType]
}

// Schema returns the schema of a type from any provider that has it, or nil if none does. An empty mode means managed.
func (c *Catalog) Schema(mode v1alpha1.Mode, terraformType string) *schema.Schema {
	mode = cmp.Or(mode, v1alpha1.ModeManaged)
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range c.types[mode][terraformType] {
		return c.entries[name].Type(mode, terraformType)
	}
	return nil
}

// ProvidersOf returns the names of the providers that have a type, sorted. An empty mode means managed.
func (c *Catalog) ProvidersOf(mode v1alpha1.Mode, terraformType string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.types[cmp.Or(mode, v1alpha1.ModeManaged)][terraformType])
}

// TypeNamesOf returns all types of a mode of all installed providers, sorted. An empty mode means managed.
func (c *Catalog) TypeNamesOf(mode v1alpha1.Mode) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.types[cmp.Or(mode, v1alpha1.ModeManaged)]))
}

// Meta evaluates the provider_meta of a ProviderConfig. It returns cty.NilVal if the provider has no such schema. It
// returns a null object if cfg is nil or has no meta.
func (c *Catalog) Meta(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig) (cty.Value, error) {
	var args map[string]any
	if cfg != nil && cfg.Spec.Meta != nil && len(cfg.Spec.Meta.Raw) > 0 {
		if err := json.Unmarshal(cfg.Spec.Meta.Raw, &args); err != nil {
			return cty.NilVal, fmt.Errorf("spec.meta: must be an object of the provider's metadata arguments: %w", err)
		}
	}
	if e.Schema.Meta == nil {
		if args != nil {
			return cty.NilVal, fmt.Errorf("spec.meta: provider %q takes no metadata; remove the field", e.Name)
		}
		return cty.NilVal, nil
	}
	block := e.Schema.Meta.Block
	if args == nil {
		return cty.NullVal(block.ImpliedType()), nil
	}
	config, err := parse(ctx, "spec.meta", "", args, block, nil)
	if err != nil {
		return cty.NilVal, err
	}
	if refs := config.References(); len(refs) > 0 {
		return cty.NilVal, fmt.Errorf(
			"spec.meta: refers to %s, but a provider's metadata cannot refer to anything; write the value itself",
			refs[0].Address)
	}
	value, err := evaluate("spec.meta", config, func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	if err != nil {
		return cty.NilVal, err
	}
	value, _ = value.UnmarkDeep()
	return value, nil
}

// CanonicalType returns the name of a managed type under which policies know it. A provider may have a deprecated name
// for a type: the other type with the same arguments, whose name is not deprecated, is then the canonical one.
func (e Entry) CanonicalType(name string) string {
	if e.Schema == nil {
		return name
	}
	s := e.Schema.Resources[name]
	if s == nil || !s.Block.Deprecated {
		return name
	}
	found := name
	for other, o := range e.Schema.Resources {
		if !o.Block.Deprecated && o.Block.ImpliedType().Equals(s.Block.ImpliedType()) &&
			(found == name || other < found) {
			found = other
		}
	}
	return found
}
