package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/atomicfile"
)

// keyFile is the name of the file with the server's own key, in the data directory.
const keyFile = "encryption.key"

// ownPrefix is the prefix of data that is encrypted with the server's own key.
var ownPrefix = []byte("hykube:enc:aesgcm:v1:")

// ledgerResource is the name of the ledger in a user's EncryptionConfiguration.
var ledgerResource = schema.GroupResource{Group: "ledger." + v1alpha1.GroupName, Resource: "records"}

// encryption chooses the encryption of each resource. The user's EncryptionConfiguration applies if it names the
// resource. Otherwise the server's own key encrypts resources that may hold secrets.
type encryption struct {
	own  value.Transformer
	user value.ResourceTransformers // nil without an EncryptionConfiguration
	has  map[schema.GroupResource]value.Transformer
}

func openEncryption(ctx context.Context, cfg Config) (*encryption, error) {
	key, err := ownKey(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	gcm, err := aes.NewHKDFExtendedNonceGCMTransformer(key)
	if err != nil {
		return nil, fmt.Errorf("use encryption key %q: %w", filepath.Join(cfg.DataDir, keyFile), err)
	}
	e := &encryption{own: value.NewPrefixTransformers(
		errors.New("the stored value is not encrypted with this server's key: restore "+keyFile+" of the data directory that wrote it, or give the same --encryption-provider-config"),
		value.PrefixTransformer{Prefix: ownPrefix, Transformer: gcm},
	)}
	if cfg.EncryptionConfig == "" {
		return e, nil
	}
	user, err := encryptionconfig.LoadEncryptionConfig(ctx, cfg.EncryptionConfig, false, "hykube")
	if err != nil {
		return nil, fmt.Errorf("load encryption configuration %q: %w", cfg.EncryptionConfig, err)
	}
	e.user, e.has = encryptionconfig.StaticTransformers(user.Transformers), user.Transformers
	return e, nil
}

// transformer returns the encryption of a resource; nil means plain text.
func (e *encryption) transformer(gr schema.GroupResource) value.Transformer {
	var own value.Transformer
	if secret(gr) {
		own = e.own
	}
	if !e.named(gr) {
		return own
	}
	// Data that was written before the user added a configuration must stay readable.
	return fallback{Transformer: e.user.TransformerForResource(gr), own: e.own}
}

func (e *encryption) named(gr schema.GroupResource) bool {
	for _, name := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, ok := e.has[name]; ok {
			return true
		}
	}
	return false
}

// secret reports whether objects of a resource may hold secrets. These are Secrets and all resources of Hykube, since a
// provider's arguments may be passwords.
func secret(gr schema.GroupResource) bool {
	return gr == schema.GroupResource{Resource: "secrets"} ||
		gr.Group == v1alpha1.GroupName || strings.HasSuffix(gr.Group, "."+v1alpha1.GroupName)
}

// fallback decrypts data with ownPrefix with the server's own key, and other data with the Transformer.
type fallback struct {
	value.Transformer
	own value.Transformer
}

func (f fallback) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if bytes.HasPrefix(data, ownPrefix) {
		out, _, err := f.own.TransformFromStorage(ctx, data, dataCtx)
		return out, true, err
	}
	return f.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// ownKey reads the server's key. It generates the key if the file does not exist.
func ownKey(dataDir string) ([]byte, error) {
	path := filepath.Join(dataDir, keyFile)
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == 32:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("read encryption key %q: it has %d bytes instead of 32; restore it from a backup", path, len(key))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read encryption key: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dataDir, "db", "state.db")); err == nil {
		return nil, fmt.Errorf("read encryption key %q: it is gone, and without it nobody can read the data directory; restore it from a backup", path)
	}
	key = make([]byte, 32)
	rand.Read(key) // rand.Read never fails: https://pkg.go.dev/crypto/rand#Read
	// Without the key, all encrypted data would be lost.
	if err := atomicfile.Write(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("write encryption key: %w", err)
	}
	return key, nil
}
