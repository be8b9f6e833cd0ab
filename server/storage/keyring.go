package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"
)

const (
	// keyringKey is the key of the keyring in the database.
	keyringKey = "/hykube.io-keys/keyring"
	// keyringAge is the maximum age of the keyring that a write uses. Another server may have added a key since.
	keyringAge = 5 * time.Second
)

// keyPrefix and the ID of a data key precede data that is encrypted with the key.
var keyPrefix = []byte("hykube:enc:aesgcm:v2:")

// keys is the content of the keyring. The root key encrypts it.
type keys struct {
	// Keys are the data keys. The first one encrypts, all of them decrypt. Only a rotation has more than one.
	Keys []dataKey `json:"keys"`
}

// dataKey encrypts rows of the database.
type dataKey struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Secret  []byte    `json:"secret"`
}

func newDataKey(now time.Time) dataKey {
	id, secret := make([]byte, 4), make([]byte, keyBytes)
	rand.Read(id)
	rand.Read(secret)
	return dataKey{ID: hex.EncodeToString(id), Created: now.UTC().Truncate(time.Second), Secret: secret}
}

func (k dataKey) prefix() []byte { return append(bytes.Clone(keyPrefix), k.ID+":"...) }

// loadedKeys are keys that are ready for use.
type loadedKeys struct {
	keys
	revision int64
	// byID holds the transformer of each key, which adds and removes the key's prefix.
	byID map[string]value.Transformer
}

func load(k keys, revision int64) (*loadedKeys, error) {
	l := &loadedKeys{keys: k, revision: revision, byID: map[string]value.Transformer{}}
	for _, key := range k.Keys {
		rows, err := newCipher(key.Secret)
		if err != nil {
			return nil, fmt.Errorf("use data key %q: %w", key.ID, err)
		}
		l.byID[key.ID] = value.NewPrefixTransformers(nil,
			value.PrefixTransformer{Prefix: key.prefix(), Transformer: rows})
	}
	return l, nil
}

// keyring holds the data keys. The database stores them, so a server on another machine has them, too.
type keyring struct {
	table  *table
	client clientv3.KV // set before the first save
	root   root

	// loaded are the keys that the database had at the time checked.
	loaded atomic.Pointer[loadedKeys]
	mu     sync.Mutex
	// checked is guarded by mu.
	checked time.Time
}

// current returns the keys as the database had them at most age ago. It returns errNoKeyring if the database has none.
func (r *keyring) current(ctx context.Context, age time.Duration) (*loadedKeys, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	loaded, begun := r.loaded.Load(), time.Now()
	if loaded != nil && begun.Sub(r.checked) < age {
		return loaded, nil
	}
	data, revision, err := r.table.get(ctx, keyringKey)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read keyring: %w", err)
	case revision == 0 && loaded != nil && loaded.revision == 0:
		return loaded, nil // a new one, not saved yet
	case revision == 0:
		return nil, errNoKeyring
	}
	if loaded == nil || loaded.revision != revision {
		if loaded, err = r.decrypt(ctx, data, revision); err != nil {
			return nil, err
		}
		r.loaded.Store(loaded)
	}
	r.checked = begun
	return loaded, nil
}

func (r *keyring) decrypt(ctx context.Context, data []byte, revision int64) (*loadedKeys, error) {
	root, err := r.root.transformer()
	if errors.Is(err, fs.ErrNotExist) {
		err = r.root.missing()
	}
	if err != nil {
		return nil, err
	}
	clear, _, err := root.TransformFromStorage(ctx, data, value.DefaultContext(keyringKey))
	if err != nil {
		return nil, fmt.Errorf("decrypt the database's keys with %s: %w; give the server the key file or the --encryption-provider-config that it had before", r.root.source(), err)
	}
	var k keys
	if err := json.Unmarshal(clear, &k); err != nil || len(k.Keys) == 0 {
		return nil, errors.Join(errors.New("decode keyring: it has no keys"), err)
	}
	return load(k, revision)
}

// save encrypts the keys with the root key and writes them, if revision is still that of the keyring.
func (r *keyring) save(ctx context.Context, k keys, revision int64, root value.Transformer) error {
	clear, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode keyring: %w", err)
	}
	sealed, err := root.TransformToStorage(ctx, clear, value.DefaultContext(keyringKey))
	if err != nil {
		return fmt.Errorf("encrypt keyring with %s: %w", r.root.source(), err)
	}
	if bytes.Contains(sealed, clear) {
		return errors.New("encrypt keyring: the EncryptionConfiguration would store it as plain text; put a provider that encrypts before identity")
	}
	written, ok, err := putAt(ctx, r.client, keyringKey, sealed, revision)
	if err != nil {
		return fmt.Errorf("write keyring: %w", err)
	}
	if !ok {
		return errKeyringChanged
	}
	l, err := load(k, written)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded.Store(l)
	r.checked = time.Now()
	return nil
}

var (
	errNoKeyring = errors.New("the database has no keyring; restore the database from a backup")
	// errKeyringChanged says that another server wrote the keyring.
	errKeyringChanged = errors.New("another server changed the keyring; try again")
)

// ownTransformer encrypts with the first data key of the keyring. It decrypts with all of them.
type ownTransformer struct {
	ring *keyring
	// last is true if writes use the keys that were read last, without a read of the database.
	last bool
}

// isOwn reports whether data is encrypted with a data key.
func isOwn(data []byte) bool { return bytes.HasPrefix(data, keyPrefix) }

// keyID returns the ID of the data key in the prefix of data.
func keyID(data []byte) string {
	rest := data[len(keyPrefix):]
	id, _, _ := bytes.Cut(rest[:min(len(rest), 64)], []byte(":"))
	return string(id)
}

// TransformFromStorage implements value.Transformer. The result is stale if another key encrypts now.
func (t ownTransformer) TransformFromStorage(ctx context.Context, data []byte,
	dataCtx value.Context) ([]byte, bool, error) {
	ring := t.ring.loaded.Load()
	if !isOwn(data) {
		return nil, false, errors.New(
			"the stored value is not encrypted with a key of this server: give the same --encryption-provider-config as before")
	}
	id := keyID(data)
	if ring.byID[id] == nil {
		// Another server may have added the key.
		var err error
		if ring, err = t.ring.current(ctx, 0); err != nil {
			return nil, false, err
		}
	}
	if ring.byID[id] == nil {
		return nil, false, fmt.Errorf(
			"the stored value needs the data key %q, which this server does not have; restore the database from a backup", id)
	}
	out, _, err := ring.byID[id].TransformFromStorage(ctx, data, dataCtx)
	if err != nil {
		return nil, false, fmt.Errorf(
			"the stored value is damaged, or it was not encrypted with the data key %q: %w; restore the database from a backup", id, err)
	}
	return out, id != ring.Keys[0].ID, nil
}

func (t ownTransformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	ring := t.ring.loaded.Load()
	if !t.last {
		var err error
		if ring, err = t.ring.current(ctx, keyringAge); err != nil {
			return nil, err
		}
	}
	return ring.byID[ring.Keys[0].ID].TransformToStorage(ctx, data, dataCtx)
}

// fallback decrypts data that a data key encrypted with own, and other data with the user's Transformer.
type fallback struct {
	value.Transformer
	own ownTransformer
}

func (f fallback) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if isOwn(data) {
		out, _, err := f.own.TransformFromStorage(ctx, data, dataCtx)
		return out, true, err
	}
	return f.Transformer.TransformFromStorage(ctx, data, dataCtx)
}
