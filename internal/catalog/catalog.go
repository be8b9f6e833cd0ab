// Package catalog holds the installed providers by the name of their Provider object. It provides their schemas and
// leases of configured processes. Its callers read ProviderConfigs and Secrets and pass the values. It may import
// internal/provider, internal/instance, internal/lang, internal/schema and internal/diag.
package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/recent"
	"github.com/hykube/hykube/internal/schema"
)

// Entry is one installed provider.
type Entry struct {
	// Name is the name of the Provider object.
	Name    string
	Package provider.Package
	Schema  *schema.Provider
}

// TakesConfiguration reports whether the provider has arguments of its own.
func (e Entry) TakesConfiguration() bool {
	return e.Schema != nil && e.Schema.Config != nil && e.Schema.Config.Block.HasArguments()
}

// SameSource reports whether two names are of one Provider, or of Providers with the same source.
func (c *Catalog) SameSource(a, b string) bool {
	if a == b {
		return true
	}
	ours, ok := c.Get(a)
	theirs, exists := c.Get(b)
	return ok && exists && ours.Package.Source == theirs.Package.Source
}

// Catalog holds the installed providers. It is safe for concurrent use.
type Catalog struct {
	pool *provider.Pool

	mu      sync.RWMutex
	entries map[string]Entry
	// changes counts the calls of Put and Remove.
	changes int
	// types maps each mode and Terraform type name to the names of the providers that have the type.
	types map[v1alpha1.Mode]map[string][]string
	// signatures caches the functions of all entries; nil if it must be rebuilt.
	signatures lang.Functions

	// templates caches parsed templates; see ParsedTemplate. templatesMu guards it.
	templatesMu sync.Mutex
	templates   map[TemplateKey]any

	constants *constants
}

// TemplateKey identifies a parsed template: the template, and the schema with which it was parsed.
type TemplateKey struct {
	Template string
	Schema   *schema.Schema
	// functions counts the changes of the providers, because templates call their functions.
	functions int
}

// maxTemplates is the maximum number of templates in the cache.
const maxTemplates = 2000

// ParsedTemplate returns the template with a key from the cache. The first call creates it. So all instances of a
// ResourceSet share the parsed template. A full cache loses all templates.
func (c *Catalog) ParsedTemplate(key TemplateKey, create func() any) any {
	c.mu.RLock()
	key.functions = c.changes
	c.mu.RUnlock()
	c.templatesMu.Lock()
	defer c.templatesMu.Unlock()
	if v, ok := c.templates[key]; ok {
		return v
	}
	if c.templates == nil || len(c.templates) >= maxTemplates {
		c.templates = map[TemplateKey]any{}
	}
	v := create()
	c.templates[key] = v
	return v
}

// New returns an empty catalog whose processes come from pool.
func New(pool *provider.Pool) *Catalog {
	return &Catalog{pool: pool, entries: map[string]Entry{}, types: map[v1alpha1.Mode]map[string][]string{},
		constants: recent.New[constantKey, provider.Configuration](maxConstants, keepConstants)}
}

// Put adds a provider, or replaces the one of the same name.
func (c *Catalog) Put(e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e.Name)
	c.changes++
	c.signatures = nil
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

// Remove removes a provider.
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
	c.changes++
	c.signatures = nil
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

// Get returns a provider by the name of its Provider object.
func (c *Catalog) Get(name string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[name]
	return e, ok
}

// Changes returns the number of changes of the catalog so far.
func (c *Catalog) Changes() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

// Names returns the names of the installed providers, sorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.entries))
}

// TakesBatches reports whether one of the named providers takes the calls of a type in batches.
func (c *Catalog) TakesBatches(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		e, ok := c.Get(name)
		return ok && e.Schema != nil && len(e.Schema.Batches) > 0
	})
}

// Unconfigured returns a lease of an unconfigured process of the provider, for its functions.
func (c *Catalog) Unconfigured(ctx context.Context, e Entry) (*provider.Lease, error) {
	return c.pool.Unconfigured(ctx, e.Package)
}
