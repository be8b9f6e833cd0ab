// Package catalog is the set of providers that this server has installed: which plugin stands behind a Provider
// object, which types it has, and a configured process of it for whoever needs one. It imports internal/provider,
// internal/plan and internal/schema; where ProviderConfigs and Secrets come from is its callers' business.
package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Entry is one installed provider.
type Entry struct {
	// Name of the Provider object.
	Name    string
	Package provider.Package
	Schema  *schema.Provider
}

// Catalog knows the installed providers. Its methods may be called from many goroutines.
type Catalog struct {
	pool *provider.Pool

	mu      sync.RWMutex
	entries map[string]Entry
	// types maps a Terraform type name to the names of the providers that have it.
	types map[string][]string
}

// New returns an empty catalog whose processes come from pool.
func New(pool *provider.Pool) *Catalog {
	return &Catalog{pool: pool, entries: map[string]Entry{}, types: map[string][]string{}}
}

// Put adds a provider, or replaces the one of the same name.
func (c *Catalog) Put(e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e.Name)
	c.entries[e.Name] = e
	for t := range e.Schema.Resources {
		c.types[t] = append(c.types[t], e.Name)
		slices.Sort(c.types[t])
	}
}

// Remove forgets a provider.
func (c *Catalog) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}

func (c *Catalog) remove(name string) {
	e, ok := c.entries[name]
	if !ok {
		return
	}
	delete(c.entries, name)
	for t := range e.Schema.Resources {
		c.types[t] = slices.DeleteFunc(c.types[t], func(n string) bool { return n == name })
		if len(c.types[t]) == 0 {
			delete(c.types, t)
		}
	}
}

// Get finds a provider by the name of its Provider object.
func (c *Catalog) Get(name string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[name]
	return e, ok
}

// Names lists the installed providers, sorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.entries))
}

// Types finds the schema of a resource type, whichever provider has it; nil when none does.
func (c *Catalog) Types(terraformType string) *schema.Schema {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range c.types[terraformType] {
		return c.entries[name].Schema.Resources[terraformType]
	}
	return nil
}

// Providers lists the names of the providers that have a resource type, sorted.
func (c *Catalog) Providers(terraformType string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.types[terraformType])
}

// TypeNames lists every resource type of every installed provider, sorted.
func (c *Catalog) TypeNames() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.types))
}

// Secret reads one key of a Secret.
type Secret func(ctx context.Context, name, key string) ([]byte, error)

// Configuration evaluates a ProviderConfig to what its provider is configured with. cfg may be nil: the provider is
// then used without arguments.
func (c *Catalog) Configuration(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig, secret Secret) (provider.Configuration, error) {
	block := e.Schema.Config.Block
	var args map[string]any
	if cfg != nil {
		if cfg.Spec.Config != nil && len(cfg.Spec.Config.Raw) > 0 {
			if err := json.Unmarshal(cfg.Spec.Config.Raw, &args); err != nil {
				return provider.Configuration{}, fmt.Errorf("spec.config: must be an object of the provider's arguments: %w", err)
			}
		}
		if args == nil { // not written, or written as null
			args = map[string]any{}
		}
		for _, ref := range cfg.Spec.SecretRefs {
			value, err := secret(ctx, ref.Name, ref.Key)
			if err != nil {
				return provider.Configuration{}, err
			}
			// The value is data, not a template.
			if err := set(args, strings.Split(ref.Argument, "."), plan.EscapeTemplate(string(value))); err != nil {
				return provider.Configuration{}, fmt.Errorf("spec.secretRefs: argument %q: %w", ref.Argument, err)
			}
		}
	}
	parsed, diags := plan.ParseConfig(args, block)
	if plan.HasErrors(diags) {
		return provider.Configuration{}, ConfigDiagnostics(diags)
	}
	if refs := parsed.References(); len(refs) > 0 {
		return provider.Configuration{}, fmt.Errorf("spec.config: refers to %s, but a provider's configuration cannot refer to resources; write the value itself, or take it from a Secret with spec.secretRefs", refs[0].Address)
	}
	value, diags := parsed.Evaluate(func(plan.Address) (cty.Value, bool) { return cty.NilVal, false })
	if plan.HasErrors(diags) {
		return provider.Configuration{}, ConfigDiagnostics(diags)
	}
	value, _ = value.UnmarkDeep()
	js, err := ctyjson.Marshal(value, block.ImpliedType())
	if err != nil {
		return provider.Configuration{}, fmt.Errorf("encode configuration: %w", err)
	}
	sum := sha256.Sum256(js)
	return provider.Configuration{Key: hex.EncodeToString(sum[:]), Config: value}, nil
}

// Acquire lends a process of the provider that is configured with cfg.
func (c *Catalog) Acquire(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig, secret Secret) (*provider.Lease, error) {
	conf, err := c.Configuration(ctx, e, cfg, secret)
	if err != nil {
		return nil, err
	}
	lease, err := c.pool.Acquire(ctx, e.Package, conf)
	if ce, ok := errors.AsType[*provider.ConfigError](err); ok {
		return nil, ConfigDiagnostics(plan.FromProto(ce.Diagnostics))
	}
	return lease, err
}

// DiagnosticsError is a configuration that does not fit the provider's schema.
type DiagnosticsError struct{ Diagnostics plan.Diagnostics }

// ConfigDiagnostics turns the diagnostics of a ProviderConfig's arguments into an error.
func ConfigDiagnostics(d plan.Diagnostics) error { return &DiagnosticsError{d} }

func (e *DiagnosticsError) Error() string {
	var lines []string
	for _, d := range e.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			// The planner speaks of a resource's spec; these are the arguments under spec.config.
			line := d.Summary
			if d.Attribute != "" {
				line = strings.Replace(d.Attribute, "spec", "spec.config", 1) + ": " + line
			}
			if d.Detail != "" {
				line += ": " + d.Detail
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

func set(args map[string]any, path []string, value any) error {
	for len(path) > 1 {
		next, ok := args[path[0]].(map[string]any)
		if !ok {
			if args[path[0]] != nil {
				return fmt.Errorf("%q is not an object", path[0])
			}
			next = map[string]any{}
			args[path[0]] = next
		}
		args, path = next, path[1:]
	}
	if _, there := args[path[0]]; there {
		return fmt.Errorf("spec.config sets it, too; remove one of the two")
	}
	args[path[0]] = value
	return nil
}
