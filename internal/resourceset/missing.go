package resourceset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/internal/module"
)

// ErrNoProvider is the error of Environment.Provider for a type that no installed provider has.
var ErrNoProvider = errors.New("no installed Provider has the type")

// missingProviders are the types of a module that no installed provider has, by the requirement of the module for their
// provider.
type missingProviders map[requirement]map[string]bool

type requirement struct{ name, source, version string }

func (p missingProviders) add(block *module.Set) {
	name, required := block.Required()
	key := requirement{name, required.Source, required.Version}
	if p[key] == nil {
		p[key] = map[string]bool{}
	}
	p[key][block.Type] = true
}

// err returns an error that names all types, and has the Providers to apply; nil if no type is missing.
func (p missingProviders) err() error {
	if len(p) == 0 {
		return nil
	}
	types := map[string]bool{}
	var manifests []string
	for of, has := range p {
		maps.Copy(types, has)
		text := fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: %q}\nspec:\n  source: %s",
			of.name, of.source)
		if of.version != "" {
			text += fmt.Sprintf("\n  version: %q", of.version)
		}
		manifests = append(manifests, text)
	}
	slices.Sort(manifests)
	return fmt.Errorf("%w %s. Unless they exist and are not ready yet, apply:\n---\n%s", ErrNoProvider,
		strings.Join(slices.Sorted(maps.Keys(types)), ", "), strings.Join(manifests, "\n---\n"))
}
