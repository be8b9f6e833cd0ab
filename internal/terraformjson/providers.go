package terraformjson

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// configProvider is one provider configuration in Terraform's "configuration".
type configProvider struct {
	Name              string         `json:"name"`
	FullName          string         `json:"full_name"`
	VersionConstraint string         `json:"version_constraint,omitempty"`
	Alias             string         `json:"alias,omitempty"`
	Expressions       map[string]any `json:"expressions,omitempty"`
}

// providers names the provider configurations as Terraform does: the default configuration has no alias.
func (t *Plan) providers(ctx context.Context) {
	resources := t.config.RootModule.Resources
	unnamed := map[string]string{}
	for _, r := range resources {
		if r.config == v1alpha1.DefaultProviderConfig {
			unnamed[r.provider] = r.config
		}
	}
	for _, r := range resources {
		object := ProviderName(r.object)
		name := cmp.Or(object, path.Base(r.provider))
		p := &configProvider{Name: name, FullName: r.provider}
		r.ProviderConfigKey = name
		if r.config != "" && r.config != cmp.Or(unnamed[r.provider], name) {
			p.Alias, r.ProviderConfigKey = r.config, name+"."+r.config
		}
		if t.config.ProviderConfigs[r.ProviderConfigKey] == nil {
			t.config.ProviderConfigs[r.ProviderConfigKey] = p
			t.readProvider(ctx, p, object, r.config)
		}
	}
	slices.SortFunc(resources, func(a, b *configResource) int {
		return cmp.Or(-strings.Compare(string(a.Mode), string(b.Mode)), strings.Compare(a.Address, b.Address))
	})
}

// readProvider adds data from the Provider and the ProviderConfig.
func (t *Plan) readProvider(ctx context.Context, p *configProvider, provider, config string) {
	of, cfg := t.source.Provider(ctx, provider, t.plan.Namespace, config)
	p.VersionConstraint = of.Version
	var args map[string]any
	if json.Unmarshal(rawOr(cfg.Config, "null"), &args) != nil {
		return
	}
	p.Expressions = argumentExpressions(args)
	for _, ref := range cfg.SecretRefs {
		if !strings.Contains(ref.Argument, ".") { // Terraform shows a nested argument as part of its parent
			p.Expressions[ref.Argument] = map[string]any{"references": []string{"secret." + ref.Name + "." + ref.Key,
				"secret." + ref.Name}}
		}
	}
}

// confidential matches names of arguments that hold credentials, because the schema of a provider's configuration is
// not published.
var confidential = regexp.MustCompile(`(?i)password|passphrase|secret|token|credential|private|(^|_)key$`)

// argumentExpressions returns the arguments of a provider. It treats a list of objects as blocks.
func argumentExpressions(args map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range args {
		if list, ok := v.([]any); ok && len(list) > 0 && !slices.ContainsFunc(list,
			func(e any) bool { _, ok := e.(map[string]any); return !ok }) {
			blocks := make([]any, len(list))
			for i, e := range list {
				blocks[i] = argumentExpressions(e.(map[string]any))
			}
			out[name] = blocks
			continue
		}
		e := expression(maskCredentials(v), nil, nil, true)
		if _, constant := e["constant_value"]; constant && confidential.MatchString(name) {
			e["constant_value"] = diff.Masked
		}
		out[name] = e
	}
	return out
}

// maskCredentials returns a value with the credentials in its nested objects masked.
func maskCredentials(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if text, ok := e.(string); ok && confidential.MatchString(k) && !strings.Contains(text, "${") {
				out[k] = diff.Masked
				continue
			}
			out[k] = maskCredentials(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = maskCredentials(e)
		}
		return out
	}
	return v
}
