package module

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hykube/hykube/internal/diag"
)

// This file decodes module, provider and terraform blocks.

func (d *decoder) call(b *hcl.Block) {
	name := b.Labels[0]
	call := d.config.Calls[name]
	if d.duplicate(call != nil, "module call", name, b) {
		return
	}
	if call == nil {
		call = &Call{Name: name, Range: b.DefRange, Arguments: map[string]*Expr{}}
	}
	content, _, diags := b.Body.PartialContent(callSchema)
	d.note(diags)
	attrs, field := content.Attributes, diag.KeyField("module", name)
	if attr := d.required(attrs, "source", b); attr != nil {
		call.Source = d.text(attr)
	}
	if attr := attrs["version"]; attr != nil {
		call.Version = d.text(attr)
	}
	d.repetition(&call.Repetition, attrs, field)
	if attr := attrs["depends_on"]; attr != nil {
		call.DependsOn = d.targets(attr)
	}
	if attr := attrs["providers"]; attr != nil {
		call.Providers = d.passedProviders(attr, field)
	}
	for _, inner := range content.Blocks.OfType("lifecycle") {
		lifecycle := d.content(inner.Body, schemaOf([]string{"enabled"}))
		if lifecycle.Attributes["enabled"] != nil {
			call.Enabled = d.optional(lifecycle.Attributes, "enabled", diag.KeyField(field, "lifecycle"))
		}
	}
	d.arguments(call, b.Body, field)
	d.config.Calls[name] = call
}

var callArguments = []string{"source", "version", "count", "for_each", "depends_on", "providers", "lifecycle"}

// arguments decodes the arguments for the called module's variables.
func (d *decoder) arguments(call *Call, body hcl.Body, field string) {
	add := func(name string, e hcl.Expression) {
		if name != "//" && !slices.Contains(callArguments, name) {
			call.Arguments[name] = d.expr(e, diag.KeyField(field, name))
		}
	}
	if native, ok := body.(*hclsyntax.Body); ok {
		for name, attr := range native.Attributes {
			add(name, attr.Expr)
		}
		for _, b := range native.Blocks {
			if b.Type != "lifecycle" {
				d.fail(b.TypeRange, "Unsupported block type", "Blocks of type %q are not expected here.", b.Type)
			}
		}
		return
	}
	_, rest, _ := body.PartialContent(callSchema) // the caller has reported the diagnostics
	attrs, diags := rest.JustAttributes()
	d.note(diags)
	for name, attr := range attrs {
		add(name, attr.Expr)
	}
}

func (d *decoder) passedProviders(attr *hcl.Attribute, field string) []PassedProvider {
	pairs, diags := hcl.ExprMap(attr.Expr)
	d.note(diags)
	var out []PassedProvider
	seen := map[ProviderID]bool{}
	for _, pair := range pairs {
		inner, ok := d.providerRef(pair.Key, field)
		outer, okOuter := d.providerRef(pair.Value, diag.KeyField(field, "providers"))
		switch {
		case !ok || !okOuter:
		case seen[inner.ProviderID]:
			d.fail(pair.Key.Range(), "Duplicate provider address",
				"A provider configuration was already passed to %s. Each child provider configuration can be assigned only once.", inner.ProviderID)
		default:
			seen[inner.ProviderID] = true
			out = append(out, PassedProvider{inner.ProviderID, *outer})
		}
	}
	return out
}

func (d *decoder) provider(b *hcl.Block) {
	content, _, diags := b.Body.PartialContent(providerSchema)
	d.note(diags)
	id := ProviderID{Name: b.Labels[0], Alias: d.text(content.Attributes["alias"])}
	p := d.config.Providers[id]
	switch {
	case p != nil && !d.override:
		d.fail(b.DefRange, "Duplicate provider configuration",
			"There is another configuration of the provider %s. Add an alias to one of them.", id)
		return
	case p == nil && d.override:
		d.fail(b.DefRange, "Missing base provider configuration for override",
			"There is no configuration of the provider %s. An override file can only override a block of a primary file.", id)
		return
	case p == nil:
		p = &Provider{ProviderID: id, Range: b.DefRange, Spec: map[string]any{}, positions: Positions{}}
	}
	if attr := content.Attributes["version"]; attr != nil {
		d.warn(attr.NameRange, "Version constraints inside provider configuration blocks are deprecated",
			"The argument version has no effect here. Put the constraint into required_providers.")
	}
	if attr := content.Attributes["for_each"]; attr != nil {
		p.ForEach = d.optional(content.Attributes, "for_each", diag.KeyField("provider", id.String()))
		if id.Alias == "" {
			d.fail(attr.NameRange, "Alias required when using \"for_each\"",
				"The for_each argument is allowed only for provider configurations with an alias.")
		}
	}
	spec := d.in(p.positions, func(c *converter) map[string]any {
		return c.spec(restOf(b.Body, providerSchema), []string{"alias", "version", "for_each"}, "spec")
	})
	maps.Copy(p.Spec, spec)
	d.config.Providers[id] = p
}

// terraform decodes a terraform block. What only says where Terraform runs and where it keeps its state gets a warning.
func (d *decoder) terraform(body hcl.Body) {
	content := d.content(body, terraformSchema)
	if attr := content.Attributes["required_version"]; attr != nil {
		version := d.text(attr)
		d.checkVersion(version, attr.Expr.Range())
		d.config.Versions = append(d.config.Versions, version)
	}
	if attr := content.Attributes["experiments"]; attr != nil {
		d.fail(attr.NameRange, "Unsupported experiments",
			"Hykube has no experimental features of Terraform. Remove the argument, and what depends on it.")
	}
	if attr := content.Attributes["language"]; attr != nil && hcl.ExprAsKeyword(attr.Expr) != "TF2021" {
		d.fail(attr.Expr.Range(), "Unsupported language edition", "The only edition of the language is TF2021.")
	}
	for _, b := range content.Blocks {
		switch b.Type {
		case "required_providers":
			d.requiredProviders(b.Body)
		case "provider_meta":
			d.fail(b.DefRange, "Unsupported provider_meta",
				"Hykube sends no provider_meta to providers. Remove the block.")
		case "backend", "cloud", "encryption":
			if d.override || len(d.config.Path) == 0 {
				d.warn(b.DefRange, "Block without effect",
					"Hykube keeps records in its own database, so the %s block has no effect here. It may stay for Terraform.", b.Type)
			}
		}
	}
}

func (d *decoder) requiredProviders(body hcl.Body) {
	attrs, diags := body.JustAttributes()
	d.note(diags)
	for _, name := range sortedKeys(attrs) {
		if name == "//" {
			continue
		}
		if p := d.requiredProvider(attrs[name]); p != nil {
			if d.config.Required[name] != nil && !d.override {
				d.fail(attrs[name].NameRange, "Duplicate required provider",
					"There is another entry for the provider %q in required_providers.", name)
				continue
			}
			d.config.Required[name] = p
		}
	}
}

func (d *decoder) requiredProvider(attr *hcl.Attribute) *RequiredProvider {
	p := &RequiredProvider{Range: attr.Range}
	pairs, diags := hcl.ExprMap(attr.Expr)
	if diags.HasErrors() { // the short form is only a version
		p.Version = d.text(attr)
		return p
	}
	for _, pair := range pairs {
		name := hcl.ExprAsKeyword(pair.Key)
		if name == "" {
			if v, diags := pair.Key.Value(nil); !diags.HasErrors() {
				name = v.AsString()
			}
		}
		field := &hcl.Attribute{Name: name, Expr: pair.Value, Range: pair.Key.Range(), NameRange: pair.Key.Range()}
		switch name {
		case "source":
			p.Source = d.text(field)
		case "version":
			p.Version = d.text(field)
		case "configuration_aliases":
			items, diags := hcl.ExprList(pair.Value)
			d.note(diags)
			for _, e := range items {
				if ref, ok := d.providerRef(e, "required_providers"); ok {
					p.Aliases = append(p.Aliases, ref.ProviderID)
				}
			}
		default:
			d.fail(pair.Key.Range(), "Invalid required_providers object",
				"required_providers objects can only contain \"version\", \"source\" and \"configuration_aliases\" attributes. To configure a provider, use a \"provider\" block.")
		}
	}
	return p
}
