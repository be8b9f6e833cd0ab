package catalog

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/recent"
	"github.com/hykube/hykube/internal/schema"
)

const (
	// maxConstants is the maximum number of configurations in the cache.
	maxConstants = 64
	// keepConstants is the maximum time for which the cache keeps a configuration, which may hold secrets.
	keepConstants = time.Minute
)

// constants caches the configurations of ProviderConfigs without expressions. The steps of a plan evaluate the same ones
// again and again.
type constants = recent.Map[constantKey, provider.Configuration]

// constantKey identifies a configuration: the schema, the namespace, and the arguments with the values of Secrets.
type constantKey struct {
	block     *schema.Block
	namespace string
	arguments [sha256.Size]byte
}

// constantOf returns the key of a configuration with the arguments of a ProviderConfig without expressions. args also has the
// values of Secrets. These may be other bytes than UTF-8, so JSON would encode different values alike.
func constantOf(cfg *v1alpha1.ProviderConfig, block *schema.Block, args map[string]any) constantKey {
	return constantKey{block, cfg.Namespace, sha256.Sum256(fmt.Appendf(nil, "%#v", args))} // fmt sorts the keys of maps
}

// hasTemplates reports whether a string in a JSON value may be a template with expressions.
func hasTemplates(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "${") || strings.Contains(v, "%{")
	case []any:
		return slices.ContainsFunc(v, hasTemplates)
	case map[string]any:
		for key, member := range v {
			if hasTemplates(key) || hasTemplates(member) {
				return true
			}
		}
	}
	return false
}
