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
	// types maps the Terraform type names of each mode to the names of the providers that have them.
	types map[v1alpha1.Mode]map[string][]string
}

// New returns an empty catalog whose processes come from pool.
func New(pool *provider.Pool) *Catalog {
	return &Catalog{pool: pool, entries: map[string]Entry{}, types: map[v1alpha1.Mode]map[string][]string{}}
}

// Put adds a provider, or replaces the one of the same name.
func (c *Catalog) Put(e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e.Name)
	c.entries[e.Name] = e
	for mode, schemas := range e.schemas() {
		for t := range schemas {
			if c.types[mode] == nil {
				c.types[mode] = map[string][]string{}
			}
			c.types[mode][t] = append(c.types[mode][t], e.Name)
			slices.Sort(c.types[mode][t])
		}
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
	for mode, schemas := range e.schemas() {
		for t := range schemas {
			names := slices.DeleteFunc(c.types[mode][t], func(n string) bool { return n == name })
			c.types[mode][t] = names
			if len(names) == 0 {
				delete(c.types[mode], t)
			}
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

// Types finds the schema of a managed resource type, whichever provider has it; nil when none does.
func (c *Catalog) Types(terraformType string) *schema.Schema {
	return c.Schema(v1alpha1.ModeManaged, terraformType)
}

// Providers lists the names of the providers that have a managed resource type, sorted.
func (c *Catalog) Providers(terraformType string) []string {
	return c.ProvidersOf(v1alpha1.ModeManaged, terraformType)
}

// TypeNames lists every managed resource type of every installed provider, sorted.
func (c *Catalog) TypeNames() []string { return c.TypeNamesOf(v1alpha1.ModeManaged) }

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
	value, err := evaluate("spec.config", args, block)
	if err != nil {
		return provider.Configuration{}, err
	}
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

// Unconfigured lends a process of the provider that nobody configured, for its functions.
func (c *Catalog) Unconfigured(ctx context.Context, e Entry) (*provider.Lease, error) {
	return c.pool.Unconfigured(ctx, e.Package)
}

// DiagnosticsError is a configuration that does not fit the provider's schema.
type DiagnosticsError struct {
	Diagnostics plan.Diagnostics
	// field is where the arguments are written; empty for spec.config.
	field string
}

// ConfigDiagnostics turns the diagnostics of a ProviderConfig's arguments into an error.
func ConfigDiagnostics(d plan.Diagnostics) error { return &DiagnosticsError{Diagnostics: d} }

func (e *DiagnosticsError) Error() string {
	field := e.field
	if field == "" {
		field = "spec.config"
	}
	var lines []string
	for _, d := range e.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			// The planner speaks of a resource's spec; these are the arguments under one of its fields.
			line := d.Summary
			if d.Attribute != "" {
				line = strings.Replace(d.Attribute, "spec", field, 1) + ": " + line
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
