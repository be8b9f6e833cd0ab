package catalog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
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

// constants caches the configurations of ProviderConfigs without expressions. The steps of a plan evaluate the same
// ones again and again.
type constants = recent.Map[constantKey, provider.Configuration]

// constantKey identifies a configuration: the schema, the namespace, and the arguments with the values of Secrets.
type constantKey struct {
	block     *schema.Block
	namespace string
	arguments [sha256.Size]byte
}

// constantOf returns the key of the configuration of a ProviderConfig, which may be nil, with the values of its
// secretRefs. ok is false if the configuration may have expressions.
func constantOf(cfg *v1alpha1.ProviderConfig, block *schema.Block, secrets [][]byte) (key constantKey, ok bool) {
	if cfg == nil {
		return key, false
	}
	var config []byte
	if cfg.Spec.Config != nil {
		config = cfg.Spec.Config.Raw
	}
	if mayHaveTemplates(config) {
		return key, false
	}
	text := fmt.Appendf(nil, "%q", config)
	for i, ref := range cfg.Spec.SecretRefs {
		text = fmt.Appendf(text, "%t%q%q", ref.Rotates, ref.Argument, secrets[i])
	}
	return constantKey{block, cfg.Namespace, sha256.Sum256(text)}, true
}

// mayHaveTemplates reports whether a JSON value may have a string that is a template with expressions. A character of a
// template may be escaped.
func mayHaveTemplates(raw []byte) bool {
	return bytes.Contains(raw, []byte("${")) || bytes.Contains(raw, []byte("%{")) || bytes.Contains(raw, []byte(`\u`))
}
