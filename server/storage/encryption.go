package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/storage/records"
)

// The names of the ledger and of the keyring in a user's EncryptionConfiguration.
var (
	ledgerResource  = schema.GroupResource{Group: "ledger." + v1alpha1.GroupName, Resource: "records"}
	keyringResource = schema.GroupResource{Group: "keys." + v1alpha1.GroupName, Resource: "keyrings"}
)

const (
	// providersTimeout is the default of Config.ProvidersTimeout.
	providersTimeout = 15 * time.Second
	providersPoll    = 500 * time.Millisecond
)

// encryption chooses the encryption of each resource. The user's EncryptionConfiguration applies if it names the
// resource. Otherwise the data keys of the keyring encrypt it.
type encryption struct {
	ring *keyring
	user encryptionconfig.StaticTransformers // nil without an EncryptionConfiguration
	// checks are the health checks of the KMS plugins.
	checks []healthz.HealthChecker
}

// newEncryption reads the user's EncryptionConfiguration. Its KMS plugins run until ctx ends.
func newEncryption(ctx context.Context, cfg Config) (*encryption, error) {
	e := &encryption{ring: &keyring{root: root{file: cfg.KeyFile, own: filepath.Join(cfg.DataDir, ownKeyFile)}}}
	if cfg.EncryptionConfig != "" {
		user, err := encryptionconfig.LoadEncryptionConfig(ctx, cfg.EncryptionConfig, false, "hykube")
		if err != nil {
			return nil, fmt.Errorf("load encryption configuration %q: %w", cfg.EncryptionConfig, err)
		}
		e.user, e.checks = user.Transformers, user.HealthChecks
		if e.named(keyringResource) {
			e.ring.root.user = e.user.TransformerForResource(keyringResource)
		}
	}
	if _, err := e.ring.root.transformer(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := e.waitForProviders(ctx, cmp.Or(cfg.ProvidersTimeout, providersTimeout)); err != nil {
		return nil, fmt.Errorf("use encryption configuration %q: %w", cfg.EncryptionConfig, err)
	}
	return e, nil
}

// waitForProviders returns an error if a KMS plugin does not answer in time. Without the plugin, the server can read no
// row.
func (e *encryption) waitForProviders(ctx context.Context, timeout time.Duration) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(timeout); ; {
		var errs []error
		for _, check := range e.checks {
			errs = append(errs, check.Check(request))
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the KMS plugin did not answer within %s; start it, then the server: %w", timeout, err)
		}
		if err := pause(ctx, providersPoll); err != nil {
			return err
		}
	}
}

// checkRootKey returns an error if the database has a keyring that the root key does not decrypt.
func (e *encryption) checkRootKey(ctx context.Context) error {
	if _, err := e.ring.current(ctx, 0); err != nil && !errors.Is(err, errNoKeyring) {
		return err
	}
	return nil
}

// open reads the keyring again, which another server may have changed meanwhile, or prepares a new one, which save
// stores. It returns an error if the keys cannot decrypt the rows.
func (e *encryption) open(ctx context.Context, t *table,
	own *records.Store) (save func(context.Context) error, err error) {
	save = func(context.Context) error { return nil }
	_, err = e.ring.current(ctx, 0)
	if errors.Is(err, errNoKeyring) {
		save, err = e.prepare(ctx, t, own)
	}
	if err != nil {
		return nil, err
	}
	return save, e.checkRows(ctx, t, own)
}

// prepare makes a keyring for a database without objects and records.
func (e *encryption) prepare(ctx context.Context, t *table,
	own *records.Store) (save func(context.Context) error, err error) {
	used, err := t.used(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := own.List(ctx, "", "", 1)
	if err != nil {
		return nil, err
	}
	if used || len(rows) > 0 {
		return nil, errNoKeyring
	}
	k := keys{Keys: []dataKey{newDataKey(time.Now())}}
	writeKey := func() error { return nil }
	root, err := e.ring.root.transformer()
	if errors.Is(err, fs.ErrNotExist) {
		root, writeKey, err = e.ring.root.create()
	}
	if err != nil {
		return nil, err
	}
	unsaved, err := load(k, 0)
	if err != nil {
		return nil, err
	}
	e.ring.loaded.Store(unsaved)
	return func(ctx context.Context) error {
		if err := writeKey(); err != nil { // before the keyring, which is lost without its key after a crash
			return err
		}
		err := e.ring.save(ctx, k, 0, root)
		if errors.Is(err, errKeyringChanged) {
			e.ring.loaded.Store(nil)
			_, err = e.ring.current(ctx, 0)
		}
		return err
	}, nil
}

// checkRows decrypts one row of each resource, so that a server with a wrong key does not start.
func (e *encryption) checkRows(ctx context.Context, t *table, own *records.Store) error {
	check := func(name string, data []byte) error {
		gr, ok := resourceOf(name)
		if !ok {
			return nil
		}
		if _, _, err := e.transformer(gr).TransformFromStorage(ctx, data, value.DefaultContext(name)); err != nil {
			return fmt.Errorf("decrypt %q of the database: %w", name, err)
		}
		return nil
	}
	rows, err := own.List(ctx, "", "", 1)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := check(ledgerPrefix+r.Key, r.Value); err != nil {
			return err
		}
	}
	return t.samples(ctx, check)
}

// transformer returns the encryption of a resource.
func (e *encryption) transformer(gr schema.GroupResource) value.Transformer {
	return e.transformerWith(gr, ownTransformer{ring: e.ring})
}

// withLastKeys is transformer with the data keys that were read last, also if the database does not answer.
func (e *encryption) withLastKeys(gr schema.GroupResource) value.Transformer {
	return e.transformerWith(gr, ownTransformer{ring: e.ring, last: true})
}

func (e *encryption) transformerWith(gr schema.GroupResource, own ownTransformer) value.Transformer {
	if !e.named(gr) {
		return own
	}
	// Data that was written before the user added a configuration must stay readable.
	return fallback{Transformer: e.user.TransformerForResource(gr), own: own}
}

// named reports whether the user's EncryptionConfiguration names a resource.
func (e *encryption) named(gr schema.GroupResource) bool {
	for _, name := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, ok := e.user[name]; ok {
			return true
		}
	}
	return false
}

// resourceOf returns the resource of a key of the database; false for the server's own keys, which hold no user's data.
func resourceOf(name string) (schema.GroupResource, bool) {
	if strings.HasPrefix(name, ledgerPrefix) {
		return ledgerResource, true
	}
	rest, ok := strings.CutPrefix(name, objectPrefix+"/")
	part := strings.SplitN(rest, "/", 3)
	if !ok || len(part) < 3 {
		return schema.GroupResource{}, false
	}
	if part[0] == "core" {
		part[0] = ""
	}
	return schema.GroupResource{Group: part[0], Resource: part[1]}, true
}
